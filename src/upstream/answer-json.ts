import { RouterError } from '../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../core/json.ts'
import { countsAnything, type Usage } from '../core/usage.ts'
import type { Provider } from '../manifest/provider.ts'
import { usageIn } from '../manifest/run/read-usage.ts'
import { type AnswerBounds, excessOf } from './answer-bounds.ts'
import { redact } from './auth/secrets.ts'

/** Throws RouterError for a text that is no object, or exceeds the bounds. */
export function parseObject(provider: Provider, text: string, bounds: AnswerBounds): JsonObject {
  const value = parseAnswer(provider, text, bounds)
  if (!isObject(value)) throw unreadable(provider, `sent JSON that is not an object: ${excerpt(provider, text)}`)
  return value
}

/** Throws RouterError for a text that is no JSON, or exceeds the bounds. */
export function parseAnswer(provider: Provider, text: string, bounds: AnswerBounds): Json {
  const excess = excessOf(text, bounds)
  if (excess) throw unreadable(provider, excess)
  try {
    return JSON.parse(text) as Json
  } catch {
    throw unreadable(provider, `sent something that is not JSON: ${excerpt(provider, text)}`)
  }
}

/** The beginning of a text, without secrets. */
export function excerpt(provider: Provider, text: string): string {
  return redact(provider, text.slice(0, 2_000)).slice(0, 200)
}

export function unreadable(provider: Provider, what: string): RouterError {
  return new RouterError('provider_unreadable', redact(provider, `The provider ${what}`), { provider: provider.slug })
}

export function cut(provider: Provider, what: string): RouterError {
  return new RouterError('provider_cut', `The provider ${what}.`, { provider: provider.slug })
}

/** An error with what the provider counted, if it counted anything. */
export function withBilled(error: RouterError, usage: Usage | undefined): RouterError {
  if (usage && countsAnything(usage)) error.billed = usage
  return error
}

/** An answer that is no reply is paid by the usage in it. */
export async function billedAnyway(provider: Provider, error: RouterError, answer: JsonObject): Promise<RouterError> {
  if (error.billed) return error
  return withBilled(error, await usageIn(provider, answer).catch(() => undefined))
}
