import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import type { TextLimit } from '../../src/manifest/limits.ts'
import type { Arrived } from '../e2e/clients/sdk-wire.ts'

/** The client APIs. */
export const clients = ['chat', 'messages', 'responses'] as const

export type Client = (typeof clients)[number]

/** A tool of a request. */
export type AskedTool = { name: string; description?: string; parameters?: JsonObject; strict?: boolean }

/** A request in words that no API has: what it asks for. */
export type Ask = {
  tools?: AskedTool[]
  choice?: 'auto' | 'none' | 'required' | { name: string }
  schema?: { name: string; schema: JsonObject; strict?: boolean }
  effort?: string
  budget?: number
  numbers?: { [name: string]: number }
  stop?: string[]
  metadata?: { [name: string]: string }
  user?: string
  safety_identifier?: string
  cache_key?: string
  images?: number
  /** Each of the images, where it is not a small one. */
  image?: { type?: string; data?: string }
  /** Number of PDF documents, and the data of each, where it is not a small one. */
  files?: number
  file?: string
  /** The id of a call of an earlier turn, which has its result. */
  callId?: string
  /** Instructions between two texts of the user, or two texts after each other, or a text after the result of the call. */
  middle?: string
  twice?: boolean
  afterResult?: string
  /** The messages themselves, in the APIs that can have them. */
  conversation?: { [client in Client]?: JsonObject[] }
}

/** What a provider received, as it is and read. */
export type Seen = { body: Json; arrived: Arrived }

/**
 * One limit tried from both sides. `unchanged` holds for what arrives of the request inside, `within` for what arrives of the one outside;
 * without `outside` the provider takes everything that can be asked for. `refused`: the request outside is not sent at all.
 */
export type Probe = {
  limit: string
  inside: Ask
  unchanged(seen: Seen): boolean
  outside?: Ask
  within?(seen: Seen): boolean
  refused?: true
  /** The name that clients get again in a reply, where the provider is sent another one. */
  clientName?: string | undefined
}

/** A picture of one pixel. */
export const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const smallPdf = Buffer.from('%PDF-1.4').toString('base64')

function imageIn({ image: { type = 'image/png', data = pixel } = {} }: Ask): { type: string; data: string } {
  return { type, data }
}

function copies(count: number | undefined, part: JsonObject): JsonObject[] {
  return Array.from({ length: count ?? 0 }, () => part)
}

/** A tool that an earlier turn called. */
export const called: AskedTool = { name: 'f', parameters: { type: 'object', properties: {} } }

/** The path and the body of a request in an API; undefined where the API cannot ask for it. */
export function requestIn(client: Client, ask: Ask): { path: string; body: JsonObject } | undefined {
  const made = { chat: inChat, messages: inMessages, responses: inResponses }[client](ask)
  const turns = ask.conversation?.[client]
  if (ask.conversation && !turns) return undefined
  if (made && turns) Object.assign(made, { [client === 'responses' ? 'input' : 'messages']: turns })
  const path = { chat: '/v1/chat/completions', messages: '/v1/messages', responses: '/v1/responses' }[client]
  return made && { path, body: made }
}

function inChat(ask: Ask): JsonObject | undefined {
  const { tools, choice, schema, numbers = {}, budget } = ask
  const { max_output_tokens, top_logprobs, ...plain } = numbers
  const { type, data } = imageIn(ask)
  const images = [
    ...copies(ask.images, { type: 'image_url', image_url: { url: `data:${type};base64,${data}` } }),
    ...copies(ask.files, {
      type: 'file',
      file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${ask.file ?? smallPdf}` },
    }),
  ]
  const id = ask.callId ?? 'abc123xyz'
  const hasCall = ask.callId !== undefined || ask.afterResult !== undefined
  return {
    messages: [
      { role: 'user', content: images.length > 0 ? [{ type: 'text', text: 'Hi' }, ...images] : 'Hi' },
      ...(ask.middle ? [{ role: 'system', content: ask.middle }] : []),
      ...(ask.middle || ask.twice ? [{ role: 'user', content: 'Well?' }] : []),
      ...(hasCall
        ? [
            {
              role: 'assistant',
              content: null,
              tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }],
            },
            { role: 'tool', tool_call_id: id, content: 'Done.' },
          ]
        : []),
      ...(ask.afterResult ? [{ role: 'user', content: ask.afterResult }] : []),
    ],
    ...plain,
    ...(max_output_tokens !== undefined && { max_completion_tokens: max_output_tokens }),
    ...(top_logprobs !== undefined && { logprobs: true, top_logprobs }),
    ...(ask.effort && { reasoning_effort: ask.effort }),
    ...(budget !== undefined && { reasoning: { max_tokens: budget } }),
    ...(tools && { tools: tools.map((tool) => ({ type: 'function', function: tool })) }),
    ...(choice && { tool_choice: typeof choice === 'string' ? choice : { type: 'function', function: choice } }),
    ...(schema && { response_format: { type: 'json_schema', json_schema: schema } }),
    ...(ask.stop && { stop: ask.stop }),
    ...(ask.metadata && { metadata: ask.metadata }),
    ...(ask.user && { user: ask.user }),
    ...(ask.safety_identifier && { safety_identifier: ask.safety_identifier }),
    ...(ask.cache_key && { prompt_cache_key: ask.cache_key }),
  } as JsonObject
}

const numbersInMessages = new Set(['temperature', 'top_p', 'top_k', 'max_output_tokens'])

function inMessages(ask: Ask): JsonObject | undefined {
  const { tools, choice, numbers = {}, budget } = ask
  if (ask.schema || ask.metadata || ask.safety_identifier || ask.cache_key) return undefined
  if (Object.keys(numbers).some((name) => !numbersInMessages.has(name))) return undefined
  if ((numbers.temperature ?? 0) > 1) return undefined
  if (tools?.some(({ strict }) => strict !== undefined) || ask.effort === 'minimal') return undefined
  const { max_output_tokens = 4_000 + (budget ?? 0), ...plain } = numbers
  const id = ask.callId ?? 'abc123xyz'
  const hasCall = ask.callId !== undefined || ask.afterResult !== undefined
  const image = imageIn(ask)
  const images = [
    ...copies(ask.images, { type: 'image', source: { type: 'base64', media_type: image.type, data: image.data } }),
    ...copies(ask.files, {
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: ask.file ?? smallPdf },
    }),
  ]
  const after = ask.afterResult ? [{ type: 'text', text: ask.afterResult }] : []
  return {
    max_tokens: max_output_tokens,
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Hi' }, ...images] },
      ...(ask.middle ? [{ role: 'system', content: ask.middle }] : []),
      ...(ask.middle || ask.twice ? [{ role: 'user', content: 'Well?' }] : []),
      ...(hasCall
        ? [
            { role: 'assistant', content: [{ type: 'tool_use', id, name: 'f', input: {} }] },
            { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'Done.' }, ...after] },
          ]
        : []),
    ],
    ...plain,
    ...(ask.effort === 'none' && { thinking: { type: 'disabled' } }),
    ...(ask.effort &&
      ask.effort !== 'none' && { thinking: { type: 'adaptive' }, output_config: { effort: ask.effort } }),
    ...(budget !== undefined && { thinking: { type: 'enabled', budget_tokens: budget } }),
    ...(tools && {
      tools: tools.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters ?? { type: 'object' } })),
    }),
    ...(choice && { tool_choice: messagesChoice(choice) }),
    ...(ask.stop && { stop_sequences: ask.stop }),
    ...(ask.user && { metadata: { user_id: ask.user } }),
  } as JsonObject
}

function messagesChoice(choice: NonNullable<Ask['choice']>): JsonObject {
  if (typeof choice !== 'string') return { type: 'tool', name: choice.name }
  return { type: choice === 'required' ? 'any' : choice }
}

const numbersInResponses = new Set(['temperature', 'top_p', 'max_output_tokens', 'top_logprobs'])

function inResponses(ask: Ask): JsonObject | undefined {
  const { tools, choice, schema, numbers = {} } = ask
  if (ask.stop || ask.budget !== undefined) return undefined
  if (Object.keys(numbers).some((name) => !numbersInResponses.has(name))) return undefined
  const { top_logprobs, ...plain } = numbers
  const id = ask.callId ?? 'abc123xyz'
  const hasCall = ask.callId !== undefined || ask.afterResult !== undefined
  const { type, data } = imageIn(ask)
  const images = [
    ...copies(ask.images, { type: 'input_image', image_url: `data:${type};base64,${data}` }),
    ...copies(ask.files, {
      type: 'input_file',
      filename: 'a.pdf',
      file_data: `data:application/pdf;base64,${ask.file ?? smallPdf}`,
    }),
  ]
  return {
    input: [
      { role: 'user', content: [{ type: 'input_text', text: 'Hi' }, ...images] },
      ...(ask.middle ? [{ role: 'system', content: ask.middle }] : []),
      ...(ask.middle || ask.twice ? [{ role: 'user', content: 'Well?' }] : []),
      ...(hasCall
        ? [
            { type: 'function_call', call_id: id, name: 'f', arguments: '{}' },
            { type: 'function_call_output', call_id: id, output: 'Done.' },
          ]
        : []),
      ...(ask.afterResult ? [{ role: 'user', content: ask.afterResult }] : []),
    ],
    ...plain,
    ...(top_logprobs !== undefined && { top_logprobs, include: ['message.output_text.logprobs'] }),
    ...(ask.effort && { reasoning: { effort: ask.effort } }),
    ...(tools && { tools: tools.map((tool) => ({ type: 'function', ...tool })) }),
    ...(choice && { tool_choice: typeof choice === 'string' ? choice : { type: 'function', ...choice } }),
    ...(schema && { text: { format: { type: 'json_schema', ...schema } } }),
    ...(ask.metadata && { metadata: ask.metadata }),
    ...(ask.user && { user: ask.user }),
    ...(ask.safety_identifier && { safety_identifier: ask.safety_identifier }),
    ...(ask.cache_key && { prompt_cache_key: ask.cache_key }),
  } as JsonObject
}

function leaves(value: Json): Json[] {
  if (Array.isArray(value)) return value.flatMap(leaves)
  return isObject(value) ? Object.values(value).flatMap((member) => leaves(member as Json)) : [value]
}

/** All texts in a body. */
export function textsIn(body: Json): string[] {
  return leaves(body).filter((one) => typeof one === 'string')
}

/** All numbers in a body. */
export function numbersIn(body: Json): number[] {
  return leaves(body).filter((one) => typeof one === 'number')
}

/** Most characters of a text that is sent. */
export const longestText = 3_000

/** Returns a text just inside a limit. */
export function textInside({ pattern, max = 64 }: TextLimit): string {
  const length = Math.min(max, longestText)
  const samples = ['a'.repeat(length), 'a'.repeat(Math.min(length, 32)), 'abc123xyz']
  return samples.find((text) => pattern === undefined || pattern.test(text)) ?? 'a'
}
