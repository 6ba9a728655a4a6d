import { describe, expect, test } from 'vitest'
import type { OperationApi } from '../../src/api/operation-api.ts'
import { speech } from '../../src/api/operations/audio/speech.ts'
import { transcriptions } from '../../src/api/operations/audio/transcriptions.ts'
import { decisions } from '../../src/api/operations/decisions/decisions.ts'
import { images } from '../../src/api/operations/images/images.ts'
import { rerank } from '../../src/api/operations/rerank.ts'
import { mostAt } from '../../src/call/attempt/operation-by-chat.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { ModelEntry } from '../../src/core/models/model.ts'
import type { Provider } from '../../src/manifest/provider.ts'

// The most that a call for an operation can use: what is reserved for it.

const bytes = (count: number) => 'x'.repeat(count)

describe('queries of a rerank', () => {
  /** A text has at most eight tokens more than bytes; a query and a document that have 500 together are one document. */
  const queries = (query: number, documents: number[], more: JsonObject = {}) => {
    const json = { model: 'a/b', query: bytes(query), documents: documents.map(bytes), ...more }
    return rerank.maxUsage(rerank.read({ json }), undefined).queries
  }

  test.each([
    ['one for each hundred documents that are begun', 12, Array(100).fill(10), 1],
    ['two for a hundred and one', 12, Array(101).fill(10), 2],
    ['documents that are just short enough', 92, Array(100).fill(392), 1],
    ['documents that are longer than what the query leaves', 92, Array(100).fill(393), 2],
    ['a query that leaves less', 192, Array(100).fill(392), 2],
    ['a query that takes half at most', 2_000, Array(100).fill(242), 1],
    ['no more than half is left beside a long query', 2_000, Array(100).fill(243), 2],
    ['of a very long document the first 4,096 tokens', 92, Array(100).fill(100_000), 11],
  ])('%s', (_, query, documents, most) => {
    expect(queries(query, documents)).toBe(most)
  })

  test('of a document as much as is to be read, or all of it where that is less', () => {
    const documents = Array(100).fill(4_000)
    expect(queries(92, documents, { max_tokens_per_doc: 400 })).toBe(1)
    expect(queries(92, documents, { max_tokens_per_doc: 401 })).toBe(2)
    expect(queries(92, Array(100).fill(392), { max_tokens_per_doc: 4_000 })).toBe(1)
  })
})

describe('pixels of an image', () => {
  const megapixels = (fields: JsonObject, entry: Partial<ModelEntry> = {}) =>
    images.maxUsage(images.read({ json: { model: 'a/b', prompt: 'A cat', ...fields } }), { api: 'image', ...entry })
      .megapixels

  test.each([
    ['those of the size that is asked for', { size: '512x256' }, {}, 512 * 256],
    ['the most that the model draws', {}, { sizes: ['512x512', '2048x1024', '1024x1024'] }, 2048 * 1024],
    ['the most that a small model draws', {}, { sizes: ['512x512', '256x256'] }, 512 * 512],
    ['those of a size with a name', {}, { sizes: ['1k', '2k'] }, 2048 * 2048],
    ['a usual large size, where the catalog does not say', {}, {}, 1536 * 1024],
    ['a usual large size, where it has no numbers', {}, { sizes: ['auto'] }, 1536 * 1024],
    ['those of each image', { size: '1000x1000', n: 3 }, {}, 3_000_000],
    [
      'a usual large size, where the one asked for is smaller than what models draw',
      { size: '64x64' },
      {},
      1536 * 1024,
    ],
    ['the most that the model draws, likewise', { size: '300x400' }, { sizes: ['1024x1024'] }, 1024 * 1024],
    ['those of the resolution, where it is larger than the size', { size: '512x512', resolution: '4k' }, {}, 4096 ** 2],
    [
      'those of the size, where it is larger than the resolution',
      { size: '4096x4096', resolution: '1k' },
      {},
      4096 ** 2,
    ],
  ])('are %s', (_, fields, entry, pixels) => {
    expect(megapixels(fields, entry)).toBeCloseTo(pixels / 1e6, 9)
  })
})

test('an image of less than 64 pixels is refused', () => {
  for (const size of ['10x10', '63x1024', '1024x63']) {
    expect(() => images.read({ json: { model: 'a/b', prompt: 'A cat', size } })).toThrow("'size' must be at least 64")
  }
})

describe('fields that a target may not take', () => {
  const most = (endpoint: object, fields: JsonObject, api: OperationApi = images) => {
    const provider = {
      slug: 'a',
      operations: { [api.operation]: { offered: true, path: '/', unsupported: [], patch: {}, ...endpoint } },
    } as unknown as Provider
    const target = { provider, model: 'm', entry: { api: 'image' } }
    return mostAt(target, { api, request: api.read({ json: { model: 'a/m', ...fields } }), at: 0 }).usage
  }
  const asked = { prompt: 'A cat', size: '512x512' }
  const mapped = (...names: string[]) => ({ request: { names: new Set(names) } })

  test.each([
    ['that takes all of them', {}, 512 * 512],
    ['whose mapping reads them', mapped('prompt', 'size'), 512 * 512],
    ['that declares it as unsupported', { unsupported: [{ field: 'size' }] }, 1536 * 1024],
    ['that declares it as unsupported sometimes', { unsupported: [{ field: 'size', when: {} }] }, 1536 * 1024],
    ['whose mapping does not read it', mapped('prompt'), 1536 * 1024],
  ])('bound nothing: an endpoint %s', (_, endpoint, pixels) => {
    expect(most(endpoint, asked).megapixels).toBeCloseTo(pixels / 1e6, 9)
  })

  test('bound no document that is reranked', () => {
    const long = { query: 'q', documents: Array(100).fill(bytes(4_000)), max_tokens_per_doc: 1 }
    expect(most({}, long, rerank).queries).toBe(1)
    expect(most({ unsupported: [{ field: 'max_tokens_per_doc', when: {} }] }, long, rerank).queries).toBe(9)
  })
})

describe('tokens of a decision', () => {
  const question = { type: 'predicate', instructions: 'Is it?' }
  const input = (fields: JsonObject, entry: Partial<ModelEntry> = {}) =>
    decisions.maxUsage(decisions.read({ json: { model: 'a/b', questions: [question], ...fields } }), {
      ...{ api: 'decision', ...entry },
    }).input as number
  const image = (url: string) => ({ type: 'input_image', image_url: url })
  const message = (...content: JsonObject[]) => ({ input: [{ role: 'user', content }] })
  const text = input({ input: 'x' })

  test.each([
    ['at an address', message(image('https://a.example/1.png')), 1],
    ['as data, whatever its size', message(image('data:image/png;base64,iVBORw0KGgo=')), 1],
    ['several times', message(image('https://a.example/1.png'), image('https://a.example/1.png')), 2],
    [
      'in a question',
      { input: 'x', questions: [{ ...question, instructions: [image('https://a.example/1.png')] }] },
      1,
    ],
  ])('are those of its images, which come %s', (_, fields, images) => {
    expect(input(fields)).toBeGreaterThanOrEqual(images * 49_152)
    expect(input(fields)).toBeLessThan(images * 49_152 + text + 400)
    expect(input(fields, { context_window: 8_000 })).toBeLessThan(images * 8_000 + text + 400)
  })

  test('are those of data that only looks like an image', () => {
    const data = { type: 'input_json', data: { type: 'input_image', image_url: `data:${bytes(90_000)}` } }
    expect(input(message(data))).toBeGreaterThan(90_000)
  })
})

describe('a transcription', () => {
  const most = (seconds: number, entry: Partial<ModelEntry>) => {
    const request = { operation: 'transcribe' as const, model: 'a/b', fields: {}, files: [], unread: {}, stream: false }
    const audio = { seconds, maxSeconds: seconds, exact: true }
    return transcriptions.maxUsage({ ...request, audio } as Parameters<typeof transcriptions.maxUsage>[0], {
      ...{ api: 'transcription', ...entry },
    })
  }

  test.each([
    ['as many as it lasts', 12.2, {}, 13],
    ['as many as are billed at least', 3, { min_seconds: 10 }, 10],
    ['as many as it lasts, where that is more', 12.2, { min_seconds: 10 }, 13],
  ])('has seconds: %s', (_, seconds, entry, expected) => {
    expect(most(seconds, entry).seconds).toBe(expected)
  })

  test.each([30, 600, 3_600])('of %i s is reserved at no more than twice the price of ordinary speech', (seconds) => {
    const { input_audio: sound = 0, output = 0, input = 0 } = most(seconds, { audio_tokens_per_second: 10 })
    // The prices of gpt-4o-transcribe: 0.006 USD a minute, as published, are ten tokens of sound and four of text a second.
    const cost = sound * 6e-6 + output * 10e-6 + input * 2.5e-6
    const ordinary = (seconds * 0.006) / 60
    expect(cost / ordinary).toBeGreaterThan(1.4)
    expect(cost / ordinary).toBeLessThan(2)
    // One that names the speakers was recorded with 39 tokens of text a second.
    const named = most(seconds, { audio_tokens_per_second: 10, formats: ['json', 'diarized_json'] })
    const namedCost = (named.input_audio ?? 0) * 6e-6 + (named.output ?? 0) * 10e-6
    expect(namedCost / (seconds * (10 * 6e-6 + 39 * 10e-6))).toBeLessThan(2)
    expect(named.output).toBeGreaterThan(39 * seconds)
  })

  test.each([
    ['as can be said in that time', 10, {}, 10 * 48 + 256],
    ['as the model can write', 10, { max_output_tokens: 100 }, 100],
    ['as can be said in that time, where the model can write more', 10, { max_output_tokens: 10_000 }, 10 * 48 + 256],
  ])('has as many tokens of text %s', (_, seconds, entry, expected) => {
    expect(most(seconds, entry).output).toBe(expected)
  })
})

describe('seconds of speech', () => {
  const seconds = (fields: JsonObject) =>
    speech.maxUsage(speech.read({ json: { model: 'a/b', input: bytes(100), voice: 'alloy', ...fields } }), undefined)
      .seconds

  test.each([
    ['of a text', {}, 30],
    ['that is spoken slowly', { speed: 0.5 }, 60],
    ['that is spoken fast: providers may take no heed', { speed: 2 }, 30],
    ['with instructions', { instructions: 'Pause.' }, 60],
    ['of digits', { input: '1'.repeat(20) }, 30],
  ])('%s', (_, fields, expected) => {
    expect(seconds(fields)).toBeCloseTo(expected, 6)
  })
})

test.each([
  ['a second has at most', undefined, 750],
  ['the model gives at most', 700, 700],
  ['a second has at most, where the model gives more', 800, 750],
])('speech has as many tokens as %s', (_, max_output_tokens, expected) => {
  const entry: ModelEntry = { api: 'speech', ...(max_output_tokens !== undefined && { max_output_tokens }) }
  const request = speech.read({ json: { model: 'a/b', input: bytes(100), voice: 'alloy' } })
  expect(speech.maxUsage(request, entry).output_audio).toBe(expected)
})
