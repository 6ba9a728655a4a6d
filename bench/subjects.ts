/** What the gateway benches measure: the router as users start it, with everything shipped, and bare proxies. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { request } from 'undici'
import { type Measured, pin, startMeasured, type Used } from './measured.ts'
import type { Subject, ThreadProfile } from './types.ts'
import { firstCall } from './ways.ts'

/** The root of this project. */
export const here = join(import.meta.dirname, '..')

/**
 * How a subject runs: the cores it may use (Linux), its threads, the provider of Anthropic's models, by default that of OpenAI's, and
 * what else its configuration has: `timeouts` of OpenAI in YAML, `lines` of the file.
 */
export type Running = { cpus?: string; threads?: number; anthropic?: string; timeouts?: string; lines?: string }

/** A router that can be profiled: the first call begins, the next one ends and returns what was found. */
export type Router = Subject & { pid: number | undefined; config: string; profile(): Promise<ThreadProfile[]> }

/** The key with full permissions. */
export const firstKey = 'ir-bench-first-key-of-the-benches'

/**
 * The router of a project folder, this one or another state of it: `serve` with the shipped providers and catalog, whose OpenAI
 * and Anthropic are the bench's upstream, an empty database, its log in a file, and a key with a monthly limit.
 */
export async function startRouter(
  project: string,
  upstream: string,
  { cpus, ...options }: Running = {},
): Promise<Router> {
  const { folder, port } = await routerFolder(project, upstream, options)
  const log = openSync(join(folder, 'data/log'), 'a')
  const { serverFlags = [], serverVariables = {} } = await serverOptions(process.env.BENCH_SAME_FLAGS ? here : project)
  const begun = performance.now()
  const child = fork(entryOf(project), ['serve', '--config', join(folder, 'config.yaml')], {
    env: {
      ...process.env,
      ...serverVariables,
      INFERENCE_ROUTER_ADMIN_KEY: firstKey,
      LOG_LEVEL: 'info',
      LOG_FORMAT: 'json',
    },
    execArgv: [
      ...serverFlags,
      ...(process.env.BENCH_FLAGS ?? '').split(' ').filter(Boolean),
      '--import',
      join(here, 'bench/probe.ts'),
    ],
    stdio: ['ignore', log, log, 'ipc'],
  })
  if (cpus !== undefined) pin(child.pid, cpus)
  const url = `http://127.0.0.1:${port}`
  await firstAnswer(child, url)
  const startMs = performance.now() - begun
  const { api_key: key } = await limitedKey(url)
  const measured = measuredChild(child, url)
  const stop = async () => {
    await measured.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  const profile = async () => {
    child.send('profile')
    const [{ profiles = [] }] = (await once(child, 'message')) as [{ profiles?: ThreadProfile[] }]
    return profiles
  }
  return { ...measured, stop, key, startMs, pid: child.pid, config: join(folder, 'config.yaml'), profile }
}

/** Earlier states began with TypeScript. */
function entryOf(project: string): string {
  const entry = join(project, 'src/start.js')
  return existsSync(entry) ? entry : join(project, 'src/main.ts')
}

/** What a server of that state starts itself again with, where it has no channel to its parent. */
async function serverOptions(
  project: string,
): Promise<{ serverFlags?: readonly string[]; serverVariables?: Record<string, string> }> {
  const places = ['src/runtime/restart.ts', 'src/cli/restart.ts'].map((path) => join(project, path))
  const file = places.find((path) => existsSync(path))
  return file ? await import(file) : {}
}

/** A folder with the shipped files and settings that name the upstream, and the port that they name. */
export async function routerFolder(
  project: string,
  upstream: string,
  { threads, anthropic = upstream, timeouts = '{}', lines = '' }: Omit<Running, 'cpus'> = {},
): Promise<{ folder: string; port: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-router-'))
  for (const name of ['providers', 'catalog']) cpSync(join(project, name), join(folder, name), { recursive: true })
  for (const name of ['plugins', 'data']) mkdirSync(join(folder, name))
  const port = await freePort()
  const config = `server: { port: ${port}${threads === undefined ? '' : `, threads: ${threads}`} }
store: { url: "sqlite:data/router.sqlite" }
providers:
  openai: { base_url: "${upstream}/v1", secret: "\${BENCH_SECRET:-secret}", timeouts: ${timeouts} }
  anthropic: { base_url: "${anthropic}", secret: "\${BENCH_SECRET:-secret}" }
${lines}`
  writeFileSync(join(folder, 'config.yaml'), config)
  return { folder, port }
}

/** The least that a gateway can do, in Express. */
export async function startProxy(upstream: string, { cpus }: Running = {}): Promise<Subject> {
  const begun = performance.now()
  const measured = await startMeasured('proxy.ts', { BENCH_UPSTREAM: `${upstream}/v1` }, { cpus })
  return { ...measured, key: '', startMs: performance.now() - begun }
}

/** Resolves when a call is answered, as soon as the process listens. */
export async function firstAnswer(child: ChildProcess, url: string, model = firstCall.model): Promise<void> {
  const body = JSON.stringify({ ...firstCall, model })
  const headers = { authorization: `Bearer ${firstKey}`, 'content-type': 'application/json' }
  for (const until = performance.now() + 60_000; performance.now() < until; await setTimeout(5)) {
    if (child.exitCode !== null) throw new Error(`the router ended with ${child.exitCode} at its start`)
    try {
      const response = await request(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
      const text = await response.body.text()
      if (response.statusCode === 200) return
      throw new Error(`the first call was answered with ${response.statusCode} ${text}`)
    } catch (error) {
      if ((error as { code?: string }).code !== 'ECONNREFUSED') throw error
    }
  }
  throw new Error('the router did not answer within a minute')
}

/** Calls of this key are held and settled against a limit, as most are. */
/** A key with a monthly limit. */
export async function limitedKey(url: string): Promise<{ api_key_id: string; api_key: string }> {
  const response = await request(`${url}/v1/manage/apikey`, {
    method: 'POST',
    headers: { authorization: `Bearer ${firstKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'bench', monthly_limit: 1_000_000, labels: { team: 'bench' } }),
  })
  const made = (await response.body.json()) as { api_key_id: string; api_key: string }
  if (made.api_key === undefined) throw new Error(`no key was made: ${response.statusCode} ${JSON.stringify(made)}`)
  return made
}

function measuredChild(child: ChildProcess, url: string): Measured {
  return {
    url,
    used: async () => {
      child.send('used')
      const [used] = (await once(child, 'message')) as [Used]
      return used
    },
    stop: async () => {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
