import { expect, test, vi } from 'vitest'
import { ReadCache } from '../../src/access/read-cache.ts'

type Value = { version: number }

/** A cache of values that are read when the test answers. */
function open({ rereadMs = 1_000 } = {}) {
  const clock = { now: 0 }
  const reads: { resolve(value: Value): void; reject(error: Error): void }[] = []
  const read = vi.fn((_: string) => {
    const { promise, ...ends } = Promise.withResolvers<Value>()
    reads.push(ends)
    return promise
  })
  const cache = new ReadCache<Value>({ read, now: () => clock.now, rereadMs, max: 10 })
  return { cache, clock, read, reads }
}

test('a value that is known is returned at once, until it is to be read again', async () => {
  const { cache, clock, read, reads } = open()
  const first = cache.get('a')
  reads[0]?.resolve({ version: 1 })
  const value = await first
  clock.now = 999
  expect(cache.get('a')).toBe(value)
  clock.now = 1_000
  const second = cache.get('a')
  expect(second).toBeInstanceOf(Promise)
  reads[1]?.resolve({ version: 1 })
  // Equal, so it is the same object.
  expect(await second).toBe(value)
  expect(read).toHaveBeenCalledTimes(2)
})

test('all who miss a value wait for one read', async () => {
  const { cache, read, reads } = open()
  const waiting = [cache.get('a'), cache.get('a'), cache.get('b')]
  expect(read.mock.calls).toEqual([['a'], ['b']])
  reads[0]?.resolve({ version: 1 })
  reads[1]?.resolve({ version: 2 })
  expect(await Promise.all(waiting)).toEqual([{ version: 1 }, { version: 1 }, { version: 2 }])
})

test.each([
  ['that value', (cache: ReadCache<Value>) => cache.invalidate('a')],
  ['all', (cache: ReadCache<Value>) => cache.invalidateAll()],
])('a change of %s during a read is not lost: what was read before it is not kept', async (_, change) => {
  const { cache, read, reads } = open()
  const before = cache.get('a')
  change(cache)
  const after = cache.get('a')
  expect(read).toHaveBeenCalledTimes(2)
  reads[1]?.resolve({ version: 2 })
  expect(await after).toEqual({ version: 2 })
  reads[0]?.resolve({ version: 1 })
  expect(await before).toEqual({ version: 2 })
  expect(cache.get('a')).toEqual({ version: 2 })
  expect(read).toHaveBeenCalledTimes(2)
})

test('a value that has changed is read when it is used next', async () => {
  const { cache, reads } = open()
  const first = cache.get('a')
  reads[0]?.resolve({ version: 1 })
  await first
  cache.invalidate('a')
  const second = cache.get('a')
  reads[1]?.resolve({ version: 2 })
  expect(await second).toEqual({ version: 2 })
})

test('a failure reaches all who wait, and is not remembered', async () => {
  const { cache, reads } = open()
  const waiting = [cache.get('a'), cache.get('a')]
  reads[0]?.reject(new Error('the disk is gone'))
  for (const each of waiting) await expect(each).rejects.toThrow('the disk is gone')
  const next = cache.get('a')
  reads[1]?.resolve({ version: 1 })
  expect(await next).toEqual({ version: 1 })
})
