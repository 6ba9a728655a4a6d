import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { within } from '../helpers/provider.ts'
import { temporaryFile } from './temporary.ts'

const refusal = /router\.sqlite: another router uses this database.*stop that one, or name another file/

test('a second router is refused as long as the first one has the database, commands are not', async () => {
  const url = `sqlite:${temporaryFile('router.sqlite')}`
  const first = await openStore(url, { asRouter: true })
  await expect(openStore(url, { asRouter: true, patienceMs: 50 })).rejects.toThrow(refusal)
  const command = await openStore(url)
  expect((await command.organizations.create('acme')).name).toBe('acme')
  await command.close()
  await expect(openStore(url, { asRouter: true, patienceMs: 50 })).rejects.toThrow(refusal)
  await first.close()
  await (await openStore(url, { asRouter: true })).close()
})

test('a router is refused as well when it reaches the database by another name', async () => {
  const path = temporaryFile('router.sqlite')
  const link = temporaryFile('link-router.sqlite')
  const first = await openStore(`sqlite:${path}`, { asRouter: true })
  symlinkSync(path, link)
  await expect(openStore(`sqlite:${link}`, { asRouter: true, patienceMs: 50 })).rejects.toThrow(refusal)
  await first.close()
})

test('databases in memory are as many as there are routers', async () => {
  const one = await openStore('sqlite::memory:', { asRouter: true })
  await (await openStore('sqlite::memory:', { asRouter: true })).close()
  await one.close()
})

test('a start that fails gives the database back', async () => {
  const path = temporaryFile('router.sqlite')
  const url = `sqlite:${path}`
  const other = new Database(path)
  other.exec('CREATE TABLE songs (name TEXT)')
  await expect(openStore(url, { asRouter: true })).rejects.toThrow(/belongs to another program/)
  other.exec('DROP TABLE songs')
  other.close()
  await (await openStore(url, { asRouter: true })).close()
})

test('a router that is killed with -9 leaves nothing behind: the next one starts at once', async () => {
  const url = `sqlite:${temporaryFile('router.sqlite')}`
  const child = spawn(process.execPath, [join(import.meta.dirname, 'lock-child.ts'), url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    await within(10_000, 'the claim', once(child.stdout, 'data'))
    await expect(openStore(url, { asRouter: true, patienceMs: 50 })).rejects.toThrow(refusal)
  } finally {
    child.kill('SIGKILL')
  }
  await within(10_000, 'the death', once(child, 'exit'))
  await (await openStore(url, { asRouter: true })).close()
})
