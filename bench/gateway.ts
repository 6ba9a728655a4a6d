/** The whole router, all features on, against a bare proxy and against the upstream itself: figures of one run, as ratios. */
import { load, percentile } from './load.ts'
import { type Measured, startMeasured } from './measured.ts'

const key = 'ir-bench-key'
const headers = { authorization: `Bearer ${key}` }
const messages = [
  { role: 'system', content: 'You are a helpful assistant that answers briefly.' },
  ...Array.from({ length: 4 }, (_, turn) => [
    { role: 'user', content: `Question ${turn}: what is the capital of France, and why is it there?` },
    { role: 'assistant', content: 'Paris. It grew where an island made the river easy to cross.' },
  ]).flat(),
  { role: 'user', content: 'And of Italy?' },
]

type Way = { name: string; server: Measured; path: string; model: string; body?: (streamed: boolean) => object }
type Figures = { callsPerSecond: number; p50: number; p99: number; cpuUs: number; rssMb: number }

const chunksPerStream = 203
const scenarios = [
  { name: 'whole replies', stream: false, calls: 6_000, warm: 1_500, concurrent: 32 },
  { name: 'streams of 200 chunks', stream: true, calls: 400, warm: 100, concurrent: 16 },
]

const upstream = await startMeasured('upstream.ts')
const proxy = await startMeasured('proxy.ts', { BENCH_UPSTREAM: `${upstream.url}/v1` })
const router = await startMeasured('router.ts', { BENCH_UPSTREAM: upstream.url, BENCH_KEY: key, LOG_LEVEL: 'info' })

const ways: Way[] = [
  { name: 'upstream itself', server: upstream, path: '/v1/chat/completions', model: 'bench' },
  { name: 'bare proxy', server: proxy, path: '/v1/chat/completions', model: 'bench' },
  { name: 'router, same format', server: router, path: '/v1/chat/completions', model: 'same/bench' },
  { name: 'router, mapped (Anthropic)', server: router, path: '/v1/chat/completions', model: 'mapped/bench' },
  {
    name: 'router, Messages API, mapped (OpenAI)',
    server: router,
    path: '/v1/messages',
    model: 'same/bench',
    body: messagesBody,
  },
  {
    name: 'router, Responses API, mapped (OpenAI)',
    server: router,
    path: '/v1/responses',
    model: 'same/bench',
    body: responsesBody,
  },
]

for (const scenario of scenarios) {
  console.log(`\n${scenario.name}: ${scenario.calls} calls, ${scenario.concurrent} at a time`)
  const rows: Record<string, Record<string, string>> = {}
  const figures: Record<string, Figures> = {}
  for (const way of ways) figures[way.name] = await measure(way, scenario)
  const direct = figures['upstream itself'] as Figures
  const bare = figures['bare proxy'] as Figures
  for (const { name } of ways.slice(1)) {
    const { callsPerSecond, p50, p99, cpuUs, rssMb } = figures[name] as Figures
    const perChunk = scenario.stream ? { 'CPU µs/chunk': (cpuUs / chunksPerStream).toFixed(2) } : {}
    rows[name] = {
      'calls/s': callsPerSecond.toFixed(0),
      'added p50 ms': (p50 - direct.p50).toFixed(2),
      'added p99 ms': (p99 - direct.p99).toFixed(2),
      'CPU µs/call': cpuUs.toFixed(0),
      ...perChunk,
      'RSS MB': rssMb.toFixed(0),
      'calls/s ÷ bare': (callsPerSecond / bare.callsPerSecond).toFixed(2),
      'CPU ÷ bare': (cpuUs / bare.cpuUs).toFixed(2),
    }
  }
  console.table(rows)
}

await Promise.all([router.stop(), proxy.stop(), upstream.stop()])
process.exit(0)

function chatBody(stream: boolean): object {
  return { messages, ...(stream && { stream, stream_options: { include_usage: true } }) }
}

function messagesBody(stream: boolean): object {
  const [{ content: system } = { content: '' }, ...turns] = messages
  return { system, messages: turns, max_tokens: 1_000, stream }
}

function responsesBody(stream: boolean): object {
  return { input: messages, store: false, stream }
}

async function measure(way: Way, scenario: (typeof scenarios)[number]): Promise<Figures> {
  const url = way.server.url + way.path
  const body = { model: way.model, ...(way.body ?? chatBody)(scenario.stream) }
  await load(url, { calls: scenario.warm, concurrent: scenario.concurrent, body, headers })
  const before = await way.server.used()
  const { callsPerSecond, latenciesMs } = await load(url, { ...scenario, body, headers })
  const after = await way.server.used()
  return {
    callsPerSecond,
    p50: percentile(latenciesMs, 0.5),
    p99: percentile(latenciesMs, 0.99),
    cpuUs: (after.cpuUs - before.cpuUs) / scenario.calls,
    rssMb: after.rss / 1024 / 1024,
  }
}
