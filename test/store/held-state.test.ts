import { afterAll, expect, test, vi } from 'vitest'
import { openHeldState } from '../../src/call/targets/held-state.ts'
import { openStore } from '../../src/store/open.ts'

const store = openStore('sqlite::memory:')
afterAll(() => store.close())

test('what a provider holds belongs to one organization at one provider, until it expires', () => {
  const { held } = store
  held.add('acme', 'p', ['c1', 'c2'], 1_000)
  held.add('acme', 'p', ['c1'], 2_000)
  const at = (now: number) => ['c1', 'c2', 'c3'].map((id) => held.has('acme', 'p', id, now))
  expect([at(999), at(1_000), at(2_000)]).toEqual([
    [true, true, false],
    [true, false, false],
    [false, false, false],
  ])
  expect([held.has('other', 'p', 'c1', 0), held.has('acme', 'q', 'c1', 0)]).toEqual([false, false])
  expect([held.purge(10, 1_500), held.purge(10, 1_500), held.has('acme', 'p', 'c1', 1_500)]).toEqual([1, 0, true])
})

test('what any provider holds is found without the provider, for its organization alone and until it expires', () => {
  const { held } = store
  held.add('several', 'a', ['x1'], 1_000)
  held.add('several', 'b', ['x2'], 1_000)
  held.add('several', 'c', ['x3'], 2_000)
  const at = (now: number) => ['x1', 'x2', 'x3', 'x4'].map((id) => held.hasAnywhere('several', id, now))
  expect([at(999), at(1_000)]).toEqual([
    [true, true, true, false],
    [false, false, true, false],
  ])
  expect([held.hasAnywhere('nobody', 'x1', 0), held.hasAnywhere('severa', 'x1', 0)]).toEqual([false, false])
})

test('a reply goes on when what its provider holds cannot be written', () => {
  const onError = vi.fn()
  const broken = new Error('the disk is gone')
  const table = {
    add: () => {
      throw broken
    },
    has: () => false,
    hasAnywhere: () => false,
  }
  openHeldState(table, onError).remember('acme', 'p', [])
  openHeldState(table, onError).remember('acme', 'p', ['c1'])
  expect(onError.mock.calls).toEqual([[broken]])
})
