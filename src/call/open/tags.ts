import { isUtf8 } from 'node:buffer'
import { type Check, defined, filledText, listOf, object, optional, refuse, text } from '../../api/check.ts'
import { RouterError } from '../../core/errors.ts'
import type { Json, JsonObject } from '../../core/json.ts'
import { withoutSecrets } from '../../core/secrets.ts'
import type { CallTags } from '../types.ts'

/** The user and the metadata of a ledger row. */
export type Recorded = { user?: string; metadata?: JsonObject }

/** Fields of a body that describe the call itself. */
type Described = { user?: string | undefined; metadata?: JsonObject | undefined; requesty?: Json | undefined }

/**
 * Returns the origin and the purpose of a call, as a ledger row records them: read from the client's headers, overridden by the metadata
 * of the body, its field `requesty`, and the header `x-router-tags`. Throws RouterError 400.
 */
export function recordedFor(request: Described, { origin, header }: CallTags): Recorded {
  const { user_id, ...described } = readDescription(request.requesty)
  const user = (request.user ?? user_id)?.slice(0, maxRecorded)
  const all = [origin, recordable(request.metadata), described].filter((one) => one && Object.keys(one).length > 0)
  const metadata = taggedMetadata(all.length > 0 ? Object.assign({}, ...all) : undefined, header)
  return { ...(user !== undefined && { user }), ...(metadata && { metadata }) }
}

/** Shortens metadata to what a row has room for: long values are cut, and members beyond a total length are left out. */
function recordable(metadata: JsonObject | undefined): JsonObject | undefined {
  if (!metadata) return undefined
  const short: [name: string, value: Json][] = []
  let left = maxRecordedInAll
  for (const [name, value] of Object.entries(metadata)) {
    // A secret that is cut would not be recognized.
    const cut = typeof value === 'string' && value.length > maxRecorded ? shortened(value) : (value ?? null)
    left -= name.length + (typeof cut === 'string' ? cut.length : maxScalar)
    if (left < 0) break
    short.push([name, cut])
  }
  return Object.fromEntries(short)
}

function shortened(value: string): string {
  return withoutSecrets(value.slice(0, maxRecorded + maxSecret)).slice(0, maxRecorded)
}

/** Characters of one value and of all names and values of a row, more than any API allows; of a number; and of the longest secret. */
const [maxRecorded, maxRecordedInAll, maxScalar, maxSecret] = [2_048, 64 * 1_024, 24, 256]

/** Reads `requesty: {tags, user_id, trace_id, session_id, extra}`: the members of `extra` are recorded under their own names. */
function readDescription(given: Json | undefined): JsonObject & { user_id?: string } {
  const body = optional(given, 'requesty', object)
  if (!body) return {}
  const tags = optional(body.tags, 'requesty.tags', listOf(filledText)) ?? []
  const extra = optional(body.extra, 'requesty.extra', object) ?? {}
  if (Object.keys(extra).length > maxTags) refuse('requesty.extra', `an object of at most ${maxTags} members`, extra)
  return {
    ...Object.fromEntries(Object.entries(extra).flatMap(([name, value]) => readExtra(name, value as Json))),
    ...defined({
      tags: tags.length > 0 ? brief(tags.join(','), 'requesty.tags') : undefined,
      user_id: optional(body.user_id, 'requesty.user_id', briefText),
      trace_id: optional(body.trace_id, 'requesty.trace_id', briefText),
      session_id: optional(body.session_id, 'requesty.session_id', briefText),
    }),
  }
}

function readExtra(name: string, value: Json): [name: string, value: string][] {
  const path = `requesty.extra.${name}`
  if (name === '__proto__' || name.length > maxName)
    refuse('requesty.extra', `an object with member names of at most ${maxName} characters`, name)
  if (value === null) return []
  if (typeof value === 'object') return refuse(path, 'a string, a number, true or false', value)
  return [[name, brief(String(value), path)]]
}

const briefText: Check<string> = (value, path) => brief(text(value, path), path)

function brief(value: string, path: string): string {
  return value.length <= maxValue ? value : refuse(path, `a string of at most ${maxValue} characters`, value)
}

/** Reads the headers in which an application describes itself: `X-Title`, `HTTP-Referer` and any `X-Requesty-<Name>`. */
export function originOf(headers: Headers, secret: string | undefined): JsonObject | undefined {
  const found: [name: string, value: string][] = []
  for (const header of Object.keys(headers)) {
    const name = nameOf(header)
    const value = headers[header]
    // A value that may be a credential is not a description.
    if (!name || typeof value !== 'string' || found.length === maxTags || /key|token|secret|auth/.test(name)) continue
    found.push([name, withoutSecrets(textOf(value), secret).slice(0, maxValue)])
  }
  return found.length > 0 ? Object.fromEntries(found) : undefined
}

type Headers = { readonly [name: string]: string | string[] | undefined }

/** Returns the name of a tag in lower case, as Node gives the names of headers. */
function nameOf(header: string): string | undefined {
  if (header.startsWith(ownPrefix)) {
    const name = header.slice(ownPrefix.length)
    return /^[\w.-]{1,64}$/.test(name) && name !== '__proto__' ? name : undefined
  }
  if (header === 'x-title') return 'origin_title'
  return header === 'http-referer' ? 'origin_referer' : undefined
}

const ownPrefix = 'x-requesty-'

/**
 * Returns the metadata of a ledger row, overridden by the tags of the header `x-router-tags`, which has the form
 * `name=value,name=value`. Throws RouterError 400 for an invalid header.
 */
export function taggedMetadata(metadata: JsonObject | undefined, header: string | undefined): JsonObject | undefined {
  if (header === undefined) return metadata
  const tags = textOf(header)
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '')
    .map(readTag)
  if (tags.length > maxTags) throw invalid(`has ${tags.length} tags; send ${maxTags} at most`)
  return tags.length === 0 ? metadata : { ...metadata, ...Object.fromEntries(tags) }
}

/** The limits that the OpenAI API has for metadata. */
const [maxTags, maxName, maxValue] = [16, 64, 512]

/** Returns the text of a header. Node decodes headers as Latin-1; most clients send UTF-8. */
function textOf(header: string): string {
  const bytes = Buffer.from(header, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : header
}

function readTag(tag: string): [name: string, value: string] {
  const [, name = '', value = ''] = /^([\w.-]+)\s*=\s*(.*)$/.exec(tag) ?? []
  if (name === '') throw invalid(`has the tag '${tag}'; write name=value; names may contain letters, digits, _ . and -`)
  if (name === '__proto__') throw invalid(`has a tag named '${name}'; choose another name`)
  if (name.length > maxName) throw invalid(`has a name of ${name.length} characters; ${maxName} are allowed`)
  if (value.length > maxValue) {
    throw invalid(`has a value of ${value.length} characters at '${name}'; ${maxValue} are allowed`)
  }
  return [name, value]
}

function invalid(what: string): RouterError {
  return new RouterError('invalid_request', `The header x-router-tags ${what}.`, { param: 'x-router-tags' })
}
