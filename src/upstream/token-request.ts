import { type ErrorCode, RouterError } from '../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { Timeouts } from '../manifest/provider.ts'
import type { HttpClient, HttpResponse } from './http-client.ts'
import type { Token } from './tokens.ts'

/** What is asked of a token endpoint: its address, the form to send, and what of it must not be repeated. */
export type TokenRequest = { url: string; form: Record<string, string>; secrets: readonly string[]; provider: string }

/** Callers wait for this before their own request begins. */
const timeouts: Timeouts = { connectMs: 5_000, firstEventMs: 10_000, betweenEventsMs: 5_000, totalMs: 15_000 }

/** An endpoint that does not say how long its token lives. Seconds. */
const usualLifetime = 300

/** The next token is asked for this long before the end of one, at most a fifth of its life. Milliseconds. */
const aheadMs = 5 * 60_000

/** A longer answer is none of a token endpoint. Bytes. */
const answerLimit = 1024 * 1024

/**
 * Asks for a token (RFC 6749, section 5). Throws RouterError: `provider_refused` when the endpoint refuses the
 * credential, `provider_unreachable` or `provider_timeout` when it is not there, `provider_unreadable`.
 */
export async function requestToken(request: TokenRequest, httpClient: HttpClient, now: () => number): Promise<Token> {
  const asked = now()
  const response = await send(request, httpClient)
  const text = await textOf(request, response)
  const body = parse(text)
  if (response.status < 200 || response.status >= 300) throw refused(request, response.status, body)
  const { access_token: token, expires_in: lifetime } = body
  if (typeof token !== 'string' || token === '' || /[^\x20-\x7E]/.test(token)) {
    throw failure(request, 'provider_unreadable', 'answered without an `access_token`')
  }
  // Some endpoints write the number as a text.
  const seconds = Number(lifetime ?? usualLifetime)
  const lifeMs = (seconds > 0 ? seconds : usualLifetime) * 1_000
  return { text: token, expiresAt: asked + lifeMs, refreshAt: asked + lifeMs - Math.min(aheadMs, lifeMs / 5) }
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
      // Nobody's leaving ends this: many may be waiting. Its limits do.
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
      if (length > answerLimit) break
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
  const what = `answered with status ${status}${reasons.length > 0 ? `: ${reasons.join(', ')}` : ''}`
  // Everything else says that this credential gets no token.
  const code = status >= 500 || status === 429 ? 'provider_unreachable' : 'provider_refused'
  return failure(request, code, what)
}

function unanswered(request: TokenRequest, error: unknown): RouterError {
  const code = error instanceof RouterError && error.code === 'provider_timeout' ? error.code : 'provider_unreachable'
  return failure(request, code, `did not answer: ${(error as Error).message}`, error)
}

function failure(
  { url, secrets, provider }: TokenRequest,
  code: ErrorCode,
  what: string,
  cause?: unknown,
): RouterError {
  const told = secrets.filter(Boolean).reduce((text, secret) => text.replaceAll(secret, '[secret]'), what)
  const message = `The router got no token for ${provider}: ${new URL(url).host} ${told.slice(0, 1_000)}`
  return new RouterError(code, message, { provider, ...(cause !== undefined && { cause }) })
}
