import { expect, test } from 'vitest'
import type { Part } from '../../src/core/parts.ts'
import type { PluginRequest } from '../../src/plugin/contract.ts'
import { withoutStaleForms } from '../../src/plugin/stale-forms.ts'

const native = {
  by: 'responses',
  kind: 'namespace',
  body: { type: 'function_call', arguments: '{"to":"ann@corp.example"}' },
}
const call: Part = { type: 'tool_call', id: 'c', name: 'mail', arguments: '{"to":"ann@corp.example"}', native }
const result: Part = { type: 'tool_result', id: 'c', parts: [{ type: 'text', text: 'Sent.' }], native }

function requestWith(...parts: Part[]): PluginRequest {
  return { operation: 'chat', chat: { model: 'm', messages: [{ role: 'assistant', parts }] } } as PluginRequest
}

function partsOf(request: PluginRequest): Part[] {
  return 'chat' in request ? (request.chat.messages[0]?.parts ?? []) : []
}

test('a call or result that a plugin changes loses the form in which its client has sent it', () => {
  const changed = requestWith({ ...call, arguments: '{"to":"…"}' }, { ...result, parts: [{ type: 'text', text: '…' }] })
  for (const part of partsOf(withoutStaleForms(changed, requestWith(call, result))))
    expect(part).not.toHaveProperty('native')
})

test('one that a plugin leaves alone, or whose form it has changed as well, keeps it', () => {
  const masked = { ...native, body: { ...native.body, arguments: '{"to":"…"}' } }
  const both = requestWith({ ...call, arguments: '{"to":"…"}', native: masked }, result)
  expect(partsOf(withoutStaleForms(both, requestWith(call, result)))).toEqual([
    { ...call, arguments: '{"to":"…"}', native: masked },
    result,
  ])
})
