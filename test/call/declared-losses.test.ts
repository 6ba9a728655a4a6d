import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { writeForeignSignature } from '../../src/api/foreign-signature.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import { translationOf } from '../../src/call/attempt/choose-translation.ts'
import type { PreparedCall } from '../../src/call/attempt/types.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import { declarableUnsupported, undeclarable } from '../../src/manifest/fields.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { demanding, usesField } from '../../src/manifest/run/unsupported.ts'
import type { Target } from '../../src/manifest/target.ts'
import { shippedFiles } from '../helpers/shipped.ts'

const schema = { type: 'object', properties: {} }
const mark = { cache_control: { type: 'ephemeral' } }
const link = (name: string) => `https://files.example/${name}`
const data = 'data:image/png;base64,aGk='
const sealed = writeForeignSignature({ by: 'somebody', signature: 'S', summary: 'In short.' }) as string

/** A body with everything that an API has. */
const chatBody: JsonObject = {
  messages: [
    { role: 'system', content: [{ type: 'text', text: 'Be brief.', ...mark }] },
    {
      role: 'user',
      name: 'Ann',
      content: [
        { type: 'text', text: 'Look.', ...mark },
        { type: 'image_url', image_url: { url: link('a.png'), detail: 'low' }, ...mark },
        { type: 'image_url', image_url: { url: data, detail: 'low' } },
        { type: 'video_url', video_url: { url: link('a.mp4') }, ...mark },
        { type: 'file', file: { file_id: 'file-1', filename: 'a.pdf' }, ...mark },
        { type: 'file', file: { file_data: link('a.pdf'), filename: 'a.pdf' } },
        { type: 'input_file', file_data: 'data:application/pdf;base64,aGk=', filename: 'b.pdf' },
        { type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' }, ...mark },
      ],
    },
    {
      role: 'assistant',
      content: 'Seen.',
      refusal: 'Not that.',
      audio: { id: 'audio_1', transcript: 'La la.' },
      images: [{ type: 'image_url', image_url: { url: data } }],
      reasoning_details: [
        { type: 'reasoning.text', text: 'Hm.', signature: 'S', id: 'rs_1', format: 'openai', index: 0 },
        { type: 'reasoning.summary', summary: 'In short.', id: 'rs_1', format: 'openai', index: 0 },
      ],
      replay_parts: [
        { index: 9, after: {}, part: { type: 'search', id: 'ws_1', by: 'somebody' } },
        { index: 9, after: {}, part: { type: 'opaque', body: {}, by: 'somebody' } },
      ],
      tool_calls: [
        {
          id: 'call_1',
          type: 'function',
          function: { name: 'f', arguments: '{}' },
          extra_content: { google: { thought_signature: 'S' } },
          ...mark,
        },
        { id: 'call_2', type: 'custom', custom: { name: 'c', input: 'x' } },
      ],
    },
    { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'Done.', ...mark }], ...mark },
    { role: 'tool', tool_call_id: 'call_2', content: 'Done.' },
    { role: 'user', content: 'And?' },
  ],
  tools: [
    { type: 'function', function: { name: 'f', description: 'd', parameters: schema, strict: true }, ...mark },
    { type: 'custom', custom: { name: 'c', description: 'd', format: { type: 'text' } } },
    { type: 'mcp', server_label: 's' },
    { type: 'web_search', max_uses: 2, filters: { allowed_domains: ['a.example'], blocked_domains: ['b.example'] } },
  ],
  web_search_options: { search_context_size: 'low', user_location: { approximate: { city: 'Paris' } } },
  tool_choice: 'required',
  parallel_tool_calls: false,
  max_completion_tokens: 100,
  temperature: 0.5,
  top_p: 0.5,
  top_k: 5,
  seed: 5,
  stop: ['END'],
  frequency_penalty: 0.5,
  presence_penalty: 0.5,
  logit_bias: { 1: 1 },
  logprobs: true,
  top_logprobs: 2,
  n: 2,
  response_format: { type: 'json_schema', json_schema: { name: 'n', description: 'd', schema, strict: true } },
  reasoning: { effort: 'high', max_tokens: 2_000, summary: 'auto' },
  modalities: ['text', 'audio'],
  audio: { format: 'wav', voice: 'ash' },
  prediction: { type: 'content', content: 'x' },
  service_tier: 'flex',
  verbosity: 'low',
  prompt_cache_key: 'k',
  prompt_cache_retention: '24h',
  prompt_cache_options: { mode: 'explicit' },
  user: 'u',
  safety_identifier: 's',
  metadata: { a: 'b' },
  store: true,
  moderation: { model: 'm' },
  frob: { nicate: 1 },
}

const responsesBody: JsonObject = {
  instructions: 'Be brief.',
  input: [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'Look.', prompt_cache_breakpoint: { mode: 'explicit' } },
        { type: 'input_image', image_url: link('a.png'), detail: 'low' },
        { type: 'input_image', image_url: data },
        { type: 'input_image', file_id: 'file-1' },
        { type: 'input_file', file_url: link('a.pdf') },
        { type: 'input_file', file_data: 'data:application/pdf;base64,aGk=', filename: 'a.pdf', detail: 'low' },
        { type: 'input_file', file_id: 'file-2' },
        { type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } },
      ],
    },
    {
      type: 'reasoning',
      id: 'rs_1',
      summary: [{ type: 'summary_text', text: 'In short.' }],
      content: [{ type: 'reasoning_text', text: 'Hm.' }],
    },
    { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } },
    { type: 'mcp_call', id: 'mcp_1', name: 'f' },
    {
      role: 'assistant',
      content: [
        {
          type: 'output_text',
          text: 'Seen.',
          annotations: [{ type: 'url_citation', url: link('x'), title: 'X', start_index: 0, end_index: 5 }],
        },
        { type: 'refusal', refusal: 'Not that.' },
      ],
    },
    { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' },
    { type: 'custom_tool_call', call_id: 'call_2', name: 'c', input: 'x' },
    { type: 'function_call_output', call_id: 'call_1', output: 'Done.' },
    { type: 'custom_tool_call_output', call_id: 'call_2', output: 'Done.' },
    { role: 'user', content: 'And?' },
  ],
  tools: [
    { type: 'function', name: 'f', description: 'd', parameters: schema, strict: true },
    { type: 'custom', name: 'c', description: 'd', format: { type: 'text' } },
    { type: 'mcp', server_label: 's' },
    {
      type: 'web_search',
      filters: { allowed_domains: ['a.example'], blocked_domains: ['b.example'] },
      search_context_size: 'low',
      user_location: { type: 'approximate', city: 'Paris' },
    },
  ],
  tool_choice: 'required',
  parallel_tool_calls: false,
  max_output_tokens: 100,
  temperature: 0.5,
  top_p: 0.5,
  top_logprobs: 2,
  include: ['message.output_text.logprobs'],
  text: { verbosity: 'low', format: { type: 'json_schema', name: 'n', description: 'd', schema, strict: true } },
  reasoning: { effort: 'high', summary: 'auto' },
  service_tier: 'flex',
  prompt_cache_key: 'k',
  prompt_cache_retention: '24h',
  prompt_cache_options: { mode: 'explicit' },
  user: 'u',
  safety_identifier: 's',
  metadata: { a: 'b' },
  store: true,
  moderation: { model: 'm' },
  frob: { nicate: 1 },
}

const messagesBody: JsonObject = {
  max_tokens: 3_000,
  system: [{ type: 'text', text: 'Be brief.', ...mark }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Look.', ...mark },
        { type: 'image', source: { type: 'url', url: link('a.png') }, ...mark },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } },
        { type: 'image', source: { type: 'file', file_id: 'file_1' } },
        { type: 'document', title: 'a.pdf', source: { type: 'url', url: link('a.pdf') }, ...mark },
        { type: 'document', title: 'b.pdf', source: { type: 'base64', media_type: 'application/pdf', data: 'aGk=' } },
        { type: 'document', title: 'c.pdf', source: { type: 'file', file_id: 'file_2' } },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: 'S' },
        { type: 'thinking', thinking: 'Hm.', signature: sealed },
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
        { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
        { type: 'mcp_tool_use', id: 'mcp_1', name: 'f', input: {} },
        {
          type: 'text',
          text: 'Seen.',
          citations: [{ type: 'web_search_result_location', url: link('x'), title: 'X' }],
        },
        { type: 'tool_use', id: 'toolu_1', name: 'f', input: {}, ...mark },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', content: 'Failed.', is_error: true, ...mark },
        { type: 'text', text: 'And?' },
      ],
    },
  ],
  tools: [
    { name: 'f', description: 'd', input_schema: schema, strict: true, ...mark },
    { type: 'bash_20250124', name: 'bash' },
    {
      type: 'web_search_20250305',
      name: 'web_search',
      max_uses: 2,
      allowed_domains: ['a.example'],
      blocked_domains: ['b.example'],
      user_location: { type: 'approximate', city: 'Paris' },
    },
  ],
  tool_choice: { type: 'any', disable_parallel_tool_use: true },
  temperature: 0.5,
  top_p: 0.5,
  top_k: 5,
  stop_sequences: ['END'],
  output_config: { effort: 'high', format: { type: 'json_schema', schema } },
  thinking: { type: 'enabled', budget_tokens: 2_000, display: 'summarized' },
  cache_control: { type: 'ephemeral' },
  service_tier: 'standard_only',
  metadata: { user_id: 'u' },
  frob: { nicate: 1 },
}

const apis: readonly [name: string, api: ClientApi, slug: string, body: JsonObject][] = [
  ['chat', chat, 'openai', chatBody],
  ['responses', responses, 'openai-responses', responsesBody],
  ['messages', messages, 'anthropic', messagesBody],
]

/** The provider of the API's format with these losses, and no others. */
async function losing(slug: string, fields: readonly string[]): Promise<Provider> {
  const { providers } = await shippedFiles()
  const provider = providers.find((one) => one.provider.slug === slug)?.provider
  if (!provider?.chat) throw new Error(`there is no ${slug}`)
  const losses = fields.map((field) => ({ field, path: [] }))
  const traits = [{ match: /./, facts: { reasoning_form: 'object', cache_marks: 'cache_control' } }]
  return {
    ...provider,
    traits,
    chat: { ...provider.chat, unsupported: losses, patch: {}, history: {} },
  } as unknown as Provider
}

async function sent(api: ClientApi, slug: string, body: JsonObject, losses: readonly string[]) {
  const target = { provider: await losing(slug, losses), model: 'm' } as Target
  const request = api.read(body)
  const call = { clientApi: api, id: 'c', requestId: 'c', forwardedHeaders: [] }
  const prepared = {
    call,
    request,
    turn: { bodyFor: () => body },
    media: {},
    holds: () => {},
  } as unknown as PreparedCall
  return await translationOf(target, prepared as never).request()
}

/** The API requires a limit. */
const readable = (api: ClientApi, body: JsonObject) => (api === messages ? { max_tokens: 0, ...body } : body)

/** What a request uses of all that can be lost, as its API reads it. */
const usedIn = (request: NeutralRequest) => declarableUnsupported.filter((name) => usesField(name, request))

/** Whether one name speaks of what the other speaks of. */
function overlap(one: string, other: string): boolean {
  const [, first, member] = one.split('.')
  const [, second, its] = other.split('.')
  const ofParts = one.startsWith('parts.') && other.startsWith('parts.')
  // A part that is lost takes its members along, and media have nothing but where they are.
  if (ofParts)
    return (
      first === second ||
      member === second ||
      its === first ||
      [first, member].some((name) => whole.has(name ?? '')) ||
      isPart(first) ||
      isPart(second)
    )
  // The one format of Messages is a schema that binds.
  if (one.startsWith('response_format') && other.startsWith('response_format')) return true
  return one === other || one.startsWith(`${other}.`) || other.startsWith(`${one}.`)
}
const whole = new Set(['url', 'file_id', 'data'])
const isPart = (name = '') =>
  !['cache', 'citations', 'detail', 'filename', 'id', 'is_error', 'signature', 'summary'].includes(name)

describe.each(apis)('a declared loss of a body that is edited: %s', (_, api, slug, given) => {
  const body = { model: 'm', ...given }
  // A body with a custom tool that is not taken is translated: the tool becomes a function.
  const used = usedIn(api.read(body)).filter((name) => name !== 'tools.custom')

  test.each(used)('%s is left out, named, and alone', async (loss) => {
    const { body: plain } = await sent(api, slug, body, [])
    const { body: edited, dropped } = await sent(api, slug, body, [loss])
    const left = api.read(readable(api, edited))
    // Messages says in its choice as well that calls come one by one.
    expect(usesField(loss, left) && left.tool_choice !== 'auto').toBe(false)
    // What asks for nothing, or what the router itself does, needs no report.
    const isFree = demanding([loss], api.read(body)).length === 0
    const isCovered =
      loss === 'extensions' ? dropped.includes('extensions.frob') : dropped.some((name) => overlap(name, loss))
    expect(isCovered).toBe(!isFree)
    const before = new Set(usedIn(api.read(readable(api, plain))))
    const gone = usedIn(left)
    const alsoLost = [...before].filter((name) => !gone.includes(name) && !overlap(name, loss))
    // A choice and calls at once go with the tools.
    const rest = alsoLost.filter(
      (name) => !(loss.startsWith('tools') && /^(tools|tool_choice|parallel_tool_calls)/.test(name)),
    )
    expect(rest).toEqual([])
  })
})

test('every name that can be declared stands in the body of some API', () => {
  const used = new Set(apis.flatMap(([, api, , body]) => usedIn(api.read({ model: 'm', ...body }))))
  expect(declarableUnsupported.filter((name) => !used.has(name))).toEqual([
    // Formats of another kind than the one in the bodies.
    'response_format.text',
    'response_format.json',
    // Only replayed parts of other providers have them.
    'parts.audio.file_id',
    'parts.video.file_id',
  ])
})

test.each([
  [chat, 'openai', { messages: [{ role: 'user', content: 'Hi' }], response_format: { type: 'json_object' } }],
  [responses, 'openai-responses', { input: 'Hi', text: { verbosity: 'low', format: { type: 'json_object' } } }],
] as [ClientApi, string, JsonObject][])('a kind of response format is left out: %#', async (api, slug, body) => {
  const { body: edited, dropped } = await sent(api, slug, { model: 'm', ...body }, ['response_format.json'])
  expect(api.read(edited).response_format).toBeUndefined()
  expect(dropped).toEqual(['response_format.json'])
})

test('what cannot be declared is refused with the reason', () => {
  for (const name of [
    'model',
    'messages',
    'stream',
    'parts.text',
    'parts.id',
    'parts.image.is_error',
    'response_format.name',
  ]) {
    expect(undeclarable(name)).toMatch(/^`[a-z_.]+` /)
  }
  for (const name of declarableUnsupported) expect(undeclarable(name)).toBeUndefined()
})
