import { expect, test } from 'vitest'
import type { Part } from '../../src/core/parts.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import { withoutRestoredReasoning, withReasoningFor } from '../../src/core/restored-reasoning.ts'

const seal = { type: 'reasoning' as const, text: 'secret', signature: 'seal', by: 'acme' }
const plain: Part = { type: 'reasoning', text: 'said' }
const call: Part = { type: 'tool_call', id: 'a', name: 'f', arguments: '{}' }
const request = (...parts: Part[]): NeutralRequest => ({
  model: 'm',
  messages: [
    { role: 'user', parts: [{ type: 'text', text: 'x' }] },
    { role: 'assistant', parts: [plain] },
    { role: 'assistant', parts },
  ],
  origin: { api: 'chat', body: {} },
})
const partsOf = ({ messages }: NeutralRequest) => messages[2]?.parts

test('restored reasoning replaces what the client sent of it, for its maker', () => {
  const given = request({ ...seal, restored: true }, plain, call)
  const own = withReasoningFor(given, 'acme')
  expect(partsOf(own)).toEqual([seal, call])
  expect(own.messages[1]?.parts).toEqual([plain])
  expect(partsOf(given)).toHaveLength(3)
})

test('nobody else gets it, and keeps what the client sent', () => {
  const given = request({ ...seal, restored: true }, plain, call)
  expect(partsOf(withReasoningFor(given, 'other'))).toEqual([plain, call])
  expect(partsOf(withoutRestoredReasoning(given))).toEqual([plain, call])
  const { by: _, ...unnamed } = seal
  expect(partsOf(withReasoningFor(request({ ...unnamed, restored: true }, call), 'acme'))).toEqual([call])
})

test('a request without any is not changed', () => {
  const given = request(seal, plain, call)
  expect([withReasoningFor(given, 'other'), withoutRestoredReasoning(given)]).toEqual([given, given])
  expect(withReasoningFor(given, 'other')).toBe(given)
})
