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

test('a second router is refused as long as the first one has the database, commands are not', () => {
  const url = `sqlite:${temporaryFile('router.sqlite')}`
  const first = openStore(url, { asRouter: true })
  expect(() => openStore(url, { asRouter: true, patienceMs: 50 })).toThrow(refusal)
  const command = openStore(url)
  expect(command.organizations.create('acme').name).toBe('acme')
  command.close()
  expect(() => openStore(url, { asRouter: true, patienceMs: 50 })).toThrow(refusal)
  first.close()
  openStore(url, { asRouter: true }).close()
})

test('a router is refused as well when it reaches the database by another name', () => {
  const path = temporaryFile('router.sqlite')
  const link = temporaryFile('link-router.sqlite')
  const first = openStore(`sqlite:${path}`, { asRouter: true })
  symlinkSync(path, link)
  expect(() => openStore(`sqlite:${link}`, { asRouter: true, patienceMs: 50 })).toThrow(refusal)
  first.close()
})

test('databases in memory are as many as there are routers', () => {
  const one = openStore('sqlite::memory:', { asRouter: true })
  openStore('sqlite::memory:', { asRouter: true }).close()
  one.close()
})

test('a start that fails gives the database back', () => {
  const path = temporaryFile('router.sqlite')
  const url = `sqlite:${path}`
  const other = new Database(path)
  other.exec('CREATE TABLE songs (name TEXT)')
  expect(() => openStore(url, { asRouter: true })).toThrow(/belongs to another program/)
  other.exec('DROP TABLE songs')
  other.close()
  openStore(url, { asRouter: true }).close()
})

test('a router that is killed with -9 leaves nothing behind: the next one starts at once', async () => {
  const url = `sqlite:${temporaryFile('router.sqlite')}`
  const child = spawn(process.execPath, [join(import.meta.dirname, 'lock-child.ts'), url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    await within(10_000, 'the claim', once(child.stdout, 'data'))
    expect(() => openStore(url, { asRouter: true, patienceMs: 50 })).toThrow(refusal)
  } finally {
    child.kill('SIGKILL')
  }
  await within(10_000, 'the death', once(child, 'exit'))
  openStore(url, { asRouter: true }).close()
})
