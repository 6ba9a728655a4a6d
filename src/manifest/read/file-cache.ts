import { createHash, hash, randomUUID } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync, utimesSync } from 'node:fs'
import { lstat, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Earlier findings about files, by their contents. A value is always right, or undefined. */
export type FileCache = {
  /** The folder of the cache, for another thread to open it. */
  folder?: string
  /** `about` is everything that the value depends on, besides the code of the project. */
  read(about: readonly string[]): unknown
  /** Keeps plain JSON. It can be read at once, and by other threads and processes when it is `written`. */
  write(about: readonly string[], value: unknown): void
  /** Resolves when everything given to `write` is on the disk, or could not be kept. */
  written(): Promise<void>
}

/** Remembers nothing. */
export const noCache: FileCache = { read: () => undefined, write: () => {}, written: () => Promise.resolve() }

/** Entries that no start has read for so long are deleted. Days. */
const maxIdleDays = 30
const dayMs = 86_400_000

/** Files that are written at the same time: the disk's work, beside which this thread does its own. */
const writers = 4

/**
 * A cache in a folder: one file for each entry, which is used only if its digest is right. What cannot be written is not kept.
 * Entries are written while nothing else is done: a first start with a thousand providers does not wait for thousands of files.
 */
export function openFileCache(folder: string): FileCache {
  const code = codeDigest()
  const nameOf = (about: readonly string[]) => digest([code, ...about])
  const unwritten = new Map<string, string>()
  let writing: Promise<void> | undefined
  let isOpen = false
  const writeAll = async () => {
    await nextTurn()
    if (!isOpen) await openFolder(folder)
    isOpen = true
    while (unwritten.size > 0) {
      const entries = unwritten.entries()
      const write = async () => {
        for (const [name, text] of entries) {
          await writeEntry(join(folder, name), name, text)
          unwritten.delete(name)
        }
      }
      await Promise.all(Array.from({ length: writers }, write))
    }
    writing = undefined
  }
  return {
    folder,
    read(about) {
      const name = nameOf(about)
      const text = unwritten.get(name)
      return text === undefined ? readEntry(join(folder, name), name) : JSON.parse(text)
    },
    write(about, value) {
      unwritten.set(nameOf(about), JSON.stringify(value))
      writing ??= writeAll()
    },
    written: () => writing ?? Promise.resolve(),
  }
}

/** The digest is of the name too: an entry that was renamed is about something else. */
function readEntry(path: string, name: string): unknown {
  try {
    const entry = readFileSync(path, 'utf8')
    const end = entry.indexOf('\n')
    const text = entry.slice(end + 1)
    if (entry.slice(0, end) !== digest([name, text])) return undefined
    if (lstatSync(path).mtimeMs < Date.now() - dayMs) markUsed(path)
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Makes an entry young again, unless its folder is read-only. */
function markUsed(path: string): void {
  try {
    utimesSync(path, new Date(), new Date())
  } catch {}
}

/** Another thread or process may do the same at the same time; a draft that stays behind grows old. */
async function writeEntry(path: string, name: string, text: string): Promise<void> {
  const draft = `${path}.${randomUUID()}`
  try {
    await writeFile(draft, `${digest([name, text])}\n${text}`, { mode: 0o600 })
    await rename(draft, path)
  } catch {}
}

/** Makes the folder, and deletes what no start has read for long. */
async function openFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    for (const name of await readdir(folder)) {
      const path = join(folder, name)
      if ((await lstat(path)).mtimeMs < Date.now() - maxIdleDays * dayMs) await rm(path, { force: true })
    }
  } catch {}
}

/** The code that reads and checks files: what another state of it found out does not count. */
const codeFolders = ['api', 'catalog', 'core', 'manifest', 'mapping', 'snapshot', '../schemas']

/** Returns a digest of the code: of its contents, because builds may have files of equal sizes and times; builds name theirs. */
function codeDigest(): string {
  const source = join(import.meta.dirname, '../..')
  const { build } = JSON.parse(readFileSync(join(source, '../package.json'), 'utf8')) as { build?: string }
  if (build !== undefined) return digest([process.version, build])
  const files = codeFolders.flatMap((folder) =>
    readdirSync(join(source, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name)),
  )
  const code = createHash('sha256')
  for (const file of ['../package.json', ...files.map((path) => relative(source, path)).sort()]) {
    const bytes = readFileSync(join(source, file))
    code.update(`${file} ${bytes.length} `).update(bytes)
  }
  return digest([process.version, code.digest('hex')])
}

/** Returns a digest of parts together with their lengths: no two lists of parts are one text. */
function digest(parts: readonly string[]): string {
  return hash('sha256', parts.map((part) => `${part.length} ${part}`).join(''))
}
