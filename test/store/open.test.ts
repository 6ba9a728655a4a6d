import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { connect } from '../../src/store/sqlite/connection.ts'
import { migrate, migrations } from '../../src/store/sqlite/schema/migrations.ts'
import type { Migration } from '../../src/store/sqlite/schema/types.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { temporaryFile } from './temporary.ts'

const first: Migration = { name: 'first', sql: 'CREATE TABLE one (a INTEGER) STRICT; INSERT INTO one VALUES (1)' }
const second: Migration = { name: 'second', sql: 'ALTER TABLE one ADD COLUMN b TEXT' }

/** The permissions of a database and the files beside it, by the end of their names. */
function modesBeside(path: string): { [ending: string]: number } {
  const names = readdirSync(dirname(path)).toSorted()
  return Object.fromEntries(
    names.map((name) => [name.slice(basename(path).length), statSync(join(dirname(path), name)).mode & 0o777]),
  )
}

function tables(path: string): unknown[] {
  const db = new Database(path, { readonly: true })
  try {
    return db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").pluck().all()
  } finally {
    db.close()
  }
}

describe('opening', () => {
  test('makes the file, its folders and its tables; all tables are strict; the log is written ahead and synced', async () => {
    const path = temporaryFile('deep/er/router.sqlite')
    await (await openStore(`sqlite:${path}`)).close()
    expect(existsSync(path)).toBe(true)
    const db = connect(path)
    expect(db.pragma('journal_mode', { simple: true })).toBe('wal')
    expect(db.pragma('synchronous', { simple: true })).toBe(2)
    expect(db.pragma('foreign_keys', { simple: true })).toBe(1)
    expect(db.pragma('secure_delete', { simple: true })).toBe(1)
    expect(db.pragma('journal_size_limit', { simple: true })).toBe(64 * 1024 * 1024)
    const loose = db.prepare("SELECT name FROM pragma_table_list WHERE strict = 0 AND name NOT LIKE 'sqlite_%'").all()
    expect(loose).toEqual([])
    db.close()
  })

  test('keeps the database and all files beside it from other users, also those that were open to them', async () => {
    const path = temporaryFile('private.sqlite')
    const before = process.umask(0)
    onTestFinished(() => void process.umask(before))
    for (const start of ['the first', 'after an upgrade']) {
      const store = await openStore(`sqlite:${path}`, { asRouter: true })
      const writer = store.ledger.openWriter()
      await writer.ready()
      await writer.spill?.append([])
      await store.organizations.create(start)
      expect(modesBeside(path), start).toEqual(
        Object.fromEntries(['', '-lock', '-lock-journal', '-shm', '-spill', '-wal'].map((ending) => [ending, 0o600])),
      )
      await writer.close()
      for (const name of readdirSync(dirname(path))) chmodSync(join(dirname(path), name), 0o644)
      const late = connect(path)
      expect(modesBeside(path)).toMatchObject({ '': 0o600, '-shm': 0o600, '-wal': 0o600 })
      late.close()
      await store.close()
    }
    chmodSync(path, 0o440)
    connect(path, { mustExist: true }).close()
    expect(modesBeside(path)[''], 'what the owner may not do is not permitted').toBe(0o400)
  })

  test('keeps existing data', async () => {
    const url = `sqlite:${temporaryFile('a.sqlite')}`
    const before = await openStore(url)
    const made = await before.organizations.create('acme')
    await before.close()
    const after = await openStore(url)
    expect(await after.organizations.find(made.id)).toEqual(made)
    await after.close()
  })

  test('works in memory', async () => {
    const store = await openStore('sqlite::memory:')
    expect((await store.organizations.create('acme')).name).toBe('acme')
    await store.close()
  })

  test.each(['', 'sqlite:', 'postgres://db/router', 'data/router.sqlite'])(
    '%j is refused with the form to write',
    async (url) => {
      await expect(openStore(url)).rejects.toThrow(/store\.url is .* write "sqlite:<path of a file>"/)
    },
  )

  test('a file that is no database is named, and left alone', async () => {
    const path = temporaryFile('notes.txt')
    writeFileSync(path, 'These are my notes, which are no database at all.'.repeat(100))
    await expect(openStore(`sqlite:${path}`)).rejects.toThrow(StoreError)
    await expect(openStore(`sqlite:${path}`)).rejects.toThrow(/notes\.txt: this file is not an SQLite database/)
  })

  test('a database of another program is not touched', async () => {
    const path = temporaryFile('other.sqlite')
    const other = new Database(path)
    other.exec('CREATE TABLE songs (name TEXT)')
    other.close()
    await expect(openStore(`sqlite:${path}`)).rejects.toThrow(/belongs to another program/)
    expect(tables(path)).toEqual(['songs'])
  })

  test('a folder instead of the file, and a file instead of the folder, are reported', async () => {
    const path = temporaryFile('taken')
    mkdirSync(path)
    await expect(openStore(`sqlite:${path}`)).rejects.toThrow(/taken: the database file cannot be opened/)
    writeFileSync(join(dirname(path), 'file'), '')
    await expect(openStore(`sqlite:${dirname(path)}/file/router.sqlite`)).rejects.toThrow(
      /folder of the database cannot be created/,
    )
  })
})

describe('migrations', () => {
  test('run in order, once, and are written down', () => {
    const path = temporaryFile('m.sqlite')
    const db = connect(path)
    migrate(db, [first])
    migrate(db, [first, second])
    migrate(db, [first, second])
    expect(db.prepare('SELECT * FROM one').all()).toEqual([{ a: 1, b: null }])
    expect(db.prepare('SELECT version, name FROM migrations').all()).toEqual([
      { version: 1, name: 'first' },
      { version: 2, name: 'second' },
    ])
    db.close()
  })

  test('leave nothing behind when one of them fails', () => {
    const path = temporaryFile('m.sqlite')
    const db = connect(path)
    const broken = { name: 'broken', sql: 'CREATE TABLE two (a INTEGER) STRICT; INSERT INTO nowhere VALUES (1)' }
    expect(() => migrate(db, [first, broken])).toThrow(/nowhere/)
    expect(tables(path)).toEqual([])
    migrate(db, [first])
    db.close()
  })

  test('a database of a newer router is refused with both versions, and not changed', async () => {
    const path = temporaryFile('new.sqlite')
    const db = connect(path)
    const newer = [...migrations, second]
    migrate(db, [first, ...newer])
    db.close()
    const known = migrations.length
    const message = new RegExp(
      `written by a newer inference-router \\(its version is ${known + 2}, this program knows ${known}\\)`,
    )
    await expect(openStore(`sqlite:${path}`)).rejects.toThrow(message)
  })
})
