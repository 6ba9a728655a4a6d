import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Store } from '../../../src/store/open.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { alone, type TestRouter, testKey, testRouter } from '../../helpers/router.ts'
import { errorIn, newKey, storeIn } from './budget-world.ts'

// Models that no catalog lists: `refuses` has the defaults, `passes` and `prices` the setting, and one provider its own.

let provider: LoopbackProvider
const routers: { [name: string]: TestRouter } = {}
const stores: { [name: string]: Store } = {}

const settings = {
  refuses: {},
  passes: { unknown_models: 'pass' },
  prices: { unknown_models: { pass: true, price: { input: 0.000001, output: 0.000002 } } },
}

beforeAll(async () => {
  provider = await loopbackProvider(({ body, path }, response) => {
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
    if (path.endsWith('/images/generations')) return answerJson(response, { created: 1, data: [{ b64_json: 'aGk=' }] })
    if (path.endsWith('/embeddings'))
      return answerJson(response, { object: 'list', data: [{ index: 0, embedding: [1] }], usage })
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
    answerJson(response, { id: 'c', object: 'chat.completion', created: 1, model: body.model, choices, usage })
  })
  const at = { base_url: provider.url, secret: 's' }
  const providers = alone({
    openai: at,
    groq: { ...at, unknown_models: 'refuse' },
    deepseek: { ...at, unknown_models: 'pass' },
  })
  for (const [name, more] of Object.entries(settings)) {
    routers[name] = await testRouter({ providers, settings: more })
    stores[name] = await storeIn(routers[name].folder)
  }
})

afterAll(async () => {
  for (const store of Object.values(stores)) await store.close()
  for (const router of Object.values(routers)) await router.end()
  await provider.close()
})

type Name = keyof typeof settings
const routerOf = (name: Name) => routers[name] as TestRouter
const limited = async (name: Name) => (await newKey(stores[name] as Store, { monthlyLimitNano: 1_000_000_000n })).secret

async function ask(name: Name, model: string, secret?: string, path = '/v1/chat/completions'): Promise<Response> {
  const said = { messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 }
  const bodies: { [path: string]: object } = {
    '/v1/chat/completions': said,
    '/v1/messages': said,
    '/v1/responses': { input: 'Hello' },
    '/v1/embeddings': { input: 'Hello' },
    '/v1/images/generations': { prompt: 'A cat' },
  }
  const headers: Record<string, string> = secret ? { authorization: `Bearer ${secret}` } : {}
  return await routerOf(name).call(path, { model, ...bodies[path] }, headers)
}

async function lastCost(name: Name) {
  const rows = await Array.fromAsync((stores[name] as Store).ledger.each({}))
  return rows.toSorted((one, other) => other.at - one.at || (one.id < other.id ? 1 : -1))[0]?.cost
}

const chats = ['/v1/chat/completions', '/v1/messages', '/v1/responses']

describe('by default', () => {
  test('they are refused, and the error names the setting', async () => {
    for (const path of [...chats, '/v1/embeddings']) {
      const refused = await ask('refuses', 'openai/new-model', undefined, path)
      expect([refused.status, (await errorIn(refused)).message]).toEqual([
        404,
        expect.stringContaining('unknown_models: pass'),
      ])
    }
  })

  test('a provider may have its own setting', async () => {
    expect((await ask('refuses', 'deepseek/new-model')).status).toBe(200)
    expect((await ask('passes', 'groq/new-model')).status).toBe(404)
  })
})

describe('passed on', () => {
  test('a caller without a limit is served; the row is marked, and the call counted', async () => {
    for (const path of chats) {
      expect((await ask('passes', 'openai/new-model', undefined, path)).status).toBe(200)
      expect(provider.received.at(-1)?.body.model).toBe('new-model')
      expect(await lastCost('passes')).toMatchObject({ nanoUsd: 0, unpriced: true })
    }
    const metrics = await (await routerOf('passes').call('/metrics')).text()
    expect(metrics).toMatch(/inference_router_unpriced_calls_total\{[^}]*model="new-model"[^}]*\} 3/)
  })

  test('a caller with a limit is not, and nothing is sent', async () => {
    const { length } = provider.received
    for (const path of chats) {
      const refused = await ask('passes', 'openai/new-model', await limited('passes'), path)
      expect([refused.status, (await errorIn(refused)).code]).toEqual([402, 'unpriced_model'])
    }
    expect(provider.received).toHaveLength(length)
  })

  test('at a price, callers with a limit are served and charged', async () => {
    for (const path of chats) {
      expect((await ask('prices', 'openai/new-model', await limited('prices'), path)).status).toBe(200)
      expect((await lastCost('prices'))?.nanoUsd).toBe(20_000)
      expect(await lastCost('prices')).not.toHaveProperty('unpriced')
    }
    expect((await ask('prices', 'openai/new-embedding', await limited('prices'), '/v1/embeddings')).status).toBe(200)
  })

  test('a price of tokens is none of images', async () => {
    const refused = await ask('prices', 'openai/new-image', await limited('prices'), '/v1/images/generations')
    expect([refused.status, (await errorIn(refused)).code]).toEqual([402, 'unpriced_model'])
    expect((await ask('prices', 'openai/new-image', undefined, '/v1/images/generations')).status).toBe(200)
  })

  test('a listed model keeps its price', async () => {
    expect((await ask('prices', 'openai/gpt-4.1')).status).toBe(200)
    expect((await lastCost('prices'))?.nanoUsd).toBeGreaterThan(20_000)
  })

  test('no rule of an organization matches them', async () => {
    for (const name of ['passes', 'prices'] as const) {
      const { manageUrl } = routerOf(name)
      const put = async (setting: string, body: object) => {
        const headers = { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' }
        const url = `${manageUrl}/v1/manage/org/${setting}`
        expect((await fetch(url, { method: 'PUT', headers, body: JSON.stringify(body) })).status).toBe(200)
      }
      expect((await ask(name, 'openai/new-model@eu')).status).toBe(404)
      for (const [setting, rule, none] of [
        ['rules', { geolocation: ['us', 'eu'] }, { geolocation: null }],
        ['rules', { data_retention: false }, { data_retention: null }],
        ['rules', { data_used_for_training: false }, { data_used_for_training: null }],
        ['models', { approved_models: ['openai/*', 'openai/new-model'] }, { approved_models: null }],
      ] as const) {
        await put(setting, rule)
        expect([rule, (await ask(name, 'openai/new-model')).status]).toEqual([rule, 404])
        await put(setting, none)
      }
      expect((await ask(name, 'openai/new-model')).status).toBe(200)
    }
  })
})
