import { type ErrorCode, errorBody, type RouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import { contextSizes } from '../context-sizes.ts'

/** An error in the form of this API, beside the members that every error of this router has; `id` is the request's. */
export function writeError(error: RouterError, id?: string): JsonObject {
  const body = errorBody(error)
  const { type, message } = words[isOverload(error) ? 'provider_overloaded' : error.code] ?? {}
  if (type !== undefined) Object.assign(body.error as JsonObject, { type })
  if (message !== undefined) Object.assign(body.error as JsonObject, { message: message(error.message) })
  return { type: 'error', ...body, request_id: id ?? null }
}

/** Clients of this API know an overloaded provider by its own status. */
export function errorStatus(error: RouterError): number | undefined {
  return isOverload(error) ? 529 : undefined
}

function isOverload({ code, providerCode }: RouterError): boolean {
  return code === 'provider_overloaded' || providerCode === overloaded
}

const overloaded = 'overloaded_error'

/** Types that only this API has, and the words by which its clients know an error. */
const words: { readonly [code in ErrorCode]?: { type?: string; message?: (message: string) => string } } = {
  provider_overloaded: { type: overloaded },
  provider_timeout: { type: 'timeout_error' },
  stopping: { type: overloaded },
  context_length: { message: tooLong },
}

/** Reports a full context in Anthropic's words: Claude Code and others compact their conversation when they read them. */
function tooLong(message: string): string {
  if (/prompt is too long|exceed context limit/i.test(message)) return message
  const { limit = 0, prompt = 0, output = 0 } = contextSizes(message)
  if (prompt > 0 && prompt <= limit && prompt + output > limit)
    return `input length and \`max_tokens\` exceed context limit: ${prompt} + ${output} > ${limit}. ${message}`
  const sizes = limit > 0 && prompt > limit ? `${prompt} tokens > ${limit} maximum. ` : ''
  return `prompt is too long: ${sizes}${message}`
}
