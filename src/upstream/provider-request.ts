import { RouterError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import { turnFor } from '../core/turn.ts'
import type { Provider } from '../manifest/provider.ts'
import type { Target } from '../manifest/target.ts'
import { authorize } from './authorize.ts'
import type { HttpClient, HttpResponse } from './http-client.ts'
import { readErrorResponse } from './provider-error.ts'

/** A client's header for the provider: it replaces the manifest's own value, or is appended to it as a list item. */
export type ForwardedHeader = { name: string; value: string; how: 'replace' | 'append' }

/** Sends one body to a path of a target and waits for a successful response. Throws RouterError. */
export async function post(
  { provider, model }: Target,
  outgoing: {
    path: string
    accept: string
    body: JsonObject
    signal: AbortSignal
    forwardedHeaders?: readonly ForwardedHeader[]
    /** The request is on its way, whole. */
    onSent?: () => void
  },
  httpClient: HttpClient,
): Promise<HttpResponse> {
  const { path, accept, signal, forwardedHeaders = [], onSent } = outgoing
  const request = {
    url: urlOf(provider, path, model),
    headers: withForwarded(ownHeaders(provider, accept), forwardedHeaders),
    body: wellFormed(JSON.stringify(outgoing.body)),
  }
  await turnFor(request.body.length)
  const { url, headers, refused } = await authorize(provider, request, { httpClient, signal })
  const { timeouts, slug } = provider
  const sent = { url, headers, body: request.body, timeouts, signal, provider: slug, ...(onSent && { onSent }) }
  const response = await httpClient.send(sent)
  if (response.status >= 200 && response.status < 300) return response
  if (response.status === 401) refused?.()
  const text = await errorText(response)
  throw await readErrorResponse(provider, { status: response.status, headers: response.headers, text })
}

/**
 * The URL of a provider's path for a model: `{model}` is one segment, `{+model}` keeps its slashes. Throws RouterError for a
 * model that would lead to another path.
 */
export function urlOf({ slug, baseUrl }: Pick<Provider, 'slug' | 'baseUrl'>, path: string, model: string): string {
  const base = baseUrl.replace(/\/+$/, '')
  if (!path.includes('{')) return base + path
  const expanded = path.replaceAll(/\{(\+?)model\}/g, (_, slashes: string) => {
    const segments = slashes ? model.split('/') : [model]
    if (segments.some((segment) => /^\.{0,2}$/.test(segment))) {
      throw new RouterError('model_not_found', `The provider '${slug}' has no model '${model}'.`, { param: 'model' })
    }
    return segments.map(encodeURIComponent).join('/')
  })
  return base + expanded
}

/** The whole text of a response of at most so many bytes. Throws RouterError. */
export async function textOf(provider: Provider, response: HttpResponse, mostBytes: number): Promise<string> {
  const { text, isWhole } = await textUpTo(response, mostBytes)
  if (isWhole) return text
  const message = `The provider sent an answer of more than ${mostBytes} bytes, the answers.body_limit of this server.`
  throw new RouterError('provider_unreadable', message, { provider: provider.slug })
}

/** The text of an unsuccessful response: its beginning where it is long. Throws RouterError. */
export async function errorText(response: HttpResponse): Promise<string> {
  return (await textUpTo(response, mostErrorBytes)).text
}

async function textUpTo({ bytes }: HttpResponse, most: number): Promise<{ text: string; isWhole: boolean }> {
  const chunks: Uint8Array[] = []
  let received = 0
  for await (const chunk of bytes) {
    chunks.push(chunk)
    received += chunk.length
    if (received > most) break
  }
  const [first] = chunks
  const text = utf8.decode(chunks.length === 1 ? first : Buffer.concat(chunks))
  return { text, isWhole: received <= most }
}

const utf8 = new TextDecoder()

/** Our headers with the client's; a joined list has each item once. */
function withForwarded(own: Headers, forwarded: readonly ForwardedHeader[]): Headers {
  if (forwarded.length === 0) return own
  const headers: Record<string, string> = { ...own }
  for (const { name, value, how } of forwarded) {
    const items = [headers[name] ?? '', value].flatMap((list) => list.split(',')).map((item) => item.trim())
    headers[name] = how === 'replace' ? value : [...new Set(items)].filter(Boolean).join(',')
  }
  return headers
}

/** Our headers for a provider. */
function ownHeaders({ headers }: Provider, accept: string): Headers {
  let declared = declaredHeaders.get(headers)
  if (!declared) {
    // In lower case, so that a manifest's header replaces ours of the same name.
    declared = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
    declaredHeaders.set(headers, declared)
  }
  return {
    'content-type': 'application/json',
    accept,
    'accept-encoding': 'identity',
    'user-agent': 'inference-router',
    ...declared,
  }
}

type Headers = Readonly<Record<string, string>>
/** The headers of manifests, made ready once. */
const declaredHeaders = new WeakMap<Headers, Headers>()

/** Replaces lone surrogates, which a text cut inside a character leaves: strict parsers refuse them. */
function wellFormed(json: string): string {
  if (!json.includes('\\ud')) return json
  // One escape at a time, so that an escaped backslash before the letters `ud` is not mistaken for a surrogate.
  return json.replace(/\\(ud[89a-f][\da-f]{2}|.)/g, (whole, code) => (code.length > 1 ? '\\ufffd' : whole))
}

/** More than any error needs. */
const mostErrorBytes = 256 * 1024
