import { rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { routerProcess } from '../../helpers/process.ts'
import { loopbackProvider } from '../../helpers/provider.ts'
import { routerFolder, testRouter } from '../../helpers/router.ts'
import { testEach } from '../../helpers/slow.ts'

const manifest = (slug: string, url: string, auth = '{ scheme: none }') =>
  `slug: ${slug}\nname: X\nbase_url: ${url}\nauth: ${auth}\ndialect: openai-chat\nunknown_models: pass\n`

/** A request of each API for this model. */
const requests = (model: string, stream = false): [path: string, body: object][] => [
  ['/v1/chat/completions', { model, stream, messages: [{ role: 'user', content: 'Hello' }] }],
  ['/v1/responses', { model, stream, input: 'Hello' }],
  ['/v1/messages', { model, stream, max_tokens: 9, messages: [{ role: 'user', content: 'Hello' }] }],
]

/** A server that treats each connection like this; its address. */
async function socketServer(treat: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => treat(socket.on('error', () => {})))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('clients read neither addresses of providers nor words of libraries; the log has them', async () => {
  const closed = await loopbackProvider(() => {})
  await closed.close()
  const reset = await socketServer((socket) => void socket.once('data', () => socket.resetAndDestroy()))
  const noHttp = await socketServer((socket) => void socket.once('data', () => socket.end('SSH-2.0-OpenSSH_9.6\r\n')))
  const half = await socketServer((socket) =>
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n')
      const event = 'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
      socket.write(`${event.length.toString(16)}\r\n${event}\r\n`)
      setTimeout(() => socket.resetAndDestroy(), 50)
    }),
  )
  const oauth = `{ scheme: oauth-client-credentials, token_url: "${closed.url}/token", client_id: me, client_secret: "\${TOKENLESS:-a-secret}" }`
  const { folder, configPath } = routerFolder({
    files: {
      'providers/closed.yaml': manifest('closed', closed.url),
      'providers/nameless.yaml': manifest('nameless', 'http://no-such-host.invalid:8443/v1'),
      'providers/reset.yaml': manifest('reset', reset),
      'providers/nohttp.yaml': manifest('nohttp', noHttp),
      'providers/half.yaml': manifest('half', half),
      'providers/tokenless.yaml': manifest('tokenless', closed.url, oauth),
    },
  })
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const router = await routerProcess(configPath)
  const said: string[] = []
  for (const slug of ['closed', 'nameless', 'reset', 'nohttp', 'half', 'tokenless']) {
    for (const [path, body] of [...requests(`${slug}/m`), ...requests(`${slug}/m`, true)]) {
      const response = await router.call(path, body)
      const text = await response.text()
      expect([slug, path, text]).toEqual([slug, path, expect.stringMatching(/"message":"The /)])
      said.push(`${slug} ${path} ${JSON.stringify([...response.headers])} ${text}`)
    }
  }
  const leaks =
    /127\.0\.0\.1|localhost|no-such-host|\.invalid|E[A-Z]{5,}|UND_|HPE_|undici|socket|getaddrinfo|Parse Error|[Hh]ttpParser/
  expect(said.filter((text) => leaks.test(text))).toEqual([])
  const address = new URL(closed.url).host
  for (const detail of [
    `connect ECONNREFUSED ${address}`,
    'no-such-host.invalid',
    'ECONNRESET',
    `${address} did not answer`,
  ]) {
    expect(router.output()).toContain(detail)
  }
  expect(await router.end('SIGTERM')).toBe(0)
})

describe('a provider that compresses although it was asked not to', () => {
  const codings = {
    gzip: gzipSync,
    br: brotliCompressSync,
    zstd: zstdCompressSync,
    deflate: deflateSync,
    'deflate without a header': deflateRawSync,
  } as const
  const reply = { choices: [{ index: 0, message: { role: 'assistant', content: 'Hi there' }, finish_reason: 'stop' }] }
  const chunk = { choices: [{ index: 0, delta: { content: 'Hi there' }, finish_reason: 'stop' }] }

  async function compressing(answer: (body: { stream?: boolean }, response: ServerResponse) => void) {
    const provider = await loopbackProvider(({ body }, response) => answer(body, response))
    const router = await testRouter({ files: { 'providers/x.yaml': manifest('x', provider.url) } })
    onTestFinished(async () => {
      await router.end()
      await provider.close()
    })
    return { router, provider }
  }

  test.each(Object.entries(codings))(
    '%s is read, whole and streamed, in every API, and in errors',
    async (name, encode) => {
      const [coding = ''] = name.split(' ')
      let status = 200
      const { router, provider } = await compressing(({ stream }, response) => {
        const text =
          status !== 200
            ? '{"error": {"message": "Not today."}}'
            : stream
              ? `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`
              : JSON.stringify(reply)
        const type = stream && status === 200 ? 'text/event-stream' : 'application/json'
        response.writeHead(status, { 'content-type': type, 'content-encoding': coding }).end(encode(text))
      })
      for (const [path, body] of [...requests('x/m'), ...requests('x/m', true)]) {
        const response = await router.call(path, body)
        expect([path, response.status, await response.text()]).toEqual([path, 200, expect.stringContaining('Hi there')])
      }
      expect(provider.received[0]?.headers['accept-encoding']).toBe('identity')
      status = 400
      for (const [path, body] of requests('x/m')) {
        expect(await (await router.call(path, body)).text()).toContain('Not today.')
      }
    },
  )

  testEach([40, 300], { slowIf: (megabytes) => megabytes > 40 })(
    'cannot fill the memory with %d MB that are small on their way',
    async (megabytes) => {
      const size = megabytes * 1e6
      // About a thousandth of that, as JSON and as one event.
      const bombs = {
        whole: gzipSync(Buffer.alloc(size, ' ')),
        event: gzipSync(Buffer.concat([Buffer.from('data: '), Buffer.alloc(size, 'x')])),
      }
      const { router } = await compressing(({ stream }, response) => {
        const type = stream ? 'text/event-stream' : 'application/json'
        response
          .writeHead(200, { 'content-type': type, 'content-encoding': 'gzip' })
          .end(stream ? bombs.event : bombs.whole)
      })
      for (const [path, body] of [...requests('x/m').slice(0, 1), ...requests('x/m', true).slice(0, 1)]) {
        const response = await router.call(path, body)
        expect([response.status, await response.text()]).toEqual([502, expect.stringContaining('provider_unreadable')])
      }
      expect((await router.call('/health')).status).toBe(200)
    },
  )
})
