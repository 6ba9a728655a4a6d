import { describe, expect, it, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import type { JsonObject } from '../../src/core/json.ts'

const hi = [{ role: 'user', content: 'hi' }]
const apis = [
  { api: chat, body: { model: 'm', messages: hi }, own: { type: 'function', function: { name: 'f' } } },
  { api: responses, body: { model: 'm', input: 'hi' }, own: { type: 'function', name: 'f' } },
  { api: messages, body: { model: 'm', max_tokens: 9, messages: hi }, own: { name: 'f', input_schema: {} } },
]
const kinds = [
  'mcp',
  'code_interpreter',
  'file_search',
  'image_generation',
  'local_shell',
  'namespace',
  'browser_search',
  'computer_use_preview',
  'bash_20250124',
  'constructor',
]

describe.each(apis)('tools that providers run, in the $api.api API', ({ api, body, own }) => {
  it.each(kinds)('keeps a tool of the type %s among the others, as the client defined it', (type) => {
    const definition: JsonObject = { type, name: 'n', settings: { deep: [1] } }
    const { tools, extensions } = api.read({ ...body, tools: [definition, own] })
    expect(tools).toMatchObject([
      { kind: type, by: api.api, definition },
      { kind: 'function', name: 'f' },
    ])
    expect(extensions).toBeUndefined()
  })

  it('reports one that is lost by its type', () => {
    for (const type of kinds) expect(api.wireNames(`tools.${type}`)).toEqual([`tools.${type}`])
  })
})

describe.each(apis.slice(0, 2))('a choice of a provider tool in the $api.api API', ({ api, body }) => {
  test('is kept as the client wrote it', () => {
    const definition = { type: 'mcp', server_label: 'docs' }
    const request = api.read({ ...body, tool_choice: definition })
    expect(request.tool_choice).toEqual({ kind: 'mcp', by: api.api, definition })
    expect(request.extensions).toBeUndefined()
  })
})

test('a choice of several tools is kept as it is when not all of them have names', () => {
  const allowed = (...tools: JsonObject[]) => ({ type: 'allowed_tools', mode: 'required', tools })
  const choiceOf = (tool_choice: JsonObject) => responses.read({ model: 'm', input: 'hi', tool_choice }).tool_choice
  const named = { type: 'function', name: 'f' }
  expect(choiceOf(allowed(named))).toEqual({ allowed: ['f'], mode: 'required' })
  const mixed = allowed(named, { type: 'mcp', server_label: 'docs' })
  expect(choiceOf(mixed)).toEqual({ kind: 'allowed_tools', by: 'responses', definition: mixed })
})

test.each(apis)('the $api.api API names a lost extension by its path in the body', ({ api }) => {
  expect(api.wireNames('extensions.thinking.budget_tokens')).toEqual(['thinking.budget_tokens'])
  expect(api.wireNames('extensions.constructor')).toEqual(['constructor'])
  expect(api.wireNames('constructor')).toEqual(['constructor'])
})

test('a choice of a provider tool by its name is one of the Messages API alone', () => {
  const own = { name: 'f', input_schema: {} }
  const bash = { type: 'bash_20250124', name: 'bash' }
  const choiceOf = (name: string) => {
    const tool_choice = { type: 'tool', name }
    return messages.read({ model: 'm', max_tokens: 9, messages: hi, tools: [own, bash], tool_choice }).tool_choice
  }
  expect(choiceOf('f')).toEqual({ name: 'f' })
  expect(choiceOf('bash')).toEqual({ kind: 'tool', by: 'messages', definition: { type: 'tool', name: 'bash' } })
})
