import { expect, test } from 'vitest'
import type { Target } from '../../src/manifest/target.ts'
import { ConcurrencyLimiters } from '../../src/routing/health/concurrency-limiter.ts'

test('only targets that calls go to are told of: clients may have invented the names of others', async () => {
  const gates = new ConcurrencyLimiters()
  const target = (model: string) =>
    ({ provider: { slug: 'p', limits: { concurrent: 2, queue: 2 } }, model }) as unknown as Target
  for (let index = 0; index < 100; index++) gates.of(target(`invented-${index}`))
  const leave = await gates
    .of(target('used'))
    ?.enter({ organization: 'a', key: 'k', isLow: false }, new AbortController().signal)
  expect(gates.standings()).toEqual([{ name: 'p/used', running: 1, waiting: 0, max: 2 }])
  leave?.()
  expect(gates.standings()).toEqual([])
})

const { signal } = new AbortController()
const caller = { organization: 'a', key: 'k', isLow: false }
const limited = (model: string, concurrent: number, queue: number) =>
  ({ provider: { slug: 'p', limits: { concurrent, queue } }, model }) as unknown as Target

test('a gate keeps its calls when its limits are read again', async () => {
  const gates = new ConcurrencyLimiters()
  const leave = await gates.of(limited('m', 1, 0))?.enter(caller, signal)
  expect(gates.of(limited('m', 1, 0))?.isOpen).toBe(false)
  expect(gates.of(limited('m', 2, 0))?.isOpen).toBe(true)
  const other = await gates.of(limited('m', 2, 0))?.enter(caller, signal)
  expect(gates.standings()).toEqual([{ name: 'p/m', running: 2, waiting: 0, max: 2 }])
  expect(gates.of(limited('m', 1, 0))?.isOpen).toBe(false)
  leave?.()
  expect(gates.of(limited('m', 1, 0))?.isOpen).toBe(false)
  other?.()
  expect(gates.of(limited('m', 1, 0))?.isOpen).toBe(true)
})

test('each of several event loops lets its part in', () => {
  const gates = new ConcurrencyLimiters(4)
  const gate = gates.of(limited('m', 10, 5))
  // Ten and five are three and two for each of four.
  for (let call = 0; call < 3; call++) gate?.enter(caller, signal)
  expect(gate?.isOpen).toBe(false)
  expect(gates.standings()).toEqual([{ name: 'p/m', running: 3, waiting: 0, max: 3 }])
  for (let call = 0; call < 2; call++) void Promise.resolve(gate?.enter(caller, signal)).catch(() => {})
  expect(gate?.hasCapacity).toBe(false)
})

test('of too many gates those without calls are forgotten, and no others', async () => {
  const gates = new ConcurrencyLimiters()
  const running = gates.of(limited('running', 1, 1))
  await running?.enter(caller, signal)
  const empty = gates.of(limited('empty', 1, 1))
  for (let name = 0; name < 10_000; name++) gates.of(limited(`invented-${name}`, 1, 1))
  expect(gates.of(limited('running', 1, 1))).toBe(running)
  expect(gates.of(limited('empty', 1, 1))).not.toBe(empty)
})
