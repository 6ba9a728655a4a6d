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

/** Maximum that the models read in all messages or prompts of a conversation. Characters. */
export const maxConversationLength = 512_000
/** Maximum that all other models read in a body. Characters. */
export const maxBodyLength = 64 * 1_024
/** Inputs, documents or choices in one body: each has an answer of its own. */
export const maxAnswers = 2_048

/** Throws SimulatedError for a request that is too long: it runs in the process of the router, which must not be blocked. */
export function requireLength(length: number, most: number): void {
  if (length <= most) return
  const message = `This model's maximum context length is ${most} characters; the request has ${length}.`
  throw new SimulatedError(400, message, { code: 'context_length_exceeded' })
}

/** Throws SimulatedError for a request of too many answers. */
export function requireCount(count: number, most: number, param: string): void {
  if (count > most) throw new SimulatedError(400, `Invalid '${param}': at most ${most}, not ${count}.`, { param })
}

/** Splits text into simulated tokens: words with the white space before them, long words in pieces. */
export function tokensOf(text: string): string[] {
  return text.match(/\s*\S{1,8}|\s+$/gu) ?? []
}
