import { durationMs } from '../core/duration.ts'
import { isObject } from '../core/json.ts'
import type { Target } from '../manifest/target.ts'
import { targetFacts } from '../manifest/target-facts.ts'

/**
 * How long a provider keeps the prompt of a conversation in its cache after the last call, in milliseconds: the trait `prompt_cache`,
 * `{lifetime, extended}`. `isLong`: the request asks for an hour or more.
 */
export function cacheLifetimeMs(target: Target, isLong: boolean): number {
  const { prompt_cache: stated } = targetFacts(target.provider, target).traits
  if (!isObject(stated)) return unstatedMs
  const { lifetime, extended } = stated
  return (isLong ? durationIn(extended) : undefined) ?? durationIn(lifetime) ?? unstatedMs
}

function durationIn(value: unknown): number | undefined {
  return typeof value === 'string' ? durationMs(value) : undefined
}

/** Where the manifest does not say it. */
const unstatedMs = 300_000
