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

/** The early answer to a call whose own comes, or fails, only when the test says so. */
async function early() {
  const { promise, resolve, reject } = Promise.withResolvers<CallResponse>()
  return { response: await earlyReply(promise, 1, context), resolve, reject }
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
  const late = await early()
  late.resolve(response)
  expect(await all(late.response)).toEqual([': waiting\n\n', 'one', 'two'])
})

test('a failure after the comment is an event', async () => {
  const late = await early()
  late.reject(new RouterError('unavailable', 'No target is open.'))
  expect(await all(late.response)).toEqual([': waiting\n\n', 'failed with unavailable'])
})

test.each(['before', 'after'] as const)(
  'an answer that comes %s its client has left is settled all the same',
  async (when) => {
    const { response, settled } = streamed()
    const late = await early()
    const body = bodyOf(late.response)
    await body.next()
    if (when === 'before') late.resolve(response)
    const left = body.return()
    if (when === 'after') late.resolve(response)
    await left
    expect(settled()).toBe(true)
  },
)
