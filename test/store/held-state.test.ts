import { afterAll, expect, test, vi } from 'vitest'
import { openHeldState } from '../../src/call/targets/held-state.ts'
import { openStore } from '../../src/store/open.ts'

const store = await openStore('sqlite::memory:')
afterAll(() => store.close())

test('what a provider holds belongs to one organization at one provider, until it expires', async () => {
  const { held } = store
  await held.add('acme', 'p', ['c1', 'c2'], 1_000)
  await held.add('acme', 'p', ['c1'], 2_000)
  const has = async (organization: string, provider: string, id: string, now: number) =>
    (await held.holders(organization, id, now)).includes(provider)
  const at = (now: number) => Promise.all(['c1', 'c2', 'c3'].map((id) => has('acme', 'p', id, now)))
  expect([await at(999), await at(1_000), await at(2_000)]).toEqual([
    [true, true, false],
    [true, false, false],
    [false, false, false],
  ])
  expect([await has('other', 'p', 'c1', 0), await has('acme', 'q', 'c1', 0)]).toEqual([false, false])
  expect([await held.purge(10, 1_500), await held.purge(10, 1_500), await has('acme', 'p', 'c1', 1_500)]).toEqual([
    1,
    0,
    true,
  ])
})

test('what any provider holds is found without the provider, for its organization alone and until it expires', async () => {
  const { held } = store
  await held.add('several', 'a', ['x1'], 1_000)
  await held.add('several', 'b', ['x2'], 1_000)
  await held.add('several', 'c', ['x3'], 2_000)
  const at = async (now: number) =>
    await Promise.all(['x1', 'x2', 'x3', 'x4'].map((id) => held.holders('several', id, now)))
  expect([await at(999), await at(1_000)]).toEqual([
    [['a'], ['b'], ['c'], []],
    [[], [], ['c'], []],
  ])
  await held.add('several', 'c', ['x1'], 1_000)
  expect(await held.holders('several', 'x1', 0)).toEqual(['a', 'c'])
  expect([await held.holders('nobody', 'x1', 0), await held.holders('severa', 'x1', 0)]).toEqual([[], []])
})

test('a reply goes on when what its provider holds cannot be written', async () => {
  const onError = vi.fn()
  const broken = new Error('the disk is gone')
  const table = { add: () => Promise.reject(broken), holders: async () => [] }
  openHeldState(table, onError).remember('acme', 'p', [])
  const held = openHeldState(table, onError)
  held.remember('acme', 'p', ['c1'])
  await held.holders('acme', 'c1')
  expect(onError.mock.calls).toEqual([[broken]])
})
