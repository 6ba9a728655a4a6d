import { createReadStream } from 'node:fs'
import { type FileHandle, open, readdir, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { ContentHooks, EndUser, JsonObject, StoredCall, StoredContent } from 'inference-router/plugin'
import { beginOf, isOurs } from './rotated.ts'

type Entry = {
  kind: string
  id: string
  organization: string
  user?: string
  request?: JsonObject
  reply?: JsonObject
  left_out_bytes?: number
}

/** Maximum length of the name of an end user in an entry. Characters. */
export const maxUser = 1_024

/**
 * Reads the entries in the files of a folder, and deletes those of an end user, also while other threads write. One request looks through the
 * files at a time, however many come.
 */
export function storedEntries(folder: string): ContentHooks {
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = <Result>(look: () => Promise<Result>): Promise<Result> => {
    const next = last.then(look)
    last = next.catch(() => {})
    return next
  }
  const { find, deleteOf } = entriesIn(folder)
  return {
    find: (call) => inTurn(() => find(call)),
    deleteOf: (user) => inTurn(() => deleteOf(user)),
  }
}

function entriesIn(folder: string) {
  return {
    async find({ id, organization, at, durationMs }: StoredCall): Promise<StoredContent | undefined> {
      const found: StoredContent = {}
      for (const path of await filesWritten(folder, at, at + durationMs)) {
        for await (const { bytes } of linesOf(path)) {
          if (!bytes.includes(`"id":"${id}"`)) continue
          const entry = entryIn(bytes)
          if (entry?.id === id && entry.organization === organization) add(found, entry)
        }
      }
      return Object.keys(found).length === 0 ? undefined : found
    },
    async deleteOf({ organization, user: named }: EndUser): Promise<number> {
      const user = named.slice(0, maxUser)
      const calls = new Set<string>()
      for (const path of await filesWritten(folder)) {
        const lines: Line[] = []
        for await (const line of linesOf(path)) {
          const entry = line.bytes.includes(JSON.stringify(user)) ? entryIn(line.bytes) : undefined
          if (entry?.organization !== organization || entry.user !== user) continue
          calls.add(entry.id)
          lines.push(line)
        }
        if (lines.length > 0) await blank(path, lines)
      }
      return calls.size
    },
  }
}

function add(found: StoredContent, { request, reply, left_out_bytes: omitted }: Entry): void {
  if (request) found.request = request
  if (reply) found.reply = reply
  if (omitted !== undefined) found.omittedBytes = (found.omittedBytes ?? 0) + omitted
}

function entryIn(bytes: Buffer): Entry | undefined {
  try {
    return JSON.parse(bytes.toString('utf8')) as Entry
  } catch {
    // A line that was cut off when its process ended.
    return undefined
  }
}

/** Returns the files of a folder that were written to in some time; all files by default. Unix milliseconds. */
async function filesWritten(folder: string, from = 0, to = Number.POSITIVE_INFINITY): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => isOurs(name) && beginOf(name) <= to + slackMs).sort()
  const paths = names.map((name) => join(folder, name))
  const times = await Promise.all(paths.map((path) => stat(path).catch(() => undefined)))
  return paths.filter((_, index) => (times[index]?.mtimeMs ?? -1) >= from - slackMs)
}

/** Time after the end of a call in which its entries are written. */
const slackMs = 60_000

/** A line of a file without its end, and the place where it begins. */
type Line = { at: number; bytes: Buffer }

/** Yields the whole lines of a file; none when it has been deleted. */
async function* linesOf(path: string): AsyncGenerator<Line> {
  let rest: Buffer = Buffer.alloc(0)
  let position = 0
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: chunkBytes })) {
      const bytes = rest.length === 0 ? (chunk as Buffer) : Buffer.concat([rest, chunk as Buffer])
      let from = 0
      for (let end = bytes.indexOf(lineEnd); end >= 0; end = bytes.indexOf(lineEnd, from)) {
        yield { at: position + from, bytes: bytes.subarray(from, end) }
        from = end + 1
      }
      position += from
      rest = bytes.subarray(from)
    }
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT') throw thrown
  }
}

const chunkBytes = 1_048_576
const lineEnd = 10

/**
 * Overwrites lines with spaces: nothing moves, so that a thread may go on writing to the file, and its age stays, so that the rest of it is
 * not stored for longer.
 */
async function blank(path: string, lines: readonly Line[]): Promise<void> {
  const file = await openIfThere(path)
  if (!file) return
  try {
    const { atime, mtime } = await file.stat()
    for (const { at, bytes } of lines) await file.write(Buffer.alloc(bytes.length, ' '), 0, bytes.length, at)
    await file.datasync()
    await utimes(path, atime, mtime).catch(() => {})
  } finally {
    await file.close()
  }
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r+')
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw thrown
  }
}
