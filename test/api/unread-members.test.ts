import { describe, expect, it, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import { maxUnread } from '../../src/api/unread-members.ts'
import { namesInBody } from '../../src/api/wire-fields.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { writeRequest } from '../../src/manifest/run/translate.ts'
import { servedBy } from '../../src/manifest/target.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { shippedFiles } from '../helpers/shipped.ts'

const png = 'iVBORw0KGgo='
const schema = { type: 'object', properties: {}, 'x-own': { deep: 1 } }
const cache = { type: 'ephemeral', ttl: '1h' }
const location = { type: 'approximate', city: 'Vienna', country: 'AT' }

const chatBody = (x: JsonObject): JsonObject => ({
  model: 'm',
  messages: [
    { role: 'system', content: 'S', ...x },
    { role: 'developer', content: [{ type: 'text', text: 'D', cache_control: { ...cache, ...x }, ...x }] },
    {
      role: 'user',
      name: 'bob',
      content: [
        { type: 'text', text: 'Hi', prompt_cache_breakpoint: {}, ...x },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${png}`, detail: 'low', ...x }, ...x },
        { type: 'input_audio', input_audio: { data: png, format: 'wav', ...x }, ...x },
        { type: 'file', file: { file_data: png, filename: 'a.pdf', ...x }, ...x },
        { type: 'video_url', video_url: { url: 'https://a.example/v', ...x }, ...x },
      ],
      ...x,
    },
    {
      role: 'assistant',
      content: 'ok',
      refusal: null,
      annotations: [],
      reasoning_content: 'hm',
      prefix: false,
      tool_calls: [
        { id: 'c1', index: 0, type: 'function', function: { name: 'f', arguments: '{}', ...x }, ...x },
        { id: 'c2', type: 'custom', custom: { name: 'g', input: 'i', ...x } },
      ],
      ...x,
    },
    { role: 'tool', tool_call_id: 'c1', name: 'f', content: 'r', cache_control: cache, ...x },
  ],
  tools: [
    {
      type: 'function',
      function: { name: 'f', description: 'd', parameters: schema, strict: true, ...x },
      cache_control: cache,
      ...x,
    },
    { type: 'custom', custom: { name: 'g', format: { type: 'text', own: 1 }, ...x } },
    { type: 'web_search_preview', user_location: { ...location, ...x }, max_uses: 1, ...x },
    { type: 'mcp', server_label: 's', own: { deep: 1 } },
  ],
  web_search_options: { search_context_size: 'low', user_location: { approximate: { city: 'V', ...x } }, ...x },
  tool_choice: { type: 'function', function: { name: 'f', ...x }, ...x },
  response_format: { type: 'json_schema', json_schema: { name: 'n', schema, strict: true, ...x }, ...x },
  thinking: { type: 'enabled', budget_tokens: 2_000, ...x },
  stream_options: { include_usage: true, include_obfuscation: false, ...x },
  metadata: { a: 'b' },
  prediction: { type: 'content', content: [{ type: 'text', text: 'p', own: 1 }] },
})

const chatNames = [
  'messages.frob',
  'messages.content.cache_control.frob',
  'messages.content.frob',
  'messages.content.image_url.frob',
  'messages.content.input_audio.frob',
  'messages.content.file.frob',
  'messages.content.video_url.frob',
  'messages.tool_calls.function.frob',
  'messages.tool_calls.frob',
  'messages.tool_calls.custom.frob',
  'tools.function.frob',
  'tools.frob',
  'tools.custom.frob',
  'tools.web_search.user_location.frob',
  'tools.web_search.frob',
  'web_search_options.user_location.approximate.frob',
  'web_search_options.frob',
  'tool_choice.function.frob',
  'tool_choice.frob',
  'response_format.json_schema.frob',
  'response_format.frob',
  'thinking.frob',
  'stream_options.frob',
]

const responsesBody = (x: JsonObject): JsonObject => ({
  model: 'm',
  input: [
    { role: 'system', content: 'S', ...x },
    {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: 'Hi', prompt_cache_breakpoint: {}, ...x },
        { type: 'input_image', image_url: `data:image/png;base64,${png}`, detail: 'low', ...x },
        { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${png}`, ...x },
        { type: 'input_audio', input_audio: { data: png, format: 'wav', ...x }, ...x },
      ],
    },
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 't' }], encrypted_content: 'e', ...x },
    {
      type: 'message',
      id: 'msg_1',
      status: 'completed',
      phase: 'commentary',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'ok', annotations: [], logprobs: [], ...x }],
    },
    { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q', sources: [] } },
    { type: 'function_call', id: 'fc_1', status: 'completed', call_id: 'c1', name: 'f', arguments: '{}', ...x },
    { type: 'custom_tool_call', id: 'ctc_1', call_id: 'c2', name: 'g', input: 'i', ...x },
    { type: 'function_call_output', call_id: 'c1', output: [{ type: 'input_text', text: 'r', ...x }], ...x },
    { type: 'custom_tool_call_output', call_id: 'c2', output: 'r' },
    { type: 'mcp_call', id: 'm', own: { deep: 1 } },
  ],
  tools: [
    { type: 'function', name: 'f', description: 'd', parameters: schema, strict: true, defer_loading: false, ...x },
    { type: 'custom', name: 'g', format: { type: 'grammar', syntax: 'lark', definition: 'd' } },
    { type: 'web_search', filters: { allowed_domains: ['a.example'], ...x }, user_location: location, ...x },
    { type: 'mcp', server_label: 's', own: { deep: 1 } },
  ],
  tool_choice: { type: 'function', name: 'f', ...x },
  text: { verbosity: 'low', format: { type: 'json_schema', name: 'n', schema, strict: true, ...x }, ...x },
  reasoning: { effort: 'low', summary: 'auto', ...x },
  include: ['message.output_text.logprobs', 'reasoning.encrypted_content', 'web_search_call.action.sources'],
  stream_options: { include_obfuscation: false, ...x },
  metadata: { a: 'b' },
})

const responsesNames = [
  'input.frob',
  'input.content.frob',
  'input.content.input_audio.frob',
  'input.output.frob',
  'tools.frob',
  'tools.web_search.filters.frob',
  'tools.web_search.frob',
  'tool_choice.frob',
  'text.format.frob',
  'text.frob',
  'reasoning.frob',
  'stream_options.frob',
]

const messagesBody = (x: JsonObject): JsonObject => ({
  model: 'm',
  max_tokens: 4_000,
  system: [{ type: 'text', text: 'S', cache_control: { ...cache, ...x }, ...x }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Hi', cache_control: cache, ...x },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png, ...x }, ...x },
        {
          type: 'document',
          source: { type: 'content', content: [{ type: 'text', text: 't' }], ...x },
          title: 't',
          context: 'c',
          citations: { enabled: false, ...x },
          ...x,
        },
        { type: 'search_result', source: 's', title: 't', content: [{ type: 'text', text: 't', ...x }], ...x },
      ],
      ...x,
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 't', signature: 's', ...x },
        { type: 'text', text: 'ok', citations: [{ type: 'char_location', cited_text: 'c', document_index: 0 }] },
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q', own: 1 } },
        { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ url: 'https://a.example', own: 1 }] },
        { type: 'tool_use', id: 'toolu_1', name: 'f', input: { own: { deep: 1 } }, caller: { type: 'direct' }, ...x },
        { type: 'mcp_tool_use', id: 'm', own: { deep: 1 } },
      ],
    },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'toolu_1',
          content: [{ type: 'text', text: 'r', ...x }],
          is_error: false,
          ...x,
        },
      ],
    },
  ],
  tools: [
    { name: 'f', description: 'd', input_schema: schema, strict: true, cache_control: cache, ...x },
    { type: 'custom', name: 'g', input_schema: schema, defer_loading: false, allowed_callers: ['direct'] },
    { type: 'web_search_20250305', name: 'web_search', max_uses: 1, user_location: location, ...x },
    { type: 'bash_20250124', name: 'bash', own: { deep: 1 } },
  ],
  tool_choice: { type: 'auto', disable_parallel_tool_use: true, ...x },
  thinking: { type: 'enabled', budget_tokens: 2_000, display: 'summarized', ...x },
  output_config: { effort: 'low', format: { type: 'json_schema', schema, ...x } },
  metadata: { user_id: 'u', ...x },
})

const messagesNames = [
  'system.cache_control.frob',
  'system.frob',
  'messages.content.frob',
  'messages.content.source.frob',
  'messages.content.citations.frob',
  'messages.content.content.frob',
  'messages.frob',
  'tools.frob',
  'tools.web_search.frob',
  'tool_choice.frob',
  'thinking.frob',
  'output_config.format.frob',
  'metadata.frob',
]

type Case = { api: ClientApi; bodyWith: (members: JsonObject) => JsonObject; names: string[]; foreign: string }
const cases: Case[] = [
  { api: chat, bodyWith: chatBody, names: chatNames, foreign: 'anthropic/claude-sonnet-4-5' },
  { api: responses, bodyWith: responsesBody, names: responsesNames, foreign: 'anthropic/claude-sonnet-4-5' },
  { api: messages, bodyWith: messagesBody, names: messagesNames, foreign: 'google/gemini-3.5-flash' },
]

const sorted = (names: Iterable<string> = []) => [...names].sort()

describe.each(cases)('members that the $api.api reader does not understand', ({ api, bodyWith, names, foreign }) => {
  it('are none in a body that it understands', () => {
    expect(api.read(bodyWith({})).unread).toBeUndefined()
    expect(api.read(bodyWith({ frob: null })).unread).toBeUndefined()
  })

  it('are named by their path, each once', () => {
    expect(sorted(api.read(bodyWith({ frob: 'SENTINEL' })).unread)).toEqual(sorted(names))
  })

  it('may have names that objects inherit', () => {
    const inherited = names.map((name) => name.replace('frob', 'constructor'))
    expect(sorted(api.read(bodyWith({ constructor: 1 } as unknown as JsonObject)).unread)).toEqual(sorted(inherited))
  })

  it('are bounded in number', () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`odd${index}`, index]))
    expect(api.read(bodyWith(many)).unread).toHaveLength(maxUnread)
  })

  it('are reported in these words when the request is translated', async () => {
    const { dropped, body } = await written(api.read(bodyWith({ frob: 'SENTINEL' })), foreign)
    expect(JSON.stringify(body)).not.toContain('SENTINEL')
    const client = dropped.flatMap((field) => namesInBody(api.wireNames(field), bodyWith({ frob: 'SENTINEL' })))
    expect(client).toEqual(expect.arrayContaining(names))
  })

  it('stay in a body that is edited', () => {
    const body = bodyWith({ frob: 'SENTINEL' })
    const count = (of: unknown) => JSON.stringify(of).split('SENTINEL').length
    expect(count(api.editRequest(body, { model: 'm', stream: true, dropped: [] }))).toBe(count(body))
  })
})

async function written(request: Parameters<typeof writeRequest>[1], id: string) {
  const { providers } = await shippedFiles()
  const slug = id.slice(0, id.indexOf('/'))
  const model = id.slice(slug.length + 1)
  const loaded = providers.find(({ provider }) => provider.slug === slug)
  if (!loaded) throw new Error(`there is no provider ${slug}`)
  return await writeRequest(servedBy(loaded.provider, model), request, { model })
}

test.each(['google/gemini-3.5-flash', 'cohere/command-a-03-2025', 'ollama/qwen3'])(
  '%s is not told of a cache hint on a block of instructions: it is named',
  async (id) => {
    const system = [{ type: 'text', text: 'S', cache_control: cache }]
    const { dropped } = await written(messages.read({ model: 'm', max_tokens: 9, system, messages: hi }), id)
    expect(dropped).toContain('parts.cache')
  },
)

const hi = [{ role: 'user', content: 'hi' }]
const user = (members: JsonObject) => ({ messages: [{ role: 'user', content: 'hi', ...members }] })
const tool = { name: 'f', input_schema: {} }
const document = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'd' } }

test.each<[ClientApi, JsonObject, string[]]>([
  [chat, user({ cache_control: { type: 'ephemeral' }, mark: true }), ['messages.mark']],
  [chat, { messages: [{ role: 'system', name: 'sys', content: 'S' }, ...hi] }, ['messages.name']],
  [chat, { messages: [...hi, { role: 'assistant', content: 'a', prefix: true }] }, ['messages.prefix']],
  [chat, { messages: hi, thinking: { type: 'enabled', display: 'omitted' } }, ['thinking.display']],
  [chat, { messages: hi, response_format: { type: 'json_object', schema: {} } }, ['response_format.schema']],
  [chat, { messages: hi, reasoning: { effort: 'low', exclude: true } }, []],
  [messages, { messages: hi, metadata: { team: 't' } }, ['metadata.team']],
  [messages, { messages: hi, tools: [{ ...tool, defer_loading: true }] }, ['tools.defer_loading']],
  [messages, { messages: hi, tools: [{ ...tool, input_examples: [{}] }] }, ['tools.input_examples']],
  [messages, { messages: hi, tools: [{ ...tool, eager_input_streaming: true }] }, ['tools.eager_input_streaming']],
  [messages, { messages: hi, tools: [{ ...tool, allowed_callers: ['direct', 'c'] }] }, ['tools.allowed_callers.c']],
  [
    messages,
    user({ content: [{ ...document, citations: { enabled: true } }] }),
    ['messages.content.citations.enabled'],
  ],
  [messages, { messages: hi, output_config: { task_budget: { total: 3 } } }, []],
  [responses, { input: 'hi', include: ['file_search_call.results'] }, ['include.file_search_call.results']],
  [responses, { input: 'hi', tools: [{ type: 'function', name: 'f', defer_loading: true }] }, ['tools.defer_loading']],
  [
    responses,
    { input: 'hi', tools: [{ type: 'web_search', external_web_access: false }] },
    ['tools.web_search.external_web_access'],
  ],
])('%#: the members of $1 that are not understood', (api, members, names) => {
  expect(api.read({ model: 'm', max_tokens: 9_000, ...members }).unread ?? []).toEqual(names)
})

/** Real losses: what these members ask for has no place in a request to another format. */
const lostInRecordings = {
  'openai-chat': [],
  'openai-responses': ['tools.allowed_callers.programmatic', 'tools.defer_loading', 'tools.output_schema'],
  'anthropic-messages': [
    'messages.content.citations.enabled',
    'messages.content.content.citations.enabled',
    'tools.defer_loading',
  ],
  mistral: [],
  openrouter: [],
  groq: [],
  deepseek: [],
} as const

describe.skipIf(recordingsMissing)('the recorded requests', () => {
  const clients: { readonly [folder: string]: ClientApi } = {
    'openai-responses': responses,
    'anthropic-messages': messages,
  }
  test.each(Object.entries(lostInRecordings))(
    'of %s have no other members than these that are not read',
    (from, lost) => {
      const client = clients[from] ?? chat
      const bodies = recordings(from).flatMap(({ request, response: { status } }) =>
        status === 200 && Array.isArray(request?.body?.messages ?? request?.body?.input) ? [request?.body] : [],
      )
      const unread = bodies.flatMap((body) => client.read({ model: 'm', ...body }).unread ?? [])
      expect(sorted(new Set(unread))).toEqual(lost)
    },
  )
})
