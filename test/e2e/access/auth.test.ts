import { createPrivateKey } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { awsEvent, awsException } from '../../helpers/aws-frames.ts'
import { within } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { type TokenEndpoint, tokenEndpoint } from '../../helpers/token-endpoint.ts'
import { expectedAuthorization } from '../../upstream/aws-verify.ts'
import { rfc7515Key } from '../../upstream/rfc7515-key.ts'

const secretKey = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
const sessionToken = 'a/session+token=='
const model = 'arn:aws:acme:eu-west-1:1234:profile/us.acme-v1:0'

/** Small manifests of one invented format that stream in different ways. */
const manifest = (slug: string, url: string, auth: string, format: string) => `slug: ${slug}
name: Acme
base_url: ${url}/${slug}
auth: { ${auth} }
unknown_models: pass
endpoints:
  chat:
    path: /model/{model}/say
    stream: { path: "/model/{model}/say-stream", format: ${format}${format === 'aws-event-stream' ? '' : ', event_field: kind'} }
    request:
      body: '{ "lines": [system.text, messages.parts[type = "text"].text], "limit": max_output_tokens }'
    reply: |
      { "parts": { "type": "text", "text": said }, "finish": "stop", "usage": { "input": in, "output": out } }
    events:
      piece: '{ "text": said }'
      end: '[{ "finish": "stop" }, { "usage": { "input": in, "output": out } }]'
      throttlingException: '{ "error": { "code": "throttlingException", "message": message } }'
      ping: ''
errors: { throttlingException: rate_limited }
`

type ReceivedCall = { target: string; headers: IncomingHttpHeaders; body: string }

/** How the provider ends its stream, by the prompt. */
const endings: { [said: string]: Buffer[] } = {
  well: [awsEvent('end', { in: 3, out: 2 })],
  throttled: [awsException('throttlingException', `too fast for ${sessionToken}`)],
  cut: [awsEvent('end', { in: 3, out: 2 }).subarray(0, 20)],
  garbled: [Buffer.from(awsEvent('end', { in: 3, out: 2 })).fill('x', 40, 44)],
}

const bench = {} as { router: TestRouter; tokens: TokenEndpoint; requested: ReceivedCall[]; close(): Promise<void> }

beforeAll(async () => {
  bench.requested = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const requested = {
      target: request.url ?? '',
      headers: request.headers,
      body: Buffer.concat(chunks).toString('utf8'),
    }
    bench.requested.push(requested)
    const problem = requested.target.startsWith('/signed/') ? signatureProblem(requested) : tokenProblem(requested)
    if (problem !== undefined) return refuse(response, problem)
    if (requested.body.includes('"revoked"')) return answerJson(response, 401, { message: 'revoked' })
    if (!requested.target.endsWith('-stream')) return answerJson(response, 200, { said: 'fine', in: 3, out: 1 })
    const [said = ''] = (JSON.parse(requested.body) as { lines: string[] }).lines
    if (said === 'refused whole') return answerJson(response, 200, { message: `no, ${secretKey}` })
    await streams[requested.target.split('/')[1] as string]?.(response, said)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  bench.tokens = await tokenEndpoint()
  const pem = createPrivateKey({ key: rfc7515Key, format: 'jwk' }).export({ type: 'pkcs8', format: 'pem' })
  const signed =
    'scheme: aws-sigv4, service: acme, region: "${ACME_REGION:-eu-west-1}", access_key: "${ACME_ID}", ' +
    'secret_key: "${ACME_KEY}", session_token: "${ACME_SESSION}"'
  bench.router = await testRouter({
    // Each thread asks for tokens of its own.
    threads: 1,
    files: {
      'providers/signed.yaml': manifest('signed', url, signed, 'aws-event-stream'),
      'providers/account.yaml': manifest(
        'account',
        url,
        'scheme: google-service-account, credentials: "${ACCOUNT}"',
        'json-array',
      ),
      'providers/client.yaml': manifest(
        'client',
        url,
        `scheme: oauth-client-credentials, token_url: "${bench.tokens.url}", client_id: me, client_secret: "\${CLIENT}"`,
        'ndjson',
      ),
    },
    env: {
      ACME_ID: 'AKIDEXAMPLE',
      ACME_KEY: secretKey,
      ACME_SESSION: sessionToken,
      ACCOUNT: JSON.stringify({ client_email: 'me@acme.test', private_key: pem, token_uri: bench.tokens.url }),
      CLIENT: 'hush',
    },
  })
  bench.close = () =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
})

afterAll(async () => {
  await bench.router.end()
  await bench.tokens.close()
  await bench.close()
})

/** Pieces of seven bytes, each in a write of its own. */
async function writeOddly(response: ServerResponse, type: string, bytes: Buffer): Promise<void> {
  response.writeHead(200, { 'content-type': type })
  for (let at = 0; at < bytes.length; at += 7) {
    response.write(bytes.subarray(at, at + 7))
    await new Promise((resolve) => setImmediate(resolve))
  }
  response.end()
}

const events = [
  { kind: 'piece', said: 'für ' },
  { kind: 'ping', text: '}]\\"' },
  { kind: 'piece', said: '🐧' },
  { kind: 'end', in: 3, out: 2 },
]
const streams: { [slug: string]: (response: ServerResponse, said: string) => Promise<void> } = {
  signed: (response, said) => {
    const begun = events.slice(0, 3).map(({ kind, ...payload }) => awsEvent(kind, payload))
    return writeOddly(
      response,
      'application/vnd.amazon.eventstream',
      Buffer.concat([...begun, ...(endings[said] ?? [])]),
    )
  },
  account: (response) =>
    writeOddly(response, 'application/json; charset=UTF-8', Buffer.from(JSON.stringify(events, null, 2))),
  client: (response) =>
    writeOddly(response, 'application/x-ndjson', Buffer.from(events.map((event) => JSON.stringify(event)).join('\n'))),
}

function signatureProblem({ target, headers, body }: ReceivedCall): string | undefined {
  const seen = { method: 'POST', target, headers: headers as Record<string, string>, body }
  if (headers['x-amz-security-token'] !== sessionToken) return 'no session token'
  if (!headers.authorization?.includes('/eu-west-1/acme/aws4_request')) return 'another region or service'
  if (!/host;x-amz-date;x-amz-security-token/.test(headers.authorization)) return 'not enough is signed'
  return headers.authorization === expectedAuthorization(seen, secretKey) ? undefined : 'the signature does not match'
}

function tokenProblem({ headers }: ReceivedCall): string | undefined {
  return /^Bearer token-\d$/.test(headers.authorization ?? '') ? undefined : 'no token'
}

const refuse = (response: ServerResponse, message: string) => answerJson(response, 403, { message })

function answerJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function ask(slug: string, content: string, more: object = {}) {
  const body = { model: `${slug}/${model}`, messages: [{ role: 'user', content }], ...more }
  const response = await within(5_000, content, bench.router.call('/v1/chat/completions', body))
  return { status: response.status, text: await within(5_000, 'the answer', response.text()) }
}

/** The text of a streamed reply, and the failure that ended it. */
function streamed(text: string) {
  const chunks = text
    .split('\n\n')
    .flatMap((block) => (block.startsWith('data: {') ? [JSON.parse(block.slice(6))] : []))
  const words = chunks.map(({ choices }) => choices?.[0]?.delta?.content ?? '').join('')
  const finish = chunks.map(({ choices }) => choices?.[0]?.finish_reason).find(Boolean)
  return { words, finish, error: chunks.find(({ error }) => error)?.error }
}

describe('every way to authenticate and to stream, through the whole router', () => {
  test.each(['signed', 'account', 'client'])('%s: whole', async (slug) => {
    const { status, text } = await ask(slug, 'well')
    expect(JSON.parse(text)).toMatchObject({ choices: [{ message: { content: 'fine' }, finish_reason: 'stop' }] })
    expect(status).toBe(200)
  })

  test.each([
    ['signed', 'application/vnd.amazon.eventstream'],
    ['account', 'application/json'],
    ['client', 'application/x-ndjson'],
  ])('%s: streamed in pieces of seven bytes', async (slug, type) => {
    const { text } = await ask(slug, 'well', { stream: true })
    expect(streamed(text)).toEqual({ words: 'für 🐧', finish: 'stop', error: undefined })
    expect(text.trimEnd()).toMatch(/data: \[DONE\]$/)
    expect(bench.requested.at(-1)).toMatchObject({
      target: `/${slug}/model/${encodeURIComponent(model)}/say-stream`,
      headers: { accept: type },
    })
  })

  test('one token served them all', () => {
    expect(bench.tokens.requested.map(({ grant_type }) => grant_type).sort()).toEqual([
      'client_credentials',
      'urn:ietf:params:oauth:grant-type:jwt-bearer',
    ])
  })
})

test('a token that the provider refuses is replaced by a new one with the next call', async () => {
  const before = bench.requested.length
  expect((await ask('client', 'revoked')).status).toBe(502)
  expect((await ask('client', 'well')).status).toBe(200)
  const [first, second] = bench.requested.slice(before).map(({ headers }) => headers.authorization)
  expect(first).toMatch(/^Bearer token-/)
  expect(second).toMatch(/^Bearer token-/)
  expect(second).not.toBe(first)
})

describe('an AWS stream that fails', () => {
  test.each([
    ['throttled', 'too fast for [secret]'],
    ['cut', 'in the middle of a frame'],
    ['garbled', 'checksum'],
  ])('%s: what was said before stays, and then comes the failure', async (ending, said) => {
    const { status, text } = await ask('signed', ending, { stream: true })
    const { words, finish, error } = streamed(text)
    expect({ status, words, finish }).toEqual({ status: 200, words: 'für 🐧', finish: undefined })
    expect(error).toMatchObject({ origin: 'provider', message: expect.stringContaining(said) })
    expect(text).not.toContain('[DONE]')
    expect(text).not.toContain(sessionToken)
  })

  test('a JSON document instead of a stream is reported as such', async () => {
    const { status, text } = await ask('signed', 'refused whole', { stream: true })
    expect(status).toBe(502)
    expect(JSON.parse(text)).toMatchObject({ error: { origin: 'provider', message: 'no, [secret]' } })
  })
})
