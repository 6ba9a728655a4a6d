import { createRequire } from 'node:module'
import type { Dicer } from '@fastify/busboy'
import { asRouterError, RouterError } from '../../core/errors.ts'
import type { UploadedFile } from '../../core/operation.ts'
import { TempFile } from './temp-file.ts'

/** Loader of the parser, which is loaded with the first form. */
const require = createRequire(import.meta.url)
const busboy = (): typeof import('@fastify/busboy') => require('@fastify/busboy')

/** Limits of a form. Bytes and counts; `fieldBytes` are those of the values of all fields. */
type FormBounds = {
  fileBytes: number
  files: number
  fields: number
  fieldBytes: number
  onField?(name: string, value: string): void
  /** Folder in which large files are kept. */
  folder: string
}

/** Parser that makes the fields and files of a form from the bytes of its body. Reports a form or an error, once. */
export class FormParser {
  onReady = () => {}
  onError = (_: RouterError) => {}
  onForm = (_fields: (readonly [string, string])[], _files: UploadedFile[]) => {}
  readonly #bounds: FormBounds
  readonly #dicer: Dicer
  readonly #fields: (readonly [string, string])[] = []
  readonly #files: FilePart[] = []
  /** Bytes of fields that may still come. */
  #fieldBytesLeft: number
  /** Bytes since the beginning of a part whose headers have not ended. */
  #headless: number | undefined
  /** The last boundary has come. */
  #isWhole = false
  #hasEnded = false
  #isOver = false

  constructor(boundary: string, bounds: FormBounds) {
    this.#bounds = bounds
    this.#fieldBytesLeft = bounds.fieldBytes
    const { Dicer } = busboy()
    this.#dicer = new Dicer({ boundary })
    this.#dicer.on('part', (stream) => this.#begin(stream))
    this.#dicer.on('drain', () => this.#look())
    this.#dicer.on('error', (cause) => this.#fail(malformed('It ends before its last boundary.', cause)))
    this.#dicer.on('finish', () => {
      this.#isWhole = true
      this.#look()
    })
  }

  /** Returns whether there is room for more; if not, `onReady` is called when there is. */
  write(chunk: Buffer): boolean {
    // What follows the last boundary means nothing.
    if (this.#isOver || this.#isWhole) return true
    const headless = this.#headless
    try {
      this.#dicer.write(chunk)
      if (headless === undefined || headless !== this.#headless) return this.#hasCapacity
      this.#headless += chunk.length
      if (this.#headless > maxHeadBytes) throw malformed(`The headers of a part exceed ${maxHeadBytes} bytes.`)
    } catch (thrown) {
      this.#fail(asRouterError(thrown))
    }
    return this.#hasCapacity
  }

  /** Takes the end of the body. */
  end(): void {
    this.#hasEnded = true
    if (this.#isWhole) this.#look()
    else if (!this.#isOver) this.#dicer.end()
  }

  /** Removes the files. */
  async dispose(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#files.map(({ tempFile }) => tempFile.close()))
  }

  get #waiting(): number {
    return this.#files.reduce((sum, { tempFile }) => sum + tempFile.waiting, 0)
  }

  get #hasCapacity(): boolean {
    return this.#waiting < maxWaiting && !this.#dicer.writableNeedDrain
  }

  /** Reports the form if it is complete, or that there is room again. */
  #look(): void {
    if (this.#isOver) return
    if (this.#isWhole && this.#hasEnded && this.#waiting === 0) {
      this.#isOver = true
      this.onForm(
        this.#fields,
        this.#files.map((file) => file.uploaded()),
      )
    } else if (this.#hasCapacity) this.onReady()
  }

  #fail(error: RouterError): void {
    if (this.#isOver) return
    this.#isOver = true
    this.onError(error)
  }

  /** Takes the bytes of a part as they are found, so that an error of a part stops the parser there. */
  #begin(stream: Dicer.PartStream): void {
    let part: Part | undefined
    this.#headless = 0
    // A part that is cut off is an error of the form as well.
    stream.on('error', () => {})
    stream.on('header', (headers) => {
      this.#headless = undefined
      part = this.#partOf(readPartHead(headers as Record<string, string[]>))
    })
    stream.push = (chunk: Buffer | null) => {
      if (!part && !this.#isOver) throw malformed('A part ends within its headers.')
      if (chunk) part?.take(chunk)
      else if (!this.#isOver) part?.end()
      // The parser counts the parts that have ended.
      if (!chunk) stream.emit('end')
      return true
    }
  }

  #partOf(head: PartHead): Part {
    const { files, fields, fileBytes, fieldBytes, folder, onField } = this.#bounds
    const tooMany = (most: number, what: string) => {
      const message = `The form has more than ${most} ${what}: ${fieldOf(head.name)} is one more.`
      return new RouterError('too_large', message, { param: shown(head.name) })
    }
    if (head.filename !== undefined) {
      if (this.#files.length >= files) throw tooMany(files, 'files')
      const wrote = (error?: RouterError) => (error ? this.#fail(error) : this.#look())
      const file = new FilePart(head, new TempFile(folder, wrote), fileBytes)
      this.#files.push(file)
      return file
    }
    if (this.#fields.length >= fields) throw tooMany(fields, 'fields')
    const room = { left: this.#fieldBytesLeft, most: fieldBytes }
    return new FieldPart(head, room, (value, bytes) => {
      this.#fieldBytesLeft -= bytes
      this.#fields.push([head.name, value])
      onField?.(head.name, value)
    })
  }
}

/** Bytes that wait for the disk before the client must. */
const maxWaiting = 128 * 1024
/** Maximum size of the headers of a part: more than any needs. Bytes. */
const maxHeadBytes = 16 * 1024

type Part = {
  take(chunk: Buffer): void
  end(): void
}

class FilePart implements Part {
  readonly tempFile: TempFile
  readonly #head: PartHead
  readonly #maxBytes: number
  #begin = Buffer.alloc(0)

  constructor(head: PartHead, spool: TempFile, mostBytes: number) {
    this.#head = head
    this.tempFile = spool
    this.#maxBytes = mostBytes
  }

  take(chunk: Buffer): void {
    const { tempFile } = this
    if (tempFile.size + chunk.length > this.#maxBytes) {
      throw overlong(this.#head, `The file of ${fieldOf(this.#head.name)} is larger than ${this.#maxBytes} bytes.`)
    }
    if (tempFile.size < headBytes)
      this.#begin = Buffer.concat([this.#begin, chunk.subarray(0, headBytes - tempFile.size)])
    tempFile.write(chunk)
  }

  end(): void {}

  uploaded(): UploadedFile {
    const { name: field, filename = '', mediaType } = this.#head
    const { tempFile } = this
    return { field, filename, mediaType, size: tempFile.size, head: this.#begin, read: (into) => tempFile.read(into) }
  }
}

const headBytes = 4 * 1024

/** Bytes that a field may have: what others have left of the most for all. */
type FieldRoom = { left: number; most: number }

class FieldPart implements Part {
  readonly #head: PartHead
  readonly #room: FieldRoom
  readonly #done: (value: string, bytes: number) => void
  #bytes = Buffer.alloc(0)
  #length = 0

  constructor(head: PartHead, room: FieldRoom, done: (value: string, bytes: number) => void) {
    this.#head = head
    this.#room = room
    this.#done = done
  }

  take(chunk: Buffer): void {
    const length = this.#length + chunk.length
    const { left, most } = this.#room
    if (length > left) {
      const name = fieldOf(this.#head.name)
      const isAlone = length > most
      const message = isAlone
        ? `The value of ${name} is larger than`
        : `The fields of the form, with ${name}, are larger than`
      throw overlong(this.#head, `${message} ${most} bytes.`)
    }
    if (length > this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes], length * 2)
    chunk.copy(this.#bytes, this.#length)
    this.#length = length
  }

  end(): void {
    this.#done(textOfField(this.#head, this.#bytes.subarray(0, this.#length)), this.#length)
  }
}

function overlong({ name }: PartHead, message: string): RouterError {
  return new RouterError('too_large', message, { param: shown(name) })
}

function malformed(what: string, cause?: unknown): RouterError {
  return new RouterError('invalid_request', `The body is not a valid form. ${what}`, { cause })
}

/** Facts that the headers of a part state. */
type PartHead = {
  name: string
  /** Name of a file; may be empty. */
  filename?: string
  mediaType: string
  /** Encoding of a text. */
  charset: string
}

/** Header values by lower-case name, each character a byte. */
type PartHeaders = { readonly [name: string]: readonly string[] | undefined }

/** Reads the headers of a part of a form (RFC 7578). Throws RouterError. */
function readPartHead(headers: PartHeaders): PartHead {
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

/** Returns the text of a field. Throws RouterError for an encoding that nobody knows. */
function textOfField({ name, charset }: PartHead, value: Uint8Array): string {
  try {
    return new TextDecoder(charset).decode(value)
  } catch (cause) {
    const message = `The charset '${shown(charset)}' of ${fieldOf(name)} is unknown: send UTF-8.`
    throw new RouterError('invalid_request', message, { param: shown(name), cause })
  }
}

/** Returns a field in a message. */
function fieldOf(name: string): string {
  return `the form field '${shown(name)}'`
}

/** Returns the beginning of a client's text. */
function shown(text: string): string {
  return text.slice(0, maxShownLength)
}

const maxShownLength = 80

/** Returns the value before the first semicolon, in lower case, and the parameters after it. */
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

/** Decodes a value of RFC 8187: `UTF-8''na%C3%AFve.txt`. */
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
