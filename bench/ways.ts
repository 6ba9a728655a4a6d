/** What the gateway benches send: whole replies and streams, through every API, same format and mapped. */
import { load, percentile } from './load.ts'
import type { Measured } from './measured.ts'

/** The key that the measured routers accept. */
export const key = 'ir-bench-key-of-the-benches'
const headers = { authorization: `Bearer ${key}` }
const messages = [
  { role: 'system', content: 'You are a helpful assistant that answers briefly.' },
  ...Array.from({ length: 4 }, (_, turn) => [
    { role: 'user', content: `Question ${turn}: what is the capital of France, and why is it there?` },
    { role: 'assistant', content: 'Paris. It grew where an island made the river easy to cross.' },
  ]).flat(),
  { role: 'user', content: 'And of Italy?' },
]

/** One way of calling: an API with a model behind it. */
export type Way = { name: string; path: string; model: string; body?: (streamed: boolean) => object }
/** One measurement: CPU in microseconds per call, latencies in milliseconds. */
export type Figures = { callsPerSecond: number; p50: number; p99: number; cpuUs: number; rssMb: number }
/** What is sent: how many calls, after how many for warming up, and how many at a time. */
export type Scenario = { name: string; stream: boolean; calls: number; warm: number; concurrent: number }

/** Server-sent events that the upstream writes into one stream. */
export const chunksPerStream = 203
export const scenarios: Scenario[] = [
  { name: 'whole replies', stream: false, calls: 6_000, warm: 6_000, concurrent: 32 },
  { name: 'streams of 200 chunks', stream: true, calls: 400, warm: 200, concurrent: 16 },
]

export const direct: Way = { name: 'upstream itself', path: '/v1/chat/completions', model: 'bench' }
export const bare: Way = { ...direct, name: 'bare proxy' }
export const routed: Way[] = [
  { name: 'router, same format', path: '/v1/chat/completions', model: 'same/bench' },
  { name: 'router, mapped (Anthropic)', path: '/v1/chat/completions', model: 'mapped/bench' },
  { name: 'router, Messages API, mapped (OpenAI)', path: '/v1/messages', model: 'same/bench', body: messagesBody },
  { name: 'router, Responses API, mapped (OpenAI)', path: '/v1/responses', model: 'same/bench', body: responsesBody },
]

/** Sends a scenario to a server in one way, after warming up. */
export async function measure(server: Measured, way: Way, scenario: Scenario): Promise<Figures> {
  const url = server.url + way.path
  const body = { model: way.model, ...(way.body ?? chatBody)(scenario.stream) }
  await load(url, { calls: scenario.warm, concurrent: scenario.concurrent, body, headers })
  const before = await server.used()
  const { callsPerSecond, latenciesMs } = await load(url, { ...scenario, body, headers })
  const after = await server.used()
  return {
    callsPerSecond,
    p50: percentile(latenciesMs, 0.5),
    p99: percentile(latenciesMs, 0.99),
    cpuUs: (after.cpuUs - before.cpuUs) / scenario.calls,
    rssMb: after.rss / 1024 / 1024,
  }
}

export function chatBody(stream: boolean): object {
  return { messages, ...(stream && { stream, stream_options: { include_usage: true } }) }
}

function messagesBody(stream: boolean): object {
  const [{ content: system } = { content: '' }, ...turns] = messages
  return { system, messages: turns, max_tokens: 1_000, stream }
}

function responsesBody(stream: boolean): object {
  return { input: messages, store: false, stream }
}
