import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { nameLoader, portable } from '../../tools/build/elf.ts'

/** The libraries that this Node has loaded, where the system is Linux with the C library of GNU. */
const libraries =
  process.platform === 'linux'
    ? [...new Set(readFileSync('/proc/self/maps', 'utf8').match(/\/\S*\/(?:ld-linux\S*|lib[\w+]+)\.so\.\d+/g) ?? [])]
    : []
const loader = libraries.find((path) => basename(path).startsWith('ld-linux'))

test.skipIf(!loader)('a portable program runs with the libraries beside it, whatever the system has', () => {
  const folder = mkdtempSync(join(tmpdir(), 'elf-'))
  mkdirSync(join(folder, 'lib'))
  for (const path of libraries) copyFileSync(path, join(folder, 'lib', basename(path)))
  const made = portable(readFileSync(process.execPath), 'lib')
  nameLoader(made, join(folder, 'lib', basename(loader as string)))
  const path = join(folder, 'node')
  writeFileSync(path, made)
  chmodSync(path, 0o755)
  const loaded = `require('fs').readFileSync('/proc/self/maps', 'utf8').match(/\\/\\S+\\.so\\.\\d+/g).map((path) => require('path').dirname(path))`
  const printed = execFileSync(
    path,
    ['-p', `JSON.stringify([process.version, process.execPath, ...new Set(${loaded})])`],
    {
      encoding: 'utf8',
    },
  )
  expect(JSON.parse(printed)).toEqual([process.version, path, join(dirname(path), 'lib')])
})

test('what is no 64-bit ELF program is refused', () => {
  expect(() => portable(Buffer.alloc(4_096), 'lib')).toThrow('not a 64-bit ELF file')
})
