import type { ServerResponse } from 'node:http'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import { Fold } from '../../src/core/fold.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import { eventsOf } from '../../src/core/reply-events.ts'
import type { Received } from '../helpers/provider.ts'

// Answers of a provider that have a word in one part of their content: those of conversations in three formats, and those of other operations.

/** The word that the guard is to find. */
export const marker = 'unmentionable'
/** The same in base64, as the data of an image or sound. */
export const markerData = Buffer.from(marker).toString('base64')

/** The formats of providers of conversations. */
export const formats = ['chat', 'responses', 'messages'] as const
export type Format = (typeof formats)[number]

const apis: { readonly [format in Format]: ClientApi } = { chat, responses, messages }

const said = `It is ${marker}, they say.`
const reply = { id: 'r1', created: 1, model: 'm', finish: 'stop', usage: { input: 3, output: 4 } } as const
const text: Part = { type: 'text', text: 'Here it is.' }
const parts = (...own: Part[]): Reply => ({ ...reply, parts: own })
const call = (name: string, input: string): Reply => ({
  ...parts({ type: 'tool_call', id: 'call_1', name, arguments: input }),
  finish: 'tool_calls',
})

/** Blocks that only one provider writes. */
const blocks: { readonly [format in Format]?: JsonObject } = {
  responses: {
    ...{ type: 'code_interpreter_call', id: 'ci_1', status: 'completed', container_id: 'c1', outputs: null },
    code: `print("${marker}")`,
  },
  messages: {
    ...{ type: 'code_execution_tool_result', tool_use_id: 'srvtoolu_1' },
    content: { type: 'code_execution_result', stdout: said, stderr: '', return_code: 0, content: [] },
  },
}

/** Contents that are not in the neutral form: the name of the row whose answer has a block besides its text. */
const blockName = 'blocks of a provider'

/** Contents of conversations, by their names in the table. */
export const contents: { readonly [name: string]: (format: Format) => Reply | undefined } = {
  text: () => parts({ type: 'text', text: said }),
  reasoning: () => parts({ type: 'reasoning', text: said }, text),
  'summary of reasoning': () => parts({ type: 'reasoning', summary: said }, text),
  refusal: () => parts({ type: 'refusal', text: said }),
  'arguments of tool calls': () => call('look', JSON.stringify({ at: said })),
  'arguments with escapes': () => call('look', JSON.stringify({ at: said }).replace('un', String.raw`\u0075\u006e`)),
  'names of tools': () => call(marker, '{}'),
  'citations: title and text': () =>
    parts({ ...text, citations: [{ url: 'https://example.com/', title: said, cited_text: said, start: 0, end: 4 }] }),
  'citations: address': () =>
    parts({ ...text, citations: [{ url: `https://example.com/${marker}`, title: 'A page', start: 0, end: 4 }] }),
  'queries of searches': () => parts({ type: 'search', id: 'ws_1', query: said, status: 'completed' }, text),
  'transcripts of sound': () =>
    parts(text, { type: 'audio', id: 'a1', data: 'QUFB', media_type: 'audio/wav', transcript: said }),
  [blockName]: (format) => (blocks[format] ? parts(text) : undefined),
  'log probabilities': (format) =>
    format === 'messages'
      ? undefined
      : {
          ...parts(text),
          logprobs: { content: [{ token: marker, logprob: -1, bytes: null, top_logprobs: [] }], refusal: null },
        },
  'images and sound': () =>
    parts(
      text,
      { type: 'image', data: markerData, media_type: 'image/png' },
      { type: 'audio', data: markerData, media_type: 'audio/wav' },
    ),
}

const image = { created: 1, data: [{ b64_json: markerData }], usage: { input_tokens: 3, output_tokens: 4 } }
const revised = { created: 1, data: [{ b64_json: 'UEk=', revised_prompt: said }] }
const completion = { id: 'c1', object: 'text_completion', created: 1, model: 'm' }
const choice = (own: string, finish_reason: string | null = 'stop') => [
  { index: 0, text: own, finish_reason, logprobs: null },
]

/** Contents of other operations: the whole JSON, the events of a stream, or bytes. */
export const operations: {
  readonly [name: string]: {
    path: string
    model: string
    whole?: object | Buffer
    events?: readonly object[]
    isDone?: true
  }
} = {
  'completions: text': {
    path: '/v1/completions',
    isDone: true,
    model: 'chat/m',
    whole: { ...completion, choices: choice(said), usage: { prompt_tokens: 3, completion_tokens: 4 } },
    events: [...pieces(said), ''].map((piece) => ({ ...completion, choices: choice(piece, piece ? null : 'stop') })),
  },
  'transcriptions: text': {
    path: '/v1/audio/transcriptions',
    model: 'chat/ear',
    whole: { text: said },
    events: [
      ...pieces(said).map((delta) => ({ type: 'transcript.text.delta', delta })),
      { type: 'transcript.text.done', text: said },
    ],
  },
  'images: revised prompt': { path: '/v1/images/generations', model: 'chat/picture', whole: revised },
  'images: the image': {
    path: '/v1/images/generations',
    model: 'chat/picture',
    whole: image,
    events: [{ type: 'image_generation.completed', b64_json: markerData, usage: image.usage }],
  },
  'speech: the sound': { path: '/v1/audio/speech', model: 'chat/voice', whole: Buffer.from(marker) },
}

function pieces(whole: string): string[] {
  return whole.match(/.{1,5}/gs) ?? []
}

/** Answers a request by the name of the content that it asks for. */
export function answer({ path, body }: Received, response: ServerResponse): void {
  const format = formats.find((one) => path.startsWith(`/${one}/`))
  const asked = JSON.stringify(body)
  const [, name = ''] = /content:([^"\\]+)/.exec(asked) ?? []
  const isStream = /"stream"[:,]"?true/.test(asked)
  const own = operations[name]
  const found = format && contents[name]?.(format)
  if (Buffer.isBuffer(own?.whole)) response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(own.whole)
  else if (own?.events && isStream)
    sendEvents(response, `${own.events.map(eventText).join('')}${own.isDone ? done : ''}`)
  else if (own?.whole) sendJson(response, own.whole)
  else if (!format || !found) response.writeHead(404).end()
  else if (isStream) sendEvents(response, withBlock(streamed(format, found), format, name))
  else sendJson(response, wholeWithBlock(whole(format, found), format, name))
}

const done = 'data: [DONE]\n\n'

function eventText(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`
}

const facts = (format: Format, { usage }: Reply) => ({
  model: `${format}/m`,
  usage,
  request: apis[format].read(sample(format)),
})

/** Adds the block of a provider to a whole answer that is to have one. */
function wholeWithBlock(body: JsonObject, format: Format, name: string): JsonObject {
  const block = name === blockName ? blocks[format] : undefined
  if (!block) return body
  const list = format === 'messages' ? 'content' : 'output'
  return { ...body, [list]: [...(body[list] as JsonObject[]), block] }
}

/** Adds the same to a stream, before its last events. */
function withBlock(events: string, format: Format, name: string): string {
  const block = name === blockName ? blocks[format] : undefined
  if (!block) return events
  const added =
    format === 'messages'
      ? [
          { type: 'content_block_start', index: 9, content_block: block },
          { type: 'content_block_stop', index: 9 },
        ]
      : [
          { type: 'response.output_item.added', output_index: 9, item: block },
          { type: 'response.output_item.done', output_index: 9, item: block },
        ]
  const end = format === 'messages' ? 'event: message_delta' : 'event: response.completed'
  return events.replace(end, added.map((event) => `event: ${event.type}\n${eventText(event)}`).join('') + end)
}

function whole(format: Format, given: Reply): JsonObject {
  return apis[format].writeReply(given, facts(format, given))
}

/** The reply as the events of a stream, its texts in pieces. */
function streamed(format: Format, given: Reply): string {
  const fold = new Fold({ signer: format, newId: () => 'r1', now: () => 1 })
  const writer = apis[format].openStream(facts(format, given).request, { model: `${format}/m`, id: 'r1' })
  let written = ''
  for (const event of eventsOf(given)) {
    for (const piece of event.text === undefined ? [event] : pieces(event.text).map((one) => ({ ...event, text: one })))
      written += writer.events(fold.take(piece))
  }
  return written + writer.events(fold.end()) + writer.end(facts(format, given))
}

const tool = (name: string) => ({
  name,
  description: 'A tool',
  parameters: { type: 'object', properties: { at: { type: 'string' } } },
})

/** A request in a format; `content` names what is to be answered. */
export function sample(format: Format, content = '', more: object = {}): { [name: string]: unknown } {
  const turns = [{ role: 'user', content: `content:${content}` }]
  const tools = ['look', marker].map(tool)
  const shared = { model: `${format}/m`, ...more }
  if (format === 'responses')
    return { ...shared, input: turns, tools: tools.map((one) => ({ type: 'function', ...one })) }
  if (format === 'chat')
    return { ...shared, messages: turns, tools: tools.map((one) => ({ type: 'function', function: one })) }
  const renamed = tools.map(({ parameters, ...others }) => ({ ...others, input_schema: parameters }))
  return { ...shared, messages: turns, max_tokens: 100, tools: renamed }
}

function sendJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function sendEvents(response: ServerResponse, text: string): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  // In two pieces, which need not end with an event.
  const middle = Math.floor(text.length / 2)
  response.write(text.slice(0, middle))
  setImmediate(() => response.end(text.slice(middle)))
}
