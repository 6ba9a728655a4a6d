import { isObject, type Json } from '../../core/json.ts'
import { didYouMean } from '../check/did-you-mean.ts'
import type { Problem } from '../check/problem.ts'
import type { Auth, Extensions, SchemeHeaders } from '../provider.ts'
import type { Source } from './source.ts'

/** Contents of a manifest's `auth`, after its schema has accepted it; `${NAME}` not yet resolved. */
export type AuthFile = { scheme: string; [member: string]: string }

/** The schemes of the router itself. */
type OwnScheme = Exclude<Auth['scheme'], 'plugin'>

/** Reads a value with its references replaced, and the variables that are not set. A value that is `wrong` has already been reported. */
type ReadMember = (member: string, wrong?: (text: string) => string | undefined) => ResolvedMember
type ResolvedMember = { text: string; missing: string[] }

/** Member that a scheme needs, or may have; `wrong` returns why a value cannot be right. */
type Member = { optional?: true; wrong?: (text: string) => string | undefined }

const plain: Member = {}
const inHeader: Member = { wrong: (text) => wrongHeader('x', text) }
const address: Member = { wrong: (text) => wrongAddress('token_url', text) }
const name: Member = {
  wrong: (text) => (/^[a-z0-9-]+$/.test(text) ? undefined : 'it must be of small letters, digits and -'),
}

/** The members of each scheme; anything else would be ignored. */
const schemes = {
  none: {},
  bearer: { secret: inHeader },
  header: { header: plain, secret: inHeader, prefix: { ...inHeader, optional: true } },
  query: { parameter: plain, secret: plain },
  'aws-sigv4': {
    service: name,
    region: name,
    access_key: inHeader,
    secret_key: plain,
    session_token: { ...inHeader, optional: true },
    bearer: { ...inHeader, optional: true },
  },
  'google-service-account': { credentials: { wrong: wrongCredentials }, scope: { optional: true } },
  'oauth-client-credentials': {
    token_url: address,
    client_id: plain,
    client_secret: plain,
    scope: { optional: true },
  },
} as const satisfies { [Scheme in OwnScheme]: { readonly [member: string]: Member } }

/** The member that an operator's one `secret` sets. */
const mainSecret: { readonly [scheme: string]: string } = {
  bearer: 'secret',
  header: 'secret',
  query: 'secret',
  'aws-sigv4': 'bearer',
  'google-service-account': 'credentials',
  'oauth-client-credentials': 'client_secret',
}

/** The member of a scheme that settings replace by their `secret`; undefined when it takes none. */
export function secretMember({ scheme, secret }: AuthFile): string | undefined {
  return mainSecret[scheme] ?? (isOwn(scheme) || secret === undefined ? undefined : 'secret')
}

/** The names of the schemes that no plugin can have. */
export const schemeNames: readonly string[] = [...Object.keys(schemes), 'plugin']

function isOwn(scheme: string): scheme is OwnScheme {
  return Object.hasOwn(schemes, scheme)
}

/** Finds what is missing in a manifest's `auth`, and the members that its scheme has no use for; `added` are the schemes of plugins. */
export function authProblems(source: Source, auth: AuthFile, added: Extensions['schemes'] = {}): Problem[] {
  const { scheme } = auth
  if (Object.hasOwn(added, scheme)) return []
  if (!isOwn(scheme)) return [source.problem(['auth', 'scheme'], unknownScheme(scheme, Object.keys(added)))]
  const known: { readonly [member: string]: Member } = schemes[scheme]
  const needed = Object.keys(known).filter((member) => !known[member]?.optional)
  const given = Object.keys(auth).filter((member) => member !== 'scheme')
  const absent = needed.filter((member) => !given.includes(member))
  const idle = given.filter((member) => !Object.hasOwn(known, member))
  return [
    ...absent.map((member) => source.problem(['auth'], `\`auth\` with the scheme ${scheme} needs \`${member}\``)),
    ...idle.map((member) =>
      source.problem(['auth', member], `\`auth\` with the scheme ${scheme} does not use \`${member}\``, 'name'),
    ),
  ]
}

/** Reads the members that are there. Of alternatives that are all unset every variable is missing, of others none. */
export function resolveAuth(
  file: AuthFile,
  read: ReadMember,
  added: Extensions['schemes'] = {},
): { auth: Auth; missing: string[] } {
  const { scheme: name } = file
  if (!isOwn(name)) return resolveAdded(file, read, added[name])
  const known: { readonly [member: string]: Member } = schemes[name]
  const found = new Map<string, ResolvedMember>()
  for (const member of Object.keys(known)) {
    if (file[member] !== undefined) found.set(member, read(member, known[member]?.wrong))
  }
  const auth: { [member: string]: string } = { scheme: file.scheme }
  for (const [member, { text }] of found) {
    if (text !== '' || !known[member]?.optional) auth[camelCase(member)] = text
  }
  const missing = [...found].flatMap(([member, { missing: unset }]) => (known[member]?.optional ? [] : unset))
  if (file.scheme !== 'aws-sigv4') return { auth: auth as Auth, missing }
  // A bearer key is used instead of the pair, so that either is enough.
  const pair = ['access_key', 'secret_key'].flatMap((member) => found.get(member)?.missing ?? [])
  const others = missing.filter((variable) => !pair.includes(variable))
  if (auth.bearer) return { auth: auth as Auth, missing: others }
  const bearer = pair.length > 1 ? (found.get('bearer')?.missing ?? []) : []
  return { auth: auth as Auth, missing: [...missing, ...bearer] }
}

/** Resolves the members of a plugin's scheme: all are values for the plugin. A scheme that does not exist has already been reported. */
function resolveAdded(
  { scheme: name, ...members }: AuthFile,
  read: ReadMember,
  headersOf: SchemeHeaders | undefined,
): { auth: Auth; missing: string[] } {
  if (!headersOf) return { auth: { scheme: 'none' }, missing: [] }
  const found = Object.keys(members).map((member) => ({ member, ...read(member) }))
  const values = Object.fromEntries(found.map(({ member, text }) => [member, text]))
  return { auth: { scheme: 'plugin', name, values, headersOf }, missing: found.flatMap(({ missing }) => missing) }
}

function unknownScheme(scheme: string, added: readonly string[]): string {
  const known = [...Object.keys(schemes), ...added]
  const choice = didYouMean(scheme, known) || `: there are ${known.join(', ')}, and those of plugins`
  return `there is no scheme \`${scheme}\`${choice}`
}

function camelCase(member: string): string {
  return member.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
}

/** The key file of a service account, or the path of one, which is read when it is needed. */
function wrongCredentials(text: string): string | undefined {
  if (!text.startsWith('{')) return undefined
  let key: Json
  try {
    key = JSON.parse(text)
  } catch {
    return '`credentials` begins like JSON but is not valid JSON'
  }
  const absent = ['client_email', 'private_key'].filter((member) => !isObject(key) || typeof key[member] !== 'string')
  if (absent.length === 0) return undefined
  return `\`credentials\` must be the key file of a service account: it has no \`${absent.join('` and no `')}\``
}

/** Returns why a text cannot be an address we send to; undefined when it can. `name` is the field; its value may contain a password. */
export function wrongAddress(name: string, text: string): string | undefined {
  const isHttp = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
  return isHttp ? undefined : `\`${name}\` must be an http or https address`
}

/**
 * Returns why a header cannot be sent (RFC 9110): a name is a token, a value has no control characters. The value is not repeated: it may
 * be a secret.
 */
export function wrongHeader(name: string, text: string): string | undefined {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return `\`${name}\` cannot be the name of a header`
  return /^[\t\x20-\x7E\x80-\xFF]*$/.test(text) ? undefined : 'the value has characters that a header cannot have'
}
