import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { type RouterProcess, routerProcess } from '../../helpers/process.ts'
import { routerFolder, simulatorOnly, testRouter } from '../../helpers/router.ts'
import { testEach } from '../../helpers/slow.ts'

const main = join(import.meta.dirname, '../../../src/start.js')

/** Our credentials for providers: by scheme, as the environment has it. */
const credentials = {
  BEARER_KEY: 'sk-bearer-0fa1b2c3d4e5',
  HEADER_KEY: 'sk-header-1fa1b2c3d4e5',
  QUERY_KEY: 'sk-query-2fa1b2c3d4e5/+',
  EXTRA_KEY: 'sk-extra-3fa1b2c3d4e5',
}

const manifest = (slug: string, url: string, auth: string) => `slug: ${slug}
name: Blabbing
base_url: ${url}
auth: { ${auth} }
headers: { x-service-token: "\${EXTRA_KEY}" }
dialect: openai-chat
unknown_models: pass
`

/** The faults in the provider's replies, by model: all repeat the whole request. */
const blabbing: { [model: string]: (response: ServerResponse, echo: string) => void } = {
  refused: (response, echo) => json(response, 401, { error: { message: echo, code: echo, type: echo, param: echo } }),
  invalid: (response, echo) => json(response, 400, { error: echo }),
  listed: (response, echo) => json(response, 422, { detail: [{ msg: echo }] }),
  limited: (response, echo) => json(response, 429, [{ error: { message: echo, status: echo } }]),
  text: (response, echo) => void response.writeHead(500).end(echo),
  long: (response, echo) => void response.writeHead(503).end('x'.repeat(1_950) + echo),
  html: (response, echo) => void response.writeHead(200).end(`<p>${echo}</p>`),
  odd: (response, echo) => json(response, 200, { said: echo }),
  list: (response, echo) => json(response, 200, [echo]),
  inside: (response, echo) => json(response, 200, { error: { message: echo, code: echo } }),
  stream: (response, echo) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [hello] }
    response.write(`data: ${JSON.stringify(chunk)}\n\n`)
    response.end(`data: ${JSON.stringify({ error: { message: echo, code: echo } })}\n\n`)
  },
  garbled: (response, echo) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${echo}\n\n`)
  },
  cut: (response) => void response.destroy(),
  half: (response, echo) =>
    json(response, 500, { error: { message: `${echo.slice(0, echo.indexOf('sk-') + 20)}...` } }),
  encoded: (response, echo) => {
    const key = /sk-[\w/+-]+/.exec(echo)?.[0] ?? ''
    json(response, 500, { error: { message: Buffer.from(key).toString('base64') } })
  },
}

const hello = { index: 0, delta: { content: 'hello' }, finish_reason: null }

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** A provider that repeats all it was sent: headers, address and body. */
async function blabber(): Promise<string> {
  const server = createServer(async (request: IncomingMessage, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString('utf8')
    const echo = `${JSON.stringify(request.headers)} ${decodeURIComponent(request.url ?? '')} ${request.url}`
    const answer = blabbing[JSON.parse(body).model] ?? blabbing.refused
    answer?.(response, echo)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

/** Unexpected requests. */
const unforeseen: string[] = []

type Headers = Record<string, string>

/** Everything that could hold a secret, by a name for its source. */
const seen: { where: string; text: string }[] = []

async function send(
  router: RouterProcess,
  method: string,
  path: string,
  { headers, body }: { headers: Headers; body?: string },
) {
  const takesBody = method !== 'GET' && method !== 'DELETE' && method !== 'HEAD'
  const response = await fetch(router.url + path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(takesBody && body !== undefined && { body }),
  })
  const text = await response.text()
  return { status: response.status, text, head: JSON.stringify([...response.headers]) }
}

/** Sends a request and remembers its answer. */
async function noted(...requested: Parameters<typeof send>): Promise<number> {
  const { status, text, head } = await send(...requested)
  const [, method, path] = requested
  if (status === 500) unforeseen.push(`${method} ${path}: ${requested[3].body}: ${text}`)
  seen.push({ where: `the answer ${status} to ${method} ${path}`, text: `${head}\n${text}` })
  return status
}

const bearer = (secret: string): Headers => ({ authorization: `Bearer ${secret}` })

/** A request to one endpoint with a key in each place where a client may put it by mistake. */
async function misplaced(
  router: RouterProcess,
  { method, path }: { method: string; path: string },
  good: string,
  key: string,
) {
  const filled = path.replaceAll(/[:*]\w+/g, key)
  const inside = JSON.stringify({
    model: key,
    previous_response_id: key,
    [key]: key,
    messages: key,
    input: key,
    name: { key },
  })
  // What happens now is told without end, unless its first event is enough.
  const ended = (to: string) => (path.endsWith('/live') ? `${to}${to.includes('?') ? '&' : '?'}events=1` : to)
  const ask = (headers: Headers, body: string, to = filled) => noted(router, method, ended(to), { headers, body })
  await ask(bearer(good), inside)
  await ask({ 'x-api-key': good, 'x-request-id': key, 'x-router-tags': key }, '{}')
  await ask(bearer(good), `{"model": "m", "api_key": ${key}`)
  await ask(bearer(good), `"${key}`)
  await ask(
    bearer(good),
    inside,
    `${filled}?api_key=${key}&after=${key}&limit=${key}&start=${key}&cursor=${key}&group_by=${key}`,
  )
  await ask(bearer(good), inside, `${path.replaceAll(/[:*]\w+/g, `${key}%E0`)}`)
  await ask(bearer(key), inside)
  await ask({ authorization: `Basic ${key}` }, inside)
  await ask({ authorization: key }, inside)
  await ask({}, inside, `${filled}?key=${key}`)
  await noted(router, 'PATCH', `${filled}/${key}`, { headers: bearer(good), body: inside })
}

function filesOf(folder: string): void {
  for (const name of readdirSync(join(folder, 'data'))) {
    seen.push({ where: `the file ${name}`, text: readFileSync(join(folder, 'data', name), 'latin1') })
  }
}

/** Every so many-th endpoint and fault is enough for the fast suite. */
testEach([16, 1], { slowIf: (step) => step === 1 })(
  'no secret of a client or a provider is in a reply, a log or the database, in any failure (step %d)',
  async (step) => {
    seen.length = 0
    const some = <T>(list: readonly T[]) => list.filter((_, index) => index % step === 0)
    const url = await blabber()
    const { folder, configPath } = routerFolder({
      files: {
        'providers/bearer.yaml': manifest('bearer', url, 'scheme: bearer, secret: "${BEARER_KEY}"'),
        'providers/header.yaml': manifest(
          'header',
          url,
          'scheme: header, header: x-goog-api-key, secret: "${HEADER_KEY}"',
        ),
        'providers/query.yaml': manifest('query', url, 'scheme: query, parameter: key, secret: "${QUERY_KEY}"'),
        'providers/gone.yaml': manifest(
          'gone',
          'http://127.0.0.1:9',
          'scheme: query, parameter: key, secret: "${QUERY_KEY}"',
        ),
      },
    })
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const env = { ...credentials, INFERENCE_ROUTER_ADMIN_KEY: '', LOG_LEVEL: 'trace' }
    const router = await routerProcess(configPath, { env })
    const welcome = router.output()
    const first = /displayed only once:\s+(ir-\S+)/.exec(welcome)?.[1] ?? ''
    expect(first).toMatch(/^ir-[\w-]{43}$/)
    const secrets = [first]

    // Each way to a new secret shows it once.
    const command = await promisify(execFile)(process.execPath, [
      main,
      'key',
      'create',
      'cli',
      '--json',
      '--config',
      configPath,
    ])
    secrets.push(JSON.parse(command.stdout).api_key)
    expect(command.stderr).not.toContain('ir-')
    const manage = async (path: string, body: object) => {
      const { text } = await send(router, 'POST', `/v1/manage/apikey${path}`, {
        headers: bearer(first),
        body: JSON.stringify(body),
      })
      const said = JSON.parse(text) as { api_key_id?: string; api_key?: string }
      if (said.api_key !== undefined) secrets.push(said.api_key)
      return said
    }
    const made = await manage('', { name: 'made', permissions: { manage: 'write', completions: 'write' } })
    const rotated = await manage('', { name: 'rotated' })
    expect((await manage(`/${rotated.api_key_id}/rotate`, {})).api_key).toMatch(/^ir-/)
    const deleted = await manage('', { name: 'deleted' })
    await noted(router, 'DELETE', `/v1/manage/apikey/${deleted.api_key_id}`, { headers: bearer(first) })
    const expired = await manage('', { name: 'expired', expires_at: new Date(Date.now() + 300).toISOString() })
    const revoked = await manage('', { name: 'revoked' })
    await promisify(execFile)(process.execPath, [
      main,
      'key',
      'revoke',
      String(revoked.api_key_id),
      '--config',
      configPath,
    ])
    const wrong = `ir-${randomBytes(32).toString('base64url')}`
    secrets.push(wrong)
    expect(new Set(secrets).size).toBe(9)

    // Every endpoint there is, with a good key, and another one in every wrong place.
    const other = await testRouter({
      files: { 'providers/one.yaml': manifest('one', url, 'scheme: none').replace('${EXTRA_KEY}', 'x') },
    })
    const endpoints = other.endpoints
    await other.end()
    expect(endpoints.length).toBeGreaterThan(30)
    for (const endpoint of some(endpoints)) await misplaced(router, endpoint, made.api_key as string, wrong)
    for (const endpoint of some(endpoints)) await misplaced(router, endpoint, first, made.api_key as string)
    for (const secret of [rotated, deleted, expired, revoked].map(({ api_key }) => String(api_key))) {
      expect(await noted(router, 'GET', '/v1/auth/check', { headers: bearer(secret) })).toBe(403)
      const body = JSON.stringify({ model: 'demo/echo', messages: [{ role: 'user', content: 'hello' }] })
      expect(await noted(router, 'POST', '/v1/chat/completions', { headers: { 'x-api-key': secret }, body })).toBe(403)
    }

    // Providers that fail and repeat the request.
    for (const provider of ['bearer', 'header', 'query', 'gone']) {
      for (const model of some([...Object.keys(blabbing), first])) {
        for (const stream of [false, true]) {
          const messages = [{ role: 'user', content: 'hello' }]
          const metadata = { note: `my key is ${first}` }
          const chat = { model: `${provider}/${model}`, stream, messages, user: first, metadata }
          const requested = [
            ['/v1/chat/completions', chat],
            ['/v1/messages', { model: chat.model, stream, messages, max_tokens: 9, metadata: { user_id: first } }],
            ['/v1/responses', { model: chat.model, stream, input: 'hello' }],
          ] as const
          for (const [path, body] of requested)
            await noted(router, 'POST', path, { headers: bearer(first), body: JSON.stringify(body) })
        }
      }
    }
    filesOf(folder)

    // A stop and another start.
    expect(await router.end('SIGTERM')).toBe(0)
    seen.push({ where: 'what the first process said', text: router.output().slice(welcome.length) })
    // By itself, in the link to the console, and in the command to try.
    expect(welcome.split(first)).toHaveLength(4)
    const second = await routerProcess(configPath, { env })
    expect(await noted(second, 'GET', '/v1/auth/check', { headers: bearer(first) })).toBe(200)
    expect(await noted(second, 'GET', '/v1/manage/apikey', { headers: bearer(first) })).toBe(200)
    expect(await noted(second, 'GET', '/v1/manage/audit', { headers: bearer(first) })).toBe(200)
    filesOf(folder)
    expect(await second.end('SIGTERM')).toBe(0)
    seen.push({ where: 'what the second process said', text: second.output() })
    filesOf(folder)

    expect(unforeseen).toEqual([])
    expect(seen.length).toBeGreaterThan(500 / step)
    // The provider did repeat all of it.
    expect(seen.filter(({ text }) => text.includes('[secret]')).length).toBeGreaterThan(100 / step)
    // Not the whole secret only: all of it after the first characters, by which people recognize it, and its beginning.
    const pieces = [
      ...secrets.map((secret) => secret.slice(8, 30)),
      ...Object.values(credentials).flatMap((secret) => [
        secret.slice(0, 12),
        secret.slice(-12),
        encodeURIComponent(secret).slice(0, 12),
        Buffer.from(secret).toString('base64').slice(0, 12),
      ]),
    ]
    const found = seen.flatMap(({ where, text }) =>
      pieces.filter((piece) => text.includes(piece)).map((piece) => `${piece} in ${where}: ${around(text, piece)}`),
    )
    expect(found).toEqual([])
  },
)

test('a chosen first key is in no log and not in the database', async () => {
  const { folder, configPath } = routerFolder({ files: simulatorOnly })
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const secret = `chosen-${randomBytes(32).toString('base64url')}`
  const env = { INFERENCE_ROUTER_ADMIN_KEY: secret, LOG_LEVEL: 'trace' }
  const router = await routerProcess(configPath, { env })
  expect((await router.call('/v1/manage/org', undefined, bearer(secret))).status).toBe(200)
  const files = readdirSync(join(folder, 'data')).map((name) => readFileSync(join(folder, 'data', name), 'latin1'))
  expect(await router.end('SIGTERM')).toBe(0)
  expect(files.length).toBeGreaterThan(1)
  for (const text of [router.output(), ...files]) expect(text).not.toContain(secret.slice(8, 30))
})

function around(text: string, piece: string): string {
  const at = text.indexOf(piece)
  return text.slice(Math.max(0, at - 80), at + piece.length + 20)
}
