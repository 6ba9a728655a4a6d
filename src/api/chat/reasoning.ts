import { isObject, type JsonObject } from '../../core/json.ts'
import type { NeutralRequest } from '../../core/request.ts'

/** Whether the client asks for reasoning in OpenRouter's words: then it reads `reasoning` beside `reasoning_content`. */
export function readsReasoning(request: NeutralRequest | undefined): boolean {
  const { reasoning, include_reasoning: included = null } = request?.origin.body ?? {}
  return isObject(reasoning) || included !== null
}

/** A provider's message or delta with its readable reasoning under the names that the client reads. */
export function withReasoningNames(message: JsonObject, reads: boolean): JsonObject {
  const { reasoning, reasoning_content: content } = message
  if (isText(reasoning) && !isText(content)) return { ...message, reasoning_content: reasoning }
  return reads && isText(content) && !isText(reasoning) ? { ...message, reasoning: content } : message
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
