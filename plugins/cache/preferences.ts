import { Refusal } from 'inference-router/plugin'
import { duration } from './duration.ts'

/** Preferences of a client for the cache: `ttlMs` is the time for which its reply is kept, and the maximum age of one that it gets. */
export type CachePreferences = { bypass: boolean; refresh: boolean; ttlMs?: number }

/** Reads the headers `x-router-cache` and `x-router-cache-ttl`. Throws `Refusal`. */
export function preferencesOf(headers: Readonly<Record<string, string>>): CachePreferences {
  const mode = headers['x-router-cache']
  if (mode !== undefined && mode !== 'bypass' && mode !== 'refresh') {
    const message = 'The header x-router-cache must be bypass or refresh.'
    throw new Refusal(400, message, { param: 'x-router-cache' })
  }
  const how = { bypass: mode === 'bypass', refresh: mode === 'refresh' }
  const ttl = headers['x-router-cache-ttl']
  if (ttl === undefined) return how
  const ttlMs = duration(ttl)
  if (ttlMs <= maxTtlMs) return { ...how, ttlMs }
  const message = 'The header x-router-cache-ttl must be a time such as 500ms, 60s, 10m, 1h or 7d, of at most 30d.'
  throw new Refusal(400, message, { param: 'x-router-cache-ttl' })
}

const maxTtlMs = 30 * 86_400_000
