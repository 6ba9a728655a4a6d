import { SimulatedError } from './request.ts'

/** The models of the simulator that do not converse. */
export const otherModels = {
  image: 'painter',
  embed: 'vectors',
  decide: 'judge',
  rerank: 'ranker',
  moderate: 'moderator',
  complete: 'writer',
} as const

/** The words of a text in lower case. */
export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}

/** A whole number from 0 to 4,294,967,295 that a text always has (FNV-1a); with the number of what came before it, that of both. */
export function hashOf(text: string, before = 0x811c9dc5): number {
  let hash = before
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash >>> 0
}

/** The part of the words of one text that another has: 0 to 1. */
export function overlap(words: ReadonlySet<string>, others: ReadonlySet<string>): number {
  const [less, more] = words.size < others.size ? [words, others] : [others, words]
  let common = 0
  for (const word of less) if (more.has(word)) common += 1
  return words.size === 0 ? 0 : common / words.size
}

/** A body of a model, as an object. Throws SimulatedError for another model. */
export function bodyFor(model: string, body: unknown): { [name: string]: unknown } {
  const { model: asked } = Object(body)
  if (asked === model) return Object(body)
  throw new SimulatedError(404, `The model \`${asked}\` does not exist.`, { param: 'model', code: 'model_not_found' })
}

/** The error for a field that is missing or wrong. */
export function wrong(param: string, expected: string): SimulatedError {
  return new SimulatedError(400, `Invalid '${param}': expected ${expected}.`, { param })
}
