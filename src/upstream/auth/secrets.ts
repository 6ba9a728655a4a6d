import { isIP } from 'node:net'
import type { RouterError } from '../../core/errors.ts'
import { isPlainHeader } from '../../core/secrets.ts'
import type { Auth, Provider } from '../../manifest/provider.ts'
import { isPublicAddress } from '../files/public-address.ts'

/** Parts of a provider that may contain secrets. */
type Secretive = Pick<Provider, 'auth' | 'headers' | 'baseUrl'>

/**
 * Replaces the secrets of a provider in a human-readable text: whole and cut, plain, as URLs, JSON, base64 and hexadecimal digits write
 * them. A piece that is shorter than `pieceLength` characters stays. Longer texts than `maxTextLength` are cut.
 */
export function redact(provider: Secretive, text: string): string {
  const { pieces, short } = secretsIn(provider)
  const cut = text.slice(0, maxTextLength)
  const isPiece = (at: number) => pieces.has(cut.slice(at, at + pieceLength))
  let left = ''
  let from = 0
  for (let at = 0; at + pieceLength <= cut.length; at++) {
    if (!isPiece(at)) continue
    let end = at + pieceLength
    for (let next = at + 1; next <= end; next++) if (isPiece(next)) end = next + pieceLength
    left += cut.slice(from, at) + hidden
    from = end
    at = end - 1
  }
  return short.reduce((hiding, secret) => hiding.replaceAll(secret, hidden), left + cut.slice(from))
}

/** Returns the same error without the provider's secrets, both for clients and for the log; clients see no address either. */
export function withoutSecretsOf(provider: Secretive, error: RouterError): RouterError {
  error.message = withoutAddress(provider, redact(provider, error.message))
  if (error.forLog !== undefined) error.forLog = redact(provider, error.forLog)
  return error
}

/**
 * Returns a text for the managers of an organization: without the provider's secrets, and without an address of the operator's own network.
 */
export function shownOf(provider: Secretive, text: string): string {
  return withoutAddress(provider, redact(provider, text))
}

/** Hides the host of a provider in a network of the operator's own: providers and proxies repeat the address that they were called at. */
function withoutAddress({ baseUrl }: Secretive, text: string): string {
  const url = URL.parse(baseUrl)
  if (!url || isPublicHost(url.hostname)) return text
  // A name of one word may be any word, such as that of the provider.
  const before = /[.:]/.test(url.hostname) ? '' : '//'
  const withoutPort = url.port === '' ? text : text.replaceAll(url.host, hiddenAddress)
  return withoutPort.replaceAll(before + url.hostname, before + hiddenAddress)
}

function isPublicHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  if (isIP(host)) return isPublicAddress(host)
  return host.includes('.') && !/\.(?:local|internal|lan|home|corp|localdomain|svc|cluster|test|invalid)$/.test(host)
}

/** Remembers a token issued for a credential: `redact` must know it too. */
export function rememberIssued(auth: Auth, token: string): void {
  const tokens = issued.get(auth) ?? []
  if (tokens.at(-1) === token) return
  issued.set(auth, [...tokens.slice(-2), token])
  known.delete(auth)
}

const hidden = '[secret]'
const hiddenAddress = '[address]'
/** Length below which the rest of a secret reveals no more than an operator needs to recognize it. */
const pieceLength = 10
const maxTextLength = 4_000

type Known = Omit<Secretive, 'auth'> & { pieces: ReadonlySet<string>; short: readonly string[] }

const known = new WeakMap<Auth, Known>()
const issued = new WeakMap<Auth, readonly string[]>()

/** Returns the secrets of a provider, computed at its first error. */
function secretsIn(provider: Secretive): Known {
  const { auth, headers, baseUrl } = provider
  const before = known.get(auth)
  if (before?.headers === headers && before.baseUrl === baseUrl) return before
  const forms = [...new Set(allSecrets(provider).filter(Boolean).flatMap(formsOf))]
  const pieces = forms.flatMap((form) =>
    Array.from({ length: Math.max(0, form.length - pieceLength + 1) }, (_, at) => form.slice(at, at + pieceLength)),
  )
  // Longest first, because one may contain another.
  const short = forms.filter(({ length }) => length < pieceLength).sort((one, other) => other.length - one.length)
  const found = { pieces: new Set(pieces), short, headers, baseUrl }
  known.set(auth, found)
  return found
}

/** Returns the ways in which a text, or an echo of a header, may write a secret. */
function formsOf(secret: string): string[] {
  const inUrl = encodeURIComponent(secret)
  const bytes = Buffer.from(secret)
  const plain = [
    secret,
    inUrl,
    inUrl.toLowerCase(),
    new URLSearchParams({ _: secret }).toString().slice(2),
    inJson(secret),
    inJson(inJson(secret)),
    secret.replaceAll('/', '\\/'),
  ]
  // A short secret has forms that any text may contain.
  if (secret.length < pieceLength) return plain
  return [...plain, ...base64Forms(bytes), bytes.toString('hex'), bytes.toString('hex').toUpperCase()]
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** Returns a secret in base64, wherever in the encoded text it begins: `Basic` puts a user name before it. */
function base64Forms(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64url')
    // The digits at both ends depend on the neighbours as well.
    const own = encoded.slice(Math.ceil((before * 4) / 3), Math.floor(((before + bytes.length) * 4) / 3))
    return [own, own.replaceAll('-', '+').replaceAll('_', '/')]
  })
}

/** Names of headers that may contain a secret. */
const holdsSecret = /auth|key|token|secret|password|credential|cookie/i

function allSecrets({ auth, headers, baseUrl }: Secretive): string[] {
  const inHeaders = Object.entries(headers).flatMap(([name, value]) =>
    holdsSecret.test(name) && !isPlainHeader(name) ? value : [],
  )
  return [...secretsOf(auth), ...(issued.get(auth) ?? []), ...inHeaders, ...secretsOfUrl(baseUrl)]
}

function secretsOf(auth: Auth): string[] {
  switch (auth.scheme) {
    case 'none':
      return []
    case 'bearer':
    case 'header':
    case 'query':
      return [auth.secret]
    case 'aws-sigv4':
      return [auth.accessKey, auth.secretKey, auth.sessionToken ?? '', auth.bearer ?? '']
    case 'google-service-account':
      return keysIn(auth.credentials)
    case 'plugin':
      return Object.values(auth.values)
    case 'oauth-client-credentials':
      return [auth.clientSecret]
  }
}

/** Returns the lines of the private key, and its id: everything else in a key file is the name of something. */
function keysIn(credentials: string): string[] {
  if (!credentials.startsWith('{')) return [credentials]
  const { private_key_id: id, private_key: key } = parsedKeyFile(credentials)
  const lines = String(key ?? '').split(/\\n|\n/)
  return [String(id ?? ''), ...lines.filter((line) => !line.startsWith('-----'))]
}

function parsedKeyFile(text: string): { private_key_id?: unknown; private_key?: unknown } {
  try {
    return JSON.parse(text)
  } catch {
    return { private_key: text }
  }
}

/** Lists the parts of an address that may be secret: all but the host and the path. */
function secretsOfUrl(address: string): string[] {
  const url = URL.parse(address)
  return url ? [decodeURIComponent(url.password), ...url.searchParams.values()] : []
}
