/**
 * Many providers: generated manifests of a hundred models each, beside the shipped ones. The start of a fresh process to its first
 * answered call and its memory, the reload of one changed file, the lookup of a name, the list of all models. Milliseconds of CPU, but
 * where it says otherwise. `npm run bench -- manifests [count]`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openFileCache } from '../src/manifest/read/file-cache.ts'
import { buildSnapshot } from '../src/snapshot/snapshot.ts'
import { median } from './load.ts'
import { firstAnswer, firstKey, freePort, here } from './subjects.ts'

const count = Number(process.argv[3] ?? 1_000)
const modelsOfEach = 100
const lookups = 200_000
const lists = 5

/** All shipped providers are configured. */
const secrets = Object.fromEntries(
  [...readFileSync(join(here, 'docs/providers.md'), 'utf8').matchAll(/`([A-Z][A-Z0-9_]+)`/g)].map(([, name = '']) => [
    name,
    'a-secret-of-the-bench',
  ]),
)

const facts = `api: chat, created: 1700000000, context_window: 128000, max_output_tokens: 8192, description: Generated., data_retention: false,
  data_retention_days: 0, data_used_for_training: false, privacy_comments: None., geolocation: global, open_weights: false, model_lab: none`

const shipped = (folder: string) => {
  for (const name of ['providers', 'catalog']) cpSync(join(here, name), join(folder, name), { recursive: true })
}
console.table({ 'as shipped': await measure('openai', 'gpt-5', shipped) })
for (const generated of [10, count]) {
  const row = await measure('generated-1', 'model-1', (folder) => generate(folder, generated))
  console.table({ [`${generated.toLocaleString('en-US')} generated`]: row })
}
process.exit(0)

async function measure(slug: string, model: string, fill: (folder: string) => void) {
  const folder = mkdtempSync(join(tmpdir(), 'bench-manifests-'))
  for (const name of ['providers', 'catalog', 'plugins', 'data']) mkdirSync(join(folder, name))
  fill(folder)
  // The provider that answers the first call.
  cpSync(join(here, 'providers/demo.yaml'), join(folder, 'providers/demo.yaml'))
  writeFileSync(join(folder, 'config.yaml'), '{}')
  const reloads = await measureReloads(folder, slug, model)
  const first = await measureProcess(folder)
  const second = await measureProcess(folder)
  rmSync(folder, { recursive: true, force: true })
  return {
    'first start': first.startMs,
    'by the clock': first.clockMs,
    start: second.startMs,
    'start by the clock': second.clockMs,
    'RSS, MB': second.rssMb,
    'a model list': second.listMs,
    reload: reloads.ms,
    'lookup, ns': reloads.lookupNs,
  }
}

/** In this process: snapshots one after the other, each with a changed manifest. */
async function measureReloads(folder: string, slug: string, model: string) {
  const config = join(folder, 'config.yaml')
  const cache = openFileCache(join(folder, 'cache-of-reloads'))
  let { snapshot: previous } = await buildSnapshot(config, process.env, { cache })
  const spent: number[] = []
  for (let round = 0; round < 5; round++) {
    appendFileSync(join(folder, `providers/${slug}.yaml`), `# ${round}\n`)
    const before = process.cpuUsage()
    const { snapshot } = await buildSnapshot(config, process.env, { previous })
    spent.push(msSince(before))
    if (!snapshot || snapshot === previous) throw new Error('a changed manifest was not read again')
    previous = snapshot
  }
  const before = process.cpuUsage()
  for (let round = 0; round < lookups; round++) {
    if (!previous?.catalog.find(slug, model)) throw new Error(`there is no ${slug}/${model}`)
  }
  return { ms: Math.round(median(spent)), lookupNs: Math.round((msSince(before) * 1e6) / lookups) }
}

async function measureProcess(folder: string) {
  const port = await freePort()
  writeFileSync(join(folder, 'config.yaml'), `server: { port: ${port} }\nstore: { url: "sqlite:data/router.sqlite" }\n`)
  const log = openSync(join(folder, 'data/log'), 'a')
  const env = {
    ...process.env,
    ...secrets,
    INFERENCE_ROUTER_ADMIN_KEY: firstKey,
    INFERENCE_ROUTER_CACHE: join(folder, 'cache'),
  }
  mkdirSync(env.INFERENCE_ROUTER_CACHE, { recursive: true, mode: 0o700 })
  const words = [join(here, 'src/start.js'), 'serve', '--config', join(folder, 'config.yaml')]
  const begun = performance.now()
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', log, log] })
  const url = `http://127.0.0.1:${port}`
  await firstAnswer(child, url, 'demo/echo')
  const clockMs = Math.round(performance.now() - begun)
  const startMs = cpuMs(child.pid)
  const listed = () =>
    fetch(`${url}/v1/models/all`, { headers: { authorization: `Bearer ${firstKey}` } }).then((one) => one.arrayBuffer())
  // The first one makes what is kept for the others.
  await listed()
  const before = cpuMs(child.pid)
  for (let round = 0; round < lists; round++) await listed()
  const listMs = (cpuMs(child.pid) - before) / lists
  await new Promise((resolve) => setTimeout(resolve, 5_000))
  const rssMb = Math.round(
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1_024,
  )
  child.kill('SIGTERM')
  await once(child, 'exit')
  return { startMs, clockMs, rssMb, listMs }
}

function generate(folder: string, count: number): void {
  for (let index = 0; index < count; index++) {
    const slug = `generated-${index}`
    const manifest = `slug: ${slug}
name: Generated ${index}
base_url: https://${slug}.example/v1
auth: { scheme: bearer, secret: "\${BENCH_SECRET:-secret}" }
dialect: openai-chat
endpoints:
  chat:
    patch: { request: '$ ~> |$|{ "seed_${index}": seed }, ["seed"]|' }
    losses: [top_k, web_search]
`
    writeFileSync(join(folder, `providers/${slug}.yaml`), manifest)
    const models = Array.from(
      { length: modelsOfEach },
      (_, model) =>
        `  model-${model}: { model_canonical_name: model-${model}, supports_tool_calling: true, pricing: { input: 1e-6, output: 2e-6 } }\n`,
    )
    writeFileSync(
      join(folder, `catalog/${slug}.yaml`),
      `provider: ${slug}\ndefaults: { ${facts} }\nmodels:\n${models.join('')}`,
    )
  }
}

function msSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

/** Of all threads of a process. */
function cpuMs(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}
