import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { Database } from '../../src/store/database.ts'
import { connect } from '../../src/store/sqlite/connection.ts'
import { inMemory } from '../../src/store/sqlite/database-files.ts'
import { sqliteDatabase } from '../../src/store/sqlite/driver.ts'

function open() {
  const connection = connect(inMemory)
  onTestFinished(() => void connection.close())
  connection.exec('CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT, at INTEGER, share REAL, bytes BLOB) STRICT')
  const db = sqliteDatabase(connection)
  return { db, connection, texts: () => textsIn(db) }
}

async function textsIn(db: Database): Promise<string[]> {
  return (await db.all<{ text: string }>('SELECT text FROM notes ORDER BY id')).map(({ text }) => text)
}

const note = (db: Database, text: string) => db.run('INSERT INTO notes (text) VALUES (@text)', { text })

test('integers are bigint in both directions, other numbers and bytes are themselves', async () => {
  const { db } = open()
  const values = { at: 2n ** 62n, share: 0.5, bytes: Buffer.from([1, 2]), unused: 'ignored' }
  const sql =
    'INSERT INTO notes (id, at, share, bytes) VALUES (@id, @at, @share, @bytes) RETURNING id, at, share, bytes'
  expect(await db.get(sql, { id: 7, ...values })).toEqual({
    id: 7n,
    at: 2n ** 62n,
    share: 0.5,
    bytes: Buffer.from([1, 2]),
  })
  expect(await db.get('SELECT typeof(@one) AS one, typeof(@half) AS half', { one: 1, half: 0.5 })).toEqual({
    one: 'integer',
    half: 'real',
  })
  expect(await db.get('SELECT id FROM notes WHERE id = @id', { id: 8 })).toBeUndefined()
  expect(await db.run('UPDATE notes SET text = @text', { text: 'x' })).toBe(1)
})

test('what goes wrong rejects, and nothing is thrown', async () => {
  const { db } = open()
  await expect(db.all('SELECT * FROM unknown_table')).rejects.toThrow('no such table')
  await expect(db.transaction((tx) => tx.run('nonsense'))).rejects.toThrow('syntax error')
})

test('no statement of others gets into a transaction, which is committed as a whole', async () => {
  const { db, texts } = open()
  const changing = db.transaction(async (tx) => {
    await note(tx, 'one')
    await note(tx, 'two')
    return await textsIn(tx)
  })
  const read = texts()
  const written = note(db, 'of another')
  const other = db.transaction((tx) => note(tx, 'of a transaction'))
  expect(await changing).toEqual(['one', 'two'])
  expect(await read).toEqual(['one', 'two'])
  await Promise.all([written, other])
  expect(await texts()).toEqual(['one', 'two', 'of another', 'of a transaction'])
})

test('a transaction that fails leaves nothing, and the next one begins', async () => {
  const { db, texts } = open()
  const failing = db.transaction(async (tx) => {
    await note(tx, 'one')
    throw new Error('no')
  })
  const next = db.transaction((tx) => note(tx, 'two'))
  await expect(failing).rejects.toThrow('no')
  await next
  expect(await texts()).toEqual(['two'])
})

test('a part of a transaction is undone alone', async () => {
  const { db, texts } = open()
  await db.transaction(async (tx) => {
    await note(tx, 'one')
    const part = tx.transaction(async (inner) => {
      await note(inner, 'two')
      throw new Error('no')
    })
    // Not before the part has ended.
    const after = note(tx, 'three')
    await expect(part).rejects.toThrow('no')
    await after
    await tx.transaction((inner) => note(inner, 'four'))
  })
  expect(await texts()).toEqual(['one', 'three', 'four'])
})

test.each<[waits: string, wait: (db: Database) => Promise<unknown>]>([
  ['the event loop', () => setImmediate()],
  ['a statement outside of it, which waits for it', (db) => note(db, 'outside')],
  ['another transaction, which waits for it', (db) => db.transaction((tx) => note(tx, 'outside'))],
])('a transaction that waits for %s is rolled back, and others go on', async (_, wait) => {
  const { db, texts } = open()
  const late = Promise.withResolvers<void>()
  let used: Database | undefined
  const waiting = db.transaction(async (tx) => {
    used = tx
    await note(tx, 'inside')
    await wait(db)
    await note(tx, 'too late').catch(() => late.resolve())
  })
  await expect(waiting).rejects.toThrow('a transaction waited for something other than its own statements')
  await late.promise
  expect(await texts()).not.toContain('inside')
  expect(await texts()).not.toContain('too late')
  await expect(used?.all('SELECT 1')).rejects.toThrow('this transaction has ended')
  await note(db, 'after')
  expect((await texts()).at(-1)).toBe('after')
})

test('a transaction that does not wait for a part of it is rolled back, and the part gets into no other', async () => {
  const { db, texts } = open()
  const hasty = db.transaction(async (tx) => {
    void tx
      .transaction(async (inner) => {
        for (let count = 0; count < 20; count++) await note(inner, 'orphan')
      })
      .catch(() => {})
  })
  const next = db.transaction((tx) =>
    tx.transaction(async (inner) => {
      for (let count = 0; count < 20; count++) await note(inner, 'next')
    }),
  )
  await expect(hasty).rejects.toThrow('a transaction ended before a part of it')
  await next
  expect(await texts()).toEqual(Array(20).fill('next'))
})

test('work on the connection itself waits for a transaction', async () => {
  const { db, connection, texts } = open()
  const failing = db.transaction(async (tx) => {
    await note(tx, 'one')
    throw new Error('no')
  })
  const alone = db.alone(() => connection.exec("INSERT INTO notes (text) VALUES ('alone')"))
  await expect(failing).rejects.toThrow('no')
  await alone
  expect(await texts()).toEqual(['alone'])
})
