import { constants } from 'node:buffer'
import { RouterError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import type { Provider, Timeouts } from '../manifest/provider.ts'
import type { Target } from '../manifest/target.ts'
import { authorize } from './auth/authorize.ts'
import type { Overtime } from './http/overtime.ts'
import type { HttpClient, HttpMethod, HttpResponse } from './http/types.ts'
import { type BodyBytes, jsonContent, type OutgoingBody } from './outgoing-body.ts'
import { readErrorResponse } from './provider-error.ts'

/** A client's header for the provider: it replaces the manifest's own value, or is appended to it as a list item. */
export type ForwardedHeader = { name: string; value: string; how: 'replace' | 'append' }

/** Request that is sent to a target: by default a POST. */
export type OutgoingRequest = {
  method?: HttpMethod
  /** A path of the provider's base URL. */
  path: string
  /** The path is a whole address that the provider named: of its own origin, or on one of these hosts. */
  hosts?: readonly string[]
  query?: Readonly<Record<string, string>>
  accept: string
  /** A GET has none. */
  body?: JsonObject | OutgoingBody
  signal: AbortSignal
  timing?: Timing
  forwardedHeaders?: readonly ForwardedHeader[]
  /** The request is on its way, whole. */
  onSent?: (() => void) | undefined
  /** Set for a request that is not sent twice where it may have been received. */
  once?: boolean | undefined
  /** Key for providers that recognize by it requests which are sent again. */
  idempotencyKey?: string | undefined
  /** Set where the answer is read on after the call is over. */
  overtime?: Overtime | undefined
}

/**
 * Timing of a request: whether the answer is streamed, whether only content counts as progress, and the limits of its attempt where they
 * are shorter than those of its provider, in milliseconds.
 */
export type Timing = {
  stream?: boolean
  untilContent?: boolean
  firstEventMs?: number | undefined
  wholeMs?: number | undefined
  totalMs?: number | undefined
}

/** Limits of an attempt that may be shorter than those of its provider. */
export type TimingLimits = Pick<Timing, 'firstEventMs' | 'wholeMs' | 'totalMs'>

function timeoutsFor(
  { timeouts }: Provider,
  { stream, firstEventMs = Infinity, wholeMs = Infinity, totalMs = Infinity }: Timing,
): Timeouts {
  const total = Math.min(timeouts.totalMs, totalMs, stream ? Infinity : Math.min(timeouts.wholeMs, wholeMs))
  const first = stream ? Math.min(timeouts.firstEventMs, firstEventMs) : total
  return { ...timeouts, totalMs: total, firstEventMs: first }
}

/** Sends one request to a target and waits for a successful response. Throws RouterError. */
export async function sendRequest(
  { provider, model }: Target,
  outgoing: OutgoingRequest,
  httpClient: HttpClient,
): Promise<HttpResponse> {
  const {
    method = 'POST',
    path,
    hosts,
    query,
    accept,
    signal,
    timing = {},
    forwardedHeaders = [],
    onSent,
    once,
    overtime,
  } = outgoing
  const making = contentOf(method === 'GET' ? undefined : outgoing.body)
  const { contentType, body, length } = making instanceof Promise ? await making : making
  const url = withQuery(hosts ? absoluteUrl(provider, path, hosts) : urlOf(provider, path, model), query)
  const headers = withKey(
    withForwarded(ownHeaders(provider, accept, contentType), forwardedHeaders),
    provider,
    outgoing,
  )
  const request = body === undefined ? { method, url, headers } : { method, url, headers, body }
  const authorizing = authorize(provider, request, { httpClient, signal })
  const authorized = authorizing instanceof Promise ? await authorizing : authorizing
  const response = await httpClient.send({
    method,
    url: authorized.url,
    headers: authorized.headers,
    body: typeof body === 'function' ? body() : body,
    length,
    timeouts: timeoutsFor(provider, timing),
    untilContent: timing.untilContent === true,
    signal,
    provider: provider.slug,
    onSent,
    once: once === true,
    overtime,
  })
  if (response.status >= 200 && response.status < 300) return response
  if (response.status === 401) authorized.refused?.()
  const text = await errorText(response)
  throw await readErrorResponse(provider, { status: response.status, headers: response.headers, text })
}

function withKey(headers: Headers, { idempotency }: Provider, { idempotencyKey }: OutgoingRequest): Headers {
  if (idempotency === undefined || idempotencyKey === undefined) return headers
  return { ...headers, [idempotency]: idempotencyKey }
}

/** A text, or its bytes, is made once, any other body as often as it is needed. */
type Content = { contentType?: string; length?: number; body?: string | readonly Uint8Array[] | (() => BodyBytes) }

function contentOf(body: JsonObject | OutgoingBody | undefined): Content | Promise<Content> {
  if (body === undefined) return {}
  if (!isOutgoing(body)) {
    const content = jsonContent(body)
    return typeof content === 'string' ? { contentType: json, body: content } : longContent(content)
  }
  const { contentType, length } = body
  const bytes = body.bytes()
  if (typeof bytes === 'string') return { contentType, body: bytes }
  return { contentType, body: () => body.bytes(), ...(length !== undefined && { length }) }
}

async function longContent(making: Promise<Uint8Array[]>): Promise<Content> {
  return { contentType: json, body: await making }
}

function isOutgoing(body: JsonObject | OutgoingBody): body is OutgoingBody {
  return typeof body.bytes === 'function'
}

function withQuery(url: string, query: OutgoingRequest['query']): string {
  const texts = Object.entries(query ?? {}).map((pair) => pair.map((text) => encodeURIComponent(text.toWellFormed())))
  if (texts.length === 0) return url
  return `${url}${url.includes('?') ? '&' : '?'}${texts.map((pair) => pair.join('=')).join('&')}`
}

/**
 * Returns the URL of a provider's path for a model: `{model}` is one segment, `{+model}` keeps its slashes. Throws RouterError for a
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

/** Reads the whole text of a response of at most so many bytes. Throws RouterError. */
export async function textOf(provider: Provider, response: HttpResponse, mostBytes: number): Promise<string> {
  // V8 has no longer texts, whatever the limit of the server.
  const most = Math.min(mostBytes, constants.MAX_STRING_LENGTH)
  const { text, isWhole } = await textUpTo(response, most)
  if (isWhole) return text
  const limit = most < mostBytes ? 'the longest text that this server reads' : 'the answers.body_limit of this server'
  const message = `The provider sent an answer of more than ${most} bytes, ${limit}.`
  throw new RouterError('provider_unreadable', message, { provider: provider.slug })
}

/** Reads the text of an unsuccessful response: its beginning where it is long. Throws RouterError. */
async function errorText(response: HttpResponse): Promise<string> {
  return (await textUpTo(response, maxErrorBytes)).text
}

/** Reads the beginning of a response, and whether that is all of it. Throws RouterError. */
export async function textUpTo({ bytes }: HttpResponse, most: number): Promise<{ text: string; isWhole: boolean }> {
  const chunks: Uint8Array[] = []
  let received = 0
  for await (const chunk of bytes) {
    chunks.push(chunk)
    received += chunk.length
    if (received > most) break
  }
  const [first = none] = chunks
  const all = chunks.length > 1 ? Buffer.concat(chunks) : first
  return { text: utf8.decode(all.subarray(0, most)), isWhole: received <= most }
}

const utf8 = new TextDecoder()
const none = new Uint8Array()

/** Merges our headers with the client's; a joined list has each item once. */
function withForwarded(own: Headers, forwarded: readonly ForwardedHeader[]): Headers {
  if (forwarded.length === 0) return own
  const headers: Record<string, string> = { ...own }
  for (const { name, value, how } of forwarded) {
    const items = [headers[name] ?? '', value].flatMap((list) => list.split(',')).map((item) => item.trim())
    headers[name] = how === 'replace' ? value : [...new Set(items)].filter(Boolean).join(',')
  }
  return headers
}

/** Returns our headers for a provider. */
function ownHeaders({ headers }: Provider, accept: string, contentType: string | undefined): Headers {
  let declared = declaredHeaders.get(headers)
  if (!declared) {
    // In lower case, so that a manifest's header replaces ours of the same name.
    declared = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
    declaredHeaders.set(headers, declared)
  }
  return {
    ...(contentType !== undefined && { 'content-type': contentType }),
    accept,
    'accept-encoding': 'identity',
    'user-agent': 'inference-router',
    ...declared,
    // Only JSON may be declared otherwise: any other type determines how the body is read.
    ...(contentType !== undefined && contentType !== json && { 'content-type': contentType }),
  }
}

const json = 'application/json'

type Headers = Readonly<Record<string, string>>
/** The headers of manifests, made ready once. */
const declaredHeaders = new WeakMap<Headers, Headers>()

/** Maximum size of an error body: more than any error needs. */
const maxErrorBytes = 256 * 1024

/**
 * Returns an address that a provider named, where the next request goes with its credentials: of its own origin, or HTTPS on one of these
 * hosts, of which `*.acme.com` is any below `acme.com`. Throws RouterError.
 */
export function absoluteUrl(
  { slug, baseUrl }: Pick<Provider, 'slug' | 'baseUrl'>,
  text: string,
  hosts: readonly string[],
): string {
  const [own, url] = [URL.parse(baseUrl), URL.parse(text)]
  if (!own || !url || url.username || url.password || !(url.origin === own.origin || isOneOf(hosts, url))) {
    throw new RouterError('provider_unreadable', 'The provider named an address that is not its own.', {
      provider: slug,
      forLog: `${slug} named the address ${url ? url.origin : text.slice(0, 200)}, which is neither of ${baseUrl} nor among the \`hosts\` of its job`,
    })
  }
  url.hash = ''
  return url.href
}

function isOneOf(hosts: readonly string[], { protocol, port, hostname }: URL): boolean {
  if (protocol !== 'https:' || port !== '') return false
  return hosts.some((host) => (host.startsWith('*.') ? hostname.endsWith(host.slice(1)) : hostname === host))
}
