import { MessageChannel } from 'node:worker_threads'
import { expect, onTestFinished, test, vi } from 'vitest'
import { sharedCounter, ThreadPort } from '../../src/workers/threads/port.ts'

/** Both ends of a connection, here in one thread, and what each has heard. */
function connected(first: () => string[] = () => []) {
  const { port1, port2 } = new MessageChannel()
  const [sentByOne, sentByOther] = [sharedCounter(), sharedCounter()]
  const heard: string[] = []
  const answered: string[] = []
  const one = new ThreadPort<string, string>(port1, {
    counters: { ownSent: sentByOne, otherSent: sentByOther },
    onItem: (item) => answered.push(item),
    first,
  })
  const other = new ThreadPort<string, string>(port2, {
    counters: { ownSent: sentByOther, otherSent: sentByOne },
    onItem: (item) => heard.push(item),
  })
  onTestFinished(() => {
    one.close()
    other.close()
  })
  return { one, other, heard, answered, sent: () => Atomics.load(sentByOne, 0) }
}

const turn = () => new Promise(setImmediate)

test('what was posted is known after a catch-up, without a turn of the event loop, and is heard once', async () => {
  const { one, other, heard } = connected()
  one.sendNow('a')
  one.sendNow('b')
  expect(heard).toEqual([])
  other.catchUp()
  expect(heard).toEqual(['a', 'b'])
  other.catchUp()
  await turn()
  one.sendNow('c')
  await expect.poll(() => heard).toEqual(['a', 'b', 'c'])
  other.catchUp()
  expect(heard).toEqual(['a', 'b', 'c'])
})

test('what is said in one turn is one message, in order, after what belongs before it', async () => {
  const rows = ['row']
  const { one, heard } = connected(() => rows.splice(0))
  one.send('a')
  one.send('b', 1_000)
  await expect.poll(() => heard).toEqual(['row', 'a', 'b'])
  rows.push('later row')
  one.send('waits', 60_000)
  await turn()
  expect(heard).toHaveLength(3)
  one.sendNow('now')
  await expect.poll(() => heard).toEqual(['row', 'a', 'b', 'later row', 'waits', 'now'])
})

test('each turn is one message by its end, however many came before, and an empty turn is none', async () => {
  const { one, heard, sent } = connected()
  for (let at = 1; at <= 20; at++) {
    one.send(`${at}`)
    await expect.poll(() => heard).toHaveLength(at)
    expect(sent()).toBe(at)
    one.flush()
    one.wake()
    await turn()
    expect(sent()).toBe(at)
  }
})

test('a message that may wait is sent when its own time is over, not when that of an earlier one would have been', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const { one, other, heard } = connected()
  const told = () => {
    other.catchUp()
    return heard.splice(0)
  }
  for (let round = 0; round < 3; round++) {
    one.send('a', 100)
    one.send('b', 5_000)
    vi.advanceTimersByTime(60)
    expect(told()).toEqual([])
    one.sendNow('c')
    expect(told()).toEqual(['a', 'b', 'c'])
    one.send('d', 100)
    vi.advanceTimersByTime(99)
    expect(told()).toEqual([])
    vi.advanceTimersByTime(1)
    expect(told()).toEqual(['d'])
    expect(vi.getTimerCount()).toBe(0)
  }
})
