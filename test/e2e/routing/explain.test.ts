import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/core/json.ts'
import { beginStream } from '../../helpers/provider.ts'
import { newKey } from '../money/budget-world.ts'
import { chunk, type Explained, fails, type Step, type World, worldWith } from './explain-world.ts'

// Calls that ask why which targets were chosen: in every API, whole and streamed, answered and failed.

let world: World

beforeAll(async () => {
  const both = ['one/m1', 'two/m1']
  world = await worldWith(
    {
      both: { targets: both },
      weights: { targets: [{ target: 'one/m1', weight: 0 }, 'two/m1'], sort: 'weighted' },
      cheap: { targets: both, sort: 'price' },
      quick: { targets: both, sort: 'latency' },
      kept: { targets: both, sticky: 'session', sort: 'price' },
      hashed: { targets: both, sticky: 'hash' },
      held: { targets: both, on_cut: 'hold' },
      going: { targets: both, on_cut: 'continue' },
      seeing: { targets: ['one/blind', 'two/m1'] },
      roomy: { targets: ['one/small', 'two/m1'] },
      paid: { targets: ['one/unpriced', 'two/m1'] },
      mixed: { targets: ['away/m1', 'one/m1'] },
      'near@eu': { targets: ['one/m1', 'two/european'] },
      vectors: { targets: ['one/vectors', 'two/vectors'] },
      pictures: { targets: ['one/pictures', 'two/pictures'] },
    },
    { routing: { retries: 1 }, health: { consecutive_failures: 2, ramp_up: '1ms' } },
  )
})

afterAll(async () => {
  await world?.end()
})

beforeEach(() => {
  world.steps.one.length = 0
  world.steps.two.length = 0
})

const messages = [{ role: 'user', content: 'Hello there, how are you?' }]
const apis = {
  chat: { path: '/v1/chat/completions', body: { messages, max_tokens: 10 } },
  messages: { path: '/v1/messages', body: { messages, max_tokens: 10 } },
  responses: { path: '/v1/responses', body: { input: 'Hello there, how are you?', max_output_tokens: 20 } },
} as const
type ApiName = keyof typeof apis

type Answer = { status: number; text: string; router: { attempts: number; explain: Explained } | undefined }

async function post(path: string, body: object, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await world.router.call(path, body, { 'x-router-explain': 'true', ...headers })
  const text = await response.text()
  return { status: response.status, text, router: routerIn(text) }
}

/** The member `router` of a JSON answer, of its error, or of the last event that has one. */
function routerIn(text: string): Answer['router'] {
  const documents = text.startsWith('{') ? [text] : [...text.matchAll(/^data: ({.*)$/gm)].map(([, json = '']) => json)
  const found = documents.map((json) => JSON.parse(json)).map(routerOf)
  expect(found.slice(0, -1).filter((one, index) => one && !isTerminator(documents[index + 1]))).toEqual([])
  return found.findLast((one) => one !== undefined)
}

const isTerminator = (json = '') => json.includes('message_stop')
const routerOf = ({ router, error, response }: Record<string, { router?: Answer['router'] }>) =>
  (router ?? error?.router ?? response?.router) as Answer['router']

async function ask(model: string, more: object = {}, headers: Record<string, string> = {}, api: ApiName = 'chat') {
  const { path, body } = apis[api]
  const answer = await post(path, { ...body, model, ...more }, headers)
  return { ...answer, explain: answer.router?.explain as Explained }
}

const skippedIn = ({ skipped }: Explained) => skipped.map(({ model, step }) => [model, step])
const order = ({ targets }: Explained) => targets.map(({ model, by }) => [model, by])

describe.each(Object.keys(apis) as ApiName[])('%s', (api) => {
  describe.each([false, true])('streamed: %s', (stream) => {
    test('an answer says which targets there are, and which attempts were made', async () => {
      world.steps.one.push(fails(500))
      const { status, router, explain, text } = await ask('both', { stream }, {}, api)
      expect(status).toBe(200)
      expect(text).toContain('you.')
      expect(router?.attempts).toBe(2)
      expect(explain).toMatchObject({ sort: 'order', sticky: 'none', skipped: [] })
      expect(order(explain)).toEqual([
        ['one/m1', 'order'],
        ['two/m1', 'order'],
      ])
      const [failed, answered] = explain.attempts
      expect(failed).toMatchObject({ model: 'one/m1', status: 502, code: 'provider_failed', class: 'failed' })
      expect(failed).toMatchObject({ followed_by: 'next', waited_ms: 0, provider_status: 500 })
      expect(answered).toMatchObject({ model: 'two/m1', status: 200, first_content_ms: expect.any(Number) })
      expect(answered).not.toHaveProperty('code')
      const { before_ms, first_content_ms = -1, total_ms } = explain.timings
      expect([before_ms, first_content_ms, total_ms]).toEqual(
        [before_ms, first_content_ms, total_ms].sort((a, b) => a - b),
      )
    })

    test('so does the row; without the header neither does', async () => {
      const { explain } = await ask('both', { stream }, {}, api)
      const { explanation } = (await world.rows).at(-1) ?? {}
      expect(explanation).toMatchObject({ targets: explain.targets, skipped: [], attempts: [{ model: 'one/m1' }] })
      const plain = await ask('both', { stream }, { 'x-router-explain': 'false' }, api)
      expect(plain).toMatchObject({ status: 200, router: undefined })
      expect((await world.rows).at(-1)).not.toHaveProperty('explanation')
    })

    test('so does an error', async () => {
      const busy = fails(429, { 'retry-after': '0.02' })
      world.steps.one.push(busy, busy)
      world.steps.two.push(fails(400))
      const { status, explain, router } = await ask('both', { stream }, {}, api)
      expect([status, router?.attempts]).toEqual([429, 3])
      expect(explain.attempts).toMatchObject([
        { model: 'one/m1', status: 429, class: 'rate_limited', followed_by: 'next' },
        { model: 'two/m1', status: 400, class: 'refused', followed_by: 'next' },
        { model: 'one/m1', status: 429, class: 'rate_limited' },
      ])
      expect(explain.attempts[2]).not.toHaveProperty('followed_by')
      await pause(30)
    })
  })

  test('a stream that breaks off says so in its last event', async () => {
    world.steps.one.push((response) => {
      beginStream(response)
      response.write(chunk({ content: 'Hi ' }), () => response.destroy())
    })
    const { status, explain } = await ask('one/m1', { stream: true }, {}, api)
    expect(status).toBe(200)
    expect(explain.attempts).toMatchObject([
      { model: 'one/m1', status: 502, class: 'failed', first_content_ms: expect.any(Number) },
    ])
    expect(order(explain)).toEqual([['one/m1', 'only']])
    expect((await world.rows).at(-1)).toMatchObject({
      outcome: 'partial',
      explanation: { attempts: [{ class: 'failed' }] },
    })
    await ask('one/m1')
  })

  test('a stored response does not have it', async () => {
    if (api !== 'responses') return
    for (const stream of [false, true]) {
      const { text, explain } = await ask('both', { stream, store: true }, {}, api)
      expect(explain.targets).toHaveLength(2)
      const id = /"id":"(resp_[^"]+)"/.exec(text)?.[1]
      const stored = (await (await world.router.call(`/v1/responses/${id}`)).json()) as JsonObject
      expect(stored).toMatchObject({ id, status: 'completed' })
      expect(stored).not.toHaveProperty('router')
    }
  })
})

test('a stream that another target goes on with has the attempts of both', async () => {
  world.steps.one.push((response) => {
    beginStream(response)
    response.write(chunk({ content: 'Hi ' }), () => response.destroy())
  })
  const { explain, router } = await ask('going', { stream: true })
  expect(router?.attempts).toBe(2)
  expect(explain.attempts).toMatchObject([
    { model: 'one/m1', status: 502, class: 'failed', followed_by: 'next' },
    { model: 'two/m1', status: 200 },
  ])
  await ask('one/m1')
})

test('a stream that has begun with comments says it with its error', async () => {
  const late: Step = async (response, request) => {
    await pause(300)
    fails(400)(response, request)
  }
  world.steps.one.push(late)
  const { status, text, explain } = await ask('held', { stream: true })
  expect([status, text.startsWith(': ')]).toEqual([200, true])
  expect(explain.attempts).toMatchObject([{ model: 'one/m1', status: 400, class: 'refused' }])
  expect(skippedIn(explain)).toEqual([['two/m1', 'failover']])
})

describe('operations', () => {
  test('say it in JSON', async () => {
    world.steps.one.push(fails(400))
    const body = { model: 'vectors', input: 'x' }
    const failed = await post('/v1/embeddings', body)
    expect(failed.status).toBe(400)
    expect(failed.router?.explain).toMatchObject({ attempts: [{ model: 'one/vectors', class: 'refused' }] })
    const { router, status } = await post('/v1/embeddings', body)
    expect([status, router?.attempts]).toEqual([200, 1])
    expect(order(router?.explain as Explained)).toEqual([
      ['one/vectors', 'order'],
      ['two/vectors', 'order'],
    ])
    expect((await world.rows).at(-1)).toMatchObject({ explanation: { attempts: [{ model: 'one/vectors' }] } })
    expect((await post('/v1/embeddings', body, { 'x-router-explain': '0' })).router).toBeUndefined()
  })

  test('and in the last event', async () => {
    const { router } = await post('/v1/images/generations', { model: 'pictures', prompt: 'A cat', stream: true })
    expect(router).toMatchObject({ attempts: 1, explain: { targets: [{ model: 'one/pictures' }, {}] } })
  })
})

test('a header that is neither true nor false is a 400', async () => {
  for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/responses', '/v1/embeddings']) {
    const { status, text } = await post(path, { model: 'both' }, { 'x-router-explain': 'why' })
    expect([status, JSON.parse(text).error.param]).toEqual([400, 'x-router-explain'])
  }
})

test('a call that is refused before targets are looked for has no explanation', async () => {
  const { status, router } = await ask('both', {}, { authorization: 'Bearer wrong' })
  expect([status, router]).toEqual([403, undefined])
})

describe('the order', () => {
  test('by weight says the weights', async () => {
    const { explain } = await ask('weights')
    expect(explain.targets).toMatchObject([
      { model: 'two/m1', by: 'weighted', weight: 1 },
      { model: 'one/m1', by: 'weighted', weight: 0 },
    ])
  })

  test('by price says what the request can cost', async () => {
    const { explain } = await ask('cheap')
    expect(explain).toMatchObject({ sort: 'price', targets: [{ model: 'two/m1' }, { model: 'one/m1' }] })
    const [cheap = 0, dear = 0] = explain.targets.map(({ max_cost_usd }) => max_cost_usd)
    expect(dear).toBeCloseTo(2 * cheap, 9)
    expect(cheap).toBeGreaterThan(0)
  })

  test('by latency names no figures: they are those of other organizations as well', async () => {
    const { explain } = await ask('quick')
    expect(explain.targets.map(({ by }) => by)).toEqual(['latency', 'latency'])
    for (const target of explain.targets) expect(Object.keys(target)).toEqual(['model', 'by', 'reason'])
  })

  test('of a session that is kept', async () => {
    const session = { 'x-session-id': 's1' }
    world.steps.two.push(fails(500), fails(500))
    expect(order((await ask('kept', {}, session)).explain)[0]).toEqual(['two/m1', 'price'])
    expect(order((await ask('kept', {}, session)).explain)).toEqual([
      ['one/m1', 'sticky'],
      ['two/m1', 'price'],
    ])
    const { explain } = await ask('hashed')
    expect(explain.targets.map(({ by }) => by)).toEqual(['hash', 'hash'])
    await settle()
  })

  test('of several names', async () => {
    const { explain } = await ask('two/m1', { models: ['one/m1'] })
    expect(explain.targets).toMatchObject([
      { model: 'two/m1', name: 0 },
      { model: 'one/m1', name: 1 },
    ])
  })

  test('of a conversation that only its maker can go on with', async () => {
    const first = await ask('two/m1', { store: true }, {}, 'responses')
    const id = /"id":"(resp_[^"]+)"/.exec(first.text)?.[1]
    const { explain } = await ask('both', { previous_response_id: id }, {}, 'responses')
    expect(order(explain)).toEqual([
      ['two/m1', 'maker'],
      ['one/m1', 'order'],
    ])
  })
})

/** Until all targets take all calls again. */
async function settle(): Promise<void> {
  for (const model of ['one/m1', 'two/m1']) for (const _ of Array(2)) await ask(model)
}

const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }

describe('a target is left out', () => {
  test('that cannot take the request', async () => {
    const { explain } = await ask('seeing', { messages: [{ role: 'user', content: [image] }] })
    expect(explain.skipped).toEqual([{ model: 'one/blind', step: 'able', reason: 'does not support images' }])
    expect(order(explain)).toEqual([['two/m1', 'only']])
    const long = await ask('roomy', { messages: [{ role: 'user', content: 'long '.repeat(50) }] })
    expect(long.explain.skipped).toMatchObject([{ model: 'one/small', step: 'able' }])
    const refused = await ask('one/blind', { models: ['two/blind'], messages: [{ role: 'user', content: [image] }] })
    expect([refused.status, refused.explain.attempts]).toEqual([400, []])
  })

  test('that the request does not want, or whose fields decide', async () => {
    const { explain } = await ask('both', { provider: { only: ['two'] } })
    expect(skippedIn(explain)).toEqual([['one/m1', 'wished']])
    const none = await ask('both', { provider: { only: ['three'] } })
    expect([none.status, skippedIn(none.explain)]).toEqual([
      404,
      [
        ['one/m1', 'wished'],
        ['two/m1', 'wished'],
      ],
    ])
    const alone = await ask('both', { provider: { allow_fallbacks: false } })
    expect(skippedIn(alone.explain)).toEqual([['two/m1', 'fallbacks']])
    const tier = await ask('both', { service_tier: 'priority' })
    expect([tier.status, skippedIn(tier.explain)]).toEqual([
      400,
      [
        ['one/m1', 'governed'],
        ['two/m1', 'governed'],
      ],
    ])
  })

  test('that has no price, for who has a limit', async () => {
    const { secret } = await newKey(world.store, { monthlyLimitNano: 1_000_000_000n })
    const { explain } = await ask('paid', {}, { authorization: `Bearer ${secret}` })
    expect(skippedIn(explain)).toEqual([['one/unpriced', 'priced']])
  })

  test('that may not be used, without its name', async () => {
    for (const name of ['mixed', 'near@eu']) {
      const { status, explain, text } = await ask(name)
      expect([status, explain.not_allowed, explain.skipped]).toEqual([200, 1, []])
      expect(text).not.toContain(name === 'mixed' ? 'away' : 'one/m1')
    }
    const named = await ask('one/m1', { models: ['nowhere/m1'] })
    expect(named.explain.skipped).toMatchObject([{ model: 'nowhere/m1', step: 'allowed' }])
    const { secret } = await newKey(world.store, { accessList: ['two/m1'] })
    const listed = await ask('both', {}, { authorization: `Bearer ${secret}` })
    expect([listed.explain.not_allowed, order(listed.explain)]).toEqual([1, [['two/m1', 'only']]])
    expect(listed.text).not.toContain('one/m1')
  })

  test('that takes no calls, or no more at once', async () => {
    world.steps.one.push(fails(401))
    await ask('both')
    const { explain } = await ask('both')
    expect(explain.skipped).toMatchObject([{ model: 'one/m1', step: 'health' }])
    expect(explain.skipped[0]?.reason).toMatch(/^takes no calls for \d+ s, after failures$/)
    await settle()
    let free = () => {}
    const held = new Promise<void>((resolve) => {
      free = resolve
    })
    world.steps.one.push(async (response, request) => {
      await held
      fails(400)(response, request)
    })
    const waiting = ask('one/m1')
    while (world.steps.one.length > 0) await pause(5)
    const second = await ask('both')
    expect(second.explain.skipped).toEqual([
      { model: 'one/m1', step: 'capacity', reason: 'is at its limit of concurrent calls' },
    ])
    free()
    await waiting
  })
})

test('nothing of it names an address or a credential', async () => {
  world.steps.one.push(fails(500), fails(500))
  world.steps.two.push(fails(500), fails(500))
  const failed = await ask('both')
  expect(failed.status).toBe(502)
  const { text } = failed
  for (const secret of ['127.0.0.1', 'secret-of', 'KEY_OF', new URL(world.providers.one.url).port]) {
    expect(text).not.toContain(secret)
  }
  await pause(10)
})
