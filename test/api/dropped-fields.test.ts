import { describe, expect, it, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import { namesInBody } from '../../src/api/wire-fields.ts'
import type { JsonObject } from '../../src/core/json.ts'

const hi = [{ role: 'user', content: 'hi' }]
const apis = [
  { api: chat, body: { messages: hi }, own: { type: 'function', function: { name: 'f' } } },
  { api: responses, body: { input: 'hi' }, own: { type: 'function', name: 'f' } },
  { api: messages, body: { max_tokens: 9, messages: hi }, own: { name: 'f', input_schema: {} } },
]

describe.each(apis)('a $api.api body for a provider of the same format', ({ api, body, own }) => {
  const edit = (members: JsonObject, ...dropped: string[]) => {
    const given = { ...body, ...members }
    const before = structuredClone(given)
    const { model, ...edited } = api.editRequest(given, { model: 'm', stream: false, dropped })
    expect(model).toBe('m')
    expect(given).toEqual(before)
    return edited
  }

  it('loses extensions by their path', () => {
    const members = { odd: 1, deep: { keep: 1, gone: { a: 1 } }, even: 2 }
    expect(edit(members, 'extensions.odd', 'extensions.deep.gone')).toEqual({ ...body, deep: { keep: 1 }, even: 2 })
    expect(edit(members, 'extensions.odd.more', 'extensions.none')).toEqual({ ...body, ...members })
  })

  it('loses tools by their type', () => {
    const tools = [{ type: 'mcp', server_label: 'a' }, own, { type: 'web_search_20250305' }]
    expect(edit({ tools }, 'tools.mcp')).toEqual({ ...body, tools: [own, { type: 'web_search_20250305' }] })
    expect(edit({ tools }, 'web_search', 'tools.mcp')).toEqual({ ...body, tools: [own] })
  })

  it('has no choice when all tools were dropped', () => {
    const members = { tools: [{ type: 'mcp' }], tool_choice: { type: 'mcp' }, parallel_tool_calls: true }
    expect(edit(members, 'tools.mcp')).toEqual(body)
    expect(edit({ tool_choice: 'none' }, 'tools.mcp')).toEqual({ ...body, tool_choice: 'none' })
  })

  it('keeps its messages', () => {
    expect(edit({}, 'parts.opaque', 'parts.video', 'parts.image')).toEqual(body)
  })
})

test('a member of an object or of every tool is dropped alone', () => {
  const facts = { model: 'm', stream: false }
  const thinking = { type: 'enabled', budget_tokens: 1024, display: 'summarized' }
  const tools = [{ name: 'f', input_schema: {}, strict: true }]
  const dropped = ['reasoning.summary', 'tools.strict']
  expect(messages.editRequest({ thinking, tools }, { ...facts, dropped })).toEqual({
    model: 'm',
    thinking: { type: 'enabled', budget_tokens: 1024 },
    tools: [{ name: 'f', input_schema: {} }],
  })
  const search = { type: 'web_search', filters: { allowed_domains: ['a.at'], keep: 1 } }
  expect(responses.editRequest({ tools: [search] }, { ...facts, dropped: ['web_search.allowed_domains'] })).toEqual({
    model: 'm',
    tools: [{ type: 'web_search', filters: { keep: 1 } }],
  })
})

test('fields that share an object are dropped one by one', () => {
  const facts = { model: 'm', stream: false }
  const output_config = { effort: 'low', format: { type: 'json_schema', schema: {} } }
  const thinking = { type: 'adaptive' }
  const body = { thinking, output_config }
  const edit = (...dropped: string[]) => messages.editRequest(body, { ...facts, dropped })
  expect(edit('reasoning')).toEqual({ model: 'm', output_config: { format: output_config.format } })
  expect(edit('response_format')).toEqual({ model: 'm', thinking, output_config: { effort: 'low' } })
  const text = { verbosity: 'low', format: { type: 'json_object' } }
  expect(responses.editRequest({ text }, { ...facts, dropped: ['response_format'] })).toEqual({
    model: 'm',
    text: { verbosity: 'low' },
  })
})

test.each<[string, JsonObject, string[]]>([
  ['reasoning', { thinking: {}, output_config: { effort: 'low' } }, ['thinking', 'output_config.effort']],
  ['reasoning', { output_config: { effort: 'low' } }, ['output_config.effort']],
  ['response_format', { output_config: { effort: 'low' }, output_format: {} }, ['output_format']],
  ['web_search', { tools: [{ type: 'web_search' }] }, ['tools.web_search']],
  ['tools.mcp', { tools: [{ type: 'mcp' }] }, ['tools.mcp']],
  ['tools.strict', { tools: [{ type: 'custom', strict: true }] }, ['tools.strict']],
  ['reasoning', {}, ['thinking']],
])('%s of %j is reported as %j', (field, body, names) => {
  expect(namesInBody(messages.wireNames(field), body)).toEqual(names)
})
