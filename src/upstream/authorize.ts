import { createHash } from 'node:crypto'
import { RouterError } from '../core/errors.ts'
import type { Auth, OAuthClientCredentials, Provider } from '../manifest/provider.ts'
import { signAws } from './aws-signature.ts'
import type { HttpClient } from './http-client.ts'
import { rememberIssued } from './secrets.ts'
import { serviceAccountToken } from './service-account.ts'
import { requestToken } from './token-request.ts'
import { type Token, tokensOf } from './tokens.ts'

/** A POST that does not yet say who we are. Names of headers are in small letters. */
export type Anonymous = { url: string; headers: Record<string, string>; body: string }

/** The address and headers to send it with. `refused` is to be called when the provider did not take them. */
export type Authorized = { url: string; headers: Record<string, string>; refused?(): void }

/** What tokens are asked through, and for how long the caller waits for them. */
export type Means = { httpClient: HttpClient; signal: AbortSignal; now?: () => number }

/**
 * The address of a provider's path for a model: `{model}` is one segment, `{+model}` keeps its slashes. Throws
 * RouterError for a model whose name would lead to another path.
 */
export function addressOf(provider: Provider, path: string, model: string): string {
  const place = path.replaceAll(/\{(\+?)model\}/g, (_, slashes: string) => {
    const segments = slashes ? model.split('/') : [model]
    if (segments.some((segment) => /^\.{0,2}$/.test(segment))) {
      throw new RouterError('model_not_found', `The model '${provider.slug}/${model}' cannot stand in an address.`)
    }
    return segments.map(encodeURIComponent).join('/')
  })
  return provider.baseUrl.replace(/\/+$/, '') + place
}

/** Adds what authenticates us to a provider. Throws RouterError when a token cannot be had. */
export async function authorize(provider: Provider, request: Anonymous, means: Means): Promise<Authorized> {
  const { auth } = provider
  const scheme = schemes[auth.scheme] as Scheme<Auth>
  return await scheme(auth, request, { now: Date.now, ...means, provider: provider.slug })
}

type Around = Required<Means> & { provider: string }
type Scheme<Of extends Auth> = (auth: Of, request: Anonymous, around: Around) => Authorized | Promise<Authorized>

/** Every scheme there is. */
const schemes: { [Name in Auth['scheme']]: Scheme<Extract<Auth, { scheme: Name }>> } = {
  none: (_, request) => withHeaders(request, {}),
  // Local servers often want no key: then there is no header at all.
  bearer: ({ secret }, request) => (secret ? withBearer(request, secret) : withHeaders(request, {})),
  header: ({ header, secret }, request) => withHeaders(request, { [header.toLowerCase()]: secret }),
  query: ({ parameter, secret }, { url, headers }) => {
    const joint = url.includes('?') ? '&' : '?'
    return { url: `${url}${joint}${encodeURIComponent(parameter)}=${encodeURIComponent(secret)}`, headers }
  },
  'aws-sigv4': async (auth, request, { now }) => {
    if (auth.bearer) return withBearer(request, auth.bearer)
    // What is between us and the provider may change other headers, and must not break the signature by it.
    const signed = Object.entries(request.headers).filter(([name]) => name === 'content-type' || /^x-amz-/.test(name))
    const signable = { method: 'POST', url: request.url, headers: Object.fromEntries(signed), body: request.body }
    return withHeaders(request, await signAws(auth, signable, now()))
  },
  'google-service-account': (auth, request, around) =>
    withToken(auth, request, around, () => serviceAccountToken(auth, around.provider, around.httpClient, around.now)),
  'oauth-client-credentials': (auth, request, around) =>
    withToken(auth, request, around, () => clientToken(auth, around)),
}

function withHeaders({ url, headers }: Anonymous, added: Record<string, string>): Authorized {
  return { url, headers: { ...headers, ...added } }
}

function withBearer(request: Anonymous, token: string): Authorized {
  return withHeaders(request, { authorization: `Bearer ${token}` })
}

/** Tokens are shared by all providers that have the same credential; failures are told in each one's own name. */
async function withToken(
  auth: Auth,
  request: Anonymous,
  { httpClient, signal, provider }: Around,
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
      cause: error,
    })
  }
  rememberIssued(auth, token)
  return { ...withBearer(request, token), refused: () => tokens.forget(credential, token) }
}

/** RFC 6749, section 4.4; the secret goes in the body, which every provider takes. */
async function clientToken(auth: OAuthClientCredentials, { httpClient, provider, now }: Around): Promise<Token> {
  const { tokenUrl: url, clientId, clientSecret, scope } = auth
  const form = {
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
    ...(scope !== undefined && { scope }),
  }
  return await requestToken({ url, form, secrets: [clientSecret], provider }, httpClient, now)
}
