import { LRUCache } from 'lru-cache'

/** Which state at providers (containers, threads) was made through this router, and by which organization. */
export type HeldState = {
  remember(organization: string, provider: string, ids: readonly string[]): void
  has(organization: string, provider: string, id: string): boolean
}

/** Providers keep such state for a month at most. */
const rememberedMs = 30 * 24 * 60 * 60 * 1_000
const mostRemembered = 100_000

/** Opens an empty memory, bounded in size and time. It lives as long as the process. */
export function openHeldState(): HeldState {
  const known = new LRUCache<string, true>({ max: mostRemembered, ttl: rememberedMs })
  return {
    remember(organization, provider, ids) {
      for (const id of ids) known.set(`${organization} ${provider} ${id}`, true)
    },
    has: (organization, provider, id) => known.has(`${organization} ${provider} ${id}`),
  }
}
