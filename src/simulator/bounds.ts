import { SimulatedError } from './request.ts'

/** The models read so much in all messages or prompts, as far as a conversation goes. Characters. */
export const mostOfConversation = 512_000
/** What all other models read in a body. Characters. */
export const mostOfBody = 64 * 1_024
/** Inputs, documents or choices in one body: each has an answer of its own. */
export const mostAnswers = 2_048

/** Throws SimulatedError for a request that is too long: it runs in the process of the router, which nobody may hold. */
export function requireLength(length: number, most: number): void {
  if (length <= most) return
  const message = `This model's maximum context length is ${most} characters; the request has ${length}.`
  throw new SimulatedError(400, message, { code: 'context_length_exceeded' })
}

/** Throws SimulatedError for a request of too many answers. */
export function requireCount(count: number, most: number, param: string): void {
  if (count > most) throw new SimulatedError(400, `Invalid '${param}': at most ${most}, not ${count}.`, { param })
}
