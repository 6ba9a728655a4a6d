import type { JsonObject } from '../core/json.ts'
import { usdOf } from '../money/usd.ts'
import { type KeyRecord, keyState, type RateLimits } from '../store/keys.ts'
import type { Tables } from '../store/tables.ts'

/** Returns a key in a list; amounts are USD, a `monthly_limit` of 0 is unlimited. */
export async function keyEntry(key: KeyRecord, { spend }: Pick<Tables, 'spend'>): Promise<JsonObject> {
  return {
    id: key.id,
    name: key.name,
    monthly_limit: limitUsd(key.monthlyLimitNano),
    monthly_spend: usdOf(await spend.ofKey(key.id, Date.now())),
    permissions: { ...key.permissions },
    labels: { ...key.labels },
    created_by: { ...key.createdBy },
  }
}

/** Returns a key with all its properties except the secret and anything derived from it. */
export async function wholeKeyEntry(key: KeyRecord, tables: Pick<Tables, 'spend'>): Promise<JsonObject> {
  return {
    ...(await keyEntry(key, tables)),
    expires_at: timeText(key.expiresAt),
    state: keyState(key, Date.now()),
    group: key.groupId,
    models: key.accessList === null ? null : [...key.accessList],
    limits: limitsEntry(key.limits),
    plugins: { ...key.plugins },
    created_at: timeText(key.createdAt),
  }
}

/** Returns the state of a key in the log of changes. */
export function stateEntry(key: Pick<KeyRecord, 'revokedAt' | 'expiresAt'>): JsonObject {
  return { state: keyState(key, Date.now()), revoked_at: timeText(key.revokedAt) }
}

/** Writes rate limits as the API has them; null is no limit. */
export function limitsEntry({ requestsPerMinute, tokensPerMinute, concurrentCalls }: RateLimits): JsonObject {
  return {
    requests_per_minute: requestsPerMinute,
    tokens_per_minute: tokensPerMinute,
    concurrent_calls: concurrentCalls,
  }
}

/** Returns a monthly limit in USD; 0 is unlimited. */
export function limitUsd(nano: bigint | null): number {
  return usdOf(nano ?? 0n)
}

/** Writes Unix milliseconds as an RFC 3339 time. */
export function timeText(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString()
}
