import type { ServerResponse } from 'node:http'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { isObject, type Json, type JsonObject } from '../../../src/core/json.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'

// A provider that bills the most that a request lets it: by a tokenizer that makes two tokens of each of OpenAI's, and two of
// each other character, but at most one of each byte; all the output that it may give, in every choice, the whole context for whatever has no length of its own, and as many searches as are allowed.

export const contextWindow = 20_000
export const longestReply = 3_000
export const tokensPerImage = 700
/** How often a provider searches where nothing limits it. */
export const mostSearches = 10

/** What one request costs at most, in the words of no format. */
export type Bill = { prompt: number; output: number; searches: number; tier: string | undefined }

/** How an answer is to end. */
export type Ending = 'whole' | 'cut' | 'silent' | 'error-with-usage'

/** The format of a path. */
const formats: {
  [path: string]: { billOf(body: JsonObject): Bill; answer(bill: Bill): JsonObject; events(bill: Bill): string[] }
} = {
  '/chat/completions': {
    billOf: (body) =>
      billOf(body, lengthIn(body, ['max_tokens', 'max_completion_tokens']), body.web_search_options ? mostSearches : 0),
    answer: (bill) => ({ ...chatFacts, object: 'chat.completion', choices: [chatChoice], usage: chatUsage(bill) }),
    events: (bill) => [
      data({
        ...chatFacts,
        object: 'chat.completion.chunk',
        choices: [{ index: 0, delta: { content: 'Gone' }, finish_reason: null }],
      }),
      data({
        ...chatFacts,
        object: 'chat.completion.chunk',
        choices: [{ index: 0, delta: {}, finish_reason: 'length' }],
      }) +
        data({ ...chatFacts, object: 'chat.completion.chunk', choices: [], usage: chatUsage(bill) }) +
        'data: [DONE]\n\n',
    ],
  },
  '/v1/messages': {
    billOf: (body) => billOf(body, lengthIn(body, ['max_tokens']), searchesIn(body, 'web_search')),
    answer: (bill) => ({
      ...messageFacts,
      content: [{ type: 'text', text: 'Gone' }],
      stop_reason: 'max_tokens',
      usage: messagesUsage(bill),
    }),
    events: (bill) => [
      named({
        type: 'message_start',
        message: {
          ...messageFacts,
          content: [],
          stop_reason: null,
          usage: { ...messagesUsage(bill), output_tokens: 1 },
        },
      }) +
        named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }) +
        named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Gone' } }),
      named({ type: 'content_block_stop', index: 0 }) +
        named({
          type: 'message_delta',
          delta: { stop_reason: 'max_tokens', stop_sequence: null },
          usage: messagesUsage(bill),
        }) +
        named({ type: 'message_stop' }),
    ],
  },
  '/responses': {
    billOf: (body) =>
      billOf(body, lengthIn(body, ['max_output_tokens']), searchesIn(body, 'web_search', body.max_tool_calls)),
    answer: (bill) => responseOf(bill),
    events: (bill) => [
      named({
        type: 'response.created',
        sequence_number: 0,
        response: { ...responseOf(bill), status: 'in_progress', output: [], usage: null },
      }) +
        named({
          type: 'response.output_text.delta',
          sequence_number: 1,
          item_id: 'm',
          output_index: 0,
          content_index: 0,
          delta: 'Gone',
        }),
      named({ type: 'response.completed', sequence_number: 2, response: responseOf(bill) }),
    ],
  },
  '/models/m1:generateContent': {
    billOf: (body) =>
      billOf(
        body,
        lengthIn(isObject(body.generationConfig) ? body.generationConfig : {}, ['maxOutputTokens']),
        JSON.stringify(body.tools ?? '').includes('googleSearch') ? mostSearches : 0,
      ),
    answer: geminiAnswer,
    events: (bill) => [data(geminiAnswer({ ...bill, output: 1 })), data(geminiAnswer(bill))],
  },
}
formats['/models/m1:streamGenerateContent?alt=sse'] = formats['/models/m1:generateContent'] as (typeof formats)[string]

/** Answers each request as the text in it asks: `end:cut`. The bills of all are in `bills`. */
export async function dearestProvider(): Promise<LoopbackProvider & { bills: Bill[] }> {
  const bills: Bill[] = []
  const provider = await loopbackProvider(async ({ path, body }, response) => {
    const format = formats[path]
    if (!format) throw new Error(`no format has the path ${path}`)
    const bill = format.billOf(body)
    bills.push(bill)
    const text = JSON.stringify(body)
    const ending = (/end:([a-z-]+)/.exec(text)?.[1] ?? 'whole') as Ending
    if (ending === 'silent') return
    const streams = body.stream === true || path.includes('stream')
    if (!streams) return answerWhole(response, format.answer(bill), ending)
    beginStream(response)
    const [first = '', ...rest] = format.events(bill)
    response.write(first)
    if (ending === 'cut') setImmediate(() => response.destroy())
    else response.end(rest.join(''))
  })
  return { ...provider, bills }
}

function answerWhole(response: ServerResponse, answer: JsonObject, ending: Ending): void {
  if (ending === 'cut') {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '10000' })
    response.write('{"choices": [', () => response.destroy())
  } else if (ending === 'error-with-usage') answerJson(response, failing(answer))
  else answerJson(response, answer)
}

/** The same answer, ended by a failure. */
function failing(answer: JsonObject): JsonObject {
  const failed = structuredClone(answer)
  if (Array.isArray(failed.choices)) failed.choices = [{ ...chatChoice, finish_reason: 'network_error' }]
  if (Array.isArray(failed.candidates)) failed.candidates = [{ finishReason: 'MALFORMED_RESPONSE' }]
  if (failed.status) Object.assign(failed, { status: 'failed', error: { code: 'server_error', message: 'Broken.' } })
  return failed
}

function billOf(body: JsonObject, length: number | undefined, searches: number): Bill {
  const size = sizeOf(body)
  const others = remoteTools(body)
  const files = size.files > 0 ? contextWindow : 0
  return {
    prompt: size.tokens + size.images * tokensPerImage + files + (searches + others) * contextWindow,
    output: Math.min(length ?? longestReply, longestReply) * choicesIn(body),
    searches,
    tier: typeof body.service_tier === 'string' ? body.service_tier : undefined,
  }
}

/** The tokens of all names and texts, and what else is in a body. */
function sizeOf(value: Json | undefined, name = ''): { tokens: number; images: number; files: number } {
  const size = { tokens: 0, images: 0, files: 0 }
  if (typeof value === 'string') {
    if (/^(data|url|image_url|file_url|fileUri|file_data|file_id)$/.test(name)) return { ...size, ...mediumOf(value) }
    return { ...size, tokens: tokensOf(value) }
  }
  if (value === null || typeof value !== 'object') return size
  for (const [key, member] of Object.entries(value)) {
    const inside = sizeOf(member, Array.isArray(value) ? name : key)
    size.tokens += inside.tokens + (Array.isArray(value) ? 0 : Buffer.byteLength(key))
    size.images += inside.images
    size.files += inside.files
  }
  return size
}

function tokensOf(text: string): number {
  let tokens = 0
  for (let at = 0; at < text.length; at += 256) tokens += countTokens(text.slice(at, at + 256))
  const others = [...text].reduce((sum, one) => sum + (one > '\u007f' ? one.length : 0), 0)
  return Math.min(Buffer.byteLength(text), 2 * tokens + 2 * others)
}

function mediumOf(value: string): { images?: number; files?: number } {
  return /image|iVBOR|\.png/.test(value) ? { images: 1 } : { files: 1 }
}

function choicesIn(body: JsonObject): number {
  const { n = 1, generationConfig } = body
  const candidates = isObject(generationConfig) ? generationConfig.candidateCount : undefined
  return Math.max(Number(n), Number(candidates ?? 1))
}

function lengthIn(body: JsonObject, names: readonly string[]): number | undefined {
  const stated = names.flatMap((name) => (typeof body[name] === 'number' ? [body[name]] : []))
  return stated.length > 0 ? Math.max(...stated) : undefined
}

function toolsIn(body: JsonObject): JsonObject[] {
  return Array.isArray(body.tools) ? body.tools.filter(isObject) : []
}

function searchesIn(body: JsonObject, type: string, most?: Json): number {
  const search = toolsIn(body).find((tool) => String(tool.type).startsWith(type))
  if (!search) return 0
  return Number(search.max_uses ?? most ?? mostSearches)
}

function remoteTools(body: JsonObject): number {
  const uses = toolsIn(body).filter(({ type }) => type === 'code_interpreter' || type === 'code_execution_20250825')
  return uses.length * Number(body.max_tool_calls ?? mostSearches)
}

const chatFacts = { id: 'c', created: 1, model: 'm1' }
const chatChoice = { index: 0, message: { role: 'assistant', content: 'Gone' }, finish_reason: 'length' }
const messageFacts = { id: 'm', type: 'message', role: 'assistant', model: 'm1', stop_sequence: null }

function chatUsage({ prompt, output, searches, tier }: Bill): JsonObject {
  return {
    ...{ prompt_tokens: prompt, completion_tokens: output, total_tokens: prompt + output, service_tier: tier ?? null },
    ...(searches > 0 && { server_tool_use_details: { web_search_requests: searches } }),
  }
}

function messagesUsage({ prompt, output, searches, tier }: Bill): JsonObject {
  return {
    input_tokens: prompt,
    output_tokens: output,
    server_tool_use: { web_search_requests: searches },
    service_tier: tier ?? null,
  }
}

function responseOf({ prompt, output, searches, tier }: Bill): JsonObject {
  const call = { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'x' } }
  const message = {
    type: 'message',
    id: 'm',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'Gone', annotations: [] }],
  }
  return {
    ...{ id: 'r', object: 'response', created_at: 1, model: 'm1', status: 'completed', service_tier: tier ?? null },
    output: [...Array.from({ length: searches }, (_, n) => ({ ...call, id: `ws_${n}` })), message],
    usage: { input_tokens: prompt, output_tokens: output, total_tokens: prompt + output },
  }
}

function geminiAnswer({ prompt, output, searches }: Bill): JsonObject {
  const queries = Array.from({ length: searches }, (_, n) => `query ${n}`)
  return {
    ...{ responseId: 'g', modelVersion: 'm1' },
    candidates: [
      {
        content: { role: 'model', parts: [{ text: 'Gone' }] },
        finishReason: 'MAX_TOKENS',
        ...(searches > 0 && { groundingMetadata: { webSearchQueries: queries } }),
      },
    ],
    usageMetadata: { promptTokenCount: prompt, candidatesTokenCount: output, totalTokenCount: prompt + output },
  }
}

function data(event: JsonObject): string {
  return `data: ${JSON.stringify(event)}\n\n`
}

function named(event: JsonObject): string {
  return `event: ${String(event.type)}\n${data(event)}`
}
