const benches: Record<string, { file: string; about: string }> = {
  gateway: { file: './gateway.ts', about: '[rounds]: the router as shipped beside a bare express + undici proxy' },
  against: { file: './against.ts', about: '<git ref> [pairs]: CPU of this state of the project beside another one' },
  profile: {
    file: './profile.ts',
    about: '[way] [scenario] [svg file]: the CPU of a call by room and by function, and a flame graph of it',
  },
  journeys: { file: './journeys.ts', about: '[list] [folder]: the files and functions that run in one warm call' },
  start: {
    file: './start.ts',
    about: '[rounds]: start to the first answered call, and memory: at rest, under load, with slow streams',
  },
  manifests: {
    file: './manifests.ts',
    about: '[count]: generated manifests beside the shipped ones: start, memory, reload, lookups, the list of models',
  },
  threads: { file: './threads.ts', about: '[rounds] [threads]: one thread and several, on all cores' },
  crowd: { file: './crowd.ts', about: 'what a call waits for beside 1,000 streams of ten events a second' },
  neighbours: {
    file: './neighbours.ts',
    about: '[rounds] [threads]: what streams of other threads notice of bodies of 50 MB',
  },
  overload: { file: './overload.ts', about: '[seconds] [rounds]: twice the load that one process can serve' },
  refusals: { file: './refusals.ts', about: 'what a call costs that is refused because too many run' },
  soak: {
    file: './soak.ts',
    about: '[minutes] [streams]: what is left of streams whose clients leave and whose provider fails',
  },
  speech: { file: './speech.ts', about: '[rounds]: first bytes of audio, and memory while 50 MB pass' },
  store: { file: './store.ts', about: 'a million keys and ten million settled calls: lookups, usage, start' },
  calls: {
    file: './calls.ts',
    about: '[rows]: what the console asks of ten million settled calls: pages, figures, tables',
  },
  bounds: {
    file: './bounds.ts',
    about: '[words…]: what 5 and 50 MB of every shape hold of the event loop and of memory',
  },
  uploads: { file: './uploads.ts', about: '[calls] [megabytes]: memory of many large transcriptions at once' },
  holds: {
    file: './holds.ts',
    about: '[rounds]: what bounds and reservations cost a call and a chunk: the line with them and without, in turn',
  },
  plugins: { file: './plugins.ts', about: '[rounds] [calls]: what plugins that do nothing cost a call and an event' },
  metrics: {
    file: './metrics.ts',
    about: '[pairs]: what counting costs a call, and what a scrape of many series takes',
  },
  routing: { file: './routing.ts', about: '[rounds]: choosing among targets, and trying one that is healthy' },
  cache: { file: './cache.ts', about: '[rounds]: an answer from the plugin cache beside one from a provider' },
  mapping: { file: './mapping.ts', about: 'mappings: the library, compiled, written by hand' },
}

const name = process.argv[2] ?? 'gateway'
const bench = benches[name]
if (!bench) {
  for (const [known, { about }] of Object.entries(benches)) console.error(`npm run bench -- ${known}\t${about}`)
  process.exit(2)
}
await import(bench.file)
