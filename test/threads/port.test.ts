import { MessageChannel } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
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
  return { one, other, heard, answered }
}

const turn = () => new Promise(setImmediate)

test('what was posted is known after a catch-up, without a turn of the event loop, and is heard once', async () => {
  const { one, other, heard } = connected()
  one.sayNow('a')
  one.sayNow('b')
  expect(heard).toEqual([])
  other.catchUp()
  expect(heard).toEqual(['a', 'b'])
  other.catchUp()
  await turn()
  one.sayNow('c')
  await expect.poll(() => heard).toEqual(['a', 'b', 'c'])
  other.catchUp()
  expect(heard).toEqual(['a', 'b', 'c'])
})

test('what is said in one turn is one message, in order, after what belongs before it', async () => {
  const rows = ['row']
  const { one, heard } = connected(() => rows.splice(0))
  one.say('a')
  one.say('b', 1_000)
  await expect.poll(() => heard).toEqual(['row', 'a', 'b'])
  rows.push('later row')
  one.say('waits', 60_000)
  await turn()
  expect(heard).toHaveLength(3)
  one.sayNow('now')
  await expect.poll(() => heard).toEqual(['row', 'a', 'b', 'later row', 'waits', 'now'])
})
