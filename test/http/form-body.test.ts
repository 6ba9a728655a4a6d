import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { asRouterError, RouterError } from '../../src/core/errors.ts'
import type { UploadedFile } from '../../src/core/operation.ts'
import { appServer, type Request, type Response } from '../../src/http/app.ts'
import { type Form, type FormLimits, readForm } from '../../src/http/bodies/form-body.ts'
import { respond } from '../../src/http/respond.ts'
import { RunningRequests } from '../../src/http/running-requests.ts'
import { within } from '../helpers/provider.ts'
import { testInRuns } from '../helpers/slow.ts'
import { eventually } from '../helpers/time.ts'

const KiB = 1024
const MiB = 1024 * KiB
const folder = mkdtempSync(join(tmpdir(), 'forms-'))
const usual = {
  idleMs: 10_000,
  bytes: 10 * MiB,
  fileBytes: 8 * MiB,
  files: 3,
  fields: 20,
  fieldBytes: 64 * KiB,
  folder,
}
const running = new RunningRequests()

type Outcome = { form: Form } | { error: RouterError }
const server = {} as { url: string; port: number; close(): void }
/** How the next requests are read, and what became of each that was. */
let limits: Omit<FormLimits, 'running'> = usual
const requests: { request: Request; outcome: Promise<Outcome> }[] = []
const arrivals = new EventEmitter()

beforeAll(async () => {
  const listener = appServer((request, response) => {
    const outcome = read(request, response)
    requests.push({ request, outcome })
    arrivals.emit('request')
  })
  listener.listen(0, '127.0.0.1')
  await new Promise((resolve) => listener.once('listening', resolve))
  const { port } = listener.address() as AddressInfo
  Object.assign(server, { url: `http://127.0.0.1:${port}/`, port, close: () => listener.close() })
})

afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true })
})

async function read(request: Request, response: Response): Promise<Outcome> {
  const own = running.begin(response)
  try {
    const form = await readForm(request, response, { ...limits, running: own })
    respond(response, 200, '{}')
    return { form }
  } catch (thrown) {
    const error = asRouterError(thrown)
    if (!response.destroyed) respond(response, error.status, JSON.stringify({ message: error.message }))
    return { error }
  } finally {
    running.end(own)
  }
}

function limited(changes: Partial<FormLimits>): void {
  limits = { ...usual, ...changes }
}

/** The request that has come, or comes next. */
async function next(): Promise<{ request: Request; outcome: Promise<Outcome> }> {
  while (!requests[0]) await within(10_000, 'a request', once(arrivals, 'request'))
  return requests[0]
}

/** What became of it. */
async function outcome(): Promise<Outcome> {
  const { outcome } = await next()
  requests.shift()
  return await within(10_000, 'reading the form', outcome)
}

async function formOf(): Promise<Form> {
  const became = await outcome()
  if ('error' in became) throw became.error
  onTestFinished(() => became.form.dispose())
  return became.form
}

async function errorOf(): Promise<RouterError> {
  const became = await outcome()
  if ('form' in became) {
    await became.form.dispose()
    throw new Error('The form was read.')
  }
  return became.error
}

async function bytesOf(file: UploadedFile | undefined): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of file?.read() ?? []) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** A POST of these bytes, as they are, over a connection that tells what came back. */
function send(pieces: readonly (string | Uint8Array)[], ...headers: string[]) {
  const socket = connect(server.port, '127.0.0.1').on('error', () => {})
  onTestFinished(() => void socket.destroy())
  let received = ''
  socket.on('data', (bytes) => {
    received += bytes
  })
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.write(['POST / HTTP/1.1', 'host: x', ...headers, '', ''].join('\r\n'))
  for (const piece of pieces) socket.write(piece)
  return { socket, closed, received: () => received }
}

/** A POST in chunks of these bytes. */
function sendChunked(pieces: readonly Uint8Array[], boundary = 'b') {
  const chunks = pieces
    .filter(({ length }) => length > 0)
    .map((piece) => Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]))
  const type = `content-type: multipart/form-data; boundary=${boundary}`
  return send([Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')])], type, 'transfer-encoding: chunked')
}

type Part = { head: string; body: Buffer | string }

const field = (name: string, body: Buffer | string): Part => ({
  head: `Content-Disposition: form-data; name="${name}"`,
  body,
})
const file = (name: string, body: Buffer | string, more = '; filename="f.bin"'): Part => ({
  head: `Content-Disposition: form-data; name="${name}"${more}\r\nContent-Type: audio/mpeg`,
  body,
})

function bodyOf(parts: readonly Part[], boundary = 'b'): Buffer {
  const pieces = parts.flatMap(({ head, body }) => [`--${boundary}\r\n${head}\r\n\r\n`, body, '\r\n'])
  return Buffer.concat([...pieces, `--${boundary}--\r\n`].map((piece) => Buffer.from(piece as string)))
}

/** The temporary files that are open, with a name or without; undefined where the system does not tell. */
function openFiles(): number {
  const fds = existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd') : []
  const paths = fds.map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return ''
    }
  })
  return paths.filter((path) => path.startsWith(folder)).length
}

/** Nothing is left of a form that was refused. */
function expectNothingLeft(request?: Request): void {
  expect([openFiles(), readdirSync(folder)]).toEqual([0, []])
  expect(request?.listenerCount('data') ?? 0).toBe(0)
}

describe('a form', () => {
  test('of a browser is read: fields in their order, files as often as they are asked for', async () => {
    limited({})
    const large = randomBytes(300 * KiB)
    const form = new FormData()
    form.append('model', 'whisper')
    form.append('tag[]', 'a')
    form.append('tag[]', 'zażółć 🙂')
    form.append('file', new Blob([large], { type: 'audio/mpeg' }), 'zażółć.mp3')
    form.append('mask', new Blob(['tiny'], { type: 'image/png' }), 'm.png')
    const sent = fetch(server.url, { method: 'POST', body: form })
    const { fields, files } = await formOf()
    expect(fields).toEqual([
      ['model', 'whisper'],
      ['tag[]', 'a'],
      ['tag[]', 'zażółć 🙂'],
    ])
    expect(files.map(({ field, filename, mediaType, size }) => [field, filename, mediaType, size])).toEqual([
      ['file', 'zażółć.mp3', 'audio/mpeg', large.length],
      ['mask', 'm.png', 'image/png', 4],
    ])
    expect(Buffer.from(files[0]?.head ?? [])).toEqual(large.subarray(0, 4 * KiB))
    const both = await Promise.all([bytesOf(files[0]), bytesOf(files[0]), bytesOf(files[1])])
    expect(both).toEqual([large, large, Buffer.from('tiny')])
    expect(await bytesOf(files[0])).toEqual(large)
    expect((await sent).status).toBe(200)
  })

  test('has no name on the disk, and no descriptor once it is disposed of', async () => {
    limited({})
    sendChunked([bodyOf([file('file', Buffer.alloc(MiB))])])
    const form = await formOf()
    expect(readdirSync(folder)).toEqual([])
    if (process.platform === 'linux') expect(openFiles()).toBe(1)
    const reader = form.files[0]?.read()[Symbol.asyncIterator]()
    await reader?.next()
    await form.dispose()
    await form.dispose()
    expect(openFiles()).toBe(0)
    await expect(reader?.next()).rejects.toMatchObject({ code: 'unavailable' })
    await expect(bytesOf(form.files[0])).rejects.toMatchObject({ code: 'unavailable' })
  })

  testInRuns('cut into any pieces is the same', { fast: 15, slow: 60 }, async (numRuns) => {
    limited({})
    // Much of it looks like the beginning of a boundary.
    const texts = fc.array(fc.constantFrom('\r', '\n', '-', '--', '\r\n--', '\r\n--b', 'b', 'x'.repeat(30)), {
      maxLength: 40,
    })
    const parts = fc.array(fc.tuple(fc.boolean(), texts), { minLength: 1, maxLength: 4 })
    const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 5 })
    const boundary = 'bound-ary'
    await fc.assert(
      fc.asyncProperty(parts, sizes, async (generated, steps) => {
        limited({ files: 4 })
        const written = generated.map(([isFile, pieces], at) => ({ isFile, name: `n${at}`, text: pieces.join('') }))
        const body = bodyOf(
          written.map(({ isFile, name, text }) => (isFile ? file(name, text) : field(name, text))),
          boundary,
        )
        sendChunked(cutInto(body, steps), boundary)
        const { fields, files } = await formOf()
        const read = await Promise.all(files.map(async (one) => [one.field, (await bytesOf(one)).toString()]))
        expect([fields, read]).toEqual([
          written.filter(({ isFile }) => !isFile).map(({ name, text }) => [name, text]),
          written.filter(({ isFile }) => isFile).map(({ name, text }) => [name, text]),
        ])
      }),
      { numRuns },
    )
  })

  test('that ends at any byte before its last boundary → 400', async () => {
    limited({})
    const body = bodyOf([field('a', 'one'), file('f', 'two'), field('b', '')])
    const whole = body.lastIndexOf('--') + 2
    for (let length = 0; length < whole; length++) {
      sendChunked([body.subarray(0, length)])
      const error = await errorOf()
      expect([length, error.code]).toEqual([length, 'invalid_request'])
    }
    for (let length = whole; length <= body.length; length++) {
      sendChunked([body.subarray(0, length)])
      expect((await formOf()).fields).toHaveLength(2)
    }
    expect(openFiles()).toBe(0)
  })

  test.each<[name: string, head: string, expected: object]>([
    ['a quote in a name', 'form-data; name="a\\"b"', { fields: [['a"b', 'x']] }],
    ['a backslash in a name', 'form-data; name="C:\\dir\\f"', { fields: [['C:\\dir\\f', 'x']] }],
    ['a name without quotes', 'form-data; NAME=a', { fields: [['a', 'x']] }],
    ['a semicolon in a name', 'form-data; name="a;b=c"', { fields: [['a;b=c', 'x']] }],
    ['__proto__', 'form-data; name="__proto__"', { fields: [['__proto__', 'x']] }],
    ['an empty name', 'form-data; name=""', { fields: [['', 'x']] }],
    ['an empty filename', 'form-data; name="a"; filename=""', { files: [['a', '']] }],
    ['a path as the filename', 'form-data; name="a"; filename="../../x"', { files: [['a', '../../x']] }],
    ['an encoded filename', "form-data; name=a; filename*=UTF-8''na%C3%AFve", { files: [['a', 'naïve']] }],
    ['one that is badly encoded', "form-data; name=a; filename*=UTF-8''%ff", { files: [['a', '%ff']] }],
    [
      'bytes without a filename',
      'form-data; name="a"\r\nContent-Type: application/octet-stream',
      { files: [['a', '']] },
    ],
    ['another charset', 'form-data; name="a"\r\nContent-Type: text/plain; charset=utf-16le', { fields: [['a', '砍']] }],
  ])('%s', async (name, head, expected) => {
    limited({})
    const body = name === 'another charset' ? Buffer.from('砍', 'utf16le') : 'x'
    sendChunked([bodyOf([{ head: `Content-Disposition: ${head}`, body }])])
    const { fields, files } = await formOf()
    const named = files.map(({ field, filename }) => [field, filename])
    expect({ fields, files: named }).toEqual({ fields: [], files: [], ...expected })
  })

  test('has files of the declared type, in small letters, or of any', async () => {
    limited({})
    const named = 'Content-Disposition: form-data; name=f; filename=f'
    const types = ['', '\r\nContent-Type: ', '\r\nContent-Type: Audio/WEBM;codecs=opus']
    sendChunked([bodyOf(types.map((type) => ({ head: named + type, body: 'x' })))])
    const { files } = await formOf()
    expect(files.map(({ mediaType }) => mediaType)).toEqual([
      'application/octet-stream',
      'application/octet-stream',
      'audio/webm',
    ])
  })

  test('may be empty', async () => {
    limited({})
    sendChunked([Buffer.from('--b--')])
    expect(await formOf()).toMatchObject({ fields: [], files: [] })
  })

  test('leaves the connection for the next one', async () => {
    limited({})
    const body = bodyOf([field('a', '1')])
    const { socket, received } = send([body], type, `content-length: ${body.length}`)
    await formOf()
    socket.write(['POST / HTTP/1.1', 'host: x', type, `content-length: ${body.length}`, '', ''].join('\r\n'))
    socket.write(body)
    await formOf()
    expect(received()).not.toContain('close')
  })
})

const type = 'content-type: multipart/form-data; boundary=b'

/** The bytes in pieces of these sizes, in turn. */
function cutInto(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}

describe('what is no form', () => {
  test.each<[sent: string, status: number, message: RegExp, headers?: string]>([
    ['content-type: application/json', 415, /multipart\/form-data; not application\/json/],
    ['x-none: 1', 415, /multipart\/form-data; this one has no Content-Type/],
    ['content-type: multipart/form-data-x; boundary=b', 415, /multipart\/form-data/],
    ['content-type: multipart/mixed; boundary=b', 415, /multipart\/form-data/],
    [`${type}\r\ncontent-encoding: gzip`, 415, /gzip/],
    ['content-type: multipart/form-data', 400, /boundary/],
    ['content-type: multipart/form-data; boundary=""', 400, /boundary/],
    [`content-type: multipart/form-data; boundary=${'b'.repeat(300)}`, 400, /boundary/],
    ['content-type: multipart/form-data; boundary="ż"', 400, /boundary/],
  ])('%s → %i', async (header, status, message) => {
    limited({})
    send(['{}'], header, 'content-length: 2')
    expect(await errorOf()).toMatchObject({ status, message: expect.stringMatching(message) })
  })

  test.each<[what: string, body: string]>([
    ['text', 'model=x'],
    ['another boundary', '--c\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--c--\r\n'],
    ['a part without a name', '--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n'],
    ['a part without headers', '--b\r\n\r\nx\r\n--b--\r\n'],
    ['a part that is none of a form', '--b\r\nContent-Disposition: attachment; name="a"\r\n\r\nx\r\n--b--\r\n'],
    ['a part that ends within its headers', '--b\r\nContent-Disposition: form-data; name="a"\r\n--b--\r\n'],
    ['boundaries of which one begins like the other', '--b\r\nX: 1\r\n\r\n--bb\r\nX: 1\r\n\r\n\r\n--bb--\r\n--b--\r\n'],
    ['base64', '--b\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64\r\n\r\nx\r\n--b--'],
    ['no charset', '--b\r\nContent-Disposition: form-data; name=a\r\nContent-Type: a/b; charset=zzz\r\n\r\nx\r\n--b--'],
    ['nothing', ''],
  ])('%s → 400', async (_, body) => {
    limited({})
    for (const size of [1, 5, 1000]) {
      sendChunked(cutInto(Buffer.from(body), [size]))
      expect((await errorOf()).code).toBe('invalid_request')
    }
  })

  testInRuns('whatever the bytes are, it is the fault of the client', { fast: 40, slow: 200 }, async (numRuns) => {
    limited({})
    const words = fc.constantFrom(
      '--b',
      '--',
      '-',
      '\r\n',
      '\r',
      '\n\n',
      ':',
      'Content-Disposition: form-data; name="a"',
      'x',
    )
    await fc.assert(
      fc.asyncProperty(fc.array(words, { maxLength: 30 }), fc.integer({ min: 1, max: 50 }), async (pieces, size) => {
        sendChunked(cutInto(Buffer.from(pieces.join('')), [size]))
        const became = await outcome()
        if ('form' in became) await became.form.dispose()
        else expect(became.error.code).toBe('invalid_request')
      }),
      { numRuns },
    )
    expectNothingLeft()
  })
})

describe('limits', () => {
  const oneChunk = (body: Buffer | string) => `${body.length.toString(16)}\r\n${body}\r\n`
  const fields = (count: number) => bodyOf(Array.from({ length: count }, (_, at) => field(`n${at}`, '')))

  test.each<[what: string, changes: Partial<FormLimits>, body: () => Buffer, message: RegExp, param?: string]>([
    ['the body', { bytes: 1_000 }, () => bodyOf([field('a', 'x'.repeat(2_000))]), /form is larger than 1000 bytes/],
    [
      'a file',
      { fileBytes: MiB },
      () => bodyOf([file('audio', Buffer.alloc(2 * MiB))]),
      /'audio' is larger than 1048576/,
      'audio',
    ],
    [
      'a value',
      { fieldBytes: 9 },
      () => bodyOf([field('prompt', '0123456789')]),
      /'prompt' is larger than 9/,
      'prompt',
    ],
    [
      'all values together',
      { fieldBytes: 9 },
      () => bodyOf([field('a', '01234'), field('b', '56789')]),
      /fields of the form, with .*'b', are larger than 9/,
      'b',
    ],
    ['files', { files: 1 }, () => bodyOf([file('a', 'x'), file('b', 'x')]), /more than 1 files: .*'b'/, 'b'],
    ['fields', {}, () => fields(100_000), /more than 20 fields: .*'n20'/, 'n20'],
  ])('of %s → 413, and the connection is closed', async (_, changes, body, message, param) => {
    limited(changes)
    const { received, closed } = send([oneChunk(body())], type, 'transfer-encoding: chunked')
    const { request } = await next()
    const error = await errorOf()
    expect(error).toMatchObject({ status: 413, message: expect.stringMatching(message), param })
    await within(5_000, 'closing the connection', closed)
    expect(received().toLowerCase()).toContain('connection: close')
    expectNothingLeft(request)
  })

  test('that a content-length exceeds are known before a byte is sent', async () => {
    limited({ bytes: 1_000 })
    const { closed, received } = send([], type, 'content-length: 1001')
    expect(await errorOf()).toMatchObject({ status: 413, message: expect.stringContaining('1000 bytes') })
    await within(5_000, 'closing the connection', closed)
    expect(received().toLowerCase()).toContain('connection: close')
  })

  test('refuse a client that reads only after it has sent', async () => {
    limited({ bytes: 1_000 })
    const body = bodyOf([file('file', Buffer.alloc(2 * MiB))])
    const socket = connect(server.port, '127.0.0.1').on('error', () => {})
    onTestFinished(() => void socket.destroy())
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\n${type}\r\ncontent-length: ${body.length}\r\n\r\n`)
    socket.write(body)
    await errorOf()
    const [bytes] = await within(5_000, 'the response', once(socket, 'data'))
    expect(String(bytes)).toContain('413')
  })

  test('of a field of a gigabyte: it is not waited for', async () => {
    limited({})
    const { socket, closed } = send([`${'40000000'}\r\n`], type, 'transfer-encoding: chunked')
    socket.write(`--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n${'x'.repeat(100 * KiB)}`)
    expect(await errorOf()).toMatchObject({ status: 413, param: 'a' })
    await within(5_000, 'closing the connection', closed)
    expect(socket.bytesWritten).toBeLessThan(MiB)
  })

  test('of headers that do not end', async () => {
    limited({})
    const { socket, closed } = send(['--b\r\n'], type, `content-length: ${9 * MiB}`)
    const timer = setInterval(() => socket.write(`X-${'x'.repeat(8 * KiB)}: y\r\n`), 1)
    expect(await errorOf()).toMatchObject({ status: 400, message: expect.stringContaining('headers of a part') })
    clearInterval(timer)
    await within(5_000, 'closing the connection', closed)
  })
})

/** Lets no file be written until `goOn`. */
async function haltDisk() {
  const path = join(folder, 'any')
  const handle = await open(path, 'w')
  await handle.close()
  rmSync(path)
  const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const prototype = Object.getPrototypeOf(handle)
  const { writev } = prototype
  const halted = vi.spyOn(prototype, 'writev').mockImplementation(async function (this: FileHandle, ...all: unknown[]) {
    reached.resolve()
    await gate.promise
    return writev.apply(this, all)
  })
  onTestFinished(() => {
    halted.mockRestore()
  })
  return { reached: reached.promise, goOn: () => gate.resolve() }
}

describe('an upload', () => {
  const begun = () => [`--b\r\nContent-Disposition: form-data; name=f; filename=f\r\n\r\n`, Buffer.alloc(MiB)]
  const long = `content-length: ${5 * MiB}`

  test('tells of each field as it comes; what that throws ends it', async () => {
    const seen: string[] = []
    limited({
      onField(name, value) {
        seen.push(`${name}=${value}`)
        if (value === 'no') throw new RouterError('forbidden', 'Not this one.', { param: name })
      },
    })
    const { closed } = send(
      [bodyOf([field('a', '1'), field('model', 'no'), field('c', '3')]).subarray(0, -4)],
      type,
      long,
    )
    const { request } = await next()
    expect(await errorOf()).toMatchObject({ code: 'forbidden', param: 'model' })
    expect(seen).toEqual(['a=1', 'model=no'])
    await within(5_000, 'closing the connection', closed)
    expectNothingLeft(request)
  })

  test('that stalls → 400', async () => {
    limited({ idleMs: 200 })
    send(begun(), type, long)
    const { request } = await next()
    expect(await errorOf()).toMatchObject({ status: 400, message: expect.stringContaining('200 ms') })
    expectNothingLeft(request)
  })

  test('that the client gives up leaves nothing', async () => {
    limited({})
    const { socket } = send(begun(), type, long)
    const { request } = await next()
    if (process.platform === 'linux') await eventually(() => expect(openFiles()).toBe(1))
    socket.destroy()
    expect((await errorOf()).code).toBe('client_gone')
    expectNothingLeft(request)
  })

  test.each([
    ['fits into a chunk', 100 * KiB, false],
    ['is large', 5 * MiB, true],
  ])('that %s waits for the disk, and the client does not fail by that', async (_, size, isPaused) => {
    limited({ idleMs: 100 })
    const disk = await haltDisk()
    const content = randomBytes(size)
    const body = bodyOf([file('f', content)])
    send([body], type, `content-length: ${body.length}`)
    const { request, outcome } = await next()
    await disk.reached
    const early = await Promise.race([outcome, pause(400)])
    expect([early, request.isPaused(), request.complete]).toEqual([undefined, isPaused, !isPaused])
    disk.goOn()
    const form = await formOf()
    expect(content.equals(await bytesOf(form.files[0]))).toBe(true)
  })

  test('that is refused is read no further', async () => {
    limited({ fieldBytes: 10 })
    const { socket } = send([], type, long)
    socket.write(`--b\r\nContent-Disposition: form-data; name=a\r\n\r\n${'x'.repeat(100)}`)
    const { request, outcome } = await next()
    await outcome
    expect(request.isPaused()).toBe(true)
    expect((await errorOf()).status).toBe(413)
  })

  test('that the disk cannot take → 503', async () => {
    limited({ folder: join(folder, 'missing') })
    send(begun(), type, long)
    expect((await errorOf()).code).toBe('unavailable')
  })

  test('that was given up before it began is not read', async () => {
    limited({})
    const own = running.begin({ on() {} } as never)
    own.abort(new RouterError('stopping', 'Later.'))
    const request = { headers: { 'content-type': type.slice(14), 'content-length': '9' }, socket: {} } as Request
    const sent = readForm(request, { locals: {} } as Response, { ...usual, running: own })
    await expect(sent).rejects.toMatchObject({ code: 'stopping' })
    running.end(own)
  })
})
