import { expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { handleCall } from '../../src/call/handle-call.ts'
import { chatKind } from '../../src/call/kinds/chat.ts'
import type { Call, Services } from '../../src/call/types.ts'
import { RouterError } from '../../src/core/errors.ts'
import { ConcurrencyLimiter } from '../../src/routing/health/concurrency-limiter.ts'

/** Handles a call, with these results of the checks before admission; returns their names in order. */
async function handled(answers: { revalidate?: () => unknown; writeFailure?: () => string | undefined }) {
  const requested: string[] = []
  const asking =
    <T>(name: string, answer: () => T) =>
    () => {
      requested.push(name)
      return answer()
    }
  const key = { organization: 'o', labels: {} }
  const services = {
    gate: new ConcurrencyLimiter(() => ({ concurrent: 1, queue: 0 })),
    authenticate: asking('authenticate', () => key),
    revalidate: asking('revalidate', answers.revalidate ?? (() => key)),
    rulesOf: asking('rulesOf', () => ({ id: 'o', retention: { stores: true, days: 1 } })),
    admission: { writeFailure: asking('writeFailure', answers.writeFailure ?? (() => undefined)) },
    conversations: {
      open: asking('open', () => {
        throw new RouterError('previous_response_not_found', 'It is not there.')
      }),
    },
  } as unknown as Services
  const readBody = asking('readBody', async () => ({ json: {} }))
  const call = { secret: 's', readBody, atEnd() {} } as unknown as Call
  const code = await handleCall(call, chatKind(chat), services).catch(({ code }: RouterError) => code)
  return { code, requested }
}

test('a key that was revoked during the upload is refused', async () => {
  const revalidate = () => {
    throw new RouterError('invalid_key', 'This API key is revoked.')
  }
  const { code, requested } = await handled({ revalidate })
  expect(code).toBe('invalid_key')
  expect(requested).toEqual(['authenticate', 'readBody', 'revalidate'])
})

test('a key that had to be read again and was revoked is refused', async () => {
  const revalidate = async () => {
    throw new RouterError('invalid_key', 'This API key is revoked.')
  }
  const { code, requested } = await handled({ revalidate })
  expect(code).toBe('invalid_key')
  expect(requested).toEqual(['authenticate', 'readBody', 'revalidate'])
})

test('a failing ledger is checked once, before a response that is not written yet could be found missing', async () => {
  const { code, requested } = await handled({ writeFailure: () => 'The disk is full.' })
  expect(code).toBe('unavailable')
  expect(requested).toEqual(['authenticate', 'readBody', 'revalidate', 'rulesOf', 'writeFailure'])
})

test('the checks after the upload run without waiting, each once', async () => {
  const { code, requested } = await handled({})
  expect(code).toBe('previous_response_not_found')
  expect(requested).toEqual(['authenticate', 'readBody', 'revalidate', 'rulesOf', 'writeFailure', 'open'])
})
