import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { CallRecord } from '../core/call.ts'
import { withoutSecrets } from '../core/secrets.ts'

/** A file beside the database for rows that it does not take: they outlive a process that is killed meanwhile. */
export type Rescue = {
  /** Resolves when the records are on disk. Rejects when they cannot be. */
  keep(records: readonly CallRecord[]): Promise<void>
  /** All that was kept is in the database. */
  forget(): Promise<void>
  close(): Promise<void>
}

/** The room that is taken beforehand, so that a full disk has it: about a thousand records. Bytes. */
const reserve = 1024 * 1024

/** Opens the file of a database, and makes it where it can be made. */
export function openRescue(database: string): Rescue {
  const opened = openReserved(fileOf(database))
  opened.catch(() => {})
  let end = 0
  // One after the other: each begins where the one before has ended.
  let last: Promise<unknown> = opened.catch(() => {})
  const inTurn = (work: (file: FileHandle) => Promise<void>): Promise<void> => {
    const done = last.then(async () => work(await opened))
    last = done.catch(() => {})
    return done
  }
  return {
    keep: (records) =>
      inTurn(async (file) => {
        const lines = records.map((record) => `${withoutSecrets(JSON.stringify(record))}\n`)
        const bytes = Buffer.from(lines.join(''))
        await file.write(bytes, 0, bytes.length, end)
        await file.datasync()
        end += bytes.length
      }),
    forget: () =>
      inTurn(async (file) => {
        await file.write(Buffer.alloc(end), 0, end, 0)
        await file.datasync()
        end = 0
      }),
    close: () => inTurn((file) => file.close()).catch(() => {}),
  }
}

/** The records that a process before this one kept and could not write; none when there is no such file. */
export function rescuedRecords(database: string): CallRecord[] {
  const bytes = bytesOf(fileOf(database))
  const end = bytes.indexOf(0)
  const lines = bytes.toString('utf8', 0, end === -1 ? bytes.length : end).split('\n')
  return lines.flatMap(recordIn)
}

/** Overwrites what was kept: it is in the database. */
export function wipeRescued(database: string): void {
  const { length } = bytesOf(fileOf(database))
  const file = openSync(fileOf(database), 'r+')
  try {
    writeSync(file, Buffer.alloc(length), 0, length, 0)
  } finally {
    closeSync(file)
  }
}

function fileOf(database: string): string {
  return `${database}-rescue`
}

async function openReserved(path: string): Promise<FileHandle> {
  const file = await open(path, 'r+').catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code !== 'ENOENT') throw thrown
    return open(path, 'w+')
  })
  const { size } = await file.stat()
  if (size < reserve) await file.write(Buffer.alloc(reserve - size), 0, reserve - size, size)
  return file
}

function bytesOf(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    throw thrown
  }
}

/** A line that was cut off by the end of its process is no record. */
function recordIn(line: string): CallRecord[] {
  try {
    return line === '' ? [] : [JSON.parse(line)]
  } catch {
    return []
  }
}
