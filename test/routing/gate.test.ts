import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import { type Caller, ConcurrencyLimiter, type Release } from '../../src/routing/health/concurrency-limiter.ts'

const { signal } = new AbortController()
const of = (organization: string, isLow = false, key = organization): Caller => ({ organization, key, isLow })

/** A gate, and the names of those that were let in or refused, in that order. */
function watched(concurrent: number, queue: number) {
  const gate = new ConcurrencyLimiter(() => ({ concurrent, queue }))
  const seen: string[] = []
  const leaves: Release[] = []
  const enter = (name: string, caller: Caller, aborted = signal) => {
    const letIn = (leave: Release) => {
      seen.push(name)
      leaves.push(leave)
    }
    try {
      const entered = gate.enter(caller, aborted)
      if (entered instanceof Promise) entered.then(letIn, (thrown) => seen.push(`${name} ${thrown.code}`))
      else letIn(entered)
    } catch (thrown) {
      seen.push(`${name} ${(thrown as RouterError).code}`)
    }
  }
  const leave = async () => {
    leaves.shift()?.()
    await Promise.resolve()
    await Promise.resolve()
  }
  return { gate, seen, enter, leave }
}

describe('a gate', () => {
  test('lets so many in at once, and the newest that waits when one leaves', async () => {
    const { gate, seen, enter, leave } = watched(2, 10)
    for (const name of ['1', '2', '3', '4']) enter(name, of('a'))
    expect([seen, gate.running, gate.waiting]).toEqual([['1', '2'], 2, 2])
    await leave()
    await leave()
    expect([seen, gate.running, gate.waiting]).toEqual([['1', '2', '4', '3'], 2, 0])
  })

  test('gives organizations their turns', async () => {
    const { seen, enter, leave } = watched(1, 100)
    enter('first', of('a'))
    for (let at = 0; at < 20; at++) enter(`a${at}`, of('a'))
    enter('b0', of('b'))
    enter('b1', of('b'))
    for (let at = 0; at < 5; at++) await leave()
    expect(seen).toEqual(['first', 'a19', 'b1', 'a18', 'b0', 'a17'])
  })

  test('gives calls of low priority up first, then the oldest of another organization that has the most', async () => {
    const { seen, enter } = watched(1, 3)
    enter('first', of('a'))
    enter('low', of('b', true))
    enter('a1', of('a'))
    enter('a2', of('a'))
    enter('c1', of('c'))
    enter('c2', of('c'))
    enter('low2', of('c', true))
    await vi.waitFor(() => expect(seen).toHaveLength(4))
    expect(seen.sort()).toEqual(['a1 rate_limited', 'first', 'low rate_limited', 'low2 rate_limited'])
  })

  test('lets calls of low priority in when no other waits', async () => {
    const { seen, enter, leave } = watched(1, 3)
    enter('first', of('a'))
    enter('usual', of('a'))
    enter('low', of('b', true))
    await leave()
    await leave()
    expect(seen).toEqual(['first', 'usual', 'low'])
  })

  test('refuses what waits longer than a second, and forgets who has gone', async () => {
    vi.useFakeTimers()
    try {
      const { gate, seen, enter } = watched(1, 3)
      enter('first', of('a'))
      enter('late', of('a'))
      const left = new AbortController()
      enter('gone', of('a'), left.signal)
      left.abort(new RouterError('client_gone', 'The client disconnected.'))
      await vi.advanceTimersByTimeAsync(1_001)
      expect([seen.sort(), gate.waiting]).toEqual([['first', 'gone client_gone', 'late rate_limited'], 0])
    } finally {
      vi.useRealTimers()
    }
  })

  test('gives an organization that has had its turn the next one after those that wait already', async () => {
    const { seen, enter, leave } = watched(1, 10)
    enter('first', of('a'))
    enter('a1', of('a'))
    await leave()
    enter('b1', of('b'))
    enter('a2', of('a'))
    enter('c1', of('c'))
    for (let at = 0; at < 3; at++) await leave()
    expect(seen).toEqual(['first', 'a1', 'b1', 'a2', 'c1'])
  })

  test('has as much room as at first after any number of calls, and nothing is left of them', async () => {
    vi.useFakeTimers()
    try {
      const { gate, seen, enter, leave } = watched(1, 2)
      const client = new AbortController()
      for (let round = 0; round < 5; round++) {
        enter('runs', of('a'), client.signal)
        enter('waits', of('b', round % 2 === 0), client.signal)
        enter('is late', of('c'), client.signal)
        enter('is refused', of('d', true), client.signal)
        await vi.advanceTimersByTimeAsync(500)
        await leave()
        await vi.advanceTimersByTimeAsync(500)
        await leave()
        await leave()
        expect([gate.running, gate.waiting, vi.getTimerCount()]).toEqual([0, 0, 0])
        expect(getEventListeners(client.signal, 'abort')).toEqual([])
      }
      expect(seen.filter((name) => name === 'is refused rate_limited')).toHaveLength(5)
      expect(seen.filter((name) => name === 'runs')).toHaveLength(5)
    } finally {
      vi.useRealTimers()
    }
  })

  test('leaving twice lets in one', async () => {
    const gate = new ConcurrencyLimiter(() => ({ concurrent: 1, queue: 5 }))
    const leave = gate.enter(of('a'), signal) as Release
    leave()
    leave()
    gate.enter(of('a'), signal)
    expect(gate.isOpen).toBe(false)
  })
})

describe('keys that share a gate', () => {
  test('one may have all places while no other wants any', () => {
    const { gate, seen, enter } = watched(4, 10)
    for (const name of ['1', '2', '3', '4']) enter(name, of('a'))
    expect([seen.length, gate.running]).toEqual([4, 4])
  })

  test('a place goes to the key that has the fewest, also within one organization', async () => {
    const { seen, enter, leave } = watched(3, 100)
    for (let at = 0; at < 10; at++) enter(`greedy${at}`, of('o', false, 'greedy'))
    enter('modest', of('o', false, 'modest'))
    for (let at = 0; at < 3; at++) enter(`late${at}`, of('o', false, 'greedy'))
    await leave()
    expect(seen.at(-1)).toBe('modest')
  })

  test('one that had all places leaves a tenth to others, at least one, for a minute after another had to wait', async () => {
    vi.useFakeTimers()
    try {
      const { gate, seen, enter, leave } = watched(4, 0)
      for (const name of ['1', '2', '3', '4']) enter(name, of('o', false, 'greedy'))
      enter('modest', of('o', false, 'modest'))
      expect(seen.at(-1)).toBe('modest rate_limited')
      await leave()
      enter('5', of('o', false, 'greedy'))
      expect(seen.at(-1)).toBe('5 rate_limited')
      enter('modest', of('o', false, 'modest'))
      expect([seen.at(-1), gate.running]).toEqual(['modest', 4])
      await leave()
      await vi.advanceTimersByTimeAsync(60_001)
      enter('6', of('o', false, 'greedy'))
      expect(seen.at(-1)).toBe('6')
    } finally {
      vi.useRealTimers()
    }
  })

  test('one that waits for itself alone leaves nothing', async () => {
    const { seen, enter, leave } = watched(2, 0)
    for (const name of ['1', '2', '3']) enter(name, of('a'))
    await leave()
    enter('4', of('a'))
    expect(seen).toEqual(['1', '2', '3 rate_limited', '4'])
  })

  test('one must yield while others wait and it has nearly all places', async () => {
    const { gate, enter, leave } = watched(2, 5)
    enter('1', of('o', false, 'greedy'))
    enter('2', of('o', false, 'greedy'))
    enter('3', of('o', false, 'greedy'))
    const yields = () => [gate.mustYield({ key: 'greedy' }), gate.mustYield({ key: 'modest' })]
    expect(yields()).toEqual([false, false])
    enter('4', of('p', false, 'modest'))
    expect(yields()).toEqual([true, false])
    await leave()
    expect(yields()).toEqual([false, false])
  })

  test('a call that is over loses its place to the first other key, and only to another', async () => {
    const { gate, seen, enter } = watched(2, 5)
    const leaves = [1, 2].map(() => gate.enter(of('greedy'), signal) as Release)
    for (const leave of leaves) gate.offer(leave)
    enter('own', of('greedy'))
    expect([seen, gate.running, gate.waiting]).toEqual([[], 2, 1])
    enter('modest', of('modest'))
    expect([seen, gate.running]).toEqual([['modest'], 2])
    // The end of the displaced call frees nothing, that of the other one does.
    leaves[0]?.()
    expect(gate.running).toBe(2)
    leaves[1]?.()
    await vi.waitFor(() => expect(seen).toEqual(['modest', 'own']))
  })

  test('a call that is over lets those in that wait already', async () => {
    const { gate, seen, enter } = watched(1, 5)
    const leave = gate.enter(of('greedy'), signal) as Release
    enter('own', of('greedy'))
    enter('modest', of('modest'))
    gate.offer(leave)
    await vi.waitFor(() => expect(seen).toEqual(['modest']))
    expect([gate.running, gate.waiting]).toEqual([1, 1])
  })

  test('a full gate does not refuse whoever can take the place of a call that is over', () => {
    const gate = new ConcurrencyLimiter(() => ({ concurrent: 1, queue: 0 }))
    gate.offer(gate.enter(of('greedy'), signal) as Release)
    expect(gate.refusal(of('greedy'))?.code).toBe('rate_limited')
    expect(gate.refusal(of('modest'))).toBeUndefined()
    expect(gate.enter(of('modest'), signal)).toBeTypeOf('function')
  })

  test('as many calls as there are places may go on without one', () => {
    const gate = new ConcurrencyLimiter(() => ({ concurrent: 2, queue: 0 }))
    const enter = (key: string) => gate.enter(of(key), signal) as Release
    const over = [enter('a'), enter('a')]
    for (const leave of over) gate.offer(leave)
    for (let count = 0; count < 2; count++) gate.offer(enter('b'))
    expect(() => enter('c')).toThrow('Too many calls')
    over[0]?.()
    expect(enter('c')).toBeTypeOf('function')
    expect(() => enter('c')).toThrow('Too many calls')
  })

  test('a place that has been left cannot be offered', () => {
    const gate = new ConcurrencyLimiter(() => ({ concurrent: 1, queue: 0 }))
    const leave = gate.enter(of('a'), signal) as Release
    leave()
    gate.offer(leave)
    gate.enter(of('b'), signal)
    expect(() => gate.enter(of('c'), signal)).toThrow('Too many calls')
  })

  test('one whose calls fill the queue makes room there for another of its organization', async () => {
    const { seen, enter } = watched(1, 3)
    for (let at = 0; at < 4; at++) enter(`greedy${at}`, of('o', false, 'greedy'))
    enter('modest', of('o', false, 'modest'))
    await vi.waitFor(() => expect(seen).toEqual(['greedy0', 'greedy1 rate_limited']))
  })

  test('no call is lost and no more run than may, whatever keys come and go', async () => {
    const { signal } = new AbortController()
    const step = fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.boolean(), fc.boolean(), fc.boolean())
    const steps = fc.array(step, { maxLength: 80 })
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 5 }), steps, async (concurrent, taken) => {
        const gate = new ConcurrencyLimiter(() => ({ concurrent, queue: 5 }))
        const leaves: Release[] = []
        const waiting: Promise<unknown>[] = []
        for (const [key, isLow, leaves1, isOver] of taken) {
          if (leaves1) leaves.shift()?.()
          if (isOver && leaves.at(-1)) gate.offer(leaves.at(-1) as Release)
          try {
            const entered = gate.enter({ organization: key === 'c' ? 'p' : 'o', key, isLow }, signal, 20)
            if (entered instanceof Promise) {
              waiting.push(
                entered.then(
                  (leave) => leaves.push(leave),
                  () => {},
                ),
              )
            } else leaves.push(entered)
          } catch {}
          await Promise.resolve()
          expect(gate.running).toBeLessThanOrEqual(concurrent)
        }
        while (leaves.length > 0) {
          leaves.shift()?.()
          await Promise.resolve()
          await Promise.resolve()
        }
        await Promise.all(waiting)
        for (const leave of leaves) leave()
        expect([gate.running, gate.waiting]).toEqual([0, 0])
        expect(gate.mustYield({ key: 'a' })).toBe(false)
      }),
      { numRuns: 30 },
    )
  })
})

test('a gate that is full says at once whom it would refuse', () => {
  const gate = new ConcurrencyLimiter(() => ({ concurrent: 1, queue: 2 }))
  const { signal } = new AbortController()
  const wait = (caller: Caller) => void Promise.resolve(gate.enter(caller, signal)).catch(() => {})
  wait(of('a'))
  wait(of('a'))
  expect(gate.refusal(of('a'))).toBeUndefined()
  wait(of('a'))
  expect([gate.hasCapacity, gate.refusal(of('a'))?.code, gate.refusal(of('b', true))?.code]).toEqual([
    false,
    'rate_limited',
    'rate_limited',
  ])
  expect(gate.refusal(of('b'))).toBeUndefined()
  wait(of('b'))
  expect(gate.refusal(of('c'))?.code).toBeUndefined()
})
