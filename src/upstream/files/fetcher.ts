import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { isIP, isIPv6 } from 'node:net'
import type { Dispatcher } from 'undici'
import { RouterError } from '../../core/errors.ts'
import { unlessAborted } from '../http/deadlines.ts'
import { Agent } from '../http/http-client.ts'
import { isPublicAddress } from './public-address.ts'

/** Settings of the files that may be fetched for clients. */
export type MediaSettings = {
  /** `https`, `http`. */
  schemes: readonly string[]
  /** Maximum size of one file, and of all files of one call. */
  maxBytes: number
  maxTotalBytes: number
  /** Maximum number of files that may be fetched for one call. */
  maxFiles: number
  /** Time limit of one file as a whole: name resolution, redirects, download. Milliseconds. */
  timeoutMs: number
  /** Hosts, or `host:port`, that may have any address; every other one must be public. */
  allowHosts: readonly string[]
}

/** A file in base64; `application/octet-stream` when its type is unknown. */
export type Fetched = { data: string; media_type: string }

/**
 * Fetches one file. `spend` is called with the size of each chunk and may throw. Every failure is a RouterError 400
 * `invalid_request`, those of the host as well: the URL is the client's, and another provider would not help.
 */
export type FetchMedia = (url: string, signal: AbortSignal, spend?: (bytes: number) => void) => Promise<Fetched>

/** Finds all addresses of a host name. */
export type ResolveName = (name: string) => Promise<LookupAddress[]>

/**
 * Fetches URLs from clients; nothing else does. Each redirect is checked like the first URL: scheme, credentials, and all
 * addresses of its host. The host is resolved once, and only the addresses that were checked are connected to.
 */
export function openFetcher(settings: MediaSettings, resolveName: ResolveName = systemNames): FetchMedia {
  const rules: Rules = { ...settings, allowed: new Set(settings.allowHosts.map(hostInUrl)), resolveName }
  return async (url, signal, spend = () => {}) => {
    const timeout = AbortSignal.timeout(settings.timeoutMs)
    try {
      return await follow(url, rules, AbortSignal.any([signal, timeout]), spend)
    } catch (thrown) {
      if (signal.aborted && signal.reason instanceof RouterError) throw signal.reason
      if (thrown instanceof RouterError) throw thrown
      throw fetchError(
        url,
        timeout.aborted ? `it did not arrive within ${settings.timeoutMs} ms` : failureOf(thrown),
        thrown,
      )
    }
  }
}

type Rules = MediaSettings & { allowed: ReadonlySet<string>; resolveName: ResolveName }

/** Maximum number of redirects: enough for URL shorteners and signed downloads. */
const maxRedirects = 5

async function follow(
  first: string,
  rules: Rules,
  signal: AbortSignal,
  spend: (bytes: number) => void,
): Promise<Fetched> {
  let address = URL.parse(first)
  for (let hops = 0; hops <= maxRedirects; hops++) {
    const refuse = (what: string) => fetchError(first, hops > 0 ? `after a redirect, ${what}` : what)
    const url = parsedAddress(address, rules, refuse)
    const agent = agentFor(await checkedAddresses(url, rules, signal, refuse), rules)
    try {
      const { request } = await import('undici')
      const answer = await request(url, { dispatcher: agent, signal, headers: requestHeaders })
      // Destroying an unread body emits an error on it, which would otherwise be uncaught.
      answer.body.on('error', () => {})
      if (!redirects.has(answer.statusCode)) return await readFile(answer, url, rules, spend, refuse)
      address = URL.parse(String(answer.headers.location ?? ''), url.href)
    } finally {
      await agent.destroy()
    }
  }
  throw fetchError(first, `it redirects more than ${maxRedirects} times`)
}

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Uncompressed, so that the size limits hold. */
const requestHeaders = { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'inference-router' }

type Refuse = (what: string) => RouterError

function parsedAddress(url: URL | null, { schemes }: Rules, refuse: Refuse): URL {
  if (!url) throw refuse('its address is not a valid URL')
  const scheme = url.protocol.slice(0, -1)
  const allowed = schemes.join(' or ')
  if (!schemes.includes(scheme) || !implementedSchemes.has(scheme))
    throw refuse(`only ${allowed} is fetched, not ${scheme}`)
  if (url.username || url.password) throw refuse('its address contains a user name or a password')
  return url
}

/** The schemes that are implemented, whatever the settings allow. */
const implementedSchemes: ReadonlySet<string> = new Set(['https', 'http'])

/** Resolves all addresses of the host. Throws unless each is public, or the settings allow the host. */
async function checkedAddresses(
  { hostname, protocol, port }: URL,
  { allowed, resolveName }: Rules,
  signal: AbortSignal,
  refuse: Refuse,
): Promise<LookupAddress[]> {
  const host = hostname.replace(/^\[|\]$/g, '')
  const family = isIP(host)
  const found = family
    ? [{ address: host, family }]
    : await unlessAborted(
        resolveName(host).catch(() => []),
        signal,
      )
  if (found.length === 0) throw refuse('its host name cannot be resolved')
  const withPort = `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`
  if (allowed.has(hostname) || allowed.has(withPort)) return found
  // DNS rebinding mixes a private address among public ones: all must be public.
  if (!found.every(({ address }) => isPublicAddress(address))) throw refuse('the address of its host is not public')
  return found
}

/** Returns a connection pool for one request that connects to these addresses only. */
function agentFor(addresses: LookupAddress[], { timeoutMs }: Rules): Agent {
  const [first] = addresses as [LookupAddress]
  return new Agent({
    allowH2: false,
    // The abort signal limits the time as a whole.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: {
      timeout: timeoutMs,
      lookup: (_name, options, done) => {
        if (options.all) done(null, addresses)
        else done(null, first.address, first.family)
      },
    },
  })
}

async function readFile(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  url: URL,
  { maxBytes }: Rules,
  spend: (bytes: number) => void,
  refuse: Refuse,
): Promise<Fetched> {
  const tooLarge = `it is larger than ${maxBytes} bytes, the media.max_bytes of this router`
  if (statusCode !== 200) throw refuse(`its server answered with status ${statusCode}`)
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw refuse(tooLarge)
  const encoding = String(headers['content-encoding'] ?? 'identity').toLowerCase()
  if (encoding !== 'identity') throw refuse('its server sends it compressed, though asked not to')
  // One growing buffer: a body that comes byte by byte must not cost one object per byte.
  let buffer = Buffer.allocUnsafe(Math.min(maxBytes, 65_536))
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    const end = size + chunk.length
    if (end > maxBytes) throw refuse(tooLarge)
    spend(chunk.length)
    if (end > buffer.length) buffer = Buffer.concat([buffer], Math.min(maxBytes, Math.max(end, buffer.length * 2)))
    chunk.copy(buffer, size)
    size = end
  }
  if (size === 0) throw refuse('it is empty')
  const bytes = buffer.subarray(0, size)
  const type = mediaTypeOf(bytes, headers['content-type']?.toString(), url.pathname)
  return { data: bytes.toString('base64'), media_type: type ?? 'application/octet-stream' }
}

/** The system's resolver, which knows the hosts file too. */
const systemNames: ResolveName = (name) => lookup(name, { all: true, order: 'verbatim' })

/** Returns a host as in a URL: IPv6 in brackets, lower case. */
function hostInUrl(host: string): string {
  return isIPv6(host) ? `[${host.toLowerCase()}]` : host.toLowerCase()
}

/** Returns the system's code alone: its messages contain addresses, and other codes are those of a library. */
function failureOf(thrown: unknown): string {
  const { code } = thrown as { code?: unknown }
  const isSystem = typeof code === 'string' && /^E[A-Z]+$/.test(code)
  return `the connection to its host failed${isSystem ? ` (${code})` : ''}`
}

function fetchError(url: string, what: string, cause?: unknown): RouterError {
  const message = `The file at ${safeUrl(url)} cannot be fetched: ${what}.`
  return new RouterError('invalid_request', message, cause === undefined ? {} : { cause })
}

/** Maximum length of a URL in messages; longer ones are cut. Characters. */
const maxShownUrl = 200

/** Returns a URL for messages, without the parts that may be secret: credentials and the query. */
export function safeUrl(text: string): string {
  const url = URL.parse(text)
  const plain = url
    ? `${url.protocol}//${url.host}${url.pathname}`
    : text.replace(/[?#].*$/s, '').replace(/\/\/[^/]*@/, '//')
  return plain.length > maxShownUrl ? `${plain.slice(0, maxShownUrl)}…` : plain
}

/**
 * Returns the media type of a file: by its first bytes, else by its server's content type unless that means "anything", else by
 * the extension of its path; undefined when none of them is known.
 */
export function mediaTypeOf(bytes: Uint8Array, contentType: string | undefined, path: string): string | undefined {
  const signature = signatures.find(({ at = 0, marks }) =>
    marks.some((mark) => asciiAt(bytes, at, mark.length) === mark),
  )
  const bySignature = typeof signature?.type === 'function' ? signature.type(bytes) : signature?.type
  if (bySignature) return bySignature
  const type = contentType?.split(';')[0]?.trim().toLowerCase()
  if (type && /^[\w.+-]+\/[\w.+-]+$/.test(type) && !genericTypes.has(type)) return canonicalTypes.get(type) ?? type
  return typesByExtension.get(/\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? '')
}

/** `marks` are bytes as Latin-1: one character per byte. */
type Signature = { at?: number; marks: readonly string[]; type: string | ((bytes: Uint8Array) => string | undefined) }

const signatures: readonly Signature[] = [
  { marks: ['\x89PNG\r\n\x1a\n'], type: 'image/png' },
  { marks: ['\xff\xd8\xff'], type: 'image/jpeg' },
  { marks: ['GIF87a', 'GIF89a'], type: 'image/gif' },
  { at: 8, marks: ['WEBP'], type: 'image/webp' },
  { marks: ['II*\0', 'MM\0*'], type: 'image/tiff' },
  { marks: ['%PDF-'], type: 'application/pdf' },
  { at: 8, marks: ['WAVE'], type: 'audio/wav' },
  { marks: ['ID3', '\xff\xfb', '\xff\xf3', '\xff\xf2'], type: 'audio/mpeg' },
  { marks: ['\xff\xf1', '\xff\xf9'], type: 'audio/aac' },
  { marks: ['fLaC'], type: 'audio/flac' },
  { marks: ['OggS'], type: 'audio/ogg' },
  { marks: ['\x1aE\xdf\xa3'], type: 'video/webm' },
  { at: 4, marks: ['ftyp'], type: (bytes) => brands.get(asciiAt(bytes, 8, 4)) ?? 'video/mp4' },
  // Two letters alone would match too much: the reserved bytes after the length must be zero.
  { marks: ['BM'], type: (bytes) => (asciiAt(bytes, 6, 4) === '\0\0\0\0' ? 'image/bmp' : undefined) },
]

/** Major brands of ISO media files (`ftyp`) that are not video/mp4. */
const brands: ReadonlyMap<string, string> = new Map([
  ['avif', 'image/avif'],
  ['avis', 'image/avif'],
  ['heic', 'image/heic'],
  ['heix', 'image/heic'],
  ['mif1', 'image/heif'],
  ['msf1', 'image/heif'],
  ['M4A ', 'audio/mp4'],
  ['M4B ', 'audio/mp4'],
  ['qt  ', 'video/quicktime'],
])

/** Content types of servers that do not know the type. */
const genericTypes: ReadonlySet<string> = new Set([
  'application/octet-stream',
  'binary/octet-stream',
  'application/binary',
  'application/force-download',
  'application/x-download',
  'application/unknown',
  'application/zip',
])

/** Aliases, and the name that providers know. */
const canonicalTypes: ReadonlyMap<string, string> = new Map([
  ['image/jpg', 'image/jpeg'],
  ['application/x-pdf', 'application/pdf'],
])

/** Types that the first bytes do not identify, or only as an archive. */
const typesByExtension: ReadonlyMap<string, string> = new Map([
  ['txt', 'text/plain'],
  ['md', 'text/markdown'],
  ['csv', 'text/csv'],
  ['html', 'text/html'],
  ['xml', 'text/xml'],
  ['json', 'application/json'],
  ['svg', 'image/svg+xml'],
  ['docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
  ['pptx', 'application/vnd.openxmlformats-officedocument.presentationml.presentation'],
])

function asciiAt(bytes: Uint8Array, at: number, length: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + length))
}
