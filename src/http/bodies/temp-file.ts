import { randomUUID } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { RouterError } from '../../core/errors.ts'
import { collectPassed } from '../../runtime/collect.ts'

/**
 * Bytes that are written once and read from the beginning any number of times: in memory as long as they are few, then in a
 * temporary file that has no name.
 */
export class TempFile {
  readonly #folder: string
  readonly #wrote: (error?: RouterError) => void
  /** Chunks that are not in the file. */
  #chunks: Uint8Array[] = []
  #size = 0
  #file: TemporaryFile | undefined
  #inFile = 0
  #writing: Promise<void> | undefined
  #isClosed = false

  /** `wrote` is called after each write to the file, with the error of one that failed. */
  constructor(folder: string, wrote: (error?: RouterError) => void) {
    this.#folder = folder
    this.#wrote = wrote
  }

  get size(): number {
    return this.#size
  }

  /** Bytes that wait for the disk. */
  get waiting(): number {
    return this.#writing ? this.#size - this.#inFile : 0
  }

  /** Keeps the bytes, which must not change any more. */
  write(chunk: Uint8Array): void {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    if (this.#chunks.length > maxChunks) this.#chunks = [Buffer.concat(this.#chunks)]
    if (this.#size > maxInMemory) this.#writing ??= this.#flush()
  }

  async *read(into?: Uint8Array): AsyncGenerator<Uint8Array> {
    if (this.#isClosed) throw unusable(new Error('The upload has been disposed of.'))
    for (let at = 0; at < this.#inFile; ) {
      const chunk = await this.#readAt(at, into)
      at += chunk.length
      yield chunk
      collectPassed(chunk.length)
    }
    for (const chunk of this.#chunks) yield chunk
  }

  /** Forgets the bytes; what reads them fails. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#chunks = []
    await this.#writing
    const file = this.#file
    this.#file = undefined
    await file?.close()
  }

  async #flush(): Promise<void> {
    try {
      this.#file ??= await openUnnamed(this.#folder)
      while (this.#chunks.length > 0) {
        const chunks = this.#chunks
        this.#chunks = []
        await writeAll(this.#file.handle, chunks, this.#inFile)
        for (const { length } of chunks) {
          this.#inFile += length
          collectPassed(length)
        }
        this.#wrote()
      }
      this.#writing = undefined
    } catch (cause) {
      this.#writing = undefined
      this.#wrote(unusable(cause))
    }
  }

  async #readAt(at: number, into?: Uint8Array): Promise<Uint8Array> {
    const length = Math.min(into?.length ?? pieceBytes, this.#inFile - at)
    // Not from a pool: a reader may keep its bytes.
    const buffer = into?.subarray(0, length) ?? Buffer.allocUnsafeSlow(length)
    try {
      const { handle } = this.#file as TemporaryFile
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, at)
      if (bytesRead === 0) throw new Error('The temporary file of an upload is shorter than it was.')
      return buffer.subarray(0, bytesRead)
    } catch (cause) {
      throw unusable(cause)
    }
  }
}

const maxInMemory = 64 * 1024
/** Maximum number of chunks: each of a few bytes has an object of a hundred. */
const maxChunks = 256
const pieceBytes = 64 * 1024

type TemporaryFile = { handle: FileHandle; close(): Promise<void> }

/** Opens a file without a name, which ceases with the process, however that ends. */
async function openUnnamed(folder: string): Promise<TemporaryFile> {
  const path = join(folder, `router-upload-${randomUUID()}`)
  const handle = await open(path, 'wx+', 0o600)
  // Where the system does not allow it, the file is removed when it is closed.
  const hasName = await rm(path).then(
    () => false,
    () => true,
  )
  return {
    handle,
    close: async () => {
      await handle.close()
      if (hasName) await rm(path, { force: true })
    },
  }
}

async function writeAll(handle: FileHandle, chunks: readonly Uint8Array[], position: number): Promise<void> {
  const { bytesWritten } = await handle.writev(chunks, position)
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  if (bytesWritten === length) return
  // A disk that is nearly full takes a part, and reports the reason with the next one.
  if (bytesWritten === 0) throw new Error('The disk does not accept writes.')
  await writeAll(handle, [Buffer.concat(chunks).subarray(bytesWritten)], position + bytesWritten)
}

function unusable(cause: unknown): RouterError {
  const { message } = cause as Error
  return new RouterError('unavailable', 'The server could not store an uploaded file.', { cause, forLog: message })
}
