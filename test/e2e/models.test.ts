import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestRouter, testRouter } from '../helpers/router.ts'

type Entry = { id: string; api: string; pricing: { prompt_tokens_threshold: number }[]; [field: string]: unknown }
type List = { object: string; data: Entry[] }

let router: TestRouter

beforeAll(async () => {
  router = await testRouter({ env: { GEMINI_API_KEY: 'set' } })
})

afterAll(() => router.end())

async function list(path: string, headers: Record<string, string> = {}): Promise<List> {
  const response = await fetch(router.url + path, { headers })
  expect(response.status).toBe(200)
  return (await response.json()) as List
}

test('what can be called is listed, by anybody and by every good key alike', async () => {
  const open = await list('/v1/models')
  expect(open.object).toBe('list')
  const ids = open.data.map(({ id }) => id)
  expect(ids).toContain('demo/echo')
  expect(ids.some((id) => id.startsWith('google/'))).toBe(true)
  expect(ids.some((id) => id.startsWith('anthropic/'))).toBe(false)
  expect(await list('/v1/models', { authorization: 'Bearer ir-test-key' })).toEqual(open)
  expect(await list('/v1/models/chat', { 'x-api-key': 'ir-test-key' })).toEqual(open)
})

test('every entry has the fields of the specification, tiers ascending from 0, prices in USD per token', async () => {
  for (const entry of (await list('/v1/models')).data) {
    expect(entry).toMatchObject({ api: 'chat', object: 'model', owned_by: 'system', created: expect.any(Number) })
    const thresholds = entry.pricing.map(({ prompt_tokens_threshold }) => prompt_tokens_threshold)
    expect(thresholds[0] ?? 0).toBe(0)
    expect(thresholds).toEqual(thresholds.toSorted((a, b) => a - b))
    for (const tier of entry.pricing) {
      for (const name of [
        'input_price',
        'caching_price',
        'caching_5m_price',
        'caching_1h_price',
        'cached_price',
        'output_price',
      ]) {
        const price = tier[name as keyof typeof tier]
        expect(price).toBeGreaterThanOrEqual(0)
        expect(price).toBeLessThan(0.01)
      }
    }
  }
})

test('the list of all modalities has flat prices, the list of managed policies is open', async () => {
  const all = await list('/v1/models/all')
  expect(all.data.find(({ id }) => id === 'demo/echo')).toMatchObject({ input_price: 1e-7, output_price: 4e-7 })
  expect(await list('/v1/models/managed', { authorization: 'Bearer wrong' })).toEqual({ object: 'list', data: [] })
})

test('a bad key is refused, not treated as nobody', async () => {
  for (const path of ['/v1/models', '/v1/models/chat', '/v1/models/all']) {
    const response = await fetch(router.url + path, { headers: { authorization: 'Bearer ir-wrong' } })
    expect([response.status, await response.json()]).toMatchObject([403, { error: { origin: 'router' } }])
  }
})
