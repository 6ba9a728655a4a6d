import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A router in a process of its own, with its own settings and database. */
export type RouterProcess = { url: string; key: string; log(): string; stop(): Promise<void> }

const root = join(import.meta.dirname, '../..')

/** The longest start. */
const maxStartMs = 60_000

/** Starts the router of this working tree, with the shipped manifests and other addresses. */
export async function startRouter(urls: Readonly<Record<string, string>>): Promise<RouterProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'agents-router-'))
  const key = 'key-of-the-agents-on-loopback'
  const port = await freePort()
  const providers = Object.fromEntries(
    Object.entries(urls).map(([slug, base_url]) => [slug, { base_url, secret: 'loopback', unknown_models: 'pass' }]),
  )
  mkdirSync(join(folder, 'plugins'))
  const config = {
    server: { host: '127.0.0.1', port },
    store: { url: `sqlite:${join(folder, 'router.sqlite')}` },
    folders: { providers: join(root, 'providers'), catalog: join(root, 'catalog'), plugins: join(folder, 'plugins') },
    providers,
  }
  writeFileSync(join(folder, 'config.yaml'), JSON.stringify(config))
  const child = spawn(
    process.execPath,
    [join(root, 'src/start.js'), 'serve', '--config', join(folder, 'config.yaml')],
    {
      cwd: folder,
      env: { ...process.env, INFERENCE_ROUTER_ADMIN_KEY: key },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let log = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => (log += piece))
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const stop = async () => {
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), 8_000)
    await ended
    clearTimeout(timer)
    rmSync(folder, { recursive: true, force: true })
  }
  const url = `http://127.0.0.1:${port}`
  for (const until = Date.now() + maxStartMs; !(await answers(`${url}/health`)); ) {
    if (child.exitCode !== null || Date.now() > until) {
      await stop()
      throw new Error(`The router does not start:\n${log}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return { url, key, log: () => log, stop }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

function answers(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const sent = request(url, { timeout: 2_000 }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    sent.once('error', () => resolve(false))
    sent.once('timeout', () => sent.destroy())
    sent.end()
  })
}
