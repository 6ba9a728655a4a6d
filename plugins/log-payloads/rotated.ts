import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'
import type { PluginLog } from 'inference-router/plugin'

type Bounds = {
  folder: string
  max_file_bytes: number
  /** Maximum size of all files. */
  max_bytes: number
  days: number
  max_waiting: number
  log: Pick<PluginLog, 'warn' | 'error'>
}

/** Lines in files that are replaced when they are full, and deleted when they are old. */
export type Rotated = {
  /** Adds a line, which `make` makes later; where too many wait it is left out. Never throws. */
  add(make: () => string): void
  /** Writes the waiting lines. */
  close(): Promise<void>
}

/** Opens files `<time>-<process>-<thread>.jsonl` of a folder. Rejects where none can be written. */
export async function openRotated(bounds: Bounds): Promise<Rotated> {
  const files = new Files(bounds)
  await files.begin()
  const waiting: (() => string)[] = []
  /** A line that did not fit to those before it. */
  let held: string | undefined
  let leftOut = 0
  let writing: Promise<void> | undefined
  const mostBytes = Math.min(bytesAtOnce, bounds.max_file_bytes)
  /** Returns the next lines that fit into one file. */
  const nextLines = () => {
    let text = held ?? ''
    let bytes = Buffer.byteLength(text)
    held = undefined
    while (waiting.length > 0) {
      const line = `${waiting.shift()?.()}\n`
      bytes += Buffer.byteLength(line)
      if (text !== '' && bytes > mostBytes) {
        held = line
        break
      }
      text += line
    }
    return text
  }
  const writeAll = async () => {
    // The call goes first.
    await new Promise(setImmediate)
    while (waiting.length > 0 || held !== undefined) {
      await files.write(nextLines())
      if (leftOut > 0) bounds.log.warn({ left_out: leftOut }, 'payloads were not logged: too many were waiting')
      leftOut = 0
    }
  }
  const start = () => {
    writing ??= writeAll()
      .catch((err: unknown) => bounds.log.error({ err }, 'payloads could not be logged'))
      .finally(() => {
        writing = undefined
        if (waiting.length > 0 || held !== undefined) start()
      })
  }
  const sweep = () =>
    void files.dropOld().catch((err: unknown) => bounds.log.error({ err }, 'old payloads could not be deleted'))
  const timer = setInterval(sweep, sweepMs).unref()
  return {
    add(make) {
      if (waiting.length >= bounds.max_waiting) leftOut++
      else waiting.push(make)
      start()
    },
    async close() {
      clearInterval(timer)
      while (writing) await writing
      await files.end()
    },
  }
}

/** Number of bytes after which other work runs. */
const bytesAtOnce = 65_536
const sweepMs = 3_600_000
const dayMs = 86_400_000

class Files {
  readonly #bounds: Bounds
  #file: FileHandle | undefined
  #bytes = 0
  #begunMs = 0
  #count = 0

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  async begin(): Promise<void> {
    await mkdir(this.#bounds.folder, { recursive: true, mode: 0o700 })
    await this.dropOld()
  }

  async write(text: string): Promise<void> {
    const bytes = Buffer.byteLength(text)
    const isOld = Date.now() - this.#begunMs > Math.min(this.#bounds.days, 1) * dayMs
    if (isOld || this.#bytes + bytes > this.#bounds.max_file_bytes) await this.end()
    if (!this.#file) {
      await this.dropOld()
      const time = new Date().toISOString().replaceAll(':', '-')
      const path = join(this.#bounds.folder, `${time}-${process.pid}-${threadId}-${++this.#count}.jsonl`)
      this.#begunMs = Date.now()
      this.#file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
    }
    await this.#file.writeFile(text)
    this.#bytes += bytes
  }

  async end(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    this.#bytes = 0
    await file?.close()
  }

  /** Deletes files that are too old, and the oldest of too many, before another one is begun. */
  async dropOld(): Promise<void> {
    const { folder, days, max_bytes, max_file_bytes } = this.#bounds
    const names = (await readdir(folder)).filter(isOurs).sort()
    let left = Math.max(0, max_bytes - max_file_bytes)
    for (const name of names.reverse()) {
      const path = join(folder, name)
      const { size, mtimeMs } = await stat(path).catch(() => ({ size: 0, mtimeMs: 0 }))
      left -= size
      if (left < 0 || Date.now() - mtimeMs > days * dayMs) await rm(path, { force: true })
    }
  }
}

/** Checks whether a file of the folder is one of these. */
export function isOurs(name: string): boolean {
  return ours.test(name)
}

/** Returns the time at which a file was begun. Unix milliseconds. */
export function beginOf(name: string): number {
  const [, day = '', hour = '', minute = '', second = ''] = /^([\d-]+)T(\d+)-(\d+)-([\d.]+)Z/.exec(name) ?? []
  return Date.parse(`${day}T${hour}:${minute}:${second}Z`)
}

const ours = /^\d{4}-\d\d-\d\dT[\d.-]+Z-\d+-\d+-\d+\.jsonl$/
