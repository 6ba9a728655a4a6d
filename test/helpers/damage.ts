import { rmSync, writeFileSync } from 'node:fs'
import Database from 'better-sqlite3'

/** One page of each table and index that has rows, the last one, in a file that no log stands beside. */
export function pagesWithContent(path: string): { name: string; page: number }[] {
  const db = new Database(path)
  try {
    db.pragma('wal_checkpoint(TRUNCATE)')
    db.pragma('journal_mode = DELETE')
    const all = db.prepare(`
      SELECT name, max(pageno) AS page FROM dbstat WHERE pagetype = 'leaf' AND ncell > 0 AND pageno > 1 GROUP BY name`)
    return all.all() as { name: string; page: number }[]
  } finally {
    db.close()
  }
}

/** Writes a sound file again, with bytes of one value in place of the content of some pages. */
export function damage(path: string, sound: Buffer, pages: readonly number[], value = 0): void {
  for (const beside of ['-wal', '-shm']) rmSync(`${path}${beside}`, { force: true })
  const size = sound.readUInt16BE(16)
  const copy = Buffer.from(sound)
  // Its header stays as it is, as with a disk that lost a part of a page.
  for (const page of pages) copy.fill(value, (page - 1) * size + 8, page * size)
  writeFileSync(path, copy)
}
