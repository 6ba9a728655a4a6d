import { RouterError } from '../../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { ModelEntry } from '../../core/models/model.ts'
import type { OperationRequest } from '../../core/operation.ts'
import { fieldsOf, integer, oneOf, required, text } from '../check.ts'
import type { OperationApi, OperationFacts } from '../operation-api.ts'
import { embeddingInput, imagesIn, inputsIn, maxTokensIn, textsIn, tokensIn } from './embedding-input.ts'
import { jsonOf, promptCounts, readFields, unreadableReply, usageBlock } from './shared.ts'

/** Embeddings: texts, tokens or images in, vectors out. */
export const embeddings: OperationApi = {
  operation: 'embed',
  json: true,
  needs: ['input'],
  read(body) {
    const json = jsonOf(body)
    const input = required(json.input, 'input', 'a string, or an array of strings or tokens', embeddingInput)
    const fields = { input, ...fieldsOf<JsonObject>(json, optionalFields) }
    return readFields('embed', json, { fields, stream: false })
  },
  wants: () => 'json',
  checkModel: checkDimensions,
  maxUsage({ fields: { input } }, entry) {
    const images = imagesIn(input)
    const tokens = maxTokensIn(input) + images * (entry?.context_window ?? maxTokensOfImage)
    return { input: tokens, ...(images > 0 && { input_images: images }) }
  },
  texts: ({ fields: { input } }) => textsIn(input),
  count({ fields: { input } }) {
    const images = imagesIn(input)
    return images > 0 ? { input_images: images } : {}
  },
  estimate: ({ fields }) => ({ input: tokensIn(fields.input) }),
  check: (reply, request) => void vectorsIn(reply, request),
  write,
  join: (replies, offsets) => ({
    ...replies[0],
    data: replies.flatMap((reply, piece) =>
      inOrder(reply).map((one, index) => ({ ...one, index: (offsets[piece] ?? 0) + index })),
    ),
  }),
}

const optionalFields = [
  ['dimensions', integer(1)],
  ['encoding_format', oneOf(['float', 'base64'])],
  ['input_type', text],
] as const

/** Limit for models that do not state how much they can read. */
const maxTokensOfImage = 128_000

function checkDimensions({ fields }: OperationRequest, entry: ModelEntry): void {
  const { dimensions } = fields
  const most = entry.max_dimensions ?? entry.dimensions
  if (typeof dimensions !== 'number' || dimensions === entry.dimensions) return
  const free = entry.dimensions_free ?? true
  if (Array.isArray(free) && !free.includes(dimensions)) refuseDimensions(dimensions, `one of ${free.join(', ')}`)
  if (free === false && entry.dimensions !== undefined) refuseDimensions(dimensions, String(entry.dimensions))
  if (most !== undefined && dimensions > most) refuseDimensions(dimensions, `a whole number from 1 to ${most}`)
}

function refuseDimensions(dimensions: number, expected: string): never {
  const message = `'dimensions' must be ${expected} for this model, not ${dimensions}.`
  throw new RouterError('invalid_request', message, { param: 'dimensions' })
}

function write(reply: JsonObject, facts: OperationFacts): JsonObject {
  const { encoding_format: format = 'float' } = facts.request.fields
  const data = vectorsIn(reply, facts.request).map(({ embedding }, index) => ({
    object: 'embedding',
    index,
    embedding: encodedVector(embedding, format),
  }))
  const { object: _, data: __, model: ___, usage: ____, ...others } = reply
  return { object: 'list', data, model: facts.model, ...others, usage: usageBlock(facts, promptCounts) }
}

/** Returns one vector for each input, in their order. Throws RouterError. */
function vectorsIn(reply: JsonObject, { fields: { input } }: OperationRequest): JsonObject[] {
  const vectors = inOrder(reply)
  const expected = inputsIn(input)
  if (vectors.length !== expected) throw unreadableReply(`${vectors.length} vectors for ${expected} inputs`)
  return vectors
}

/** The vectors in the order of their inputs. Throws RouterError. */
function inOrder({ data }: JsonObject): JsonObject[] {
  if (!Array.isArray(data) || !data.every(isObject)) throw unreadableReply('no list of vectors')
  const ordered: (JsonObject | undefined)[] = data.map(() => undefined)
  for (const [place, one] of data.entries()) {
    const index = one.index ?? place
    if (typeof index !== 'number' || !(index in ordered) || ordered[index]) {
      throw unreadableReply('vectors whose indices are not those of the inputs')
    }
    ordered[index] = one
  }
  return ordered as JsonObject[]
}

/** A vector in the form that the client wants: numbers, or 32-bit floats (little-endian) in base64. Throws RouterError. */
function encodedVector(vector: Json | undefined, format: Json): Json {
  if (typeof vector === 'string') {
    const bytes = bytesOf(vector)
    return format === 'base64' ? vector : numbersIn(bytes)
  }
  if (!isVector(vector)) throw unreadableReply('a vector that is neither a list of numbers nor base64')
  return format === 'base64' ? base64Of(vector) : vector
}

function isVector(vector: Json | undefined): vector is number[] {
  return Array.isArray(vector) && vector.length > 0 && vector.every((one) => typeof one === 'number')
}

function bytesOf(base64: string): Buffer {
  const bytes = Buffer.from(base64, 'base64')
  if (bytes.length === 0 || bytes.length % 4 !== 0)
    throw unreadableReply('a vector in base64 that is not of 32-bit floats')
  return bytes
}

function numbersIn(bytes: Buffer): number[] {
  return Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4))
}

function base64Of(numbers: readonly number[]): string {
  const bytes = Buffer.alloc(numbers.length * 4)
  for (const [index, one] of numbers.entries()) bytes.writeFloatLE(one, index * 4)
  return bytes.toString('base64')
}
