import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { CallRecord } from '../../../core/call.ts'
import { withoutSecrets } from '../../../core/secrets.ts'
import type { SpillFile } from '../../ledger/writer.ts'
import { keepPrivate, ownerOnly } from '../database-files.ts'

/** Bytes reserved in advance, for about a thousand records, so that the file works on a full disk. */
const reservedBytes = 1024 * 1024

/** Opens the spill file of a database, which is beside it; creates it when possible. */
export function openSpillFile(database: string): SpillFile {
  const opened = openReserved(fileOf(database))
  opened.catch(() => {})
  let end = 0
  // Operations run one after the other, each at the end of the previous one.
  let last: Promise<unknown> = opened.catch(() => {})
  const inTurn = (work: (file: FileHandle) => Promise<void>): Promise<void> => {
    const done = last.then(async () => work(await opened))
    last = done.catch(() => {})
    return done
  }
  return {
    append: (records) =>
      inTurn(async (file) => {
        const lines = records.map((record) => `${withoutSecrets(JSON.stringify(record))}\n`)
        const bytes = Buffer.from(lines.join(''))
        await file.write(bytes, 0, bytes.length, end)
        await file.datasync()
        end += bytes.length
      }),
    clear: () =>
      inTurn(async (file) => {
        await file.write(Buffer.alloc(end), 0, end, 0)
        await file.datasync()
        end = 0
      }),
    close: () => inTurn((file) => file.close()).catch(() => {}),
  }
}

/** The records that an earlier process spilled and could not write to the database; none without a file. */
export function spilledRecords(database: string): CallRecord[] {
  const bytes = bytesOf(fileOf(database))
  const end = bytes.indexOf(0)
  const lines = bytes.toString('utf8', 0, end === -1 ? bytes.length : end).split('\n')
  return lines.flatMap(recordIn)
}

/** Overwrites the file once its records are in the database. */
export function clearSpilled(database: string): void {
  const { length } = bytesOf(fileOf(database))
  const file = openSync(fileOf(database), 'r+')
  try {
    writeSync(file, Buffer.alloc(length), 0, length, 0)
  } finally {
    closeSync(file)
  }
}

function fileOf(database: string): string {
  return `${database}-spill`
}

async function openReserved(path: string): Promise<FileHandle> {
  const file = await open(path, 'r+').catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code !== 'ENOENT') throw thrown
    return open(path, 'w+', ownerOnly)
  })
  keepPrivate(path)
  const { size } = await file.stat()
  if (size < reservedBytes) await file.write(Buffer.alloc(reservedBytes - size), 0, reservedBytes - size, size)
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

/** The record of a line; none when a crash cut the line off. */
function recordIn(line: string): CallRecord[] {
  try {
    return line === '' ? [] : [JSON.parse(line)]
  } catch {
    return []
  }
}
