import { once } from 'node:events'
import { connect } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { within } from '../helpers/provider.ts'
import { simulatorOnly, type TestRouter, testKey, testRouter } from '../helpers/router.ts'

const path = '/v1/chat/completions'
const limitBytes = 20_000
const body = (content: string) => JSON.stringify({ model: 'demo/echo', messages: [{ role: 'user', content }] })
const word = 'zażółć 東京 🙂'

let router: TestRouter

beforeAll(async () => {
  const server = { host: '127.0.0.1', port: 0, body_limit: limitBytes }
  router = await testRouter({ files: simulatorOnly, settings: { server } })
})
afterAll(() => router.end())

/** What came over a connection, and which of its responses closed it. */
type Came = { status: number; head: string; text: string }

/** A client that writes its bytes as they are, piece by piece. */
function client() {
  const socket = connect(Number(new URL(router.url).port), '127.0.0.1').on('error', () => {})
  onTestFinished(() => void socket.destroy())
  let received = ''
  let isClosed = false
  socket.on('data', (bytes) => {
    received += bytes
  })
  socket.on('close', () => {
    isClosed = true
  })
  const until = async (holds: () => boolean) => {
    while (!holds()) await new Promise(setImmediate)
  }
  return {
    socket,
    closed: () =>
      within(
        5_000,
        'the end of the connection',
        until(() => isClosed),
      ),
    /** The next response. */
    async response(): Promise<Came> {
      const whole = () => {
        const end = received.indexOf('\r\n\r\n')
        if (end < 0) return undefined
        const head = received.slice(0, end)
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
        const rest = Buffer.from(received.slice(end + 4))
        return rest.length >= length ? { head, text: rest.subarray(0, length).toString() } : undefined
      }
      await within(
        10_000,
        'a response',
        until(() => whole() !== undefined || isClosed),
      )
      const found = whole()
      if (!found) throw new Error(`The connection ended: ${received}`)
      received = received.slice(found.head.length + 4 + found.text.length)
      return { status: Number(found.head.split(' ')[1]), head: found.head.toLowerCase(), text: found.text }
    },
  }
}

const head = (...more: string[]) =>
  [`POST ${path} HTTP/1.1`, 'host: x', `authorization: Bearer ${testKey}`, ...more, '', ''].join('\r\n')
const json = 'content-type: application/json'

async function send(bytes: Uint8Array, ...headers: string[]): Promise<Came> {
  const { socket, response } = client()
  const type = headers.some((header) => header.startsWith('content-type')) ? [] : [json]
  socket.write(head(...type, ...headers, `content-length: ${bytes.length}`))
  socket.write(bytes)
  return await response()
}

function echoed({ status, text }: Came): string {
  expect(status, text).toBe(200)
  return JSON.parse(text).choices[0].message.content.replace('You said: ', '')
}

function swapped(bytes: Buffer): Buffer {
  return Buffer.from(bytes).swap16()
}

function utf32(text: string): Buffer {
  const points = [...text].map((character) => character.codePointAt(0) ?? 0)
  const bytes = Buffer.alloc(points.length * 4)
  for (const [at, point] of points.entries()) bytes.writeUInt32LE(point, at * 4)
  return bytes
}

describe('the characters of a body', () => {
  const text = body(word)
  test.each<[name: string, bytes: Buffer, type: string]>([
    ['UTF-8', Buffer.from(text), json],
    ['UTF-8, declared', Buffer.from(text), `${json}; charset="UTF-8"`],
    ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${text}`), json],
    ['UTF-16, little-endian', Buffer.from(text, 'utf16le'), `${json}; charset=utf-16le`],
    ['UTF-16, big-endian', swapped(Buffer.from(text, 'utf16le')), `${json}; charset=utf-16be`],
    ['UTF-16 with a byte order mark', swapped(Buffer.from(`\ufeff${text}`, 'utf16le')), `${json}; charset=utf-16`],
    ['UTF-32', utf32(text), `${json}; charset=utf-32le`],
  ])('%s', async (_, bytes, type) => {
    expect(echoed(await send(bytes, type))).toBe(word)
  })

  test('that are no UTF-8 are replaced', async () => {
    const [before = '', after = ''] = body('a|b').split('|')
    const bytes = Buffer.concat([Buffer.from(before), Buffer.from([0xff, 0xc3]), Buffer.from(after)])
    expect(echoed(await send(bytes))).toBe('a\ufffd\ufffdb')
  })

  test.each(['iso-8859-1', 'us-ascii', 'utf-9'])('%s → 415', async (charset) => {
    const refused = await send(Buffer.from(text), `${json}; charset=${charset}`)
    expect([refused.status, JSON.parse(refused.text).error.message]).toEqual([
      415,
      expect.stringMatching(new RegExp(`unsupported charset "${charset}"`, 'i')),
    ])
  })

  test('arrive in pieces of any size', async () => {
    const words = word.repeat(100)
    const bytes = Buffer.from(body(words))
    for (const size of [1, 7, 64]) {
      const { socket, response } = client()
      socket.setNoDelay()
      socket.write(head(json, 'transfer-encoding: chunked'))
      for (let at = 0; at < bytes.length; at += size) {
        const piece = bytes.subarray(at, at + size)
        socket.write(Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]))
        await new Promise(setImmediate)
      }
      socket.write('0\r\n\r\n')
      expect(echoed(await response())).toBe(words)
    }
  })
})

describe('a compressed body', () => {
  test.each<[coding: string, encode: (bytes: Buffer) => Buffer]>([
    ['gzip', gzipSync],
    ['GZIP', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
    ['identity', (bytes) => bytes],
  ])('%s is read', async (coding, encode) => {
    expect(echoed(await send(encode(Buffer.from(body(word))), `content-encoding: ${coding}`))).toBe(word)
  })

  test('in UTF-16 is read', async () => {
    const bytes = gzipSync(Buffer.from(body(word), 'utf16le'))
    expect(echoed(await send(bytes, `${json}; charset=utf-16le`, 'content-encoding: gzip'))).toBe(word)
  })

  test('that is longer than the limit when it is not → 413', async () => {
    const { status, text } = await send(gzipSync(Buffer.from(body('x'.repeat(limitBytes)))), 'content-encoding: gzip')
    expect([status, text]).toEqual([413, expect.stringMatching(/body_limit/)])
  })

  test('of another coding → 415', async () => {
    const { status, text } = await send(Buffer.from(body('x')), 'content-encoding: compress')
    expect([status, text]).toEqual([415, expect.stringMatching(/content encoding/)])
  })
})

describe('a body beyond the limit', () => {
  test('is taken to its end; the connection stays', async () => {
    const { socket, response } = client()
    for (const bytes of [limitBytes, limitBytes + 1, 3 * limitBytes]) {
      const text = body('').replace('""', `"${'x'.repeat(bytes - body('').length)}"`)
      expect(text.length).toBe(bytes)
      for (const [framing, sent] of [
        [`content-length: ${bytes}`, text],
        ['transfer-encoding: chunked', `${bytes.toString(16)}\r\n${text}\r\n0\r\n\r\n`],
      ] as const) {
        socket.write(head(json, framing) + sent)
        const came = await response()
        expect([bytes, framing, came.status]).toEqual([bytes, framing, bytes > limitBytes ? 413 : 200])
        expect(came.head).not.toContain('connection: close')
      }
    }
  })

  test('four times over is not: the refusal closes the connection', async () => {
    const { socket, response, closed } = client()
    socket.write(head(json, `content-length: ${limitBytes * 100}`) + 'x'.repeat(limitBytes * 4 + 1))
    const { status, head: headers } = await response()
    expect([status, headers]).toEqual([413, expect.stringContaining('connection: close')])
    await closed()
  })

  test.each([
    [413, [json]],
    [415, ['content-type: application/json; charset=latin1']],
    [415, [json, 'content-encoding: compress']],
  ])('is refused with %i where the client reads only after it has sent', async (status, headers) => {
    const piece = 'x'.repeat(limitBytes)
    const socket = connect(Number(new URL(router.url).port), '127.0.0.1').on('error', () => {})
    onTestFinished(() => void socket.destroy())
    socket.pause().write(head(...headers, `content-length: ${300 * limitBytes}`))
    for (let sent = 0; sent < 300; sent += 1) {
      const written = new Promise<void>((resolve, reject) => {
        socket.write(piece, (error) => (error ? reject(error) : resolve()))
      })
      await within(5_000, 'sending', written)
    }
    const [bytes] = await within(
      5_000,
      'the response',
      once(socket, 'readable').then(() => [socket.read()]),
    )
    expect(String(bytes)).toContain(`HTTP/1.1 ${status}`)
  })

  test('is counted as it is sent, compressed or not', async () => {
    const { socket, response, closed } = client()
    const bytes = Buffer.concat([gzipSync(Buffer.from(body('x'))), Buffer.alloc(limitBytes * 4)])
    socket.write(head(json, `content-length: ${bytes.length + 1}`, 'content-encoding: gzip'))
    socket.write(bytes)
    expect((await response()).status).not.toBe(200)
    await closed()
  })
})

describe('an upload', () => {
  test('is asked for where the client waits for that', async () => {
    const { socket, response } = client()
    const text = body('Hi')
    socket.write(head(json, `content-length: ${text.length}`, 'expect: 100-continue'))
    expect((await response()).head).toBe('http/1.1 100 continue')
    socket.write(text)
    expect(echoed(await response())).toBe('Hi')
  })

  test('may be followed by the next call at once', async () => {
    const { socket, response } = client()
    const call = (text: string) => head(json, `content-length: ${text.length}`) + text
    socket.write(call(body('one')) + call(body('two')) + call('{'))
    expect([echoed(await response()), echoed(await response())]).toEqual(['one', 'two'])
    expect((await response()).status).toBe(400)
  })

  test('that the client gives up leaves nothing behind', async () => {
    const { socket, response } = client()
    socket.write(head(json, 'content-length: 1000', 'expect: 100-continue'))
    // The router reads the body.
    expect((await response()).head).toBe('http/1.1 100 continue')
    await new Promise((resolve) => socket.write('{"model"', resolve))
    socket.destroy()
    const other = await testRouterRows()
    expect(echoed(await send(Buffer.from(body('Hi'))))).toBe('Hi')
    expect(await testRouterRows()).toBe(other + 1)
  })

  test('without a body is one of no fields', async () => {
    for (const framing of [[], ['content-length: 0'], ['transfer-encoding: chunked', json]]) {
      const { socket, response } = client()
      socket.write(head(...framing) + (framing.length > 1 ? '0\r\n\r\n' : ''))
      const { status, head: headers } = await response()
      expect([framing, status]).toEqual([framing, 400])
      expect(headers).not.toContain('connection: close')
    }
  })
})

/** How many calls the ledger has. */
async function testRouterRows(): Promise<number> {
  const store = await openStore(`sqlite:${router.folder}/data/router.sqlite`)
  try {
    return (await Array.fromAsync(store.ledger.each({}))).length
  } finally {
    await store.close()
  }
}

describe('the path of a call', () => {
  const post = (path: string) => router.call(path, body('Hi'), { 'x-request-id': 'mine' })

  test.each([path, `${path}/`, `${path}?beta=true`, `${path}/?a=b#c`])('%s is one', async (written) => {
    expect((await post(written)).status).toBe(200)
  })

  test('may be sent as a whole address', async () => {
    const { socket, response } = client()
    const text = body('Hi')
    const asked = head(json, `content-length: ${text.length}`).replace(path, `http://router.example${path}`)
    socket.write(asked + text)
    expect(echoed(await response())).toBe('Hi')
  })

  test.each([
    `${path}//`,
    `${path}/more`,
    `/${path}`,
    '/v1/chat/Completions',
    '/V1/chat/completions',
    '/v1/chat/completion%73',
    '/v1/chat%2Fcompletions',
    '/v1/chat/completionsx',
  ])('%s is none', async (written) => {
    const { socket, response } = client()
    const text = body('Hi')
    socket.write(head(json, `content-length: ${text.length}`).replace(path, written) + text)
    expect((await response()).status).toBe(404)
  })

  test('decides how errors below it are written', async () => {
    for (const [below, isMessages] of [
      ['/v1/messages/batches', true],
      ['/v1/messages/count_tokens/x', true],
      ['/v1/messagesx', false],
      ['/v1/responses/x', false],
    ] as const) {
      const refused = await post(below)
      const { type, request_id } = (await refused.json()) as { type?: string; request_id?: string }
      expect([below, type, request_id]).toEqual([below, ...(isMessages ? ['error', 'mine'] : [undefined, undefined])])
      expect(refused.headers.get('request-id')).toBe(isMessages ? 'mine' : null)
      expect(refused.status).toBe(below === '/v1/responses/x' ? 405 : 404)
    }
  })
})
