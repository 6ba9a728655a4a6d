import { RouterError } from '../core/errors.ts'
import { deepest, exceeded, isObject, type Json, type JsonBounds, type JsonObject, maxMembers } from '../core/json.ts'
import { countsAnything, type Usage } from '../core/usage.ts'
import type { Provider } from '../manifest/provider.ts'
import { usageIn } from '../manifest/run/read-reply.ts'
import { frameLimit } from '../wire/frame.ts'
import { redact } from './auth/secrets.ts'

/** Throws RouterError for a text that is not an object, or exceeds the bounds. */
export function parseObject(provider: Provider, text: string, bounds: AnswerBounds): JsonObject {
  const value = parseAnswer(provider, text, bounds)
  if (!isObject(value)) throw unreadable(provider, `sent JSON that is not an object: ${excerpt(provider, text)}`)
  return value
}

/** Parses an answer. Throws RouterError for a text that is not JSON, or exceeds the bounds. */
export function parseAnswer(provider: Provider, text: string, bounds: AnswerBounds): Json {
  const excess = excessOf(text, bounds)
  if (excess) throw unreadable(provider, excess)
  try {
    return JSON.parse(text) as Json
  } catch {
    throw unreadable(provider, `sent something that is not JSON: ${excerpt(provider, text)}`)
  }
}

/** Returns the beginning of a text, without secrets. */
export function excerpt(provider: Provider, text: string): string {
  return redact(provider, text.slice(0, 2_000)).slice(0, 200)
}

export function unreadable(provider: Provider, what: string): RouterError {
  return new RouterError('provider_unreadable', redact(provider, `The provider ${what}`), { provider: provider.slug })
}

export function cut(provider: Provider, what: string): RouterError {
  return new RouterError('provider_cut', `The provider ${what}.`, { provider: provider.slug })
}

/** Returns an error with the usage that the provider counted, if any, and the model that it names. */
export function withBilled(error: RouterError, usage: Usage | undefined, model?: Json): RouterError {
  if (usage && countsAnything(usage)) error.billed = usage
  if (typeof model === 'string') error.billedModel ??= model
  return error
}

/** Bills an answer that is not a reply by the usage in it. */
export async function billedAnyway(provider: Provider, error: RouterError, answer: JsonObject): Promise<RouterError> {
  const usage = error.billed ?? (await usageIn(provider, answer).catch(() => undefined))
  const { response } = answer
  return withBilled(
    error,
    usage,
    answer.model ?? answer.modelVersion ?? (isObject(response) ? response.model : undefined),
  )
}

/** Limits of the size of a provider's answer. */
export type AnswerBounds = {
  /** Bytes of a whole answer; characters that a stream adds up to. */
  bytes: number
  /** Bytes or characters of one event of a stream. */
  eventBytes: number
  /** Values of any kind in a whole answer or in one event. */
  values: number
}

export const defaultAnswerBounds: AnswerBounds = { bytes: 32 * 1024 * 1024, eventBytes: frameLimit, values: 250_000 }

/** Returns why a JSON text of a provider exceeds a bound; undefined when it does not. */
export function excessOf(text: string, bounds: Pick<AnswerBounds, 'values'>): string | undefined {
  const bound = exceeded(text, { values: bounds.values, depth: deepest, members: maxMembers })
  return bound && describeExcess(bound, bounds)
}

/** Describes the fault of a provider that sent JSON beyond a bound. */
export function describeExcess(bound: keyof JsonBounds, { values }: Pick<AnswerBounds, 'values'>): string {
  if (bound === 'depth') return `sent JSON that is nested deeper than ${deepest} levels`
  if (bound === 'members') return `sent JSON with an object of more than ${maxMembers} members`
  return `sent JSON of more than ${values} values, the answers.max_values of this server`
}
