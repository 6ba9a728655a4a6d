/**
 * What an answer from the cache costs beside one from a provider: equal calls that are found, and the same with
 * `x-router-cache: refresh`, which asks the provider, in turn. `npm run bench -- cache [rounds] [callers]`. CPU of the router's process.
 */
import { load, median } from './load.ts'
import { startMeasured } from './measured.ts'
import { here, startRouter } from './subjects.ts'
import { firstCall } from './ways.ts'

const rounds = Number(process.argv[3] ?? 5)
const calls = 1_000
/** So many that each commit of the ledger has rows of several calls: what few wait for is the disk. */
const concurrent = Number(process.argv[4] ?? 64)

const upstream = await startMeasured('upstream.ts')
const router = await startRouter(here, upstream.url, { lines: 'plugins: [{ name: cache }]\n' })
const url = `${router.url}/v1/chat/completions`
const bodies = { whole: firstCall, stream: { ...firstCall, stream: true } }
const ways = { hit: {}, miss: { 'x-router-cache': 'refresh' } } as const

/** Calls a second, and microseconds of CPU a call. */
async function slice(kind: keyof typeof bodies, way: keyof typeof ways) {
  const headers = { authorization: `Bearer ${router.key}`, ...ways[way] }
  const before = await router.used()
  const { callsPerSecond } = await load(url, { calls, concurrent, body: bodies[kind], headers })
  const after = await router.used()
  return { callsPerSecond, us: (after.cpuUs - before.cpuUs) / calls }
}

for (const kind of ['whole', 'stream'] as const) {
  const found = { hit: [] as Awaited<ReturnType<typeof slice>>[], miss: [] as Awaited<ReturnType<typeof slice>>[] }
  for (let round = -3; round < rounds; round++) {
    for (const way of ['miss', 'hit'] as const) {
      const measured = await slice(kind, way)
      // V8 compiles in the first ones.
      if (round >= 0) found[way].push(measured)
    }
  }
  const of = (way: 'hit' | 'miss', what: 'us' | 'callsPerSecond') => median(found[way].map((one) => one[what]))
  console.log(kind)
  console.table({
    'µs of CPU': {
      hit: Math.round(of('hit', 'us')),
      miss: Math.round(of('miss', 'us')),
      times: (of('miss', 'us') / of('hit', 'us')).toFixed(2),
    },
    'calls a second': {
      hit: Math.round(of('hit', 'callsPerSecond')),
      miss: Math.round(of('miss', 'callsPerSecond')),
      times: (of('hit', 'callsPerSecond') / of('miss', 'callsPerSecond')).toFixed(2),
    },
  })
}
await router.stop()
await upstream.stop()
