import { type ErrorCode, RouterError } from '../../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Timeouts } from '../../manifest/provider.ts'
import { unlessAborted } from '../http/deadlines.ts'
import type { HttpClient, HttpResponse } from '../http/types.ts'

/** An access token; times in milliseconds since 1970. From `refreshAt` on the next one is requested. */
export type Token = { text: string; refreshAt: number; expiresAt: number }

/** Tokens by credential. */
type Tokens = {
  /**
   * Returns a valid token. Concurrent callers share one fetch, which goes on when one of them aborts. A failed fetch is not cached:
   * it rejects for the waiting callers, and the next caller tries again.
   */
  get(credential: string, fetchToken: () => Promise<Token>, signal: AbortSignal): Promise<string>
  /** Drops a token that the provider refused. */
  forget(credential: string, token: string): void
}

/** Returns the tokens of an HTTP client: they live as long as it does, through every reload. */
export function tokensOf(httpClient: HttpClient): Tokens {
  const client = httpClient.base ?? httpClient
  const known = byClient.get(client) ?? openTokens()
  byClient.set(client, known)
  return known
}

const byClient = new WeakMap<HttpClient, Tokens>()

/** Wait after a failed early refresh, while the old token stays in use. Milliseconds. */
const retryAfterMs = 10_000

/** A token this close to its expiry might expire on the way. Milliseconds. */
const minRemainingMs = 5_000

type Entry = { token?: Token; fetching?: Promise<Token>; pausedUntil: number }

/** Opens an empty store. `now` is the time in milliseconds since 1970. */
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

/** Drops expired tokens: credentials that a reload replaced are never requested again. */
function dropExpired(entries: Map<string, Entry>, now: number): void {
  for (const [credential, { token, fetching }] of entries) {
    if (!fetching && (!token || token.expiresAt <= now)) entries.delete(credential)
  }
}

/** A request to a token endpoint; `secrets` are the values of the form that must not appear in errors. */
type TokenRequest = { url: string; form: Record<string, string>; secrets: readonly string[]; provider: string }

/** Time limits of a token request: short, because callers wait for the token before their own request begins. */
const timeouts: Timeouts = {
  connectMs: 5_000,
  firstEventMs: 10_000,
  betweenEventsMs: 5_000,
  wholeMs: 10_000,
  totalMs: 15_000,
}

/** Lifetime for endpoints that do not send one. Seconds. */
const defaultLifetime = 300

/** A token is refreshed this long before it expires, at most a fifth of its lifetime. Milliseconds. */
const refreshAheadMs = 5 * 60_000

/** A bound on memory. Bytes. */
const maxResponseBytes = 1024 * 1024

/**
 * Requests a token (RFC 6749, section 5). Throws RouterError: `provider_refused` when the endpoint refuses the credential,
 * `provider_unreachable` or `provider_timeout` when it cannot be reached, `provider_unreadable`.
 */
export async function requestToken(request: TokenRequest, httpClient: HttpClient, now: () => number): Promise<Token> {
  const requestedAt = now()
  const response = await send(request, httpClient)
  const text = await textOf(request, response)
  const body = parse(text)
  if (response.status < 200 || response.status >= 300) throw refused(request, response.status, body)
  const { access_token: token, expires_in: lifetime } = body
  if (typeof token !== 'string' || token === '' || /[^\x20-\x7E]/.test(token)) {
    throw failure(request, 'provider_unreadable', 'answered without an `access_token`')
  }
  // Some endpoints send the number as a string.
  const seconds = Number(lifetime ?? defaultLifetime)
  const lifeMs = (seconds > 0 ? seconds : defaultLifetime) * 1_000
  return {
    text: token,
    expiresAt: requestedAt + lifeMs,
    refreshAt: requestedAt + lifeMs - Math.min(refreshAheadMs, lifeMs / 5),
  }
}

async function send(request: TokenRequest, httpClient: HttpClient): Promise<HttpResponse> {
  try {
    return await httpClient.send({
      url: request.url,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
        'accept-encoding': 'identity',
        'user-agent': 'inference-router',
      },
      body: new URLSearchParams(request.form).toString(),
      timeouts,
      // Never aborted, because several callers may wait for it; the time limits end it.
      signal: new AbortController().signal,
      provider: request.provider,
    })
  } catch (error) {
    throw unanswered(request, error)
  }
}

async function textOf(request: TokenRequest, response: HttpResponse): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of response.bytes) {
      length += chunk.length
      if (length > maxResponseBytes) break
      chunks.push(chunk)
    }
  } catch (error) {
    throw unanswered(request, error)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse(text: string): JsonObject {
  let value: Json
  try {
    value = JSON.parse(text)
  } catch {
    return {}
  }
  return isObject(value) ? value : {}
}

function refused(request: TokenRequest, status: number, { error, error_description }: JsonObject): RouterError {
  const reasons = [error, error_description].filter((reason) => typeof reason === 'string')
  // Any other status means that this credential gets no token.
  const code = status >= 500 || status === 429 ? 'provider_unreachable' : 'provider_refused'
  return failure(request, code, `answered with status ${status}`, { reason: reasons.join(', ') })
}

function unanswered(request: TokenRequest, error: unknown): RouterError {
  const code = error instanceof RouterError && error.code === 'provider_timeout' ? error.code : 'provider_unreachable'
  const { message, forLog = message } = error as RouterError
  return failure(request, code, 'did not answer', { reason: forLog, cause: error })
}

/** Returns the error of a failed request. The endpoint's answer and its address are for the log. */
function failure(
  { url, secrets, provider }: TokenRequest,
  code: ErrorCode,
  what: string,
  { reason = '', cause }: { reason?: string; cause?: unknown } = {},
): RouterError {
  const hiding = (text: string) =>
    secrets.filter(Boolean).reduce((left, secret) => left.replaceAll(secret, '[secret]'), text)
  const forLog = `${new URL(url).host} ${what}${reason && `: ${hiding(reason).slice(0, 1_000)}`}`
  const message = `The router got no token for ${provider}: its token endpoint ${what}.`
  return new RouterError(code, message, { provider, forLog, ...(cause !== undefined && { cause }) })
}
