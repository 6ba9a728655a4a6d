import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { upgradeNotes, usedNames } from '../../src/cli/upgrade/changes.ts'
import { run } from '../../src/cli/upgrade/upgrade.ts'
import { openStore } from '../../src/store/open.ts'
import { connect } from '../../src/store/sqlite/connection.ts'
import { migrate, migrations } from '../../src/store/sqlite/schema/migrations.ts'
import { acme, folderOf, plainDialect } from '../manifest/files.ts'
import { ran } from './running.ts'

const files = { 'providers/dialects/plain.yaml': plainDialect, 'providers/acme.yaml': acme }

/** A folder with one provider, and a database with so many migrations; undefined for none. */
function installation({ settings = '', version }: { settings?: string; version?: number } = {}) {
  const folder = folderOf({ ...files, 'config.yaml': `store: { url: sqlite:router.sqlite }\n${settings}` })
  const path = join(folder, 'router.sqlite')
  if (version !== undefined) {
    const db = connect(path)
    migrate(db, migrations.slice(0, version))
    db.close()
  }
  const check = (...args: string[]) => ran(run, '--check', ...args, '--config', join(folder, 'config.yaml'))
  const checkJson = async (...args: string[]) => {
    const { code, stdout } = await check(...args, '--json')
    return { code, ...JSON.parse(stdout) }
  }
  return { folder, path, check, checkJson }
}

test('nothing to do is exit code 0, with and without a database', async () => {
  expect(await installation().checkJson()).toMatchObject({ code: 0, state: 'ready', database: { state: 'new' } })
  const { checkJson } = installation({ version: migrations.length })
  expect(await checkJson()).toMatchObject({ code: 0, database: { state: 'current', isServing: false }, problems: [] })
})

test('tables that the start would change are exit code 3, and are not changed', async () => {
  const { path, folder, check, checkJson } = installation({ version: migrations.length - 2 })
  const names = migrations.slice(-2).map(({ name }) => name)
  expect(await checkJson('--rehearse')).toMatchObject({
    code: 3,
    state: 'act',
    database: { state: 'older', migrations: names, rehearsedMs: expect.any(Number) },
  })
  expect((await check()).stdout).toContain('Make a backup first: inference-router backup FILE.')
  const db = new Database(path, { readonly: true })
  expect(db.prepare('SELECT max(version) FROM migrations').pluck().get()).toBe(migrations.length - 2)
  db.close()
  expect(readdirSync(folder).filter((name) => name.includes('rehearsal'))).toEqual([])
})

test('a database of a newer version is refused with the way back', async () => {
  const { path, check } = installation({ version: migrations.length })
  new Database(path).exec(`INSERT INTO migrations VALUES (${migrations.length + 1}, 'later', 0)`).close()
  const { code, stdout } = await check()
  expect(code).toBe(1)
  expect(stdout).toContain('restore the backup that was made before the update (inference-router restore FILE --force)')
})

test('a router that runs is named where tables change, and not disturbed', async () => {
  const { path, checkJson } = installation({ version: migrations.length })
  const router = await openStore(`sqlite:${path}`, { asRouter: true })
  onTestFinished(() => router.close())
  expect(await checkJson()).toMatchObject({ code: 0, database: { isServing: true } })
})

test('an old name of a setting is exit code 3, and an error in a file is 1', async () => {
  const old = await installation({ settings: 'health: { in_a_row: 3 }\n' }).checkJson()
  expect(old).toMatchObject({ code: 3, problems: [{ message: expect.stringContaining('has been renamed to') }] })
  const broken = await installation({ settings: 'providers: { acne: {} }\n' }).checkJson()
  expect(broken).toMatchObject({ code: 1, state: 'refused' })
})

test('without --check it says what an upgrade is', async () => {
  const { code, stderr } = await ran(run)
  expect([code, stderr.split('\n')[0]]).toEqual([
    2,
    'write upgrade --check: the router itself changes its database when a newer version starts',
  ])
})

test('entries of the changelog name what an installation uses', () => {
  const folder = folderOf({
    'CHANGELOG.md': `# Changelog
## [2.0.0]
### Added
- Something.
### Upgrading
What is different:

- **Slow clients.** They are cut off:
  \`server.client_timeout\`.
- \`max_tokens: 0\` is refused: use one.
- **The plugin** \`mask-pii\` and \`OTEL_X_Y\`.

Names:
| a | b |
## [1.0.0]
### Upgrading
- Older.
`,
  })
  const used = usedNames(
    { server: { client_timeout: '1s' }, plugins: [{ name: 'mask-pii' }], providers: { acme: {} } },
    { OTEL_X_Y: '1' },
  )
  expect(upgradeNotes(used, join(folder, 'CHANGELOG.md'))).toEqual([
    {
      version: '2.0.0',
      title: 'Slow clients',
      text: '**Slow clients.** They are cut off: `server.client_timeout`.',
      concerns: ['server.client_timeout'],
    },
    {
      version: '2.0.0',
      title: '`max_tokens: 0` is refused',
      text: '`max_tokens: 0` is refused: use one.',
      concerns: [],
    },
    {
      version: '2.0.0',
      title: 'The plugin `mask-pii` and `OTEL_X_Y`',
      text: '**The plugin** `mask-pii` and `OTEL_X_Y`.',
      concerns: ['mask-pii', 'OTEL_X_Y'],
    },
    { version: '1.0.0', title: 'Older', text: 'Older.', concerns: [] },
  ])
  expect(upgradeNotes(used, join(folder, 'none.md'))).toEqual([])
})
