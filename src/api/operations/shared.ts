import { RouterError } from '../../core/errors.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import type { Operation, OperationRequest } from '../../core/operation.ts'
import { completionTokens, promptTokens } from '../../core/usage.ts'
import { filledText, object, optional, required, text } from '../check.ts'
import type { OperationBody, OperationFacts } from '../operation-api.ts'
import { firstModel, readRouting, routerFields } from '../router-fields.ts'

/** The body of an operation that takes JSON alone. Throws RouterError 400, 415. */
export function jsonOf(body: OperationBody): JsonObject {
  if (!('json' in body)) {
    throw new RouterError('unsupported_media_type', 'The body must be JSON, not a form.', { param: 'content-type' })
  }
  if (!isObject(body.json)) throw new RouterError('invalid_request', 'The body must be a JSON object.')
  return body.json
}

/** Models that a message may name as an example. */
const examples: { readonly [operation in Operation]: string } = {
  embed: 'openai/text-embedding-3-small',
  image: 'openai/gpt-image-2',
  image_edit: 'openai/gpt-image-2',
  speech: 'openai/gpt-4o-mini-tts',
  transcribe: 'openai/gpt-4o-transcribe',
  decide: 'demo/judge',
  complete: 'mistral/codestral-latest',
  rerank: 'cohere/rerank-v4.0-pro',
  moderate: 'openai/omni-moderation-latest',
}

/** A request of checked fields; members of the body that none of them has the name of are unread. */
export function readFields(
  operation: Operation,
  body: JsonObject,
  {
    fields,
    stream,
    files = [],
  }: Pick<OperationRequest, 'fields' | 'stream'> & Partial<Pick<OperationRequest, 'files'>>,
): OperationRequest {
  const named = body.model ?? firstModel(body)
  const model = required(named, 'model', `the name of a model, such as ${examples[operation]}`, filledText)
  const user = optional(body.user, 'user', text)
  const requesty = optional(body.requesty, 'requesty', object)
  const routing = readRouting(body)
  const known = new Set([...Object.keys(fields), 'model', ...routerFields])
  const unread = Object.entries(body).filter(([name, value]) => !known.has(name) && value !== null)
  return {
    operation,
    model,
    fields: { ...fields, ...(user !== undefined && { user }) },
    files,
    stream,
    unread: Object.fromEntries(unread.filter(([name]) => name !== 'user')),
    ...(user !== undefined && { user }),
    ...(requesty && { requesty }),
    ...(routing && { routing }),
  }
}

/** The estimated tokens of a text: four ASCII characters are one, and so is each other character. */
export function tokensOfText(text: string): number {
  // Most texts are ASCII alone, and some have megabytes.
  if (Buffer.byteLength(text) === text.length) return Math.ceil(text.length / 4)
  let ascii = 0
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) < 128) ascii++
  return Math.ceil(ascii / 4) + text.length - ascii
}

/** The `usage` of a reply: the provider's own object where it is in the words of this API, else counts by `form`; and the cost. */
export function usageBlock(
  { usage, costUsd, reported }: OperationFacts,
  form: (prompt: number, completion: number) => JsonObject,
): JsonObject {
  const counts = form(promptTokens(usage), completionTokens(usage))
  return { ...(isObject(reported) && reported), ...counts, ...(costUsd !== undefined && { cost: costUsd }) }
}

/** The counts of an API that has no output. */
export function promptCounts(prompt: number): JsonObject {
  return { prompt_tokens: prompt, total_tokens: prompt }
}

/** The error for a reply that lacks what it must have. */
export function unreadableReply(what: string): RouterError {
  return new RouterError('provider_unreadable', `The provider sent ${what}.`)
}
