import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider, within } from '../helpers/provider.ts'
import { alone, type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { eventually } from '../helpers/time.ts'
import { blocksOf, fileOf, runPage, settingsOf } from './guides.ts'

/*
 * The pages about deployment. nginx and Caddy run with the configuration of the page where they are installed, without its TLS and its name;
 * otherwise these tests are skipped. Not run: cron, and `serve --takeover` (test/e2e/process has its tests).
 */

const page = (name: string) => `docs/deploy/${name}.md`
const text = (path: string) => readFileSync(join(import.meta.dirname, '../..', path), 'utf8')

describe('commands', () => {
  let router: TestRouter
  afterEach(() => router.end())

  test.each(['reverse-proxy-and-tls', 'sizing', 'security-checklist'])('%s', async (name) => {
    const { settings } = settingsOf(page(name))
    router = await testRouter({ providers: alone({ demo: {} }), settings: { ...settings, manage: {} } })
    const steps = await runPage(page(name), router)
    expect(steps.length).toBeGreaterThan(0)
  })

  test('backup: the copy is private, and restores what was there', async () => {
    router = await testRouter({ providers: alone({ demo: {} }) })
    const steps = await runPage(page('backup'), router)
    expect(steps).toHaveLength(3)
    expect(statSync(join(router.folder, 'router-backup.sqlite')).mode & 0o777).toBe(0o600)
  })

  test('upgrade and rollback: check, backup, and the way back', async () => {
    router = await testRouter({ providers: alone({ demo: {} }) })
    const [checked] = await runPage(page('upgrade-and-rollback'), router)
    expect(checked?.output).not.toBe('')
    expect(readdirSync(join(router.folder, 'data')).join()).toMatch(/router\.sqlite-replaced-/)
  })
})

test('the figures of the page about sizing are in the page about performance', () => {
  const performance = text('docs/performance.md').replaceAll(/\s+/g, ' ')
  for (const figure of [
    '118 to 119 MB',
    '165 to 182 MB',
    '205 to 224 MB',
    '3,240–3,320',
    '2,730–3,160',
    '0.87 of a core',
    '6 to 10 ms',
    'up to 150 MB more',
    '75–86 %',
  ])
    expect(performance).toContain(figure)
  expect(text('docs/operations.md')).toContain('a million keys and ten million calls (5.5 GB')
})

describe('proxies', () => {
  let provider: LoopbackProvider
  let router: TestRouter
  let folder: string
  let port: number
  /** Called when a client has the beginning of a stream, which goes on then. */
  let goOn: () => void
  beforeAll(async () => {
    provider = await loopbackProvider(async ({ body, left }, response) => {
      if (!body.stream) return answerJson(response, answered)
      const more = new Promise<void>((resolve) => {
        goOn = resolve
      })
      beginStream(response)
      response.write(chunk('Hello'))
      await Promise.race([more, left])
      response.end(`${chunk(' again', 'stop')}data: [DONE]\n\n`)
    })
    router = await testRouter({
      providers: alone({ openai: { base_url: `${provider.url}/v1` } }),
      env: { OPENAI_API_KEY: 'sk-1' },
    })
    folder = mkdtempSync(join(tmpdir(), 'proxy-'))
    port = await freePort()
  })
  afterAll(async () => {
    await router.end()
    await provider.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test.skipIf(!hasProgram('nginx'))('nginx passes streams on in pieces, and bodies of two megabytes', async () => {
    const site = fileOf(page('reverse-proxy-and-tls'), 'nginx', 'inference-router.conf')
      .replace('listen 443 ssl http2', `listen 127.0.0.1:${port}`)
      .replaceAll(/^ *(?:ssl_certificate|server_name).*\n/gm, '')
      .replace('127.0.0.1:8787', new URL(router.url).host)
    mkdirSync(join(folder, 'logs'), { recursive: true })
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder};`)
    const main = `pid ${folder}/pid; error_log stderr; daemon off; events {} http { access_log off; ${temporary.join(' ')}\n${site}\n}`
    writeFileSync(join(folder, 'nginx.conf'), main)
    await behind(['nginx', '-p', folder, '-c', join(folder, 'nginx.conf')])
  })

  test.skipIf(!hasProgram('caddy'))('Caddy does, too', async () => {
    const site = (blocksOf(page('reverse-proxy-and-tls')).find(({ kind }) => kind === 'caddyfile')?.text ?? '')
      .replace('router.example.com {', `http://127.0.0.1:${port} {`)
      .replace('127.0.0.1:8787', new URL(router.url).host)
    writeFileSync(join(folder, 'Caddyfile'), `{\n  admin off\n}\n${site}`)
    await behind(['caddy', 'run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')])
  })

  /** Runs a proxy, and calls the router through it. */
  async function behind([program = '', ...args]: string[]): Promise<void> {
    const proxy = spawn(program, args, { env: { ...process.env, HOME: folder }, stdio: 'ignore' })
    const ended = once(proxy, 'exit')
    try {
      const url = `http://127.0.0.1:${port}`
      await eventually(async () => expect((await fetch(`${url}/health`)).status).toBe(200))
      await followStream(url)
      const large = await call(url, { content: 'x '.repeat(1_000_000), max_tokens: 5 })
      expect([large.status, large.headers.get('x-request-id')]).toEqual([
        200,
        expect.stringMatching(/^[\da-f-]{32,36}$/),
      ])
      await leave(url)
    } finally {
      proxy.kill('SIGTERM')
      await ended
    }
  }

  function call(
    url: string,
    { content, ...more }: { content: string; stream?: boolean; max_tokens?: number },
    signal?: AbortSignal,
  ) {
    return fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'openai/gpt-4.1-mini', messages: [{ role: 'user', content }], ...more }),
      ...(signal && { signal }),
    })
  }

  /** Reads a stream whose provider waits until its beginning has arrived. */
  async function followStream(url: string): Promise<void> {
    const { body } = await call(url, { content: 'Hello', stream: true })
    let received = ''
    for await (const piece of body ?? []) {
      received += Buffer.from(piece).toString()
      if (received.includes('Hello')) goOn()
    }
    expect(received).toContain('[DONE]')
  }

  /** Leaves a stream after its beginning: the router must learn of it, so that it ends the call. */
  async function leave(url: string): Promise<void> {
    const leaving = new AbortController()
    const { body } = await call(url, { content: 'Hello', stream: true }, leaving.signal)
    for await (const _ of body ?? []) break
    leaving.abort()
    await within(
      10_000,
      'the end of the call at the provider',
      provider.received.at(-1)?.left ?? Promise.reject(new Error('not called')),
    )
  }
})

const chunk = (content: string, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'gpt-5-mini', choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`
const answered = {
  id: 'c1',
  object: 'chat.completion',
  model: 'gpt-5-mini',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

function hasProgram(name: string): boolean {
  try {
    execFileSync('which', [name], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
