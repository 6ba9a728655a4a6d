import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { serverFlags, serverVariables } from '../../src/runtime/restart.ts'
import { within } from './provider.ts'
import { testKey } from './router.ts'

const main = join(import.meta.dirname, '../../src/start.js')
const faulty = new URL('faulty-sqlite.ts', import.meta.url).href

/** A server that runs as a process of its own. */
export type RouterProcess = {
  url: string
  /** All that it has printed: standard output and standard error. */
  output(): string
  /** Calls an endpoint with the test key, or with other headers. */
  call(path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>
  /** Ends it; without a signal waits until it ends by itself. Resolves to its exit code. */
  end(signal?: NodeJS.Signals): Promise<number | null>
}

/**
 * How it is started: `uid` names another user, `env` is added to this process's environment; `afterTest` runs something
 * after the test, which of tests that run at once only their context can.
 */
export type ProcessOptions = {
  env?: NodeJS.ProcessEnv
  uid?: number
  args?: string[]
  afterTest?: (end: () => void) => void
}

/** Starts the server as a process whose database a test can break; it is killed after the test at the latest. */
export async function routerProcess(configPath: string, options: ProcessOptions = {}): Promise<RouterProcess> {
  const { child, output, exited } = spawned(configPath, options)
  const url = new Promise<string>((resolve, reject) => {
    child.stdout?.on('data', () => {
      const found = /serves at (http:\S+)\/v1/.exec(output())?.[1]
      if (found) resolve(found)
    })
    exited.then((code) => reject(new Error(`the server ended with ${code}: ${output()}`)))
  })
  const running = await within(60_000, 'the start', url)
  return {
    url: running,
    output,
    call: (path, body, headers = {}) =>
      fetch(running + path, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    async end(signal) {
      if (signal) child.kill(signal)
      return await within(60_000, 'the end', exited)
    },
  }
}

/** A server that must not start: its exit code and output. */
export async function refusedStart(configPath: string, options: ProcessOptions = {}) {
  const { output, exited } = spawned(configPath, options)
  return { code: await within(60_000, 'the exit', exited), output: output() }
}

/** As the program starts itself again, which it then need not do. */
function spawned(configPath: string, { env = {}, uid, args = [], afterTest = onTestFinished }: ProcessOptions) {
  const child: ChildProcess = spawn(
    process.execPath,
    [...serverFlags, '--import', faulty, main, 'serve', '--config', configPath, ...args],
    {
      env: { ...process.env, ...serverVariables, INFERENCE_ROUTER_ADMIN_KEY: testKey, LOG_LEVEL: 'warn', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(uid !== undefined && { uid, gid: uid }),
    },
  )
  afterTest(() => void child.kill('SIGKILL'))
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      printed += text
    })
  }
  const exited = once(child, 'close').then(([code]) => code as number | null)
  return { child, output: () => printed, exited }
}
