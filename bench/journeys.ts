/**
 * The files and functions of the router that run in one warm call, in all threads: how much somebody has to read who follows it.
 * `npm run bench -- journeys [list] [folder]`: with `list` it prints every file with its functions; `folder` is another checkout to count.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { FormData, request } from 'undici'
import type { Counts } from './count-probe.ts'
import { startMeasured } from './measured.ts'
import { here, type Router, startRouter } from './subjects.ts'
import { firstCall, sameFormat } from './ways.ts'

type Journey = { name: string; threads?: number; path: string; body(): object }

const streamed = { ...firstCall, model: sameFormat, stream: true, stream_options: { include_usage: true } }
const journeys: Journey[] = [
  { name: 'same-format streamed chat', path: '/v1/chat/completions', body: () => streamed },
  { name: 'image edit', path: '/v1/images/edits', body: imageEdit },
  { name: 'streamed chat with four threads', threads: 4, path: '/v1/chat/completions', body: () => streamed },
]

/** A PNG of one pixel. */
const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

const words = process.argv.slice(3)
const isListed = words.includes('list')
const project = resolve(words.find((word) => word !== 'list') ?? here)
/** V8 compiles and the router remembers during the first calls: they are not counted. */
const warmCalls = 20
/** A start has effects for so long. Milliseconds. */
const settledMs = 4_000
/** Threads write their counts within this time. Milliseconds. */
const quietMs = 500

const upstream = await startMeasured('upstream.ts')
const rows: Record<string, Record<string, number>> = {}
for (const journey of journeys) {
  const threads = await countsOf(journey)
  const serving = threads.toSorted((one, other) => functionsIn(other) - functionsIn(one))[0] ?? {}
  const all = joined(threads)
  rows[journey.name] = {
    'files (serving thread)': Object.keys(serving).length,
    'functions (serving thread)': functionsIn(serving),
    'files (all threads)': Object.keys(all).length,
    'functions (all threads)': functionsIn(all),
  }
  if (isListed) list(journey.name, all)
}
console.table(rows)
await upstream.stop()
process.exit(0)

async function countsOf({ threads, path, body }: Journey): Promise<Counts[]> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-counts-'))
  Object.assign(process.env, { BENCH_COUNTS: folder, BENCH_FLAGS: `--import ${join(here, 'bench/count-probe.ts')}` })
  const router = await startRouter(project, upstream.url, threads === undefined ? {} : { threads })
  try {
    // What follows the start has to be over: flags are set and files are watched two seconds later.
    await setTimeout(settledMs)
    for (let calls = 0; calls < warmCalls * (threads ?? 1); calls++) await send(router, path, body())
    await taken(router, folder)
    await send(router, path, body())
    return await taken(router, folder)
  } finally {
    await router.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function send(router: Router, path: string, body: object): Promise<void> {
  const isForm = body instanceof FormData
  const headers = { authorization: `Bearer ${router.key}`, ...(!isForm && { 'content-type': 'application/json' }) }
  const text = isForm ? body : JSON.stringify(body)
  const response = await request(router.url + path, { method: 'POST', headers, body: text })
  const reply = await response.body.text()
  if (response.statusCode !== 200) throw new Error(`${path} was answered with ${response.statusCode} ${reply}`)
}

/** Counts of each thread since the last time. */
async function taken({ pid }: Router, folder: string): Promise<Counts[]> {
  if (pid === undefined) throw new Error('the router has ended')
  await setTimeout(quietMs)
  for (const name of readdirSync(folder)) rmSync(join(folder, name))
  process.kill(pid, 'SIGUSR2')
  await setTimeout(quietMs)
  return readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')))
}

function functionsIn(counts: Counts): number {
  return Object.values(counts).reduce((sum, names) => sum + Object.keys(names).length, 0)
}

function joined(threads: readonly Counts[]): Counts {
  const all: Counts = {}
  for (const counts of threads)
    for (const [file, functions] of Object.entries(counts)) all[file] = { ...all[file], ...functions }
  return all
}

function imageEdit(): FormData {
  const form = new FormData()
  form.set('model', 'openai/gpt-image-1')
  form.set('prompt', 'A hat, please.')
  form.set('image', new Blob([pixel], { type: 'image/png' }), 'pixel.png')
  return form
}

function list(name: string, counts: Counts): void {
  console.log(`\n${name}`)
  for (const [file, functions] of Object.entries(counts).sort())
    console.log(`${file}\t${Object.keys(functions).join(' ').replaceAll(/@\d+/g, '')}`)
}
