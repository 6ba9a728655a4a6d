import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Store } from '../../../src/store/open.ts'
import type { LoopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'
import { callNano, callOnce, newKey, pricedManifest, pricedProvider, storeIn, tenTokens } from './budget-world.ts'

// The price of a model doubles in the middle of a month, while the router runs.

const change = Date.parse('2026-12-15T00:00:00Z')
const changes = `    price_changes:
      - from: 2026-12-15T00:00:00Z
        pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0.0002 }]
`

let provider: LoopbackProvider
let router: TestRouter
let store: Store
let duringRequest: () => void

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: change - 1_000 })
  duringRequest = () => {}
  provider = await pricedProvider({ wait: async () => duringRequest() })
  const manifest = pricedManifest(provider.url).replace('  free:', `${changes}  free:`)
  // The tests move the clock of this thread.
  router = await testRouter({ threads: 1, files: { 'providers/priced.yaml': manifest } })
  store = await storeIn(router.folder)
})

afterEach(async () => {
  vi.useRealTimers()
  await store.close()
  await router.end()
  await provider.close()
})

test.each([
  ['whole', {}],
  ['streamed', { stream: true }],
])('a call that came before is held and paid at the price of then, %s, and the next at the new one', async (_, how) => {
  const key = await newKey(store, { monthlyLimitNano: 3n * callNano })
  duringRequest = () => vi.setSystemTime(change + 5_000)
  const call = async () => (await callOnce(router.url, key.secret, { ...tenTokens, ...how })).status
  expect(await call()).toBe(200)
  expect(Date.now()).toBeGreaterThanOrEqual(change)
  expect(await call()).toBe(200)
  expect(await call()).toBe(402)
  const rows = (await Array.fromAsync(store.ledger.each({ key: key.id }))).toSorted((one, other) => one.at - other.at)
  expect(rows.map(({ cost }) => BigInt(cost.nanoUsd))).toEqual([callNano, 2n * callNano])
  expect(rows[0]?.cost.priceVersion).not.toBe(rows[1]?.cost.priceVersion)
})

test('lists and single models show the price of the moment, to the millisecond, however often they are requested', async () => {
  const headers = { authorization: `Bearer ${testKey}` }
  const listedPrices = async () => {
    const paths = ['/v1/models', '/v1/models/chat', '/v1/models/all', '/v1/models/priced/m1']
    const found = []
    for (const path of paths) {
      for (const init of [{}, { headers }]) {
        const body = (await (await fetch(router.url + path, init)).json()) as { data?: unknown[] }
        const one = (body.data ?? [body]).find((model) => (model as { id: string }).id === 'priced/m1')
        found.push((one as { pricing: [{ output_price: number }] }).pricing[0].output_price)
      }
    }
    const [first] = found
    expect(found).toEqual(found.map(() => first))
    return first
  }
  for (const [at, price] of [
    [change - 1_000, 1e-4],
    [change - 1, 1e-4],
    [change, 2e-4],
    [change + 1, 2e-4],
    [change - 1, 1e-4],
  ] as const) {
    vi.setSystemTime(at)
    expect(await listedPrices(), new Date(at).toISOString()).toBe(price)
  }
})
