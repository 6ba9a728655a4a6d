import { RouterError } from '../../core/errors.ts'

/** What the headers of a part say. */
export type PartHead = {
  name: string
  /** Of a file; may be empty. */
  filename?: string
  mediaType: string
  /** How a text is encoded. */
  charset: string
}

/** Header values by lower-case name, each character a byte. */
type PartHeaders = { readonly [name: string]: readonly string[] | undefined }

/** Reads the headers of a part of a form (RFC 7578). Throws RouterError. */
export function readPartHead(headers: PartHeaders): PartHead {
  const { kind, parameters } = readHeader(headers['content-disposition']?.[0] ?? '')
  const name = parameters.get('name')
  if (kind !== 'form-data' || name === undefined) {
    const fix = 'Give every part the header Content-Disposition: form-data; name="...".'
    throw new RouterError('invalid_request', `A part of the form has no name. ${fix}`)
  }
  const coding = headers['content-transfer-encoding']?.[0]?.trim().toLowerCase() ?? 'binary'
  if (!['binary', '7bit', '8bit'].includes(coding)) {
    throw new RouterError('invalid_request', `Send ${fieldOf(name)} as it is, not as ${shown(coding)}.`, {
      param: shown(name),
    })
  }
  const type = readHeader(headers['content-type']?.[0] ?? '')
  const filename = parameters.get('filename*') ?? parameters.get('filename') ?? (type.kind === bytes ? '' : undefined)
  const charset = type.parameters.get('charset') ?? 'utf-8'
  if (filename === undefined) return { name, mediaType: type.kind || 'text/plain', charset }
  return { name, mediaType: type.kind || bytes, charset, filename }
}

const bytes = 'application/octet-stream'

/** The text of a field. Throws RouterError for an encoding that nobody knows. */
export function textOfField({ name, charset }: PartHead, value: Uint8Array): string {
  try {
    return new TextDecoder(charset).decode(value)
  } catch (cause) {
    const message = `The charset '${shown(charset)}' of ${fieldOf(name)} is unknown: send UTF-8.`
    throw new RouterError('invalid_request', message, { param: shown(name), cause })
  }
}

/** A field in a message. */
export function fieldOf(name: string): string {
  return `the form field '${shown(name)}'`
}

/** The beginning of what a client wrote. */
export function shown(text: string): string {
  return text.slice(0, longestShown)
}

const longestShown = 80

/** The value before the first semicolon, in lower case, and the parameters after it. */
function readHeader(value: string): { kind: string; parameters: ReadonlyMap<string, string> } {
  const end = value.indexOf(';')
  const kind = (end < 0 ? value : value.slice(0, end)).trim().toLowerCase()
  const parameters = new Map<string, string>()
  for (const [, name = '', quoted, plain = ''] of end < 0 ? [] : value.slice(end).matchAll(parameter)) {
    const key = name.toLowerCase()
    const text = quoted?.replace(/\\(["\\])/g, '$1') ?? plain.trim()
    if (!parameters.has(key)) parameters.set(key, key.endsWith('*') ? extended(text) : utf8(text))
  }
  return { kind, parameters }
}

/** `; name="quoted"`, in which a backslash is only before a quote or another one an escape, or `; name=plain`. */
const parameter = /;\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\["\\]|\\(?!["\\]))*)"|([^;"]*))/g

/** RFC 8187: `UTF-8''na%C3%AFve.txt`. */
function extended(text: string): string {
  const encoded = /^[^']*'[^']*'(.*)$/s.exec(text)?.[1] ?? text
  try {
    return decodeURIComponent(encoded)
  } catch {
    return encoded
  }
}

function utf8(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8')
}
