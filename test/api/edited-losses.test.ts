import { describe, expect, it, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { droppedChoice } from '../../src/api/remove-fields.ts'
import { responses } from '../../src/api/responses/api.ts'
import { namesInBody } from '../../src/api/wire-fields.ts'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'

/** By loss: the texts of a body that must be gone without it, and the client's names of it. */
type Losses = { readonly [loss: string]: readonly [marks: string, names: string] }

const url = (mark: string) => `https://x.example/${mark}`
const data = (mark: string) => `data:image/png;base64,${mark}`

const chatBody: JsonObject = {
  messages: [
    { role: 'system', content: 'M-system' },
    { role: 'developer', content: [{ type: 'text', text: 'M-developer' }] },
    {
      role: 'user',
      name: 'M-name',
      content: [
        { type: 'text', text: 'M-text', cache_control: { type: 'M-mark' } },
        { type: 'image_url', image_url: { url: data('M-image'), detail: 'M-detail' } },
        { type: 'image_url', image_url: { url: url('M-image-url') } },
        { type: 'video_url', video_url: { url: url('M-video') } },
        { type: 'file', file: { file_id: 'M-file-id' } },
        { type: 'file', file: { file_data: 'data:application/pdf;base64,M-file', filename: 'M-filename' } },
        { type: 'input_audio', input_audio: { data: 'M-audio', format: 'wav' } },
      ],
    },
    { role: 'user', content: [{ type: 'file', file: { file_id: 'M-only-file-id' } }] },
    {
      role: 'assistant',
      content: 'M-said',
      reasoning_content: 'M-reasoning',
      refusal: 'M-refusal',
      annotations: [{ title: 'M-annotation' }],
      tool_calls: [
        {
          id: 'c1',
          type: 'function',
          function: { name: 'M-call', arguments: '{}' },
          extra_content: { g: 'M-signature' },
        },
        { id: 'c2', type: 'custom', custom: { name: 'M-custom-call', input: 'M-input' } },
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'M-result' },
  ],
  tools: [
    { type: 'function', cache_control: { type: 'M-tool-mark' }, function: { name: 'M-function', strict: 'M-strict' } },
    { type: 'custom', custom: { name: 'M-custom' } },
    {
      type: 'web_search',
      filters: { allowed_domains: ['M-allowed'] },
      excluded_domains: ['M-excluded'],
      max_uses: 'M-uses',
    },
    { type: 'mcp', server_label: 'M-mcp' },
  ],
  web_search_options: {
    search_context_size: 'M-size',
    user_location: { approximate: { city: 'M-city', country: 'M-country' } },
  },
  reasoning: { summary: 'M-summary' },
  thinking: { type: 'enabled', budget_tokens: 'M-budget' },
  reasoning_effort: 'M-effort',
  response_format: {
    type: 'json_schema',
    json_schema: { name: 'M-format', schema: { a: 'M-schema' }, strict: 'M-enforced' },
  },
  prompt_cache_key: 'M-key',
  prompt_cache_retention: 'M-retention',
  unknown: { a: 'M-unknown', b: 'M-known' },
}

const chatLosses: Losses = {
  system: ['system developer', 'messages'],
  'messages.name': ['name', 'messages.name'],
  'parts.cache': ['mark', 'messages.cache_control'],
  'parts.image': ['image detail image-url', 'image_url'],
  'parts.detail': ['detail', 'image_url.detail'],
  'parts.image.detail': ['detail', 'image_url.detail'],
  'parts.url': ['image-url video', 'messages.image_url.url messages.video_url.url'],
  'parts.video': ['video', 'video_url'],
  'parts.file_id': ['file-id only-file-id', 'file.file_id'],
  'parts.file': ['file-id only-file-id file filename', 'file'],
  'parts.filename': ['filename', 'file.filename'],
  'parts.audio': ['audio', 'input_audio'],
  'parts.reasoning': ['reasoning', 'messages.reasoning_content'],
  'parts.refusal': ['refusal', 'messages.refusal'],
  'parts.citations': ['annotation', 'messages.annotations'],
  'parts.signature': ['signature', 'tool_calls.extra_content'],
  'parts.tool_call': ['call signature custom-call input', 'messages.tool_calls'],
  'parts.tool_result': ['result', 'messages.tool_call_id'],
  tools: ['function strict tool-mark custom mcp', 'tools'],
  'tools.function': ['function strict tool-mark', 'tools.function'],
  'tools.strict': ['strict', 'tools.strict'],
  'tools.cache': ['tool-mark', 'tools.cache_control'],
  'tools.custom': ['custom', 'tools.custom'],
  'tools.mcp': ['mcp', 'tools.mcp'],
  web_search: ['allowed excluded uses size city country', 'tools.web_search web_search_options'],
  'web_search.max_uses': ['uses', 'tools.web_search.max_uses'],
  'web_search.allowed_domains': ['allowed', 'tools.web_search.filters.allowed_domains'],
  'web_search.blocked_domains': ['excluded', 'tools.web_search.excluded_domains'],
  'web_search.context_size': ['size', 'web_search_options.search_context_size'],
  'web_search.user_location': ['city country', 'web_search_options.user_location'],
  'web_search.user_location.city': ['city', 'web_search_options.user_location.approximate.city'],
  'reasoning.budget': ['budget', 'thinking.budget_tokens'],
  'reasoning.effort': ['effort', 'reasoning_effort'],
  'reasoning.summary': ['summary', 'reasoning.summary'],
  reasoning: ['effort budget summary', 'reasoning_effort reasoning thinking'],
  'response_format.schema': ['schema', 'response_format.json_schema.schema'],
  'response_format.strict': ['enforced', 'response_format.json_schema.strict'],
  cache: ['key retention', 'prompt_cache_key prompt_cache_retention'],
  'cache.key': ['key', 'prompt_cache_key'],
  'extensions.unknown.a': ['unknown', 'unknown.a'],
}

const responsesBody: JsonObject = {
  instructions: 'M-system',
  input: [
    { role: 'developer', content: 'M-developer' },
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'M-text', prompt_cache_breakpoint: { mode: 'M-mark' } },
        { type: 'input_image', image_url: data('M-image'), detail: 'M-detail' },
        { type: 'input_image', image_url: url('M-image-url') },
        { type: 'input_image', file_id: 'M-image-id' },
        { type: 'input_file', file_url: url('M-file-url') },
        { type: 'input_file', file_id: 'M-file-id' },
        { type: 'input_file', file_data: 'data:application/pdf;base64,M-file', filename: 'M-filename' },
        { type: 'input_audio', input_audio: { data: 'M-audio', format: 'wav' } },
      ],
    },
    { role: 'user', content: [{ type: 'input_file', file_id: 'M-only-file-id' }] },
    { type: 'reasoning', id: 'rs_1', summary: [{ text: 'M-reasoning' }] },
    { role: 'assistant', content: [{ type: 'output_text', text: 'M-said', annotations: [{ title: 'M-annotation' }] }] },
    { role: 'assistant', content: [{ type: 'refusal', refusal: 'M-refusal' }] },
    { type: 'web_search_call', id: 'ws_1', action: { query: 'M-search' } },
    { type: 'mcp_call', id: 'M-opaque' },
    { type: 'function_call', call_id: 'c1', name: 'M-call', arguments: '{}' },
    { type: 'custom_tool_call', call_id: 'c2', name: 'M-custom-call', input: 'M-input' },
    {
      type: 'function_call_output',
      call_id: 'c1',
      output: [
        { type: 'input_text', text: 'M-result' },
        { type: 'input_image', image_url: data('M-image-result') },
      ],
    },
  ],
  tools: [
    { type: 'function', name: 'M-function', strict: 'M-strict' },
    { type: 'custom', name: 'M-custom' },
    { type: 'web_search_preview', filters: { allowed_domains: ['M-allowed'], blocked_domains: ['M-blocked'] } },
    { type: 'mcp', server_label: 'M-mcp' },
  ],
  include: ['message.output_text.logprobs', 'M-include'],
  top_logprobs: 'M-logprobs',
  text: { verbosity: 'M-verbosity', format: { type: 'json_schema', schema: { a: 'M-schema' }, strict: 'M-enforced' } },
  reasoning: { effort: 'M-effort', generate_summary: 'M-summary' },
}

const responsesLosses: Losses = {
  system: ['system developer', 'instructions'],
  'parts.cache': ['mark', 'input.prompt_cache_breakpoint'],
  'parts.image': ['image detail image-url image-id image-result', 'input.input_image'],
  'parts.detail': ['detail', 'input.input_image.detail'],
  'parts.url': ['image-url file-url', 'input.input_image.image_url input.input_file.file_url'],
  'parts.file_id': ['image-id file-id only-file-id', 'input.input_image.file_id input.input_file.file_id'],
  'parts.file': ['file-url file-id only-file-id file filename', 'input.input_file'],
  'parts.filename': ['filename', 'input.input_file.filename'],
  'parts.audio': ['audio', 'input.input_audio'],
  'parts.reasoning': ['reasoning', 'input.reasoning'],
  'parts.summary': ['reasoning', 'input.reasoning.summary'],
  'parts.citations': ['annotation', 'input.annotations'],
  'parts.refusal': ['refusal', 'input.refusal'],
  'parts.search': ['search', 'input.web_search_call'],
  'parts.opaque': ['opaque', 'input'],
  'parts.tool_call': ['call custom-call input', 'input.function_call input.custom_tool_call'],
  'parts.tool_result': ['result image-result', 'input.function_call_output'],
  tools: ['function strict custom mcp', 'tools'],
  'tools.function': ['function strict', 'tools.function'],
  'tools.strict': ['strict', 'tools.strict'],
  'tools.custom': ['custom', 'tools.custom'],
  'tools.mcp': ['mcp', 'tools.mcp'],
  web_search: ['allowed blocked', 'tools.web_search'],
  'web_search.allowed_domains': ['allowed', 'tools.web_search.filters.allowed_domains'],
  'web_search.blocked_domains': ['blocked', 'tools.web_search.filters.blocked_domains'],
  verbosity: ['verbosity', 'text.verbosity'],
  response_format: ['schema enforced', 'text.format'],
  'response_format.schema': ['schema enforced', 'text.format.schema'],
  'response_format.strict': ['enforced', 'text.format.strict'],
  'reasoning.summary': ['summary', 'reasoning.generate_summary'],
  'reasoning.effort': ['effort', 'reasoning.effort'],
  logprobs: ['logprobs', 'top_logprobs include.message.output_text.logprobs'],
}

const block = (type: string, source: JsonObject, members: JsonObject = {}) => ({ type, source, ...members })
const messagesBody: JsonObject = {
  system: [{ type: 'text', text: 'M-system', cache_control: { type: 'M-system-mark' } }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'M-text', cache_control: { type: 'M-mark' } },
        block('image', { type: 'base64', data: 'M-image' }),
        block('image', { type: 'url', url: url('M-image-url') }),
        block('document', { type: 'file', file_id: 'M-file-id' }),
        block(
          'document',
          { type: 'base64', data: 'M-file' },
          { title: 'M-title', citations: { enabled: 'M-setting' } },
        ),
      ],
    },
    { role: 'user', content: [block('document', { type: 'file', file_id: 'M-only-file-id' })] },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'M-reasoning', signature: 'M-signature' },
        { type: 'text', text: 'M-said', citations: [{ title: 'M-citation' }] },
        { type: 'server_tool_use', name: 'web_search', id: 'M-search' },
        { type: 'container_upload', file_id: 'M-opaque' },
        { type: 'tool_use', id: 'c1', name: 'M-call', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'c1',
          is_error: 'M-error',
          content: [{ type: 'text', text: 'M-result' }, block('image', { type: 'base64', data: 'M-image-result' })],
        },
      ],
    },
  ],
  tools: [
    { name: 'M-untyped', input_schema: {}, cache_control: { type: 'M-tool-mark' } },
    { type: 'custom', name: 'M-function', input_schema: { a: 'M-parameters' }, strict: 'M-strict' },
    { type: 'web_search_20250305', name: 'web_search', max_uses: 'M-uses', blocked_domains: ['M-blocked'] },
    { type: 'bash_20250124', name: 'M-bash' },
  ],
  thinking: { type: 'enabled', budget_tokens: 'M-budget', display: 'M-summary' },
  output_config: { effort: 'M-effort', format: { type: 'json_schema', schema: { a: 'M-schema' } } },
  cache_control: { type: 'M-cache' },
  metadata: { user_id: 'M-user' },
}

const messagesLosses: Losses = {
  system: ['system system-mark', 'system'],
  'parts.cache': ['mark system-mark', 'messages.cache_control'],
  'parts.image': ['image image-url image-result', 'messages.image'],
  'parts.url': ['image-url', 'messages.image.source.url'],
  'parts.file_id': ['file-id only-file-id', 'messages.document.source.file_id'],
  'parts.file': ['file-id only-file-id file title setting', 'messages.document'],
  'parts.filename': ['title', 'messages.document.title'],
  'parts.reasoning': ['reasoning signature', 'messages.thinking'],
  'parts.signature': ['signature', 'messages.thinking.signature'],
  'parts.citations': ['citation', 'messages.citations'],
  'parts.search': ['search', 'messages.server_tool_use'],
  'parts.opaque': ['opaque', 'messages.content'],
  'parts.tool_call': ['call', 'messages.tool_use'],
  'parts.tool_result': ['result image-result error', 'messages.tool_result'],
  'parts.is_error': ['error', 'messages.tool_result.is_error'],
  tools: ['untyped tool-mark function parameters strict bash', 'tools'],
  'tools.function': ['untyped tool-mark function parameters strict', 'tools.function'],
  'tools.cache': ['tool-mark', 'tools.cache_control'],
  'tools.strict': ['strict', 'tools.strict'],
  'tools.bash_20250124': ['bash', 'tools.bash_20250124'],
  web_search: ['uses blocked', 'tools.web_search'],
  'web_search.max_uses': ['uses', 'tools.web_search.max_uses'],
  'web_search.blocked_domains': ['blocked', 'tools.web_search.blocked_domains'],
  'reasoning.budget': ['budget', 'thinking.budget_tokens'],
  'reasoning.summary': ['summary', 'thinking.display'],
  'reasoning.effort': ['effort', 'output_config.effort'],
  'response_format.strict': ['schema', 'output_config.format'],
  'response_format.schema': ['schema', 'output_config.format.schema'],
  cache: ['cache', 'cache_control'],
  'cache.options': ['cache', 'cache_control'],
  user: ['user', 'metadata'],
}

const apis = [
  { api: chat, body: chatBody, losses: chatLosses, list: 'messages' },
  { api: responses, body: responsesBody, losses: responsesLosses, list: 'input' },
  { api: messages, body: messagesBody, losses: messagesLosses, list: 'messages' },
]

const marksIn = (value: unknown) => [...new Set(JSON.stringify(value).match(/M-[a-z-]+/g))].sort()
const facts = { model: 'm', stream: false }

describe.each(apis)('a body for a provider of the same format ($api.api)', ({ api, body, losses, list }) => {
  test.each(Object.entries(losses))('loses %s and nothing else', (loss, [gone, names]) => {
    const before = structuredClone(body)
    const edited = api.editRequest(body, { ...facts, dropped: [loss] })
    const marks = gone.split(' ').map((mark) => `M-${mark}`)
    expect(marksIn(edited)).toEqual(marksIn(body).filter((mark) => !marks.includes(mark)))
    expect(namesInBody(api.wireNames(loss), body)).toEqual(names.split(' '))
    expect(body).toEqual(before)
  })

  it('leaves no hollow part, and a place for a message that has lost everything', () => {
    const edited = api.editRequest(body, { ...facts, dropped: ['parts.file_id'] })
    expect(edited[list]).toContainEqual({ role: 'user', content: '(unsupported content omitted)' })
    expect(hollow(edited)).toEqual([])
  })

  it('is whole when nothing is lost', () => {
    expect(api.editRequest(body, { ...facts, dropped: [] })).toEqual({ ...body, model: 'm' })
  })
})

/** Objects that have lost all their members. */
function hollow(value: Json | undefined): Json[] {
  if (Array.isArray(value)) return value.flatMap(hollow)
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const isHollow = name !== 'input' && name !== 'input_schema' && isObject(member) && Object.keys(member).length === 0
    return isHollow ? [name] : hollow(member)
  })
}

test('an assistant that has nothing left to say is not in the conversation', () => {
  const hi = { role: 'user', content: 'hi' }
  const thought = { role: 'assistant', content: null, reasoning_content: 'hm' }
  const dropped = ['parts.reasoning']
  expect(chat.editRequest({ messages: [hi, thought, hi] }, { ...facts, dropped }).messages).toEqual([hi, hi])
  const system = [{ role: 'system', content: 'x' }]
  expect(chat.editRequest({ messages: system }, { ...facts, dropped: ['system'] }).messages).toEqual([
    { role: 'user', content: '(unsupported content omitted)' },
  ])
})

test('earlier calls of custom tools become calls of functions', () => {
  const dropped = ['tools.custom']
  const edited = chat.editRequest(chatBody, { ...facts, dropped })
  expect(JSON.stringify(edited)).toContain(JSON.stringify({ name: 'M-custom-call', arguments: '{"input":"M-input"}' }))
  const item = { type: 'custom_tool_call', call_id: 'c', name: 'c', input: 'x' }
  const output = { type: 'custom_tool_call_output', call_id: 'c', output: 'y' }
  expect(responses.editRequest({ input: [item, output] }, { ...facts, dropped }).input).toEqual([
    { type: 'function_call', call_id: 'c', name: 'c', arguments: '{"input":"x"}' },
    { type: 'function_call_output', call_id: 'c', output: 'y' },
  ])
})

describe('a thinking switch without a budget is an effort', () => {
  const edit = (thinking: JsonObject, api: typeof chat | typeof messages) =>
    api.editRequest({ thinking }, { ...facts, dropped: ['reasoning.effort'] }).thinking
  test('and goes with it', () => {
    expect(edit({ type: 'enabled' }, chat)).toBeUndefined()
    expect(edit({ type: 'adaptive' }, messages)).toBeUndefined()
    expect(edit({ type: 'enabled', budget_tokens: 9 }, chat)).toEqual({ type: 'enabled', budget_tokens: 9 })
    expect(edit({ type: 'enabled', budget_tokens: 9 }, messages)).toEqual({ type: 'enabled', budget_tokens: 9 })
  })
})

const f = { type: 'function', function: { name: 'f' } }
const c = { type: 'custom', custom: { name: 'c' } }
const allowed = (mode: string, ...tools: Json[]) => ({ type: 'allowed_tools', allowed_tools: { mode, tools } })
const flat = (mode: string, ...tools: Json[]) => ({ type: 'allowed_tools', mode, tools })
const own = { name: 'f', input_schema: {} }
const search = { type: 'web_search_20250305', name: 'web_search' }
const alone = { disable_parallel_tool_use: true }

/** The tools, the lost field, the choice, what is left of it, and whether a demand was lost. */
const choices: [typeof chat, Json[], string, Json, Json | undefined, boolean][] = [
  [chat, [f, c], 'tools.custom', c, undefined, true],
  [chat, [f, c], 'tools.custom', f, f, false],
  [chat, [f, c], 'tools.custom', 'required', 'required', false],
  [chat, [c], 'tools.custom', 'required', undefined, true],
  [chat, [c], 'tools.custom', 'auto', undefined, false],
  [chat, [f, c], 'tools.custom', allowed('required', f, c), allowed('required', f), false],
  [chat, [f, c], 'tools.custom', allowed('required', c), undefined, true],
  [chat, [f, c], 'tools.custom', allowed('auto', c), undefined, false],
  [chat, [f, { type: 'web_search' }], 'web_search', { type: 'web_search' }, undefined, true],
  [chat, [f, { type: 'mcp', server_label: 'a' }], 'tools.mcp', { type: 'mcp', server_label: 'a' }, undefined, true],
  [chat, [f, { type: 'custom', custom: { name: 'f' } }], 'tools.custom', f, f, false],
  [responses, [f, { type: 'web_search_preview' }], 'web_search', { type: 'web_search' }, undefined, true],
  [
    responses,
    [
      { type: 'function', name: 'f' },
      { type: 'custom', name: 'c' },
    ],
    'tools.custom',
    flat('required', { type: 'function', name: 'f' }, { type: 'custom', name: 'c' }),
    flat('required', { type: 'function', name: 'f' }),
    false,
  ],
  [messages, [own, search], 'web_search', { type: 'tool', name: 'web_search' }, undefined, true],
  [messages, [own, search], 'web_search', { type: 'tool', name: 'f' }, { type: 'tool', name: 'f' }, false],
  [
    messages,
    [own, search],
    'web_search',
    { type: 'tool', name: 'web_search', ...alone },
    { type: 'auto', ...alone },
    true,
  ],
  [messages, [search], 'web_search', { type: 'any', ...alone }, undefined, true],
  [messages, [own], 'tool_choice', { type: 'any', ...alone }, { type: 'auto', ...alone }, false],
]

test.each(choices)('the choice among the tools that are left: %#', (api, tools, loss, tool_choice, left, isLost) => {
  const body = { tools, tool_choice }
  const edited = api.editRequest(body, { ...facts, dropped: [loss] })
  expect(edited.tool_choice).toEqual(left)
  expect(droppedChoice(body, edited, [loss])).toEqual(isLost ? ['tool_choice'] : [])
})

test('the choice of a deprecated function goes with the functions', () => {
  const tools = [c]
  const body = { tools, functions: [{ name: 'g' }], function_call: { name: 'g' }, tool_choice: 'auto' }
  const edited = chat.editRequest(body, { ...facts, dropped: ['tools.function'] })
  expect(edited).toEqual({ model: 'm', tools, tool_choice: 'auto' })
  expect(droppedChoice(body, edited, [])).toEqual(['tool_choice'])
})
