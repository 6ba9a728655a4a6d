import { expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { RouterError } from '../../src/core/errors.ts'
import type { Call } from '../../src/line/call.ts'
import { handle, type Services } from '../../src/line/gateway.ts'

/** Handles a call, with these answers of the services it asks before anything is admitted; their names in order. */
async function handled(answers: { revalidate?: () => never; writeFailure?: () => string | undefined }) {
  const asked: string[] = []
  const asking =
    <T>(name: string, answer: () => T) =>
    () => {
      asked.push(name)
      return answer()
    }
  const key = { organization: 'o' }
  const services = {
    authenticate: asking('authenticate', () => key),
    revalidate: asking('revalidate', answers.revalidate ?? (() => key)),
    admission: { writeFailure: asking('writeFailure', answers.writeFailure ?? (() => undefined)) },
    conversations: {
      open: asking('open', () => {
        throw new RouterError('previous_response_not_found', 'It is not there.')
      }),
    },
  } as unknown as Services
  const call = { clientApi: chat, secret: 's', readBody: asking('readBody', async () => ({})) } as unknown as Call
  const code = await handle(call, services).catch(({ code }: RouterError) => code)
  return { code, asked }
}

test('a key that was revoked during the upload is refused', async () => {
  const revalidate = () => {
    throw new RouterError('invalid_key', 'This API key is revoked.')
  }
  const { code, asked } = await handled({ revalidate })
  expect(code).toBe('invalid_key')
  expect(asked).toEqual(['authenticate', 'readBody', 'revalidate'])
})

test('a failing ledger is checked once, before a response that is not written yet could be found missing', async () => {
  const { code, asked } = await handled({ writeFailure: () => 'The disk is full.' })
  expect(code).toBe('unavailable')
  expect(asked).toEqual(['authenticate', 'readBody', 'revalidate', 'writeFailure'])
})

test('the checks after the upload run without waiting, each once', async () => {
  const { code, asked } = await handled({})
  expect(code).toBe('previous_response_not_found')
  expect(asked).toEqual(['authenticate', 'readBody', 'revalidate', 'writeFailure', 'open'])
})
