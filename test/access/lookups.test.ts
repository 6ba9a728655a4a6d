import { expect, test, vi } from 'vitest'
import { withLookups } from '../../src/access/lookups.ts'

test('a step that asks for no fact costs no promise', () => {
  expect(withLookups(() => 'done')).toBe('done')
  expect(() =>
    withLookups(() => {
      throw new Error('no')
    }),
  ).toThrow('no')
})

test('a step is taken again with the facts that it asked for, each read once', async () => {
  const read = vi.fn(async () => false)
  const step = vi.fn((lookups: Parameters<Parameters<typeof withLookups>[0]>[0]) => {
    const isFirst = lookups.find('first', read, true)
    // Asked for only when the first one is known.
    return isFirst ? 'assumed' : [isFirst, lookups.find('second', read, true), lookups.find('first', read, true)]
  })
  expect(await withLookups(step)).toEqual([false, false, false])
  expect(step).toHaveBeenCalledTimes(3)
  expect(read).toHaveBeenCalledTimes(2)
})

test('another step has the facts that are known, and is told of none that it would have to read', async () => {
  const read = vi.fn(async () => false)
  const { known } = await withLookups((lookups) => ({
    first: lookups.find('first', read, true),
    known: () => lookups.known(),
  }))
  const [one, other] = [known(), known()]
  expect([one.find('first', read, true), one.areComplete]).toEqual([false, true])
  expect([other.find('second', read, true), other.areComplete]).toEqual([true, false])
  expect(other.known().areComplete).toBe(true)
  expect(read).toHaveBeenCalledOnce()
})

test('an error of a step that did not know its facts does not count, that of a fact does', async () => {
  const refusedUnless = (isAllowed: boolean) =>
    withLookups((lookups) => {
      if (lookups.find('isRefused', async () => !isAllowed, true)) throw new Error('refused')
      return 'allowed'
    })
  expect(await refusedUnless(true)).toBe('allowed')
  await expect(refusedUnless(false)).rejects.toThrow('refused')
  const unreadable = () => Promise.reject(new Error('the disk is gone'))
  await expect(withLookups((lookups) => lookups.find('a', unreadable, true))).rejects.toThrow('the disk is gone')
})
