import { isUtf8 } from 'node:buffer'
import { RouterError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'

/**
 * What a row keeps of a call's own words: the metadata of its body, and over it the tags of its header `x-router-tags`,
 * written `name=value,name=value`. Throws RouterError 400 for a header that cannot be read.
 */
export function taggedMetadata(metadata: JsonObject | undefined, header: string | undefined): JsonObject | undefined {
  if (header === undefined) return metadata
  const tags = textOf(header)
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '')
    .map(readTag)
  if (tags.length > mostTags) throw refused(`has ${tags.length} tags; send ${mostTags} at most`)
  return tags.length === 0 ? metadata : { ...metadata, ...Object.fromEntries(tags) }
}

/** As much as the metadata of a body may hold where a client API bounds it. */
const [mostTags, longestName, longestValue] = [16, 64, 512]

/** Headers come byte by byte: what is UTF-8 is read as such, all else is Latin-1. */
function textOf(header: string): string {
  const bytes = Buffer.from(header, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : header
}

function readTag(tag: string): [name: string, value: string] {
  const [, name = '', value = ''] = /^([\w.-]+)\s*=\s*(.*)$/.exec(tag) ?? []
  if (name === '') throw refused(`has the tag '${tag}'; write name=value, the name of letters, digits and _ . -`)
  if (name === '__proto__') throw refused(`has a tag named '${name}'; choose another name`)
  if (name.length > longestName) throw refused(`has a name of ${name.length} characters; ${longestName} are allowed`)
  if (value.length > longestValue) {
    throw refused(`has a value of ${value.length} characters at '${name}'; ${longestValue} are allowed`)
  }
  return [name, value]
}

function refused(what: string): RouterError {
  return new RouterError('invalid_request', `The header x-router-tags ${what}.`, { param: 'x-router-tags' })
}
