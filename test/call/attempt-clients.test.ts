import { expect, test } from 'vitest'
import { attemptClients } from '../../src/call/attempt/attempt.ts'
import { tokensOf } from '../../src/upstream/auth/tokens.ts'
import type { HttpClient, HttpRequest } from '../../src/upstream/http/types.ts'

const trace = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '8def012345678900', isSampled: true }

test('attempts tell their spans one after the other, and share what is kept for the client, such as tokens', async () => {
  const sent: HttpRequest['headers'][] = []
  const client = {
    async send({ headers }: HttpRequest) {
      sent.push(headers)
    },
  } as unknown as HttpClient
  const next = attemptClients(client, trace)
  const [first, second] = [next(), next()]
  await first.send({ headers: { accept: 'x' } } as unknown as HttpRequest)
  await second.send({ headers: {} } as unknown as HttpRequest)
  expect(sent).toEqual([
    { accept: 'x', traceparent: `00-${trace.traceId}-8def012345678901-01` },
    { traceparent: `00-${trace.traceId}-8def012345678902-01` },
  ])
  expect(tokensOf(first)).toBe(tokensOf(client))
  expect(tokensOf(second)).toBe(tokensOf(client))
})

test('a call without a trace uses the client itself', () => {
  const client = {} as HttpClient
  expect(attemptClients(client, undefined)()).toBe(client)
})
