/** The whole router, all features on, against a bare proxy and against the upstream itself: figures of one run, as ratios. */
import { startMeasured } from './measured.ts'
import { bare, chunksPerStream, direct, type Figures, key, measure, routed, scenarios } from './ways.ts'

const upstream = await startMeasured('upstream.ts')
const proxy = await startMeasured('proxy.ts', { BENCH_UPSTREAM: `${upstream.url}/v1` })
const router = await startMeasured('router.ts', { BENCH_UPSTREAM: upstream.url, BENCH_KEY: key, LOG_LEVEL: 'info' })

for (const scenario of scenarios) {
  console.log(`\n${scenario.name}: ${scenario.calls} calls, ${scenario.concurrent} at a time`)
  const rows: Record<string, Record<string, string>> = {}
  const ofUpstream = await measure(upstream, direct, scenario)
  const ofProxy = await measure(proxy, bare, scenario)
  rows[bare.name] = row(ofProxy)
  for (const way of routed) rows[way.name] = row(await measure(router, way, scenario))
  console.table(rows)

  function row({ callsPerSecond, p50, p99, cpuUs, rssMb }: Figures): Record<string, string> {
    const perChunk = scenario.stream ? { 'CPU µs/chunk': (cpuUs / chunksPerStream).toFixed(2) } : {}
    return {
      'calls/s': callsPerSecond.toFixed(0),
      'added p50 ms': (p50 - ofUpstream.p50).toFixed(2),
      'added p99 ms': (p99 - ofUpstream.p99).toFixed(2),
      'CPU µs/call': cpuUs.toFixed(0),
      ...perChunk,
      'RSS MB': rssMb.toFixed(0),
      'calls/s ÷ bare': (callsPerSecond / ofProxy.callsPerSecond).toFixed(2),
      'CPU ÷ bare': (cpuUs / ofProxy.cpuUs).toFixed(2),
    }
  }
}

await Promise.all([router.stop(), proxy.stop(), upstream.stop()])
process.exit(0)
