import { unlessAborted } from './abort.ts'
import type { HttpClient } from './http-client.ts'

/** An access token; times in milliseconds since 1970. From `refreshAt` on the next one is asked for. */
export type Token = { text: string; refreshAt: number; expiresAt: number }

/** Tokens by credential. */
export type Tokens = {
  /**
   * A token that can be used now. However many ask for it, one at a time is fetched; a caller that leaves does not end
   * what others wait for. A failed fetch is not remembered: it rejects those who waited, and the next one tries again.
   */
  get(credential: string, fetchToken: () => Promise<Token>, signal: AbortSignal): Promise<string>
  /** A token that was refused is not given out again. */
  forget(credential: string, token: string): void
}

/** The tokens of an HTTP client: they live as long as it does, through every reload. */
export function tokensOf(httpClient: HttpClient): Tokens {
  const known = byClient.get(httpClient) ?? openTokens()
  byClient.set(httpClient, known)
  return known
}

const byClient = new WeakMap<HttpClient, Tokens>()

/** How long the old token goes on being used after a refresh ahead of time has failed, before the next try. */
const pauseMs = 10_000

/** A token about to expire may arrive too late. */
const travelMs = 5_000

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
      if (!token || now() >= token.expiresAt - travelMs) {
        return (await unlessAborted(fetchOnce(entry, fetchToken), signal)).text
      }
      if (now() >= token.refreshAt && now() >= entry.pausedUntil) {
        fetchOnce(entry, fetchToken).catch(() => {
          entry.pausedUntil = now() + pauseMs
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

/** Credentials that a reload replaced are never asked for again. */
function dropExpired(entries: Map<string, Entry>, now: number): void {
  for (const [credential, { token, fetching }] of entries) {
    if (!fetching && (!token || token.expiresAt <= now)) entries.delete(credential)
  }
}
