/** What the gateway benches send: whole replies and streams, through every API, same format and mapped. */
import { longChat, longMessages, longResponses } from './conversation.ts'
import { load, percentile } from './load.ts'
import type { Subject } from './types.ts'

/** A model whose provider speaks Chat Completions, and one whose provider does not. */
export const sameFormat = 'openai/gpt-4o-mini'
const mapped = 'anthropic/claude-sonnet-4-5'

const system = 'You are a helpful assistant.'
const question = 'Say hello, then explain in two sentences what a gateway is.'
/** Words that make the upstream pause between chunks: for 5 ms, and for half a second between a tenth of the chunks. */
export const slowly = 'Slowly, please.'
export const verySlowly = 'Very slowly, please.'
export const tenASecond = 'Ten words a second, please.'
/** Words that make the upstream think for this long before it answers. Milliseconds. */
export const inAMoment = 'In a moment, please.'
export const momentMs = 100

/** Most clients limit the length of the reply. */
const common = { temperature: 0.7, max_tokens: 256 }

/** One way of calling: an API with a model behind it. */
export type Way = { name: string; path: string; model: string; body?: (asked: Asked) => object }
/** What is asked, and whether at the end of a long conversation. */
type Asked = { question: string; stream: boolean; long: boolean }
/** One measurement: CPU in microseconds per call or chunk, of all threads; latencies in milliseconds. */
export type Figures = {
  callsPerSecond: number
  cpuUs: number
  p50: number
  p99: number
  firstP50: number
  firstP99: number
  rssMb: number
}
/**
 * What is sent: how many calls, after how many for warming up, and how many at a time. V8 compiles for about 16,000 calls: what
 * it takes for that is no cost of a call.
 */
export type Scenario = {
  name: string
  stream: boolean
  calls: number
  warm: number
  concurrent: number
  slow?: boolean
  /** The upstream thinks for a moment first, as providers do. */
  thinking?: boolean
  /** Each call has a conversation of 100 KB, as those of agents do. */
  long?: boolean
}

/** Server-sent events that the upstream writes into one stream. */
export const chunksPerStream = 203
export const scenarios: Scenario[] = [
  { name: 'whole replies, 32 at a time', stream: false, calls: 8_000, warm: 16_000, concurrent: 32 },
  { name: 'whole replies, one at a time', stream: false, calls: 2_000, warm: 1_000, concurrent: 1 },
  { name: 'streams, 16 at a time', stream: true, calls: 400, warm: 200, concurrent: 16 },
  {
    name: 'streams with 5 ms between chunks, 32 at a time',
    stream: true,
    slow: true,
    calls: 64,
    warm: 32,
    concurrent: 32,
  },
  {
    name: 'whole replies after a moment, 256 at a time',
    stream: false,
    thinking: true,
    calls: 16_000,
    warm: 16_000,
    concurrent: 256,
  },
  {
    name: 'whole replies to conversations of 100 KB, 16 at a time',
    stream: false,
    long: true,
    calls: 2_000,
    warm: 5_000,
    concurrent: 16,
  },
]

export const chatSame: Way = { name: 'same format', path: '/v1/chat/completions', model: sameFormat }
export const ways: Way[] = [
  chatSame,
  { name: 'mapped (Anthropic)', path: '/v1/chat/completions', model: mapped },
  { name: 'Messages API, mapped (OpenAI)', path: '/v1/messages', model: sameFormat, body: messagesBody },
  { name: 'Responses API, mapped (OpenAI)', path: '/v1/responses', model: sameFormat, body: responsesBody },
]

/** An operation: an endpoint for anything but conversations. */
export const embeddings: Way = {
  name: 'operation (embeddings)',
  path: '/v1/embeddings',
  model: 'openai/text-embedding-3-small',
  body: ({ question }) => ({ input: question, encoding_format: 'base64' }),
}

/** The bodies of a first call, and of a stream that takes ten seconds. */
export const firstCall = { model: sameFormat, ...chatBody({ question, stream: false, long: false }) }
export const steadyStream = streamOf(tenASecond)
/** A stream of 5 ms between chunks. */
export const pacedStream = streamOf(slowly)
export const slowStream = streamOf(verySlowly)

function streamOf(pace: string): object {
  return { model: sameFormat, ...chatBody({ question: `${question} ${pace}`, stream: true, long: false }) }
}

/** Sends a scenario to a server in one way, after warming up. */
export async function measure(
  server: Pick<Subject, 'url' | 'key' | 'used'>,
  way: Way,
  { stream, slow, thinking, long = false, ...scenario }: Scenario,
): Promise<Figures> {
  const url = server.url + way.path
  const ask = slow ? `${question} ${slowly}` : thinking ? `${question} ${inAMoment}` : question
  const body = { model: way.model, ...(way.body ?? chatBody)({ question: ask, stream, long }) }
  const headers = { authorization: `Bearer ${server.key}` }
  await load(url, { ...scenario, calls: scenario.warm, body, headers })
  const before = await server.used()
  const { callsPerSecond, latenciesMs, firstBytesMs } = await load(url, { ...scenario, body, headers })
  const after = await server.used()
  return {
    callsPerSecond,
    cpuUs: (after.cpuUs - before.cpuUs) / scenario.calls / (stream ? chunksPerStream : 1),
    p50: percentile(latenciesMs, 0.5),
    p99: percentile(latenciesMs, 0.99),
    firstP50: percentile(firstBytesMs, 0.5),
    firstP99: percentile(firstBytesMs, 0.99),
    rssMb: after.rss / 1024 / 1024,
  }
}

function chatBody({ question, stream, long }: Asked): object {
  const messages = [
    { role: 'system', content: system },
    { role: 'user', content: question },
  ]
  const streaming = stream && { stream, stream_options: { include_usage: true } }
  return { ...(long ? longChat(question) : { messages }), ...common, ...streaming }
}

function messagesBody({ question, stream, long }: Asked): object {
  const asked = long ? longMessages(question) : { system, messages: [{ role: 'user', content: question }] }
  return { ...asked, ...common, stream }
}

function responsesBody({ question, stream, long }: Asked): object {
  const asked = long ? longResponses(question) : { instructions: system, input: question }
  return { ...asked, temperature: 0.7, max_output_tokens: 256, store: false, stream }
}

/** A text whose audio is 50 MB long. */
export const longSpeech = 'Read all of it.'
