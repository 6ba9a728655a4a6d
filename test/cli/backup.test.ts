import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { run as backup } from '../../src/cli/backup/backup.ts'
import { run as restore } from '../../src/cli/backup/restore.ts'
import { run as keys } from '../../src/cli/key.ts'
import { run as organizations } from '../../src/cli/org.ts'
import { folderOf } from '../manifest/files.ts'
import { ran } from './running.ts'

/** A folder with a configuration and a database with one organization. */
async function folderWithDatabase() {
  const folder = folderOf({ 'config.yaml': 'store: { url: sqlite:router.sqlite }\n' })
  const config = ['--config', join(folder, 'config.yaml')]
  await ran(organizations, 'create', 'acme', ...config)
  return { folder, config, file: join(folder, 'backup.sqlite') }
}

test('a backup is restored after a change', async () => {
  const { config, file } = await folderWithDatabase()
  expect(await ran(backup, file, ...config)).toMatchObject({ code: 0, stderr: '' })
  const { id } = JSON.parse((await ran(keys, 'create', 'late', '--json', ...config)).stdout)
  const refused = await ran(restore, file, ...config)
  expect([refused.code, refused.stderr.split('\n').length]).toEqual([1, 2])
  expect(refused.stderr).toContain('newer than the backup')
  const restored = await ran(restore, file, '--force', '--json', ...config)
  expect(restored.code).toBe(0)
  expect(JSON.parse(restored.stdout)).toMatchObject({ replaced: expect.any(String), keys_that_work_again: [] })
  expect((await ran(keys, 'show', id, ...config)).code).toBe(1)
})

test('keys that work again are printed', async () => {
  const { config, file } = await folderWithDatabase()
  const { id } = JSON.parse((await ran(keys, 'create', 'early', '--json', ...config)).stdout)
  await ran(backup, file, ...config)
  await ran(keys, 'revoke', id, ...config)
  const { stdout } = await ran(restore, file, '--force', ...config)
  expect(stdout).toContain(`These keys work again; revoke them with \`inference-router key revoke <id>\`:\n  ${id}\n`)
})

test.each([
  [backup, [], 'name the file: backup FILE', 2],
  [restore, [], 'name the backup: restore FILE', 2],
  [backup, ['a', 'b'], "unexpected argument 'b'", 2],
  [restore, ['nowhere.sqlite'], 'there is no such file', 1],
])('%o %j: %s', async (run, args, message, code) => {
  const { config } = await folderWithDatabase()
  const result = await ran(run, ...args, ...config)
  expect(result.code).toBe(code)
  expect(result.stderr).toContain(message)
})

test('a database in memory has no backup', async () => {
  const folder = folderOf({ 'config.yaml': 'store: { url: "sqlite::memory:" }\n' })
  const file = join(folder, 'backup.sqlite')
  expect(await ran(backup, file, '--config', join(folder, 'config.yaml'))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('in memory'),
  })
  expect(existsSync(file)).toBe(false)
})

test('an existing file is not replaced', async () => {
  const { config, file } = await folderWithDatabase()
  writeFileSync(file, '')
  expect(await ran(backup, file, ...config)).toMatchObject({ code: 1, stderr: `${file} exists; name another file\n` })
})
