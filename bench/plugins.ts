/**
 * What plugins that do nothing cost a call: one with an `event` hook, six with all hooks, and six whose hooks are asynchronous, beside
 * none; whole and streamed, by a provider of the client's format and of another. `npm run bench -- plugins [rounds] [calls]`. CPU of
 * the process, all threads: the medians of rounds in which the subjects, each with a key of its own, have short turns.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { load, median } from './load.ts'
import { pin, startMeasured } from './measured.ts'
import { firstKey, here, limitedKey, startRouter } from './subjects.ts'
import { chunksPerStream, firstCall, ways } from './ways.ts'

const rounds = Number(process.argv[3] ?? 40)
const calls = Number(process.argv[4] ?? 500)
const streams = calls / 20
const warmRounds = 40

const [loadCpu, subjectCpu] = ['0', '1']
pin(process.pid, loadCpu)
const upstream = await startMeasured('upstream.ts', {}, { cpus: loadCpu })
const router = await startRouter(here, upstream.url, { cpus: subjectCpu })

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
await loadPlugins(files)

const subjects = {
  none: await keyWith([]),
  'one event hook': await keyWith(['seeing']),
  'six, all hooks': await keyWith(six('idle')),
  'six, asynchronous': await keyWith(six('late')),
}
const [same, mapped] = ways
const scenarios = [same, mapped].flatMap((way) => [false, true].map((stream) => ({ way, stream })))

const found: Record<string, Record<string, number[]>> = {}
for (let round = -warmRounds; round < rounds; round++) {
  for (const { way, stream } of scenarios) {
    for (const [subject, key] of Object.entries(subjects)) {
      if (!way) continue
      const count = stream ? streams : calls
      const headers = { authorization: `Bearer ${key}` }
      const body = { ...firstCall, model: way.model, stream }
      const us =
        (await cpuOf(() => load(router.url + way.path, { calls: count, concurrent: 16, body, headers }))) / count
      // In the first rounds V8 compiles.
      if (round < 0) continue
      const scenario = `${stream ? 'stream' : 'whole'}, ${way.name}`
      found[scenario] ??= {}
      found[scenario][subject] ??= []
      found[scenario][subject].push(us)
    }
  }
}

console.log('µs of CPU for a call')
console.table(rounded(found, (us) => us))
console.log('more than without plugins, in percent')
console.table(rounded(found, (us, none) => (us / none - 1) * 100))
console.log(`µs more for an event, of ${chunksPerStream} in a stream`)
const streamed = Object.fromEntries(Object.entries(found).filter(([name]) => name.startsWith('stream')))
console.table(rounded(streamed, (us, none) => (us - none) / chunksPerStream))
await router.stop()
await upstream.stop()
process.exit(0)

/** Lets the router load them; they see the calls of keys that say so. */
async function loadPlugins(texts: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(texts))
    writeFileSync(join(dirname(router.config), `plugins/${name}.ts`), text)
  const list = JSON.stringify(Object.keys(texts).map((name) => ({ name, enabled: false })))
  writeFileSync(router.config, `${readFileSync(router.config, 'utf8')}\nplugins: ${list}\n`)
  await setTimeout(3_000)
  const { problem_count: problems } = (await (await fetch(`${router.url}/ready`)).json()) as { problem_count: number }
  if (problems > 0) throw new Error(`${problems} problems in the files of the router`)
}

/** A key for whose calls these are on. */
async function keyWith(plugins: readonly string[]): Promise<string> {
  const { api_key_id: id, api_key: key } = await limitedKey(router.url)
  if (plugins.length === 0) return key
  const response = await fetch(`${router.url}/v1/manage/apikey/${id}/plugins`, {
    method: 'POST',
    headers: { authorization: `Bearer ${firstKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ plugins: Object.fromEntries(plugins.map((name) => [name, true])) }),
  })
  if (!response.ok) throw new Error(await response.text())
  return key
}

async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = await router.used()
  await work()
  return (await router.used()).cpuUs - before.cpuUs
}

function rounded(table: typeof found, of: (us: number, none: number) => number) {
  const row = ({ none = [], ...others }: Record<string, number[]>) =>
    Object.entries({ none, ...others }).map(([name, us]) => {
      const pairs = us.map((one, index) => of(one, none[index] ?? Number.NaN))
      return [name, Math.round(median(pairs) * 100) / 100]
    })
  return Object.fromEntries(Object.entries(table).map(([name, figures]) => [name, Object.fromEntries(row(figures))]))
}
