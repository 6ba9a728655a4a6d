import { expect, test } from 'vitest'
import type { Part, ToolCallPart } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import { openSignatureCache } from '../../src/routing/signature-cache.ts'

const thought: Part = { type: 'reasoning', text: 'Hm.', signature: 'seal', by: 'acme' }
const call: ToolCallPart = { type: 'tool_call', id: 'a', name: 'f', arguments: '{}', signature: 'sig', by: 'acme' }
const other: ToolCallPart = { type: 'tool_call', id: 'b', name: 'g', arguments: '{}' }
const { signature: _signature, by: _by, ...bareCall } = call

const reply: Reply = {
  id: 'r',
  created: 1,
  parts: [thought, { type: 'text', text: 'Let me see.' }, call, other],
  finish: 'tool_calls',
  usage: {},
}
const request = (parts: Part[]): NeutralRequest => ({
  model: 'm',
  messages: [
    { role: 'user', parts: [{ type: 'text', text: 'x' }] },
    { role: 'assistant', parts },
    { role: 'user', parts: [{ type: 'tool_result', id: 'a', parts: [] }] },
  ],
  origin: { api: 'chat', body: {} },
})

test('calls that come back without signatures get theirs back, unchanged', () => {
  const cache = openSignatureCache()
  cache.remember('org', reply)
  const sent = request([bareCall, other])
  const { messages } = cache.restore('org', sent)
  expect(messages[1]?.parts).toEqual([thought, call, other])
  expect(sent.messages[1]?.parts[0]).toEqual(bareCall)
})

test('reasoning that came back without its signature is replaced, not duplicated', () => {
  const cache = openSignatureCache()
  cache.remember('org', reply)
  const { messages } = cache.restore('org', request([{ type: 'reasoning', text: 'Hm.' }, bareCall, other]))
  expect(messages[1]?.parts).toEqual([thought, call, other])
})

test('a client that returns its signatures, another organization, and an unknown call are not changed', () => {
  const cache = openSignatureCache()
  cache.remember('org', reply)
  for (const [organization, sent] of [
    ['org', request([thought, call, other])],
    ['elsewhere', request([bareCall, other])],
    ['org', request([{ type: 'tool_call', id: 'z', name: 'f', arguments: '{}' }])],
  ] as const) {
    expect(cache.restore(organization, sent).messages).toEqual(sent.messages)
  }
})

test('replies without signatures are not cached', () => {
  const cache = openSignatureCache()
  cache.remember('org', { ...reply, parts: [other] })
  const sent = request([other])
  expect(cache.restore('org', sent)).toBe(sent)
})

test('what one cache remembers or forgets, another one adopts', () => {
  const [one, another] = [
    openSignatureCache((remembered) => another.adopt(structuredClone(remembered))),
    openSignatureCache(),
  ]
  one.remember('org', reply)
  const sent = request([bareCall, other])
  expect(another.restore('org', sent).messages[1]?.parts).toEqual([thought, call, other])
  one.remember('org', { ...reply, parts: [bareCall] })
  expect(another.restore('org', sent)).toBe(sent)
})
