import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import { noLimits } from '../../src/store/keys.ts'
import { newKey, storeIn } from '../e2e/money/budget-world.ts'
import { answerJson, type LoopbackProvider, loopbackProvider, type Received, within } from '../helpers/provider.ts'
import { alone, type TestRouter, testRouter } from '../helpers/router.ts'
import { serviceAccount, tokenEndpoint } from '../helpers/token-endpoint.ts'

type Answer = (request: Received, response: ServerResponse) => void | Promise<void>

/** What providers need to be configured. */
const environment = {
  AZURE_RESOURCE_NAME: 'resource',
  AZURE_API_KEY: 'key',
  CLOUDFLARE_ACCOUNT_ID: 'account',
  CLOUDFLARE_API_TOKEN: 'key',
  AWS_BEARER_TOKEN_BEDROCK: 'key',
  AWS_ACCESS_KEY_ID: 'id',
  AWS_SECRET_ACCESS_KEY: 'key',
  GOOGLE_VERTEX_PROJECT: 'project',
}

/** How a call is made: the key, and what ends it. */
export type Asked = { secret?: string; headers?: Record<string, string>; signal?: AbortSignal }

/** A router before one server that is all these providers, by their slugs. */
export async function jsonStage({ providers, ...options }: { providers: Record<string, object>; settings?: object }) {
  let answering: Answer = () => {}
  const provider: LoopbackProvider = await loopbackProvider((request, response) => answering(request, response))
  const tokens = await tokenEndpoint()
  const addressed = Object.entries(providers).map(([slug, settings]) => [
    slug,
    { ...(slug !== 'vertex' && { secret: 'secret-of-provider' }), ...settings, base_url: provider.url },
  ])
  const account = 'vertex' in providers && { GOOGLE_APPLICATION_CREDENTIALS: serviceAccount(tokens.url) }
  const env = { ...environment, ...account }
  const router: TestRouter = await testRouter({ ...options, env, providers: alone(Object.fromEntries(addressed)) })
  const store = await storeIn(router.folder)
  return {
    /** For one test: what the provider answers now, a key of its own, and only the requests and rows from now on. */
    async begin(answer: Answer) {
      answering = answer
      provider.received.length = 0
      const earlier = new Set((await store.keys.page({ limit: 1_000 })).map(({ id }) => id))
      const { secret: own } = await newKey(store)
      return {
        provider,
        router,
        store,
        secret: own,
        /** Calls an endpoint; a text is sent as it is. */
        ask: (path: string, body: object | string, { secret = own, headers = {}, signal }: Asked = {}) =>
          fetch(router.url + path, {
            method: 'POST',
            headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
            body: typeof body === 'string' ? body : JSON.stringify(body),
            ...(signal && { signal }),
          }),
        rows: async (): Promise<CallRecord[]> =>
          (await Array.fromAsync(store.ledger.each({}))).filter(({ key }) => !earlier.has(key)),
      }
    },
    async end() {
      await store.close()
      await router.end()
      await provider.close()
      await tokens.close()
    },
  }
}

/** A router of its own before one provider that answers as `answer` says, under the given slugs. */
export async function jsonWorld(answer: Answer, options: Parameters<typeof jsonStage>[0]) {
  const stage = await jsonStage(options)
  return { ...(await stage.begin(answer)), end: stage.end }
}

export type JsonStage = Awaited<ReturnType<typeof jsonStage>>
export type JsonWorld = Awaited<ReturnType<typeof jsonWorld>>

/** A call whose cost is the most that it can be: `answer` is the provider's, `nano` its cost in nano-USD. */
export type PricedCall = {
  /** The API in the ledger. */
  api: string
  path: string
  /** The body without its model. */
  body: object
  entry: object
  answer: object
  nano: bigint
}

/** Tests of the money and the errors of an operation that answers in JSON. */
export function testMoney({ api, path, body, entry, answer, nano }: PricedCall): void {
  const good: Answer = (_, response) => answerJson(response, answer)
  let stage: JsonStage
  beforeAll(async () => {
    stage = await jsonStage({
      providers: { openai: { models: { first: entry, second: entry } } },
      settings: { policies: { both: { targets: ['openai/first', 'openai/second'] } } },
    })
  })
  afterAll(() => stage?.end())
  const call = { model: 'openai/first', ...body }
  const usd = Number(nano) / 1e9

  test('costs what it says, in the reply and in the ledger', async () => {
    const world = await stage.begin(good)
    const response = await world.ask(path, call)
    expect(response.status).toBe(200)
    const reply = (await response.json()) as { usage: { cost: number } }
    expect(reply.usage.cost).toBe(usd)
    expect(await world.rows()).toMatchObject([
      { api, model: 'first', provider: 'openai', outcome: 'complete', status: 200, cost: { nanoUsd: Number(nano) } },
    ])
  })

  test('of 12 calls at once, a key that pays 5 makes exactly 5', async () => {
    const world = await stage.begin(good)
    const key = await newKey(world.store, { monthlyLimitNano: 5n * nano })
    const answers = await Promise.all(Array.from({ length: 12 }, () => world.ask(path, call, key)))
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses).toEqual([...Array(5).fill(200), ...Array(7).fill(402)])
    expect(world.provider.received).toHaveLength(5)
  })

  test('who may not call is told before the body is read', async () => {
    const world = await stage.begin(good)
    const status = async (body: object | string, asked?: Asked) => (await world.ask(path, body, asked)).status
    expect(await status('not json', { secret: '' })).toBe(401)
    expect(await status('not json', { secret: 'wrong' })).toBe(403)
    expect(await status('not json')).toBe(400)
    expect(await status({ ...call, model: 'openai/unknown' })).toBe(404)
    expect(await status({ ...call, model: 'openai/gpt-image-1' })).toBe(400)
    expect(await status(body)).toBe(400)
    const allowed = await newKey(world.store, { accessList: ['openai/second'] })
    expect(await status(call, allowed)).toBe(403)
    const slow = await newKey(world.store, { limits: { ...noLimits, requestsPerMinute: 1 } })
    expect([await status(call, slow), await status(call, slow)]).toEqual([200, 429])
    expect(world.provider.received).toHaveLength(1)
  })

  test('what is no answer is a 502, and another target is tried', async () => {
    const world = await stage.begin(({ body: sent }, response) => {
      if (sent.model === 'second') answerJson(response, answer)
      else response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
    })
    const alone = await world.ask(path, call)
    expect([alone.status, await alone.json()]).toMatchObject([502, { error: { origin: 'provider' } }])
    const both = await world.ask(path, { ...call, model: 'policy/both' })
    expect([both.status, both.headers.get('x-router-model')]).toEqual([200, 'openai/second'])
    expect(both.headers.get('x-router-attempts')).toBe('2')
    await both.arrayBuffer()
    const rows = (await world.rows()).filter(({ attemptOf }) => attemptOf === undefined)
    expect(rows.map(({ cost }) => cost.nanoUsd).sort()).toEqual([0, Number(nano)])
  })

  test('an answer without its result is a 502, and paid', async () => {
    const world = await stage.begin((_, response) =>
      answerJson(response, { ...answer, data: 1, results: 1, choices: 1 }),
    )
    expect((await world.ask(path, call)).status).toBe(502)
    expect((await world.rows()).map(({ cost }) => cost.nanoUsd)).toEqual([Number(nano)])
  })

  test('a client that leaves ends the call at the provider', async () => {
    let left: Promise<void> | undefined
    const asked = Promise.withResolvers<void>()
    const world = await stage.begin((request) => {
      left = request.left
      asked.resolve()
    })
    const leaving = new AbortController()
    const answered = world.ask(path, call, { signal: leaving.signal }).catch(() => 'left')
    await within(2_000, 'the call', asked.promise)
    leaving.abort()
    expect(await answered).toBe('left')
    await within(2_000, 'the provider', left as Promise<void>)
    await expect.poll(async () => (await world.rows()).map(({ error }) => error)).toEqual(['client_gone'])
  })
}
