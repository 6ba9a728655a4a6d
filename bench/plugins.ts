/**
 * What plugins that do nothing cost a call: one with an `event` hook, six with all hooks, and six whose hooks are asynchronous, beside
 * none; whole and streamed, by a provider of the client's format and of another. `npm run bench -- plugins [rounds] [calls]`. CPU of
 * the process, all threads: the smallest of the rounds, in which the subjects have their turns.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { load } from './load.ts'
import { pin, startMeasured } from './measured.ts'
import { here, startRouter } from './subjects.ts'
import { chunksPerStream, firstCall, ways } from './ways.ts'

const rounds = Number(process.argv[3] ?? 5)
const calls = Number(process.argv[4] ?? 4_000)
const streams = calls / 20

const [loadCpu, subjectCpu] = ['0', '1']
pin(process.pid, loadCpu)
const upstream = await startMeasured('upstream.ts', {}, { cpus: loadCpu })
const router = await startRouter(here, upstream.url, { cpus: subjectCpu })
const config = readFileSync(router.config, 'utf8')
const headers = { authorization: `Bearer ${router.key}` }

const plugin = (hooks: string) => `import { definePlugin } from 'inference-router/plugin'
export default definePlugin({ setup: () => ({ ${hooks} }) })
`
const all = (prefix: string) =>
  ['request', 'targets', 'send', 'reply', 'record'].map((name) => `${prefix}${name}() { return undefined }`).join(', ')
const event = 'event() { return undefined }'
const files: Record<string, string> = { seeing: plugin(event) }
const six = (name: string) => Array.from({ length: 6 }, (_, index) => `${name}${index}`)
for (const name of six('idle')) files[name] = plugin(`${all('')}, ${event}`)
for (const name of six('late')) files[name] = plugin(`${all('async ')}, ${event}`)
for (const [name, text] of Object.entries(files))
  writeFileSync(join(dirname(router.config), `plugins/${name}.ts`), text)

const subjects = {
  none: [],
  'one event hook': ['seeing'],
  'six, all hooks': six('idle'),
  'six, asynchronous': six('late'),
}
const [same, mapped] = ways
const scenarios = [same, mapped].flatMap((way) => [false, true].map((stream) => ({ way, stream })))

const least: Record<string, Record<string, number>> = {}
for (let round = 0; round <= rounds; round++) {
  for (const [subject, names] of Object.entries(subjects)) {
    await use(names)
    for (const { way, stream } of scenarios) {
      if (!way) continue
      const count = stream ? streams : calls
      const body = { ...firstCall, model: way.model, stream }
      const run = () => load(router.url + way.path, { calls: count, concurrent: 16, body, headers })
      const us = (await cpuOf(run)) / count
      const scenario = `${stream ? 'stream' : 'whole'}, ${way.name}`
      least[scenario] ??= {}
      // In the first round V8 compiles.
      if (round > 0) least[scenario][subject] = Math.min(least[scenario][subject] ?? Infinity, us)
    }
  }
}

console.log('µs of CPU for a call')
console.table(rounded(least, (us) => us))
console.log('more than without plugins, in percent')
console.table(rounded(least, (us, none) => (us / none - 1) * 100))
console.log(`µs more for an event, of ${chunksPerStream} in a stream`)
const streamed = Object.fromEntries(Object.entries(least).filter(([name]) => name.startsWith('stream')))
console.table(rounded(streamed, (us, none) => (us - none) / chunksPerStream))
await router.stop()
await upstream.stop()
process.exit(0)

/** From the next call on these plugins are used. */
async function use(names: readonly string[]): Promise<void> {
  const list = JSON.stringify(names.map((name) => ({ name })))
  writeFileSync(router.config, `${config}\nplugins: ${list}\n`)
  await setTimeout(2_000)
  const { problem_count: problems } = (await (await fetch(`${router.url}/ready`)).json()) as { problem_count: number }
  if (problems > 0) throw new Error(`${problems} problems in the files of the router`)
}

async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = await router.used()
  await work()
  return (await router.used()).cpuUs - before.cpuUs
}

function rounded(table: typeof least, of: (us: number, none: number) => number) {
  const row = (figures: Record<string, number>) =>
    Object.entries(figures).map(([name, us]) => [name, Math.round(of(us, figures.none ?? us) * 100) / 100])
  return Object.fromEntries(Object.entries(table).map(([name, figures]) => [name, Object.fromEntries(row(figures))]))
}
