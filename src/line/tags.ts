import { isUtf8 } from 'node:buffer'
import { RouterError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'

/**
 * The metadata of a ledger row: that of the request body, overridden by the tags of the header `x-router-tags`, which has the
 * form `name=value,name=value`. Throws RouterError 400 for an invalid header.
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

/** Node decodes headers as Latin-1; most clients send UTF-8. */
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
