import { createHash } from 'node:crypto'
import { RouterError } from '../../core/errors.ts'
import type { Auth, OAuthClientCredentials, PluginScheme, Provider } from '../../manifest/provider.ts'
import { wrongHeader } from '../../manifest/read/auth.ts'
import { yieldBetween } from '../../runtime/event-loop.ts'
import { unlessAborted } from '../http/deadlines.ts'
import type { HttpClient, HttpMethod } from '../http/types.ts'
import { type BodyBytes, wholeBytes } from '../outgoing-body.ts'
import { type Signable, signAws } from './aws-signature.ts'
import { rememberIssued } from './secrets.ts'
import { serviceAccountToken } from './service-account.ts'
import { requestToken, type Token, tokensOf } from './tokens.ts'

/** A request before authentication. Header names are in lower case; bytes that are not a text are read by schemes
 * that sign them; bytes in pieces are those of a long text. */
type UnauthorizedRequest = {
  method: HttpMethod
  url: string
  headers: Readonly<Record<string, string>>
  body?: string | readonly Uint8Array[] | (() => BodyBytes)
}

/** The URL and headers to send it with. Call `refused` when the provider answers 401. */
type Authorized = { url: string; headers: Readonly<Record<string, string>>; refused?(): void }

/** The client that requests tokens, and the signal that ends the wait for them. */
type TokenOptions = { httpClient: HttpClient; signal: AbortSignal; now?: () => number }

/**
 * Adds the provider's authentication to a request, at once where nothing has to be fetched or computed for it. Rejects with RouterError
 * when no token can be obtained.
 */
export function authorize(
  provider: Provider,
  request: UnauthorizedRequest,
  options: TokenOptions,
): Authorized | Promise<Authorized> {
  const { auth } = provider
  const scheme = schemes[auth.scheme] as Scheme<Auth>
  return scheme(auth, request, { now: Date.now, ...options, provider: provider.slug })
}

type Context = Required<TokenOptions> & { provider: string }
type Scheme<Of extends Auth> = (
  auth: Of,
  request: UnauthorizedRequest,
  context: Context,
) => Authorized | Promise<Authorized>

const schemes: { [Name in Auth['scheme']]: Scheme<Extract<Auth, { scheme: Name }>> } = {
  none: (_, request) => withHeaders(request, {}),
  // Local servers often need no key: then no header is sent.
  bearer: ({ secret }, request) => (secret ? withBearer(request, secret) : withHeaders(request, {})),
  header: ({ header, secret, prefix }, request) =>
    withHeaders(request, { [header.toLowerCase()]: prefix === undefined ? secret : `${prefix} ${secret}` }),
  query: ({ parameter, secret }, { url, headers }) => {
    const separator = url.includes('?') ? '&' : '?'
    return { url: `${url}${separator}${encodeURIComponent(parameter)}=${encodeURIComponent(secret)}`, headers }
  },
  'aws-sigv4': async (auth, request, { now, provider }) => {
    if (auth.bearer) return withBearer(request, auth.bearer)
    // Proxies may change other headers: that must not break the signature.
    const signed = Object.entries(request.headers).filter(([name]) => name === 'content-type' || /^x-amz-/.test(name))
    const { method, url } = request
    const signable = { method, url, headers: Object.fromEntries(signed), body: await signedBytes(request, provider) }
    return withHeaders(request, await signAws(auth, signable, now()))
  },
  'google-service-account': (auth, request, context) =>
    withToken(auth, request, context, () =>
      serviceAccountToken(auth, context.provider, context.httpClient, context.now),
    ),
  'oauth-client-credentials': (auth, request, context) =>
    withToken(auth, request, context, () => clientToken(auth, context)),
  plugin: async (auth, request, context) => withHeaders(request, await pluginHeaders(auth, request, context)),
}

/** Returns the bytes that are signed. Throws RouterError for more than fits into memory. */
async function signedBytes({ body = '' }: UnauthorizedRequest, provider: string): Promise<Signable['body']> {
  if (typeof body !== 'function') return body
  const bytes = await wholeBytes(body(), maxSigned)
  if (bytes !== undefined) return bytes
  const message = `Requests to this provider are signed, which is possible up to ${maxSigned} bytes.`
  throw new RouterError('too_large', message, { provider })
}

/** Bytes. */
const maxSigned = 64 * 1024 * 1024

function withHeaders({ url, headers }: UnauthorizedRequest, added: Record<string, string>): Authorized {
  return { url, headers: { ...headers, ...added } }
}

function withBearer(request: UnauthorizedRequest, token: string): Authorized {
  return withHeaders(request, { authorization: `Bearer ${token}` })
}

/** Adds a token. Providers with the same credential share tokens; an error names the provider that was called. */
async function withToken(
  auth: Auth,
  request: UnauthorizedRequest,
  { httpClient, signal, provider }: Context,
  fetchToken: () => Promise<Token>,
): Promise<Authorized> {
  const tokens = tokensOf(httpClient)
  const credential = createHash('sha256')
    .update(JSON.stringify(Object.entries(auth).sort()))
    .digest('base64')
  let token: string
  try {
    token = await tokens.get(credential, fetchToken, signal)
  } catch (error) {
    if (!(error instanceof RouterError) || error.provider === undefined) throw error
    throw new RouterError(error.code, error.message.replace(`for ${error.provider}:`, `for ${provider}:`), {
      provider,
      forLog: error.forLog,
      cause: error,
    })
  }
  rememberIssued(auth, token)
  return { ...withBearer(request, token), refused: () => tokens.forget(credential, token) }
}

/** Fetches a token by RFC 6749, section 4.4. The secret goes in the body, which every provider accepts. */
async function clientToken(auth: OAuthClientCredentials, { httpClient, provider, now }: Context): Promise<Token> {
  const { tokenUrl: url, clientId, clientSecret, scope } = auth
  const form = {
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
    ...(scope !== undefined && { scope }),
  }
  return await requestToken({ url, form, secrets: [clientSecret], provider }, httpClient, now)
}

/** Returns the text of a body; a plugin gets nothing of bodies that are no text. */
async function textOf({ body }: UnauthorizedRequest): Promise<string | undefined> {
  if (typeof body === 'string') return body
  if (typeof body !== 'object') return undefined
  const yieldToOthers = yieldBetween()
  const texts: string[] = []
  for (const piece of body) {
    texts.push(Buffer.from(piece.buffer, piece.byteOffset, piece.length).toString())
    await yieldToOthers()
  }
  return texts.join('')
}

/**
 * Returns the headers that a plugin's scheme adds to a request. Rejects with RouterError for results that are not headers, and when it
 * takes too long.
 */
async function pluginHeaders(
  scheme: PluginScheme,
  given: UnauthorizedRequest,
  { signal, provider }: { signal: AbortSignal; provider: string },
): Promise<Record<string, string>> {
  const { method, url, headers } = given
  const request = { method, url, headers, body: await textOf(given) }
  const refuse = (what: string, cause?: unknown) => {
    const message = `The request to ${provider} cannot be authenticated: the scheme ${scheme.name} ${what}.`
    return new RouterError('provider_refused', message, { provider, ...(cause !== undefined && { cause }) })
  }
  const time = AbortSignal.timeout(maxMs)
  let made: unknown
  try {
    const making = (async () => await scheme.headersOf(Object.freeze(request), scheme.values))()
    made = await unlessAborted(making, AbortSignal.any([signal, time]))
  } catch (thrown) {
    if (signal.aborted) throw signal.reason
    throw refuse(time.aborted ? `took longer than ${maxMs} ms` : 'failed', thrown)
  }
  const wrong = wrongHeaders(made)
  if (wrong !== undefined) throw refuse(wrong)
  const added = Object.entries(made as Record<string, string>).map(([name, value]) => [name.toLowerCase(), value])
  for (const [name = '', value = ''] of added) if (name === 'authorization') rememberIssued(scheme, value)
  return Object.fromEntries(added)
}

const maxMs = 10_000

/** Headers that only the connection itself can set. */
const ofConnection: ReadonlySet<string> = new Set(
  'host content-length transfer-encoding connection keep-alive te trailer upgrade expect'.split(' '),
)

function wrongHeaders(made: unknown): string | undefined {
  if (typeof made !== 'object' || made === null || Array.isArray(made)) return 'returned no headers'
  for (const [name, value] of Object.entries(made)) {
    const isWrong = typeof value !== 'string' || wrongHeader(name, value) !== undefined
    if (isWrong || ofConnection.has(name.toLowerCase())) return 'returned a header that no request may have'
  }
  return undefined
}

/**
 * Describes how the router authenticates to a provider, with a word in place of each secret: nothing is signed, and no token is asked for.
 */
export function shownCredential(auth: Auth): Auth {
  switch (auth.scheme) {
    case 'none':
      return auth
    case 'bearer':
    case 'header':
    case 'query':
      return { ...auth, secret: auth.secret === '' ? '' : '[secret]' }
    case 'aws-sigv4':
      return auth.bearer ? { scheme: 'bearer', secret: '[secret]' } : header('AWS4-HMAC-SHA256 [signature]')
    case 'google-service-account':
    case 'oauth-client-credentials':
      return { scheme: 'bearer', secret: '[token]' }
    case 'plugin':
      return header(`[made by the scheme ${auth.name}]`)
  }
}

function header(secret: string): Auth {
  return { scheme: 'header', header: 'authorization', secret }
}
