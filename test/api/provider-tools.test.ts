import { describe, expect, it, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { writeRequest } from '../../src/manifest/run/translate.ts'
import { shippedFiles } from '../helpers/shipped.ts'

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
  const functions = { allowed: ['f'], mode: 'required' }
  expect(choiceOf(mixed)).toEqual({ kind: 'allowed_tools', by: 'responses', definition: mixed, functions })
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
  const functions = { allowed: ['bash'], mode: 'required' }
  expect(choiceOf('bash')).toEqual({
    kind: 'tool',
    by: 'messages',
    definition: { type: 'tool', name: 'bash' },
    functions,
  })
})

describe('a choice of web search', () => {
  const search = { kind: 'web_search' }

  it.each(apis.slice(0, 2))('is none of a function in the $api.api API', ({ api, body, own }) => {
    const definition = { type: 'web_search_preview' }
    const request = api.read({ ...body, tools: [own, definition], tool_choice: definition })
    expect(request.tool_choice).toEqual({ ...search, by: api.api, definition })
  })

  it('is none of a function in the Messages API, but where a function has that name', () => {
    const tool_choice = { type: 'tool', name: 'web_search' }
    const choiceOf = (...tools: JsonObject[]) =>
      messages.read({ model: 'm', max_tokens: 9, messages: hi, tools, tool_choice }).tool_choice
    const tool = { type: 'web_search_20250305', name: 'web_search' }
    expect(choiceOf(tool)).toEqual({ ...search, by: 'messages', definition: tool_choice })
    expect(choiceOf({ name: 'web_search', input_schema: {} })).toEqual({ name: 'web_search' })
  })

  const formats: [string, JsonObject | undefined, string[]][] = [
    ['anthropic', { type: 'tool', name: 'web_search' }, []],
    ['google', undefined, ['tool_choice', 'web_search']],
    ['cohere', undefined, ['tool_choice', 'web_search']],
    ['mistral', undefined, ['tool_choice', 'web_search']],
  ]
  it.each(formats)('reaches %s as one, or is named', async (slug, expected, names) => {
    const { providers } = await shippedFiles()
    const provider = providers.find(({ provider }) => provider.slug === slug)?.provider
    if (!provider) throw new Error(`There is no ${slug}.`)
    const tools = [{ type: 'function', name: 'f' }, { type: 'web_search' }]
    const request = responses.read({ model: 'm', input: 'hi', tools, tool_choice: { type: 'web_search' } })
    const { body, dropped } = await writeRequest(provider, request, { model: 'claude-haiku-4-5' })
    expect(body.tool_choice).toEqual(expected)
    expect(dropped.sort()).toEqual(names)
  })
})
