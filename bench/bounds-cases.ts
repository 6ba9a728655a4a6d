import type { ServerResponse } from 'node:http'
import { awsFrame } from '../test/helpers/aws-frames.ts'

/** A request body of about so many bytes. */
export type HostileRequest = { name: string; path: string; body(bytes: number): string }
/** A provider's answer of about so many bytes to a call of `path`. */
export type HostileAnswer = {
  name: string
  path: string
  model: string
  stream: boolean
  write(response: ServerResponse, bytes: number): void
}

const apis = { chat: '/v1/chat/completions', messages: '/v1/messages', responses: '/v1/responses' } as const
type Api = keyof typeof apis

/** As many copies as fill so many bytes. */
function filled(bytes: number, copy: string, separator = ''): string {
  return Array.from({ length: Math.floor(bytes / (copy.length + separator.length)) }, () => copy).join(separator)
}

function named(bytes: number, value: string): string {
  const members: string[] = []
  for (let size = 0, index = 0; size < bytes; index++) {
    const member = `"x${index}":${value}`
    members.push(member)
    size += member.length + 1
  }
  return members.join(',')
}

/** A valid call of an API with this text for the user, and more members. */
function call(api: Api, model: string, content: string, more = ''): string {
  const turns = `[{"role":"user","content":${content}}]`
  const list = api === 'responses' ? `"input":${turns},"store":false` : `"messages":${turns}`
  const length = api === 'messages' ? '"max_tokens":100,' : ''
  return `{"model":"${model}",${length}${list}${more && `,${more}`}}`
}

const texts: Record<Api, (text: string) => string> = {
  chat: (text) => `{"type":"text","text":"${text}"}`,
  messages: (text) => `{"type":"text","text":"${text}"}`,
  responses: (text) => `{"type":"input_text","text":"${text}"}`,
}

type Shape = (api: Api, model: string, bytes: number) => string

export const shapes = {
  'one text': (api, model, bytes) => call(api, model, `"${filled(bytes, 'some words, ')}"`),
  'one text of escapes': (api, model, bytes) => call(api, model, `"${filled(bytes, '\\"')}"`),
  'one text beyond Latin-1': (api, model, bytes) => call(api, model, `"${filled(bytes / 2, 'żółć ')}"`),
  'texts of 1 kB': (api, model, bytes) =>
    call(api, model, `[${filled(bytes, texts[api](filled(1_000, 'word ')), ',')}]`),
  'texts of 100 bytes': (api, model, bytes) =>
    call(api, model, `[${filled(bytes, texts[api](filled(100, 'word ')), ',')}]`),
  'empty objects': (api, model, bytes) => call(api, model, `[${filled(bytes, '{}', ',')}]`),
  'numbers in metadata': (api, model, bytes) =>
    call(api, model, '"Hi"', `"metadata":{"a":[${filled(bytes, '1', ',')}]}`),
  'unknown fields': (api, model, bytes) => call(api, model, '"Hi"', named(bytes, '1')),
  'members of a part': (api, model, bytes) =>
    call(api, model, `[{${texts[api]('Hi').slice(1, -1)},${named(bytes, '1')}}]`),
  'members of a schema': (api, model, bytes) =>
    call(
      api,
      model,
      '"Hi"',
      api === 'chat'
        ? `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{${named(bytes, '{"type":"string"}')}}}}}]`
        : `"tools":[{"type":"${api === 'messages' ? 'custom' : 'function'}","name":"f","${api === 'messages' ? 'input_schema' : 'parameters'}":{"type":"object","properties":{${named(bytes, '{"type":"string"}')}}}}]`,
    ),
  lists: (api, model, bytes) => call(api, model, `${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}`),
  'white space': (api, model, bytes) => call(api, model, `${' '.repeat(bytes)}"Hi"`),
} satisfies Record<string, Shape>

/** Every shape at the edge of what is accepted has two ways: edited for its own format, and mapped for another one. */
export const requests: HostileRequest[] = Object.entries(shapes).flatMap(([shape, body]) =>
  (Object.keys(apis) as Api[]).flatMap((api) => {
    const models = { chat: ['same', 'mapped'], messages: ['mapped', 'same'], responses: ['responses', 'frames'] }[api]
    return models.map((slug) => ({
      name: `request: ${shape}, ${api} to ${slug}`,
      path: apis[api],
      body: (bytes: number) => body(api, `${slug}/bench`, bytes),
    }))
  }),
)

const usage = '"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}'
const reply = (message: string, more = '') =>
  `{"id":"a","object":"chat.completion","created":1,"model":"bench","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",${message}}}],${usage}${more && `,${more}`}}`

const wholes: Record<string, (bytes: number) => string> = {
  'one text': (bytes) => reply(`"content":"${filled(bytes, 'some words, ')}"`),
  'one text of escapes': (bytes) => reply(`"content":"${filled(bytes, '\\"')}"`),
  'empty objects': (bytes) => `[${filled(bytes, '{}', ',')}]`,
  'empty objects in a reply': (bytes) => reply('"content":"Hi"', `"x":[${filled(bytes, '{}', ',')}]`),
  'unknown fields': (bytes) => reply('"content":"Hi"', named(bytes, '1')),
  'calls of tools': (bytes) =>
    reply(
      `"content":null,"tool_calls":[${filled(bytes, '{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}', ',')}]`,
    ),
  'lists in lists': (bytes) => reply(`"content":"Hi","x":${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}`),
  'lists 5,000 deep': () => reply(`"content":"Hi","x":${'['.repeat(5_000)}${']'.repeat(5_000)}`),
}

const wholeWays = [
  { path: apis.chat, model: 'same/bench', via: 'chat to same' },
  { path: apis.messages, model: 'same/bench', via: 'messages to same' },
  { path: apis.responses, model: 'same/bench', via: 'responses to same' },
]

const wholeAnswers: HostileAnswer[] = Object.entries(wholes).flatMap(([shape, text]) =>
  wholeWays.map(({ via, ...way }) => ({
    name: `answer: ${shape}, ${via}`,
    ...way,
    stream: false,
    write: (response, bytes) => void response.writeHead(200, { 'content-type': 'application/json' }).end(text(bytes)),
  })),
)

const errorAnswers: HostileAnswer[] = Object.entries(wholes).map(([shape, text]) => ({
  name: `error body: ${shape}`,
  path: apis.chat,
  model: 'same/bench',
  stream: false,
  write: (response, bytes) => void response.writeHead(500, { 'content-type': 'application/json' }).end(text(bytes)),
}))

/** How each format writes one event. */
const wires: Record<string, { model: string; begin?: string; event(json: string, first: boolean): string | Buffer }> = {
  sse: { model: 'same/bench', event: (json) => `data: ${json}\n\n` },
  lines: { model: 'lines/bench', event: (json) => `${json}\n` },
  frames: {
    model: 'frames/bench',
    event: (json) => awsFrame({ ':message-type': 'event', ':event-type': 'contentBlockDelta' }, json),
  },
  items: { model: 'items/bench', begin: '[', event: (json, first) => (first ? json : `,${json}`) },
}

const deltas: Record<string, (text: string) => string> = {
  sse: (text) => `{"id":"a","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"${text}"}}]}`,
  lines: (text) => `{"model":"bench","message":{"role":"assistant","content":"${text}"},"done":false}`,
  frames: (text) => `{"contentBlockIndex":0,"delta":{"text":"${text}"}}`,
  items: (text) => `{"candidates":[{"content":{"role":"model","parts":[{"text":"${text}"}]}}]}`,
}

const events: Record<string, (wire: string, bytes: number) => string[]> = {
  'small events': (wire, bytes) => {
    const one = deltas[wire]?.('word ') ?? ''
    return Array.from({ length: Math.floor(bytes / one.length) }, () => one)
  },
  'one event': (wire, bytes) => [deltas[wire]?.(filled(bytes, 'some words, ')) ?? ''],
  'one event of empty objects': (_, bytes) => [`{"x":[${filled(bytes, '{}', ',')}]}`],
}

const streamAnswers: HostileAnswer[] = Object.entries(events).flatMap(([shape, made]) =>
  Object.entries(wires).map(([wire, { model, begin = '', event }]) => ({
    name: `stream: ${shape}, ${wire}`,
    path: apis.chat,
    model,
    stream: true,
    write: (response: ServerResponse, bytes: number) => {
      response.writeHead(200, { 'content-type': wire === 'sse' ? 'text/event-stream' : 'application/octet-stream' })
      const pieces = made(wire, bytes).map((json, index) => Buffer.from(event(json, index === 0)))
      response.end(Buffer.concat([Buffer.from(begin), ...pieces]))
    },
  })),
)

const callDelta = (index: number) =>
  `data: {"id":"a","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":${index},"id":"call_${index}","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}\n\n`

function sse(name: string, path: string, text: (bytes: number) => string, model = 'same/bench'): HostileAnswer {
  const write: HostileAnswer['write'] = (response, bytes) =>
    void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text(bytes))
  return { name, path, model, stream: true, write }
}

const special: HostileAnswer[] = [
  sse('stream: lines of data without end', apis.chat, (bytes) => filled(bytes, 'data: x\n')),
  sse('stream: comments without end', apis.chat, (bytes) => filled(bytes, ': x\n')),
  ...(Object.keys(apis) as Api[]).map((api) =>
    sse(
      `stream: calls of tools, ${api}`,
      apis[api],
      (bytes) =>
        Array.from({ length: bytes / 180 }, (_, index) => callDelta(index)).join('') +
        `data: {"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],${usage}}\n\ndata: [DONE]\n\n`,
    ),
  ),
]

/** Last events of a stream of the Responses API, which repeat the whole response. */
const lastEvents: Record<string, (bytes: number) => string> = {
  'one text': (bytes) => messageItem(`"${filled(bytes, 'some words, ')}"`),
  'items of text': (bytes) => filled(bytes, messageItem('"some words"'), ','),
  'calls of tools': (bytes) =>
    filled(
      bytes,
      '{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}","status":"completed"}',
      ',',
    ),
  'empty objects': (bytes) => filled(bytes, '{}', ','),
  annotations: (bytes) =>
    `{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi","annotations":[${filled(bytes, '{"type":"url_citation","url":"https://a.example","title":"A","start_index":0,"end_index":1}', ',')}]}]}`,
}

function messageItem(text: string): string {
  return `{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":${text},"annotations":[]}]}`
}

const event = (json: string) => `event: ${/"type":"([^"]+)"/.exec(json)?.[1]}\ndata: ${json}\n\n`
const begun = '{"id":"resp_1","object":"response","created_at":1,"model":"bench","status":"in_progress","output":[]}'
const counts = '{"input_tokens":1,"output_tokens":1,"total_tokens":2}'

function responseStream(middle: string, output: string): string {
  const last = `${begun.replace('in_progress', 'completed').replace('[]}', `[${output}],"usage":${counts}}`)}`
  return `${event(`{"type":"response.created","sequence_number":0,"response":${begun}}`)}${middle}${event(`{"type":"response.completed","sequence_number":9,"response":${last}}`)}`
}

const textDelta = (text: string) =>
  event(`{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"${text}"}`)

const responseAnswers: HostileAnswer[] = (Object.keys(apis) as Api[]).flatMap((api) => [
  ...Object.entries(lastEvents).map(([shape, output]) =>
    sse(
      `responses stream: ${shape} in the last event, ${api}`,
      apis[api],
      (bytes) => responseStream(textDelta('Hi'), output(bytes)),
      'responses/bench',
    ),
  ),
  sse(
    `responses stream: one delta, ${api}`,
    apis[api],
    (bytes) => responseStream(textDelta(filled(bytes, 'some words, ')), messageItem('"Hi"')),
    'responses/bench',
  ),
])

export const answers: HostileAnswer[] = [
  ...responseAnswers,
  ...wholeAnswers,
  ...errorAnswers,
  ...streamAnswers,
  ...special,
]
