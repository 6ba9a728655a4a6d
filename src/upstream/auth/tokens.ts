import type { HttpClient } from '../http/types.ts'
import { unlessAborted } from '../http/unless-aborted.ts'

/** An access token; times in milliseconds since 1970. From `refreshAt` on the next one is requested. */
export type Token = { text: string; refreshAt: number; expiresAt: number }

/** Tokens by credential. */
export type Tokens = {
  /**
   * A valid token. Concurrent callers share one fetch, which goes on when one of them aborts. A failed fetch is not cached:
   * it rejects for the waiting callers, and the next caller tries again.
   */
  get(credential: string, fetchToken: () => Promise<Token>, signal: AbortSignal): Promise<string>
  /** Drops a token that the provider refused. */
  forget(credential: string, token: string): void
}

/** The tokens of an HTTP client: they live as long as it does, through every reload. */
export function tokensOf(httpClient: HttpClient): Tokens {
  const client = httpClient.base ?? httpClient
  const known = byClient.get(client) ?? openTokens()
  byClient.set(client, known)
  return known
}

const byClient = new WeakMap<HttpClient, Tokens>()

/** How long to wait after a failed early refresh, while the old token stays in use. Milliseconds. */
const retryAfterMs = 10_000

/** A token this close to its expiry might expire on the way. Milliseconds. */
const minRemainingMs = 5_000

type Entry = { token?: Token; fetching?: Promise<Token>; pausedUntil: number }

/** An empty store. `now` is the time in milliseconds since 1970. */
export function openTokens(now: () => number = Date.now): Tokens {
  const entries = new Map<string, Entry>()

  const fetchOnce = (entry: Entry, fetchToken: () => Promise<Token>): Promise<Token> => {
    entry.fetching ??= fetchToken()
      .then((token) => {
        entry.token = token
        return token
      })
      .finally(() => {
        delete entry.fetching
      })
    return entry.fetching
  }

  return {
    async get(credential, fetchToken, signal) {
      const entry = entries.get(credential) ?? { pausedUntil: 0 }
      if (!entries.has(credential)) {
        dropExpired(entries, now())
        entries.set(credential, entry)
      }
      const { token } = entry
      if (!token || now() >= token.expiresAt - minRemainingMs) {
        return (await unlessAborted(fetchOnce(entry, fetchToken), signal)).text
      }
      if (now() >= token.refreshAt && now() >= entry.pausedUntil) {
        fetchOnce(entry, fetchToken).catch(() => {
          entry.pausedUntil = now() + retryAfterMs
        })
      }
      return token.text
    },
    forget(credential, token) {
      const entry = entries.get(credential)
      if (entry?.token?.text === token) delete entry.token
    },
  }
}

/** Credentials that a reload replaced are never requested again. */
function dropExpired(entries: Map<string, Entry>, now: number): void {
  for (const [credential, { token, fetching }] of entries) {
    if (!fetching && (!token || token.expiresAt <= now)) entries.delete(credential)
  }
}
