import { mostAnswers, requireCount } from './bounds.ts'
import { tokensOf } from './tokens.ts'
import { bodyFor, hashOf, otherModels as models, wordsOf, wrong } from './words.ts'

/** Vectors of length 1, the sum of those of the words: texts with the same words are near. Throws SimulatedError. */
export function embeddingsOf(body: unknown): object {
  const { input, dimensions = usualDimensions, encoding_format: format } = bodyFor(models.embed, body)
  if (!Number.isInteger(dimensions) || Number(dimensions) < 1 || Number(dimensions) > mostDimensions)
    throw wrong('dimensions', `a whole number from 1 to ${mostDimensions}`)
  const texts = textsIn(input)
  const data = texts.map((text, index) => {
    const vector = vectorOf(wordsOf(text), Number(dimensions))
    return { object: 'embedding', index, embedding: format === 'base64' ? base64Of(vector) : vector }
  })
  const count = texts.reduce((sum, text) => sum + tokensOf(text).length, 0)
  return { object: 'list', data, model: models.embed, usage: { prompt_tokens: count, total_tokens: count } }
}

const usualDimensions = 256
const mostDimensions = 1_024

/** Each input as a text; ids of tokens are its words. */
function textsIn(input: unknown): string[] {
  if (typeof input === 'string') return [input]
  if (!Array.isArray(input) || input.length === 0) throw wrong('input', 'a string or an array that is not empty')
  if (typeof input[0] === 'number') return [input.join(' ')]
  requireCount(input.length, mostAnswers, 'input')
  return input.map((one) => (Array.isArray(one) ? one.join(' ') : String(one)))
}

function vectorOf(words: readonly string[], dimensions: number): number[] {
  const sum = new Array<number>(dimensions).fill(0)
  for (const word of words.length > 0 ? words : ['']) {
    let state = hashOf(word) || 1
    for (let at = 0; at < dimensions; at++) {
      state = next(state)
      sum[at] = (sum[at] ?? 0) + state / 2 ** 31 - 1
    }
  }
  const length = Math.hypot(...sum) || 1
  return sum.map((value) => Math.fround(value / length))
}

/** The next of a sequence of numbers (xorshift). */
function next(state: number): number {
  let mixed = state ^ (state << 13)
  mixed ^= mixed >>> 17
  return (mixed ^ (mixed << 5)) >>> 0
}

function base64Of(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4)
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4)
  return bytes.toString('base64')
}
