import { describe, expect, test } from 'vitest'
import { speech } from '../../src/api/operations/audio/speech.ts'
import { transcriptions } from '../../src/api/operations/audio/transcriptions.ts'
import { images } from '../../src/api/operations/images/images.ts'
import { rerank } from '../../src/api/operations/rerank.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { ModelEntry } from '../../src/core/models/model.ts'

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
  ])('are %s', (_, fields, entry, pixels) => {
    expect(megapixels(fields, entry)).toBeCloseTo(pixels / 1e6, 9)
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
