import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fileField } from '../../src/api/operations/form-fields.ts'
import type { UploadedFile } from '../../src/core/operation.ts'
import {
  bytesBody,
  formBody,
  jsonBody,
  type MultipartEntry,
  multipartBody,
  type OutgoingBody,
  wholeBytes,
} from '../../src/upstream/outgoing-body.ts'

/** A file whose bytes come in pieces of this size. */
function fileOf(bytes: Uint8Array, piece = 7): UploadedFile {
  return {
    field: 'file',
    filename: 'f.bin',
    mediaType: 'audio/mpeg',
    size: bytes.length,
    head: bytes.subarray(0, 4096),
    async *read() {
      for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece)
    },
  }
}

async function bytesOf(body: OutgoingBody): Promise<Buffer> {
  return Buffer.from((await wholeBytes(body.bytes(), 2 ** 30)) ?? '')
}

const pieces = fc.integer({ min: 1, max: 20 })
const bytes = fc.uint8Array({ maxLength: 100 })

describe('a JSON body', () => {
  test.each<[object, string]>([
    [{ a: 1, b: undefined, c: [null] }, '{"a":1,"c":[null]}'],
    [{ cut: 'x\ud83d', whole: '🙂', escaped: '\\ud83d' }, '{"cut":"x\ufffd","whole":"🙂","escaped":"\\\\ud83d"}'],
    [{ a: { $file: 0 } }, '{"a":{"$file":0}}'],
  ])('%j is a text', (value, text) => {
    const body = jsonBody(value as never)
    expect([body.contentType, body.bytes(), body.bytes()]).toEqual(['application/json', text, text])
  })

  test('has files in base64 where they are named, and its length is known', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(bytes, { minLength: 1, maxLength: 3 }), pieces, async (contents, piece) => {
        const files = contents.map((content) => fileOf(content, piece))
        const last = files.length - 1
        const body = jsonBody({ text: 'ż', first: { $file: 0 }, more: [{ $file: last }, 'x\ud83d'] }, files)
        const [text, again] = [await bytesOf(body), await bytesOf(body)]
        expect([again, body.length]).toEqual([text, text.length])
        const base64 = contents.map((content) => Buffer.from(content).toString('base64'))
        const expected = { text: 'ż', first: base64[0], more: [base64[last], 'x\ufffd'] }
        expect(JSON.parse(text.toString())).toEqual(expected)
      }),
    )
  })

  test.each([{ $file: 1 }, { $file: -1 }, { $file: 0.5 }, { $file: '0' }, { $file: 0, more: 1 }, { $file: null }])(
    '%j is no file of one',
    (value) => {
      expect(jsonBody({ value }, [fileOf(Buffer.from('x'))]).bytes()).toBe(JSON.stringify({ value }))
    },
  )

  test('has the base64 of a file object as it stands among the fields of a client', async () => {
    const file = fileOf(Buffer.from('sound'))
    const field = fileField(file, 0)
    const body = jsonBody({ audio: field, link: { ...field, data_url: true } }, [file])
    const base64 = Buffer.from('sound').toString('base64')
    expect(JSON.parse((await bytesOf(body)).toString())).toEqual({
      audio: base64,
      link: `data:audio/mpeg;base64,${base64}`,
    })
  })

  test('is made as it is sent', async () => {
    let read = 0
    const piece = Buffer.alloc(64 * 1024)
    const large: UploadedFile = {
      ...fileOf(piece),
      size: piece.length * 1_000,
      async *read() {
        for (; read < 1_000; read++) yield piece
      },
    }
    const iterator = (jsonBody({ a: { $file: 0 } }, [large]).bytes() as AsyncIterable<Uint8Array>)[
      Symbol.asyncIterator
    ]()
    for (let at = 0; at < 5; at++) await iterator.next()
    expect(read).toBeLessThan(6)
  })
})

describe('a form with files', () => {
  /** What the platform reads from it. */
  const formDataOf = async (body: OutgoingBody) =>
    await new Response(await bytesOf(body), { headers: { 'content-type': body.contentType } }).formData()

  test('is what others read', async () => {
    const name = fc.string({ unit: fc.constantFrom('a', 'ż', '🙂', ';', "'", '\\x', '=', ' ', '%') })
    const field = fc.record({ name, value: fc.string({ unit: fc.constantFrom('a', 'ż', '\r\n', '--', '"', 'form-') }) })
    const upload = fc.record({ name, filename: name, content: bytes, piece: pieces })
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(field, upload), { maxLength: 5 }), async (entries) => {
        const body = multipartBody(
          entries.map((entry): MultipartEntry => {
            if ('value' in entry) return entry
            return { ...fileOf(entry.content, entry.piece), name: entry.name, filename: entry.filename }
          }),
        )
        expect((await bytesOf(body)).length).toBe(body.length)
        expect(await bytesOf(body)).toEqual(await bytesOf(body))
        if (entries.length === 0) return
        const read = await Promise.all(
          [...(await formDataOf(body))].map(async ([name, value]) =>
            typeof value === 'string' ? { name, value } : { name, filename: value.name, bytes: await value.bytes() },
          ),
        )
        expect(read).toEqual(
          entries.map((entry) =>
            'value' in entry ? entry : { name: entry.name, filename: entry.filename, bytes: entry.content },
          ),
        )
      }),
    )
  })

  test('has names that end nowhere else', async () => {
    const evil = 'a"\r\nx: 1'
    const file = { ...fileOf(Buffer.from('x')), name: evil, filename: evil, mediaType: 'a/b\r\nx: 1' }
    const text = (await bytesOf(multipartBody([{ name: evil, value: 'v' }, file]))).toString()
    expect(text.match(/name="a%22%0D%0Ax: 1"/g)).toHaveLength(3)
    expect(text).toContain('content-type: application/octet-stream\r\n')
    expect(text).not.toMatch(/^x: 1/m)
  })

  test('has another boundary each time', () => {
    const types = Array.from({ length: 10 }, () => multipartBody([]).contentType)
    expect(new Set(types).size).toBe(10)
  })
})

test('a form without files is url-encoded', () => {
  const { contentType, bytes } = formBody([
    ['a b', 'ż&='],
    ['a b', '\ud83d'],
  ])
  expect([contentType, bytes()]).toEqual(['application/x-www-form-urlencoded', 'a+b=%C5%BC%26%3D&a+b=%EF%BF%BD'])
})

test('a file is a body of its own type', async () => {
  const body = bytesBody(fileOf(Buffer.from('sound')))
  expect(body).toMatchObject({ contentType: 'audio/mpeg', length: 5 })
  expect([(await bytesOf(body)).toString(), (await bytesOf(body)).toString()]).toEqual(['sound', 'sound'])
  expect(bytesBody({ ...fileOf(Buffer.from('')), mediaType: 'a/b\r\nx: 1' }).contentType).toBe(
    'application/octet-stream',
  )
})

test('a body is whole up to a bound', async () => {
  const body = bytesBody(fileOf(Buffer.alloc(100)))
  expect(await wholeBytes(body.bytes(), 100)).toHaveLength(100)
  expect(await wholeBytes(body.bytes(), 99)).toBeUndefined()
})
