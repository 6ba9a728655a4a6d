import { type Logger, pino } from 'pino'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { otlpCollector, type ReceivedPoint } from '../../helpers/otlp.ts'
import { simulatorOnly, type TestRouter, testRouter } from '../../helpers/router.ts'
import { describeEach, testEach } from '../../helpers/slow.ts'

type Collector = Awaited<ReturnType<typeof otlpCollector>>
type Samples = Map<string, { value: number; labels: Record<string, string> }>

/** Opens a router that sends its metrics to a collector, with these variables. */
async function opened(collector: Collector, { threads = 1, log, ...env }: Opening = {}) {
  const variables = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.base,
    OTEL_METRIC_EXPORT_INTERVAL: '100',
    OTEL_TRACES_EXPORTER: 'none',
    ...env,
  }
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
  const policies = { safe: { targets: ['demo/trouble', 'demo/thinker'], on_cut: 'continue' } }
  const settings = { policies, metrics: { labels: ['organization'] } }
  return await testRouter({ files: simulatorOnly, threads, env: variables, settings, ...(log && { log }) })
}

type Opening = { threads?: number; log?: Logger; [variable: `OTEL_${string}`]: string }

const ask = async (router: TestRouter, content: string, model = 'demo/echo', more: object = {}) => {
  const body = { model, messages: [{ role: 'user', content }], ...more }
  await (await router.call('/v1/chat/completions', body)).text()
}

/** Samples of `/metrics` by name and labels. */
async function exposed(router: TestRouter): Promise<Samples> {
  const text = await (await router.call('/metrics')).text()
  const found = text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)
  return new Map(
    [...found].map(([, name = '', given = '', value]) => {
      const labels = Object.fromEntries([...given.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, of]) => [key, of]))
      return [keyOf(name, labels), { value: Number(value), labels }]
    }),
  )
}

function keyOf(name: string, labels: object): string {
  return `${name} ${JSON.stringify(Object.entries(labels).sort())}`
}

/** Data points as the samples that Prometheus has for them. */
function asSamples(points: readonly ReceivedPoint[]): Map<string, number> {
  return new Map(
    points.flatMap(({ name, attributes, value, buckets }): [string, number][] => {
      if (!buckets) return [[keyOf(name, attributes), value]]
      let below = 0
      const counts = buckets.counts.map((count, at): [string, number] => {
        below += count
        return [keyOf(`${name}_bucket`, { ...attributes, le: String(buckets.bounds[at] ?? '+Inf') }), below]
      })
      return [...counts, [keyOf(`${name}_sum`, attributes), value], [keyOf(`${name}_count`, attributes), buckets.count]]
    }),
  )
}

/** Families whose values change by themselves. */
const changing =
  /^(?:process_|nodejs_|inference_router_event_loop|inference_router_ledger_commit|inference_router_requests_running)/

const callsIn = (points: readonly ReceivedPoint[]) =>
  points.filter(({ name }) => name === 'inference_router_calls_total').reduce((sum, { value }) => sum + value, 0)

afterEach(() => vi.unstubAllEnvs())

describeEach([2, 1], { slowIf: (threads) => threads === 1 })('with %i threads, a collector', (threads) => {
  let collector: Collector
  let router: TestRouter
  const calls = 24

  beforeAll(async () => {
    collector = await otlpCollector()
    router = await opened(collector, { threads, OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'x-team=blue' })
    const texts = ['Hello', 'fail 503', 'refuse', 'cut']
    await Promise.all(
      Array.from({ length: calls }, (_, at) =>
        ask(router, texts[at % texts.length] ?? '', at % 2 ? 'demo/echo' : 'policy/safe', { stream: at % 3 === 0 }),
      ),
    )
  })
  afterAll(async () => {
    await router?.end()
    await collector?.close()
  })

  /** The points of the newest request that has counted all calls. */
  const newest = async () => {
    const complete = () => collector.requests.findLast(({ points }) => callsIn(points) === calls)
    await expect.poll(complete, { timeout: 20_000 }).toBeDefined()
    return complete() ?? expect.fail('there is none')
  }

  test('gets the families of /metrics with the same names, labels and values, as one sum of all threads', async () => {
    await newest()
    await expect
      .poll(async () => (await exposed(router)).get(keyOf('inference_router_streams_running', {}))?.value)
      .toBe(0)
    const before = collector.requests.length
    await expect.poll(() => collector.requests.length, { timeout: 10_000 }).toBeGreaterThan(before + 1)
    const sent = asSamples((await newest()).points)
    const samples = await exposed(router)
    const names = (keys: Iterable<string>) => [...new Set([...keys].map((key) => key.split(' ')[0] ?? ''))].sort()
    expect(names(sent.keys())).toEqual(names(samples.keys()))
    const steady = [...samples].filter(([key]) => !changing.test(key))
    expect(steady.length).toBeGreaterThan(100)
    expect(steady.map(([key]) => [key, sent.get(key)])).toEqual(steady.map(([key, { value }]) => [key, value]))
  })

  test('gets sums since the start, with units, the headers of the variables and one resource', async () => {
    const { path, headers, points } = await newest()
    expect(path).toBe('/v1/metrics')
    expect(headers).toMatchObject({ 'content-type': 'application/x-protobuf', 'x-team': 'blue' })
    const kinds = Object.fromEntries(points.map((point) => [point.name, point]))
    expect(kinds).toMatchObject({
      inference_router_calls_total: { type: 'sum', temporality: 'cumulative', isMonotonic: true, unit: '' },
      inference_router_reserved_usd: { type: 'gauge', temporality: 'none' },
      gen_ai_server_request_duration_seconds: { type: 'histogram', temporality: 'cumulative', unit: 's' },
      process_resident_memory_bytes: { type: 'gauge', unit: 'By' },
    })
    for (const { startMs, endMs } of points) expect(startMs).toBeLessThanOrEqual(endMs)
    expect(points[0]?.resource).toMatchObject({
      'service.name': 'inference-router',
      'service.instance.id': expect.stringMatching(/^[\da-f-]{36}$/),
    })
  })
})

test('with deltas, the sum of what was sent is the number of calls, including those before the end', async () => {
  const collector = await otlpCollector()
  const router = await opened(collector, { OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'delta' })
  const sent = () => collector.requests.flatMap(({ points }) => points)
  for (let call = 0; call < 3; call++) await ask(router, 'Hello')
  await expect.poll(() => callsIn(sent()), { timeout: 10_000 }).toBe(3)
  // The next requests are refused: what they had is sent later.
  collector.refusals.push(...Array(5).fill(400))
  await ask(router, 'Hello')
  await expect.poll(() => callsIn(sent()), { timeout: 10_000 }).toBe(4)
  await ask(router, 'Hello')
  await router.end()
  expect(callsIn(sent())).toBe(5)
  const of = sent().filter(({ name }) => name === 'inference_router_calls_total')
  expect(new Set(of.map(({ temporality }) => temporality))).toEqual(new Set(['delta']))
  for (const [at, { startMs }] of of.entries()) if (at > 0) expect(startMs).toBe(of[at - 1]?.endMs)
  await collector.close()
})

test('a collector that refuses metrics is logged once, and again when it accepts them', async () => {
  const collector = await otlpCollector()
  const lines: { level: number; msg: string; failures?: number }[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
  collector.refusals.push(404, 404, 404)
  const router = await opened(collector, { log })
  const about = () =>
    lines.filter(({ msg }) => /collector/.test(msg)).map(({ level, msg, failures }) => ({ level, msg, failures }))
  await expect.poll(about, { timeout: 10_000 }).toEqual([
    { level: 40, msg: 'metrics cannot be sent to the collector', failures: undefined },
    { level: 30, msg: 'metrics are sent to the collector again', failures: 3 },
  ])
  await router.end()
  await collector.close()
})

testEach(
  [
    { OTEL_METRICS_EXPORTER: 'none' },
    { OTEL_METRICS_EXPORTER: 'prometheus' },
    { OTEL_SDK_DISABLED: 'true' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
  ],
  { slowIf: (_, at) => at > 0 },
)('no metrics are sent with %o', async (env) => {
  const collector = await otlpCollector()
  const router = await opened(collector, env as Opening)
  await ask(router, 'Hello')
  await router.end()
  expect(collector.requests).toEqual([])
  await collector.close()
})
