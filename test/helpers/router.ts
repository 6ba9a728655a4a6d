import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import { type Logger, pino } from 'pino'
import { type Router, startRouter } from '../../src/app/router.ts'
import { openFileCache } from '../../src/manifest/read/file-cache.ts'
import type { Source } from '../../src/manifest/read/source.ts'
import { openStore } from '../../src/store/open.ts'

const root = join(import.meta.dirname, '../..')

/** The key of every router under test. */
export const testKey = 'ir-test-key-on-loopback'

/** A router of its own: own folder, own database, shipped providers unless the folder has its own. */
export type TestRouter = Router & {
  folder: string
  /** Puts a file into the router's folder, e.g. `providers/x.yaml`. */
  put(path: string, text: string): void
  /** Calls an endpoint with the test key. */
  call(path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>
  openai(): OpenAI
  end(deadlineMs?: number): Promise<void>
}

/** The simulator alone: a process that needs no other provider starts in half the time. */
export const simulatorOnly = { 'providers/demo.yaml': readFileSync(join(root, 'providers/demo.yaml'), 'utf8') }

/** Switches the other shipped providers off, besides the simulator: what is not loaded need not be joined with the catalog at every start. */
export function alone(providers: Record<string, object>): Record<string, object> {
  return { ...Object.fromEntries(shippedSlugs.map((slug) => [slug, { enabled: false }])), ...providers }
}

const shippedSlugs = readdirSync(join(root, 'providers'))
  .filter((name) => name.endsWith('.yaml') && name !== 'demo.yaml')
  .map((name) => name.replace('.yaml', ''))

/** Shipped files as the first router of this worker read them: most of a start is to parse and compile them. */
const known = new Map<string, Source>()

/** What any router of this run found out about files, as a start of the program keeps it. */
export const cache = openFileCache(join(process.env.INFERENCE_ROUTER_CACHE ?? tmpdir(), 'files'))

/** How many threads serve where a test does not say: other numbers must change nothing. */
export const usualThreads = Number(process.env.TEST_THREADS ?? 1)

/**
 * A fresh folder with a config file that keeps everything inside it. What is not about routing counts single attempts: they are
 * not repeated, and nothing stops them.
 */
export function routerFolder(
  options: {
    providers?: Record<string, object>
    files?: Record<string, string>
    media?: object
    settings?: object
    threads?: number | undefined
  } = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'router-'))
  const put = (path: string, text: string) => {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const own = Object.keys(options.files ?? {}).some((path) => path.startsWith('providers/'))
  put(
    'config.yaml',
    JSON.stringify({
      server: { host: '127.0.0.1', port: 0, threads: options.threads ?? usualThreads },
      store: { url: 'sqlite:data/router.sqlite' },
      folders: own ? {} : { providers: join(root, 'providers'), catalog: join(root, 'catalog') },
      media: options.media ?? {},
      providers: options.providers ?? {},
      routing: { retries: 0 },
      health: { consecutive_failures: 1_000_000, min_calls: 1_000_000 },
      ...options.settings,
    }),
  )
  for (const [path, text] of Object.entries(options.files ?? {})) put(path, text)
  return { folder, put, configPath: join(folder, 'config.yaml') }
}

/** An empty database with all tables: to make them is a fifth of a start. */
let tables: string | undefined

async function giveTables(path: string): Promise<void> {
  if (existsSync(path)) return
  if (!tables) {
    tables = join(mkdtempSync(join(tmpdir(), 'tables-')), 'router.sqlite')
    await (await openStore(`sqlite:${tables}`)).close()
  }
  mkdirSync(join(path, '..'), { recursive: true })
  copyFileSync(tables, path)
}

/** Starts a router in this process. `providers` are the overrides of the config file, `media` the media settings, `settings` the rest. */
export async function testRouter(
  options: {
    providers?: Record<string, object>
    files?: Record<string, string>
    media?: object
    settings?: object
    threads?: number
    env?: NodeJS.ProcessEnv
    keepAliveMs?: number
    log?: Logger
  } = {},
): Promise<TestRouter> {
  const { folder, put, configPath } = routerFolder(options)
  if (!options.settings || !('store' in options.settings)) await giveTables(join(folder, 'data/router.sqlite'))
  const router = await startRouter({
    configPath,
    env: { ...options.env, INFERENCE_ROUTER_ADMIN_KEY: testKey },
    log: options.log ?? pino({ level: 'silent' }),
    earlier: { known, cache },
    ...(options.keepAliveMs !== undefined && { keepAliveMs: options.keepAliveMs }),
  })
  for (const [path, source] of router.snapshot().sources) if (path.startsWith(root)) known.set(path, source)
  return {
    ...router,
    folder,
    put,
    call: (path, body, headers = {}) =>
      fetch(router.url + path, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    openai: () => new OpenAI({ baseURL: `${router.url}/v1`, apiKey: testKey, maxRetries: 0 }),
    async end(deadlineMs = 1_000) {
      await router.stop(deadlineMs)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
