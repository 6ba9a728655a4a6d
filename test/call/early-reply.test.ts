import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { earlyReply } from '../../src/call/reply/early-reply.ts'
import type { CallResponse } from '../../src/call/types.ts'
import { RouterError } from '../../src/core/errors.ts'

const context = { headers: {}, fail: ({ code }: RouterError) => `failed with ${code}` }

/** A streamed answer, which is settled when it is over. */
function streamed(): { response: CallResponse; settled: () => boolean } {
  let isSettled = false
  const body = (async function* () {
    try {
      yield 'one'
      yield 'two'
    } finally {
      isSettled = true
    }
  })()
  return { response: { headers: {}, body }, settled: () => isSettled }
}

async function later<T>(value: T): Promise<T> {
  await pause(30)
  return value
}

function bodyOf({ body }: CallResponse): AsyncGenerator<string | Uint8Array, void> {
  if (typeof body === 'string') throw new Error('the answer is whole')
  return body
}

async function all(response: CallResponse): Promise<unknown[]> {
  const pieces: unknown[] = []
  for await (const piece of bodyOf(response)) pieces.push(piece)
  return pieces
}

test('an answer that is there in time is passed on; one that is late follows a comment', async () => {
  const { response } = streamed()
  expect(await earlyReply(Promise.resolve(response), 1_000, context)).toBe(response)
  const late = await earlyReply(later(streamed().response), 1, context)
  expect(await all(late)).toEqual([': waiting\n\n', 'one', 'two'])
})

test('a failure after the comment is an event', async () => {
  const failing = later(undefined).then(() => {
    throw new RouterError('unavailable', 'No target is open.')
  })
  const late = await earlyReply(failing, 1, context)
  expect(await all(late)).toEqual([': waiting\n\n', 'failed with unavailable'])
})

test.each([0, 60])('an answer to a client that left is settled all the same (after %i ms)', async (ms) => {
  const { response, settled } = streamed()
  const body = bodyOf(await earlyReply(later(response), 1, context))
  await body.next()
  await pause(ms)
  await body.return()
  expect(settled()).toBe(true)
})
