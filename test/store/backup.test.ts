import { chmodSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { storedSecret } from '../../src/access/secrets.ts'
import type { CallRecord } from '../../src/core/call.ts'
import { openStore, type Store } from '../../src/store/open.ts'
import { readBackup, restoreBackup, writeBackup } from '../../src/store/sqlite/backup.ts'
import { connect } from '../../src/store/sqlite/connection.ts'
import { ledgerWriter } from '../../src/store/sqlite/ledger/ledger-writer.ts'
import { migrations } from '../../src/store/sqlite/schema/migrations.ts'
import { damage, pagesWithContent } from '../helpers/damage.ts'
import { plainRecord } from './plain-record.ts'
import { temporaryFile } from './temporary.ts'

/** A database with one organization, one key and one change. */
async function database() {
  const path = temporaryFile('router.sqlite')
  const store = await openStore(`sqlite:${path}`)
  onTestFinished(() => store.close())
  const { id: organization } = await store.organizations.create('acme')
  return { path, store, organization, folder: dirname(path), backup: join(dirname(path), 'backup.sqlite') }
}

function addKey(store: Store, organization: string, secret: string) {
  const createdBy = { id: 'test', email: '' }
  return store.keys.create({ ...storedSecret(secret), organization, name: secret, permissions: {}, createdBy })
}

const change = ({ audit }: Pick<Store, 'audit'>, organization: string, text = '') =>
  audit.append({ actor: 'test', action: 'test.change', subject: 's', organization, after: { text } })

function settle(path: string, record: Partial<CallRecord> = {}): void {
  const db = connect(path)
  ledgerWriter(db)([plainRecord(record)])
  db.close()
}

describe('a backup', () => {
  test('is one file for its owner alone, with the contents of the database', async () => {
    const { path, store, organization, backup, folder } = await database()
    const before = process.umask(0)
    onTestFinished(() => void process.umask(before))
    await addKey(store, organization, 'key-of-a-client')
    const contents = await writeBackup(path, backup)
    expect(contents).toMatchObject({ version: migrations.length, waitingRows: 0 })
    expect(statSync(backup).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder).filter((name) => name.startsWith('backup'))).toEqual(['backup.sqlite'])
    const copy = await openStore(`sqlite:${backup}`)
    expect((await copy.keys.page({ limit: 5 })).map(({ name }) => name)).toEqual(['key-of-a-client'])
    await copy.close()
  })

  test('is the state of one moment while others write without a pause', async () => {
    const { path, store, organization, backup } = await database()
    for (let index = 0; index < 3_000; index++) await change(store, organization, 'x'.repeat(4_000))
    let pairs = 0
    let isRunning = true
    const write = async () => {
      if (!isRunning) return
      await store.atomically(async (tx) => {
        await change(tx, organization, 'pair')
        await change(tx, organization, 'pair')
      })
      pairs++
      setImmediate(write)
    }
    await write()
    await writeBackup(path, backup)
    isRunning = false
    const db = new Database(backup, { readonly: true })
    const count = db.prepare(`SELECT count(*) FROM audit WHERE after LIKE '%pair%'`).pluck().get() as number
    db.close()
    expect(count % 2).toBe(0)
    expect(count / 2).toBeLessThan(pairs)
  })

  test('never replaces a file', async () => {
    const { path, backup } = await database()
    writeFileSync(backup, 'mine')
    await expect(writeBackup(path, backup)).rejects.toThrow('exists; name another file')
    expect(readFileSync(backup, 'utf8')).toBe('mine')
  })

  test('is never written to a file or link that somebody else has put in its place', async () => {
    const { path, backup, folder } = await database()
    const theirs = join(folder, 'theirs')
    writeFileSync(theirs, '')
    symlinkSync(theirs, `${backup}.${process.pid}.partial`)
    await expect(writeBackup(path, backup)).rejects.toThrow('EEXIST')
    expect([readFileSync(theirs, 'utf8'), existsSync(backup)]).toEqual(['', false])
  })

  test('of a database that does not exist, or is another program’s, leaves nothing behind', async () => {
    const { folder, backup } = await database()
    const other = join(folder, 'other.sqlite')
    new Database(other).exec('CREATE TABLE mine (a)').close()
    await expect(writeBackup(join(folder, 'none.sqlite'), backup)).rejects.toThrow('there is no database yet')
    await expect(writeBackup(other, backup)).rejects.toThrow('not a database of inference-router')
    expect(readdirSync(folder).filter((name) => name.startsWith('backup'))).toEqual([])
  })

  test('can leave out what clients and providers wrote, also from free pages', async () => {
    const { path, organization, backup } = await database()
    const text = 'a message that a provider wrote'
    settle(path, { organization, outcome: 'failed', status: 502, error: 'provider_failed', providerMessage: text })
    await writeBackup(path, `${backup}-whole`)
    await writeBackup(path, backup, { withoutContent: true })
    expect(readFileSync(`${backup}-whole`).includes(text)).toBe(true)
    expect(readFileSync(backup).includes(text)).toBe(false)
  })
})

describe('a restore', () => {
  test('puts the backup where there is no database', async () => {
    const { path, backup, folder } = await database()
    await writeBackup(path, backup)
    const fresh = join(folder, 'new/router.sqlite')
    chmodSync(backup, 0o644)
    expect(restoreBackup(backup, fresh)).toMatchObject({ revivedKeys: [], contents: { version: migrations.length } })
    expect(statSync(fresh).mode & 0o777).toBe(0o600)
    const store = await openStore(`sqlite:${fresh}`)
    expect((await store.organizations.list()).map(({ name }) => name)).toEqual(['acme'])
    await store.close()
  })

  test('refuses a database with newer calls or changes, and with force gives it another name', async () => {
    const { path, backup } = await database()
    await writeBackup(path, backup)
    settle(path, { at: Date.UTC(2030, 0, 1) })
    expect(() => restoreBackup(backup, path)).toThrow(
      /newer than the backup: it has calls or changes until 2030-01-01T00/,
    )
    const { replaced = '' } = restoreBackup(backup, path, { force: true })
    expect(readBackup(replaced)).toHaveProperty('newestCall')
    expect(readBackup(path)).not.toHaveProperty('newestCall')
  })

  test('replaces a database that has nothing newer without force', async () => {
    const { path, backup } = await database()
    await writeBackup(path, backup)
    expect(restoreBackup(backup, path).replaced).toMatch(/router\.sqlite-replaced-\d{8}T\d{6}Z$/)
  })

  test('names the keys that were revoked, deleted or rotated since: they work again', async () => {
    const { path, store, organization, backup } = await database()
    const keys = await Promise.all(
      ['revoked', 'deleted', 'rotated', 'same'].map((name) => addKey(store, organization, `${name}-key`)),
    )
    const [revoked, deleted, rotated] = keys.map(({ id }) => id) as [string, string, string]
    await writeBackup(path, backup)
    await store.keys.revoke(revoked)
    await store.keys.remove(deleted)
    await store.keys.rotate(rotated, storedSecret('another-secret'))
    expect(restoreBackup(backup, path, { force: true }).revivedKeys).toEqual([revoked, deleted, rotated].toSorted())
  })

  test('is refused while a router runs, and changes nothing', async () => {
    const { path, backup } = await database()
    await writeBackup(path, backup)
    const router = await openStore(`sqlite:${path}`, { asRouter: true })
    onTestFinished(() => router.close())
    const before = statSync(path).ino
    expect(() => restoreBackup(backup, path, { force: true })).toThrow('another router uses this database')
    expect(statSync(path).ino).toBe(before)
  })

  test('refuses a backup of a newer version, a damaged one and a file of another program', async () => {
    const { path, backup, folder } = await database()
    await writeBackup(path, backup)
    const newer = join(folder, 'newer.sqlite')
    await writeBackup(path, newer)
    new Database(newer).exec(`INSERT INTO migrations VALUES (${migrations.length + 1}, 'later', 0)`).close()
    const to = join(folder, 'to.sqlite')
    expect(() => restoreBackup(newer, to)).toThrow(
      `written by a newer inference-router (its version is ${migrations.length + 1}, this program knows ${migrations.length})`,
    )
    const page = pagesWithContent(backup).find(({ name }) => name === 'organizations')?.page ?? 0
    damage(backup, readFileSync(backup), [page])
    expect(() => restoreBackup(backup, to)).toThrow('damaged')
    writeFileSync(join(folder, 'text'), 'not a database, but longer than a header of one would be\n'.repeat(20))
    expect(() => restoreBackup(join(folder, 'text'), to)).toThrow('not an SQLite database')
    expect(existsSync(to)).toBe(false)
  })

  test('replaces a database that cannot be read, or is of a newer version, only with force', async () => {
    const { path, store, backup, folder } = await database()
    await writeBackup(path, backup)
    await store.close()
    new Database(path).exec(`INSERT INTO migrations VALUES (${migrations.length + 1}, 'later', 0)`).close()
    await expect(openStore(`sqlite:${path}`)).rejects.toThrow('inference-router restore FILE --force')
    restoreBackup(backup, path, { force: true })
    await (await openStore(`sqlite:${path}`)).close()
    writeFileSync(path, 'overwritten by something else, which is longer than a header\n'.repeat(20))
    expect(() => restoreBackup(backup, path)).toThrow('--force replaces it')
    restoreBackup(backup, path, { force: true })
    await (await openStore(`sqlite:${path}`)).close()
    expect(readdirSync(folder).filter((name) => name.includes('restoring'))).toEqual([])
  })
})
