import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { table } from '../../src/cli/command.ts'
import * as key from '../../src/cli/key.ts'
import * as org from '../../src/cli/org.ts'
import { printable } from '../../src/core/printable.ts'
import { openStore } from '../../src/store/open.ts'
import { newKey } from '../e2e/money/budget-world.ts'
import { administration } from './administration.ts'

// Names come from clients and files: what is printed must not move the cursor, nor change the order of what stands beside it.

const hostile = 'a\u001b[2Jb\u009bc\u202ed\u2066e\u200ff\u0007g\rh\u2028i\u{e0041}j'
const shown = 'a\\u001b[2Jb\\u009bc\\u202ed\\u2066e\\u200ff\\u0007g\\u000dh\\u2028i\\udb40\\udc41j'

test('control characters and bidirectional marks are written as JSON writes them, which keeps JSON as it is', () => {
  expect(printable(`${hostile}\n\tk ü 漢 🙂`)).toBe(`${shown}\n\tk ü 漢 🙂`)
  const json = JSON.stringify({ name: hostile }, null, 2)
  expect(JSON.parse(printable(json))).toEqual({ name: hostile })
})

test('a cell of a table is one line, and columns are aligned by what is displayed', () => {
  expect(
    table([
      ['name', 'state'],
      [`x\n${hostile}`, 'active'],
    ]).split('\n'),
  ).toEqual([`${'name'.padEnd(`x\\u000a${shown}`.length)}  state`, `x\\u000a${shown}  active`])
})

test('a list of keys prints no control characters of their names', async () => {
  const { url, runCommand } = administration()
  await runCommand(org, 'create', 'acme')
  const store = await openStore(url)
  await newKey(store, { organization: (await store.organizations.list())[0]?.id ?? '', name: hostile })
  await store.close()
  const { stdout } = await runCommand(key, 'list')
  expect(stdout).toContain(shown)
  expect(stdout.split('\n')).toHaveLength(3)
})

test('no command prints control characters, whatever it is given', async () => {
  const main = join(import.meta.dirname, '../../src/main.ts')
  const printed = (...args: string[]) =>
    new Promise<string>((resolve) => {
      execFile(process.execPath, [main, ...args], (_, stdout, stderr) => resolve(stdout + stderr))
    })
  const file = `/nowhere/${hostile}`
  for (const args of [
    [hostile],
    ['check', file],
    ['models', '--config', file],
    ['ledger', 'compare', '--bill', file],
  ]) {
    const text = await printed(...args)
    expect(text, args[0]).toContain('\\u001b[2J')
    expect(text.match(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}]/gu), args[0]).toBeNull()
  }
})
