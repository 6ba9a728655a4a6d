type Scalar = string | number | boolean | null
/** A JSON value. */
export type JsonValue = Scalar | readonly JsonValue[] | { readonly [name: string]: JsonValue | undefined }

/** Returns JSON with other texts in it, the names of members among them; the same value where none is another. */
export function mapJson(value: JsonValue, change: (text: string) => string): JsonValue {
  if (typeof value === 'string') return change(value)
  if (typeof value === 'number') {
    const text = String(value)
    const changed = change(text)
    return changed === text ? value : changed
  }
  if (isList(value)) return mapList(value, (one) => mapJson(one, change))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(
    ([name, one]) => [name, change(name), one, mapJson(one ?? null, change)] as const,
  )
  if (!entries.some(([name, newName, one, newOne]) => name !== newName || one !== newOne)) return value
  return Object.fromEntries(entries.map(([, name, , one]) => [name, one]))
}

/** Changes the texts in a JSON text; a text that is not JSON is changed as a whole. */
export function mapJsonText(text: string, change: (text: string) => string): string {
  let parsed: JsonValue
  try {
    parsed = JSON.parse(text)
  } catch {
    return change(text)
  }
  const changed = mapJson(parsed, change)
  return changed === parsed ? text : JSON.stringify(changed)
}

/** Changes of texts, and of texts that are JSON; `unread` is called for what has no text that could be changed: its kind. */
export type Changes = { text(text: string): string; json(text: string): string; unread?(what: string): void }

/** Members of blocks that are no words: what they are, whom they belong to, and what only their provider reads. */
const marks =
  /^(?:type|id|ids|\w{0,60}_ids?|object|role|status|name|by|kind|index|phase|caller|signature|thought_signature|encrypted_\w{1,60}|redacted_data|server_label|media_type|mime_type|format|detail|cache_control|authorization|authorization_token|headers|server_url|url|image_url|file_url)$/

/** Members that contain JSON as a text. */
const jsonTexts: ReadonlySet<string> = new Set(['arguments'])

/**
 * Returns a block of any shape with other texts in it: every text is taken for words, unless its name says that it is a mark of the
 * protocol. Text files in it are decoded.
 */
export function mapBlock(value: JsonValue, changes: Changes, name = ''): JsonValue {
  if (typeof value === 'string') return jsonTexts.has(name) ? changes.json(value) : mapData(value, undefined, changes)
  if (isList(value)) return mapList(value, (one) => mapBlock(one, changes, name))
  if (typeof value !== 'object' || value === null) return value
  let isChanged = false
  const type = value.media_type ?? value.mime_type
  const entries = Object.entries(value).map(([member, one]): [string, JsonValue | undefined] => {
    if (one === undefined || (marks.test(member) && !isDataUrl(one))) return [member, one]
    const isFile = member === 'data' && typeof one === 'string' && typeof type === 'string'
    const changed = isFile ? mapData(one, type, changes, value.type === 'text') : mapBlock(one, changes, member)
    isChanged ||= changed !== one
    return [member, changed]
  })
  return isChanged ? Object.fromEntries(entries) : value
}

/** Returns JSON with other texts in it, whatever their names: numbers are tokens there, and names of members the API's. */
export function mapValues(value: JsonValue, changes: Changes): JsonValue {
  if (typeof value === 'string') return mapData(value, undefined, changes)
  if (isList(value)) return mapList(value, (one) => mapValues(one, changes))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, mapValues(one ?? null, changes)]))
}

function isDataUrl(value: JsonValue): boolean {
  return typeof value === 'string' && value.slice(0, 5).toLowerCase() === 'data:'
}

/** Types of files whose bytes are text. */
const textTypes =
  /^(?:text\/|application\/(?:[\w.+-]*\+)?(?:json|xml|yaml|x-yaml|javascript|x-sh|sql|toml|csv|x-ndjson|graphql))/i

/**
 * Returns the data of a file with other texts in it, where its type is that of a text: base64 of this media type, or a data URL. Other
 * strings are texts themselves.
 */
export function mapData(data: string, mediaType: string | undefined, changes: Changes, isPlain = false): string {
  const { text } = changes
  if (isPlain) return text(data)
  if (mediaType !== undefined) {
    if (!textTypes.test(mediaType)) return unread(data, mediaType, changes)
    return mapBase64(data, changes) ?? text(data)
  }
  if (!isDataUrl(data)) return text(data)
  const comma = data.slice(0, maxHead).indexOf(',')
  const head = data.slice(0, comma + 1)
  const type = head.slice('data:'.length) || 'text/plain'
  if (comma < 0 || !textTypes.test(type)) return unread(data, type, changes)
  if (/;base64,$/i.test(head)) return head + (mapBase64(data.slice(comma + 1), changes) ?? data.slice(comma + 1))
  return mapPercentEncoded(head, data.slice(comma + 1), text)
}

function unread(data: string, mediaType: string, changes: Changes): string {
  changes.unread?.(mediaType.split(/[;,]/, 1)[0]?.slice(0, 100) || 'a data URL')
  return data
}

/** Characters of a data URL before its data. */
const maxHead = 1_000

/** Returns base64 with another text in it; undefined for bytes that are no text. */
function mapBase64(data: string, changes: Changes): string | undefined {
  const bytes = Buffer.from(data, 'base64')
  if (bytes.length === 0 || bytes.length < Math.floor(data.length / 2)) return undefined
  let decoded: string
  try {
    decoded = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return unread(data, 'a text that is not UTF-8', changes)
  }
  const changed = changes.text(decoded)
  return changed === decoded ? data : Buffer.from(changed).toString('base64')
}

function mapPercentEncoded(head: string, data: string, change: (text: string) => string): string {
  let decoded = data
  try {
    decoded = decodeURIComponent(data)
  } catch {
    // It is read as it stands.
  }
  const changed = change(decoded)
  return changed === decoded ? head + data : head + encodeURIComponent(changed)
}

function mapList(list: readonly JsonValue[], map: (value: JsonValue) => JsonValue): JsonValue {
  const changed = list.map(map)
  return changed.some((one, index) => one !== list[index]) ? changed : list
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value)
}
