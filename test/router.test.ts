import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { openStore } from '../src/store/open.ts'
import { refusedStart, routerProcess } from './helpers/process.ts'
import { within } from './helpers/provider.ts'
import { routerFolder, simulatorOnly, testRouter } from './helpers/router.ts'
import { slow } from './helpers/slow.ts'

/** A server that cannot start: its exit code and its output. */
async function failingStart(files: Record<string, string>, args: string[] = []) {
  return await failingStartIn(newFolder(files), args)
}

function newFolder(files: Record<string, string> = {}) {
  const made = routerFolder({ files: { ...simulatorOnly, ...files } })
  onTestFinished(() => rmSync(made.folder, { recursive: true, force: true }))
  return made
}

async function failingStartIn({ folder, configPath }: { folder: string; configPath: string }, args: string[] = []) {
  const main = join(import.meta.dirname, '../src/start.js')
  const router = spawn(process.execPath, [main, 'serve', '--config', configPath, ...args])
  onTestFinished(() => void router.kill('SIGKILL'))
  let output = ''
  router.stderr.on('data', (text) => {
    output += text
  })
  const [code] = await within(60_000, 'the exit', once(router, 'exit'))
  return { code, output, folder }
}

test('a start that fails ends the process and reports why: a port that is taken', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await once(other, 'listening')
  const { port } = other.address() as { port: number }
  const { code, output, folder } = await failingStart({}, ['--port', `${port}`])
  expect(code).toBe(1)
  expect(output).toContain(`127.0.0.1:${port} is in use by another process`)
  // A first key that was created and not printed could never be used, nor created again.
  const store = await openStore(`sqlite:${join(folder, 'data/router.sqlite')}`)
  expect(await store.keys.any()).toBe(false)
  await store.close()
})

test('a start that fails ends the process and reports why: a file that is not a database', slow, async () => {
  const { code, output } = await failingStart({ 'data/router.sqlite': 'these are notes, not a database '.repeat(9) })
  expect(code).toBe(1)
  expect(output).toMatch(/data\/router\.sqlite: this file is not an SQLite database/)
})

test('a start that fails ends the process and reports why: another router has the database', slow, async () => {
  const made = newFolder()
  const first = await openStore(`sqlite:${join(made.folder, 'data/router.sqlite')}`, { asRouter: true })
  onTestFinished(() => first.close())
  const { code, output } = await failingStartIn(made)
  expect(code).toBe(1)
  expect(output).toMatch(/data\/router\.sqlite: another router uses this database/)
})

test('a router that listens has started the thread of its ledger', async () => {
  const messages: unknown[] = []
  const onWorker = (worker: Worker) => worker.on('message', (message) => messages.push(message))
  process.on('worker', onWorker)
  onTestFinished(() => void process.off('worker', onWorker))
  const router = await testRouter({ files: simulatorOnly })
  expect(messages).toContain('ready')
  await router.end()
})

test('a chosen first key is not printed, only its variable: logs are read by more people', slow, async () => {
  const { configPath } = newFolder()
  const env = { INFERENCE_ROUTER_ADMIN_KEY: 'chosen-secret-0fa1b2', LOG_LEVEL: 'trace' }
  const router = await routerProcess(configPath, { env })
  await expect.poll(router.output).toContain('-d ')
  expect(router.output()).toContain('Your first key is the one in INFERENCE_ROUTER_ADMIN_KEY.')
  expect(router.output()).not.toContain('chosen')
  const curl = /^ {2}(curl [\s\S]*?\}')$/m.exec(router.output())?.[1] ?? ''
  expect(curl).toContain('"Authorization: Bearer $INFERENCE_ROUTER_ADMIN_KEY"')
  // The arguments that a shell passes to the program.
  const shell = `curl() { printf '%s\\n' "$@"; }\n${curl}`
  const { stdout } = await promisify(execFile)('sh', ['-c', shell], { env: { ...process.env, ...env } })
  const [url = '', , authorization, , contentType, , body] = stdout.split('\n')
  const headers = [authorization, contentType].map((header = '') => header.split(': ') as [string, string])
  const answer = await fetch(url, { method: 'POST', headers, body: body ?? '' })
  expect([answer.status, headers[0]?.[1]]).toEqual([200, `Bearer ${env.INFERENCE_ROUTER_ADMIN_KEY}`])
  await router.end('SIGTERM')
  // It is the first key once.
  const second = await routerProcess(configPath, { env })
  expect(second.output()).not.toContain('INFERENCE_ROUTER_ADMIN_KEY')
})

test('a chosen first key that is too short is refused with the reason, before anything is created', async () => {
  const { configPath, folder } = newFolder()
  const { code, output } = await refusedStart(configPath, { env: { INFERENCE_ROUTER_ADMIN_KEY: 'short-secret' } })
  expect(code).toBe(1)
  expect(output).toMatch(/INFERENCE_ROUTER_ADMIN_KEY has 12 characters; use 20 or more/)
  expect(output).not.toContain('short-secret')
  expect(readdirSync(folder)).not.toContain('data')
})

test('a start with a port for the management API prints both addresses, and a signal closes both', async () => {
  const { folder, configPath } = routerFolder({ files: simulatorOnly, settings: { manage: { port: 0 } } })
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const main = join(import.meta.dirname, '../src/start.js')
  const router = spawn(process.execPath, [main, 'serve', '--config', configPath], {
    env: { ...process.env, LOG_LEVEL: 'silent' },
  })
  onTestFinished(() => void router.kill('SIGKILL'))
  let output = ''
  router.stdout.on('data', (text) => {
    output += text
  })
  await expect.poll(() => output).toMatch(/serves at (\S+)\/v1\n[\s\S]*management API is at \S+\/v1\/manage\n/)
  const [, manageUrl = ''] = /management API is at (\S+)\/v1\/manage/.exec(output) ?? []
  expect(output).not.toContain(`serves at ${manageUrl}/v1`)
  expect((await fetch(`${manageUrl}/v1/manage/org`)).status).toBe(401)
  const exit = within(60_000, 'the exit', once(router, 'exit'))
  router.kill('SIGTERM')
  expect((await exit)[0]).toBe(0)
})
