import { type ErrorCode, errorBody, type Rejection, type RouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import { contextSizes } from '../context-sizes.ts'

/**
 * An error in the form of this API, beside the members that every error of this router has; `id` is the request's, `client` names its
 * software.
 */
export function writeError(error: RouterError, id?: string, client = ''): JsonObject {
  const body = errorBody(error)
  const { type, message } = words[isOverload(error) ? 'provider_overloaded' : error.code] ?? {}
  if (type !== undefined) Object.assign(body.error as JsonObject, { type })
  if (message !== undefined) Object.assign(body.error as JsonObject, { message: message(error.message) })
  if (error.rejected !== undefined && isClaudeCode.test(client))
    Object.assign(body.error as JsonObject, {
      message: `capability_rejected: ${rejections[error.rejected]}`,
      details: { ...error.details, provider_message: error.message },
    })
  return { type: 'error', ...body, request_id: id ?? null }
}

const isClaudeCode = /^claude-(cli|code)\//

/** Names by which Claude Code knows what was refused: it leaves that out and tries again, if they are all that the message says. */
const rejections: { readonly [rejected in Rejection]: string } = {
  cache: 'cache_control_field',
  document: 'document_block',
  effort: 'effort_unsupported',
  image: 'image_block',
  media_size: 'media_budget',
  signature: 'thinking_signature',
  structured_output: 'structured_outputs_unsupported',
  system_message: 'mid_conv_system',
  thinking_adaptive: 'thinking_type:adaptive',
  thinking_enabled: 'thinking_type:enabled',
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
