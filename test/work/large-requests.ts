import fc from 'fast-check'
import { type Filling, filling, many, repeated } from './bodies.ts'

/** Sizes of the largest bodies that a server with default settings takes. */
export const largest = { bytes: 50 * 1024 * 1024, values: 200_000 }

/** One large request: its body is close to a limit in its bytes or its values. */
export type LargeRequest = { path: string; type: string; body: string | Uint8Array }

/** Returns copies of a piece that fill so many bytes. */
function repeatedIn(bytes: number, piece: string): string {
  return piece.repeat(Math.floor(bytes / Buffer.byteLength(piece)))
}

/** Returns copies of what `one` writes: as many as fit into the bytes and the values, each with so many values. */
function filled(one: (index: number) => string, valuesOfOne: number): string {
  const mostCopies = Math.floor((largest.values - 1_000) / valuesOfOne)
  let bytes = 1_000
  const copies: string[] = []
  for (let index = 0; index < mostCopies; index++) {
    const copy = one(index)
    bytes += Buffer.byteLength(copy) + 1
    if (bytes > largest.bytes) break
    copies.push(copy)
  }
  return copies.join(',')
}

/** JSON values that fill a body, wherever they are. */
const values: Readonly<Record<string, (filling: Filling) => string>> = {
  'a long text': ({ piece }) => `"${repeatedIn(largest.bytes - 2_000, piece)}"`,
  'short texts': ({ piece }) => `[${filled(() => `"${piece}"`, 1)}]`,
  'texts that fill both': ({ piece }) => `[${filled(() => `"${repeatedIn(240, piece)}"`, 1)}]`,
  'two thousand texts': ({ piece }) =>
    `[${Array.from({ length: 2_000 }, () => `"${repeatedIn(Math.floor(largest.bytes / 2_000) - 10, piece)}"`).join(',')}]`,
  numbers: () => `[${filled((index) => String(index), 1)}]`,
  'lists of numbers': () => `[${filled(() => '[1,2,3]', 4)}]`,
  'wide objects': () => `[${filled(() => `{${many(9_000 * 9, (index) => `"x${index}":1`)}}`, 9_000)}]`,
  'deep lists': () => `[${filled(() => '['.repeat(150) + ']'.repeat(150), 150)}]`,
  'parts of text': ({ piece }) => `[${filled(() => `{"type":"text","text":"${piece}"}`, 3)}]`,
  'parts of images': () => `[${filled(() => `{"type":"image_url","image_url":{"url":"${pixel}"}}`, 4)}]`,
  'one large image': () => `[{"type":"image_url","image_url":{"url":"data:image/png;base64,${large}"}}]`,
  'one large sound': () => `[{"type":"input_audio","input_audio":{"format":"wav","data":"${large}"}}]`,
  'one large file': () =>
    `[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,${large}"}}]`,
  messages: ({ piece }) =>
    `[${filled((index) => `{"role":"${index % 2 ? 'assistant' : 'user'}","content":"${piece}"}`, 3)}]`,
}

const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const large = `${pixel.slice(22, 60)}${'A'.repeat(largest.bytes - 2_000)}`
  .replace(/=/g, 'A')
  .slice(0, largest.bytes - 2_000 - (largest.bytes % 4))

/** Bodies of a path with one place for a value. */
type Place = (value: string) => string

const hi = '[{"role":"user","content":"Hi"}]'
const tool = (value: string) =>
  `{"type":"function","function":{"name":"f","parameters":{"type":"object","x":${value}}}}`

const places: Readonly<Record<string, readonly Place[]>> = {
  '/v1/chat/completions': [
    (value) => `"messages":[{"role":"user","content":${value}}]`,
    (value) => `"messages":${value}`,
    (value) => `"messages":${hi},"tools":[${tool(value)}]`,
    (value) => `"messages":${hi},"tools":${value}`,
    (value) =>
      `"messages":${hi},"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"x":${value}}}}`,
    (value) => `"messages":${hi},"metadata":{"a":${value}}`,
    (value) => `"messages":${hi},"stop":${value}`,
    (value) =>
      `"messages":[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${JSON.stringify(`{"a":${value.slice(0, 20_000_000)}`)}}}]},{"role":"tool","tool_call_id":"c","content":"ok"}]`,
  ],
  '/v1/messages': [
    (value) => `"max_tokens":9,"messages":[{"role":"user","content":${value}}]`,
    (value) => `"max_tokens":9,"messages":${value}`,
    (value) => `"max_tokens":9,"messages":${hi},"system":${value}`,
    (value) => `"max_tokens":9,"messages":${hi},"tools":[{"name":"f","input_schema":{"type":"object","x":${value}}}]`,
  ],
  '/v1/messages/count_tokens': [
    (value) => `"messages":[{"role":"user","content":${value}}]`,
    (value) => `"messages":${value}`,
  ],
  '/v1/responses': [
    (value) => `"input":${value}`,
    (value) => `"input":[{"role":"user","content":${value}}]`,
    (value) => `"input":"Hi","instructions":${value}`,
    (value) => `"input":"Hi","tools":[{"type":"function","name":"f","parameters":{"x":${value}}}]`,
  ],
  '/v1/responses/input_tokens': [(value) => `"input":${value}`],
  '/v1/responses/compact': [(value) => `"input":${value}`, (value) => `"input":[{"role":"user","content":${value}}]`],
  '/v1/images/generations': [(value) => `"prompt":${value}`, (value) => `"prompt":"x","y":${value}`],
  '/v1/completions': [
    (value) => `"prompt":${value}`,
    (value) => `"prompt":"x","suffix":${value}`,
    (value) => `"prompt":"x","stop":${value}`,
  ],
  '/v1/embeddings': [(value) => `"input":${value}`],
  '/v1/rerank': [(value) => `"query":"x","documents":${value}`, (value) => `"query":${value},"documents":["a"]`],
  '/v1/moderations': [(value) => `"input":${value}`],
  '/v1/images/edits': [
    (value) => `"prompt":${value},"images":[{"image_url":"${pixel}"}]`,
    (value) => `"prompt":"x","images":${value}`,
  ],
  '/v1/audio/transcriptions': [(value) => `"file":${value}`],
  '/v1/decisions': [
    (value) => `"input":${value},"questions":[{"type":"boolean","name":"a","text":"b"}]`,
    (value) => `"input":"x","questions":${value}`,
    (value) => `"state":${value},"questions":{"a":{"type":"boolean"}}`,
  ],
  '/v1/audio/speech': [(value) => `"voice":"v","input":${value}`],
}

/** Forms: their parts, and how much of them. */
const forms: Readonly<Record<string, (filling: Filling) => Uint8Array>> = {
  'many small fields': ({ piece }) => form(Array.from({ length: 990 }, (_, at) => field(`f${at}`, piece))),
  'one long field': ({ piece }) => form([field('prompt', repeated(1_000_000, piece))]),
  'a file of zeros': () => form([file('file', 'a.mp3', Buffer.alloc(30_000_000))]),
  'a file that looks like boundaries': () =>
    form([file('file', 'a.wav', Buffer.from('\r\n--b\r\n-'.repeat(3_500_000)))]),
  'headers without end': () => form([`--b\r\n${'x: y\r\n'.repeat(100_000)}`]),
  'a sound of small frames': () =>
    form([file('file', 'a.mp3', Buffer.alloc(31_000_000, Buffer.from('fffb1064', 'hex')))]),
  'an archive of small entries': () => form([file('file', 'a.m4a', archive())]),
}

const field = (name: string, value: string) =>
  `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
const file = (name: string, filename: string, bytes: Uint8Array) =>
  Buffer.concat([
    Buffer.from(`--b\r\ncontent-disposition: form-data; name="${name}"; filename="${filename}"\r\n\r\n`),
    bytes,
    Buffer.from('\r\n'),
  ])

function form(parts: readonly (string | Uint8Array)[]): Uint8Array {
  return Buffer.concat([
    ...[field('model', 'all/t'), ...parts].map((part) => Buffer.from(part)),
    Buffer.from('--b--\r\n'),
  ])
}

/** Boxes of eight bytes, one after another. */
function archive(): Buffer {
  const head = Buffer.from('000000186674797069736f6d0000020069736f6d69736f32', 'hex')
  return Buffer.concat([head, Buffer.alloc(30_000_000, Buffer.from('0000000866726565', 'hex'))])
}

/** The models of the provider, by path. */
const models: Readonly<Record<string, string>> = {
  '/v1/images/generations': 'all/i',
  '/v1/images/edits': 'all/i',
  '/v1/completions': 'all/p',
  '/v1/embeddings': 'all/e',
  '/v1/rerank': 'all/r',
  '/v1/moderations': 'all/m',
  '/v1/audio/transcriptions': 'all/t',
  '/v1/audio/speech': 'all/s',
}

/** Returns a request of a path for each place that takes a value, at a model of the same format and of another one. */
export function requestsWith(path: string, value: string): (LargeRequest & { name: string })[] {
  return (places[path] ?? []).flatMap((place, way) =>
    ['all/c', 'other/c'].map((slug) => ({
      name: `at ${way} ${slug}`,
      path,
      type: 'application/json',
      body: `{"model":"${models[path] ?? slug}",${place(value)}}`,
    })),
  )
}

/** A query that is read with each of many documents. */
export const longQuery: LargeRequest = {
  path: '/v1/rerank',
  type: 'application/json',
  body: `{"model":"all/r","query":"${'q'.repeat(20_000_000)}","documents":[${Array.from({ length: 20_000 }, () => '"x"').join()}]}`,
}

/** A text that is escaped in as much time as its length allows. */
export const quotes = (): string => `"${repeatedIn(largest.bytes - 2_000, '\\"')}"`

/** The paths that take a body, with how large requests to each are made. */
export const largeRequests: Readonly<Record<string, fc.Arbitrary<LargeRequest & { name: string }>>> =
  Object.fromEntries(
    Object.entries(places).map(([path, ways]) => {
      const json = fc
        .record({
          way: fc.nat(ways.length - 1),
          value: fc.constantFrom(...Object.keys(values)),
          filling,
          slug: fc.constantFrom('all/c', 'other/c'),
        })
        .map(({ way, value, filling, slug }) => ({
          name: `${value} at ${way} ${JSON.stringify(filling.piece)} ${slug}`,
          path,
          type: 'application/json',
          body: `{"model":"${models[path] ?? slug}",${ways[way]?.(values[value]?.(filling) ?? '')}}`,
        }))
      const takesForms = path === '/v1/audio/transcriptions' || path === '/v1/images/edits'
      const asForm = fc.record({ name: fc.constantFrom(...Object.keys(forms)), filling }).map(({ name, filling }) => ({
        name,
        path,
        type: 'multipart/form-data; boundary=b',
        body: forms[name]?.(filling) ?? '',
      }))
      return [path, takesForms ? fc.oneof(json, asForm) : json]
    }),
  )
