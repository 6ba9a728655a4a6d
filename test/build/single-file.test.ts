import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { project, projectManifest } from '../../tools/build/program.ts'
import { slow } from '../helpers/slow.ts'

const has = (command: string, ...args: string[]) => spawnSync(command, args).status === 0
const missing = [
  process.platform === 'linux' && process.arch === 'x64' ? '' : 'Linux on x64',
  process.getuid?.() === 0 ? '' : 'root',
  has('go', 'version') ? '' : 'Go',
  has('apt-get', '--version') ? '' : 'apt-get',
].filter(Boolean)
if (missing.length > 0) console.log(`Skipped: tests of the single file, which need ${missing.join(', ')}`)

const key = 'first-key-of-the-single-file-test'

/** Not the folder of the tests, which may be in memory that no program can be run from. */
const folder = missing.length > 0 ? '' : mkdtempSync('/var/tmp/single-file-')
const built = join(project, 'dist', `inference-router-${projectManifest().version}-linux-x64`)

describe.skipIf(missing.length > 0)('the single file', slow, () => {
  beforeAll(() => {
    execFileSync(process.execPath, [join(project, 'tools/build/main.ts'), '--target', 'linux-x64'], { stdio: 'pipe' })
  }, 900_000)
  afterAll(() => execFileSync('rm', ['-rf', folder]))

  test('has at most 60 MB', () => {
    expect(statSync(built).size).toBeLessThan(60_000_000)
  })

  test('serves in an empty root, with a provider and a plugin dropped beside it, and again after a stop', async () => {
    const root = join(folder, 'empty')
    mkdirSync(root)
    copyFileSync(built, join(root, 'router'))
    chmodSync(join(root, 'router'), 0o755)
    const first = await started(root)
    expect(await textOf(first.url, 'demo/echo')).toBeTypeOf('string')
    mkdirSync(join(root, 'providers'))
    mkdirSync(join(root, 'plugins'))
    writeFileSync(join(root, 'providers/dropin.yaml'), dropin(first.url))
    writeFileSync(join(root, 'plugins/loud.ts'), loud)
    writeFileSync(join(root, 'config.yaml'), 'providers: { demo: {} }\nplugins: [{ name: loud }]\n')
    const since = performance.now()
    const before = cpuOf(first.pid)
    await expect.poll(() => textOf(first.url, 'demo/echo'), { interval: 50 }).toBe('LOUD')
    await expect.poll(() => modelsOf(first.url), { interval: 50 }).toContain('dropin/m1')
    // On a busy machine the time is that of whoever else wants the processors.
    const cpuMs = cpuOf(first.pid) - before
    console.log(
      `single file: a provider and a plugin were in use after ${Math.round(performance.now() - since)} ms, ${cpuMs} ms of CPU`,
    )
    expect(cpuMs).toBeLessThan(2_000)
    expect(await first.end()).toBe(0)
    const second = await started(root, { INFERENCE_ROUTER_ADMIN_KEY: '' })
    expect(await textOf(second.url, 'demo/echo')).toBe('LOUD')
    expect(await second.end()).toBe(0)
    expect(inRoot(root, ['ledger', 'check'])).toContain('is sound')
    expect(readdirSync(root).sort()).toEqual(['.cache', 'config.yaml', 'data', 'plugins', 'providers', 'router'])
  })

  test('starts from a folder that was unpacked before, from a root that is read-only', async () => {
    const unpacked = join(folder, 'unpacked')
    const place = execFileSync(built, ['--unpack-to', unpacked], { encoding: 'utf8' }).trim()
    expect(place.startsWith(unpacked)).toBe(true)
    execFileSync('chmod', ['-R', 'a-w', place])
    expect(execFileSync(built, ['--unpack-to', unpacked, '--version'], { encoding: 'utf8' })).toBe(
      `${projectManifest().version}\n`,
    )
  })

  test('contains no secret and no path of the machine that built it', () => {
    const unpacked = join(folder, 'unpacked')
    const searched = ['-rlE', `${project}/(src|dist|node_modules)|BEGIN (RSA |EC )?PRIVATE KEY`]
    const { stdout } = spawnSync(
      'grep',
      [...searched, '--include=*.js', '--include=*.yaml', '--include=LICENCES', unpacked],
      {
        encoding: 'utf8',
      },
    )
    expect(stdout).toBe('')
  })
})

const loud = `import { definePlugin } from 'inference-router/plugin'
type Shout = { type: 'text'; text: string }
export default definePlugin({
  description: 'answers loudly',
  setup: () => ({
    reply: (reply) => ('chat' in reply ? { ...reply, chat: { ...reply.chat, parts: [{ type: 'text', text: 'LOUD' } satisfies Shout] } } : undefined),
  }),
})
`

function dropin(url: string): string {
  return `slug: dropin
name: Dropped in
base_url: ${url}/v1
auth: { scheme: none }
dialect: openai-chat
models: { m1: { api: chat, context_window: 1000, max_output_tokens: 100, pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }] } }
`
}

/** Starts the file with another root, with no variables but these. */
async function started(root: string, env: NodeJS.ProcessEnv = { INFERENCE_ROUTER_ADMIN_KEY: key }) {
  const server: ChildProcess = spawn('chroot', [root, '/router', 'serve', '--port', '0'], {
    env: { PATH: '/usr/sbin:/usr/bin', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void server.kill('SIGKILL'))
  let printed = ''
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [server.stdout, server.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        printed += text
        const found = /serves at (http:\S+)\/v1/.exec(printed)?.[1]
        if (found) resolve(found)
      })
    }
    server.on('exit', (code) => reject(new Error(`it ended with ${code}: ${printed}`)))
  })
  console.log(`single file: CPU to the start ${cpuOf(server.pid as number)} ms`)
  return {
    url,
    pid: server.pid as number,
    async end() {
      const ended = once(server, 'exit')
      server.kill('SIGTERM')
      return (await ended)[0]
    },
  }
}

function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

async function textOf(url: string, model: string): Promise<string | undefined> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
  })
  const reply = (await response.json()) as { choices?: { message: { content: string } }[] }
  return reply.choices?.[0]?.message.content
}

async function modelsOf(url: string): Promise<string[]> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
  return ((await response.json()) as { data: { id: string }[] }).data.map(({ id }) => id)
}

function inRoot(root: string, args: string[]): string {
  return execFileSync('chroot', [root, '/router', ...args], { env: { PATH: '/usr/sbin:/usr/bin' }, encoding: 'utf8' })
}
