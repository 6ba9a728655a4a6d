import { createHash } from 'node:crypto'
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'

/** What was found out about files before, by their contents. It is always right, or undefined. */
export type FileCache = {
  /** Where it is, for another thread to open it. */
  folder?: string
  /** `about` is everything that the value depends on, besides the code of the project. */
  read(about: readonly string[]): unknown
  /** Keeps plain JSON. */
  write(about: readonly string[], value: unknown): void
}

/** Remembers nothing. */
export const noCache: FileCache = { read: () => undefined, write: () => {} }

/** Entries that no start has read for so long are deleted. Days. */
const mostIdleDays = 30
const dayMs = 86_400_000

/** A cache in a folder: one file for each entry, which is used only if its digest is right. What cannot be written is not kept. */
export function openFileCache(folder: string): FileCache {
  const code = codeDigest()
  const nameOf = (about: readonly string[]) => digest(JSON.stringify([code, ...about]))
  let pruned = false
  return {
    folder,
    read(about) {
      const name = nameOf(about)
      return readEntry(join(folder, name), name)
    },
    write(about, value) {
      const name = nameOf(about)
      if (!pruned) prune(folder)
      pruned = true
      writeEntry(join(folder, name), name, JSON.stringify(value))
    },
  }
}

/** The digest is of the name too: an entry that was renamed is about something else. */
function readEntry(path: string, name: string): unknown {
  try {
    const entry = readFileSync(path, 'utf8')
    const end = entry.indexOf('\n')
    const text = entry.slice(end + 1)
    if (entry.slice(0, end) !== digest(name + text)) return undefined
    if (lstatSync(path).mtimeMs < Date.now() - dayMs) utimesSync(path, new Date(), new Date())
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Another process may do the same at the same time; a draft that stays behind grows old. */
function writeEntry(path: string, name: string, text: string): void {
  const draft = `${path}.${process.pid}`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(draft, `${digest(name + text)}\n${text}`, { mode: 0o600 })
    renameSync(draft, path)
  } catch {}
}

function prune(folder: string): void {
  try {
    for (const name of readdirSync(folder)) {
      const path = join(folder, name)
      if (lstatSync(path).mtimeMs < Date.now() - mostIdleDays * dayMs) rmSync(path, { force: true })
    }
  } catch {}
}

/** The code that reads and checks files: what another state of it found out does not count. */
const codeFolders = ['api', 'catalog', 'core', 'manifest', 'mapping', 'snapshot', '../schemas']

/** Sizes and times tell states of the code apart at a fraction of what reading all of it takes. */
function codeDigest(): string {
  const source = join(import.meta.dirname, '..')
  const files = codeFolders.flatMap((folder) =>
    readdirSync(join(source, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(source, folder, name)),
  )
  const states = files.map((file) => {
    const { size, mtimeMs } = statSync(file)
    return `${relative(source, file)} ${size} ${mtimeMs}`
  })
  return digest([process.version, readFileSync(join(source, '../package.json'), 'utf8'), ...states].join('\n'))
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
