import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openFileCache } from '../../src/manifest/read/file-cache.ts'

function cacheFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'file-cache-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'files')
}

async function write(folder: string, about: string[], value: unknown): Promise<void> {
  const cache = openFileCache(folder)
  cache.write(about, value)
  await cache.written()
}

function only(folder: string): string {
  const [name = '', ...others] = readdirSync(folder)
  expect(others).toEqual([])
  return join(folder, name)
}

test('an entry is read by its whole subject, also by another process', async () => {
  const folder = cacheFolder()
  await write(folder, ['dialect', 'a: 1'], { value: { a: [1, 'é'] } })
  const cache = openFileCache(folder)
  expect(cache.read(['dialect', 'a: 1'])).toEqual({ value: { a: [1, 'é'] } })
  for (const other of [
    ['provider', 'a: 1'],
    ['dialect', 'a: 2'],
    ['dialect'],
    ['dialect', 'a: 1', ''],
    ['dialecta: 1'],
  ])
    expect(cache.read(other)).toBeUndefined()
})

test('an entry is read before it is on the disk, and a thousand are all written', async () => {
  const folder = cacheFolder()
  const cache = openFileCache(folder)
  const names = Array.from({ length: 1_000 }, (_, index) => [`${index}`])
  for (const name of names) cache.write(name, name)
  expect(names.map((name) => cache.read(name))).toEqual(names)
  await cache.written()
  const other = openFileCache(folder)
  expect(names.map((name) => other.read(name))).toEqual(names)
  expect(readdirSync(folder)).toHaveLength(names.length)
})

test('what is written while others are written is kept as well', async () => {
  const folder = cacheFolder()
  const cache = openFileCache(folder)
  cache.write(['first'], 1)
  while (!existsSync(folder)) await new Promise(setImmediate)
  cache.write(['second'], 2)
  await cache.written()
  expect(['first', 'second'].map((name) => openFileCache(folder).read([name]))).toEqual([1, 2])
})

test('only the owner may read an entry', async () => {
  const folder = cacheFolder()
  await write(folder, ['a'], 1)
  expect(lstatSync(only(folder)).mode & 0o777).toBe(0o600)
  expect(lstatSync(folder).mode & 0o777).toBe(0o700)
})

test('a damaged entry is none, whatever is damaged, and is written again', async () => {
  const folder = cacheFolder()
  const cache = openFileCache(folder)
  cache.write(['a'], { value: 1_000 })
  await cache.written()
  const path = only(folder)
  const bytes = readFileSync(path)
  for (let at = 0; at < bytes.length; at++) {
    const damaged = Buffer.from(bytes)
    damaged[at] = (damaged[at] as number) ^ 1
    writeFileSync(path, damaged)
    expect(cache.read(['a'])).toBeUndefined()
    writeFileSync(path, bytes.subarray(0, at))
    expect(cache.read(['a'])).toBeUndefined()
  }
  cache.write(['a'], { value: 1_000 })
  await cache.written()
  expect(cache.read(['a'])).toEqual({ value: 1_000 })
})

test('an entry under the name of another one is none', async () => {
  const folder = cacheFolder()
  const cache = openFileCache(folder)
  cache.write(['a'], 1)
  await cache.written()
  const first = only(folder)
  cache.write(['b'], 2)
  await cache.written()
  const second = join(folder, readdirSync(folder).find((name) => !first.endsWith(name)) ?? '')
  renameSync(first, second)
  expect(cache.read(['b'])).toBeUndefined()
})

test('what no start has read for a month is deleted, what one reads stays', async () => {
  const folder = cacheFolder()
  const old = new Date(Date.now() - 31 * 86_400_000)
  const age = () => {
    for (const name of readdirSync(folder)) utimesSync(join(folder, name), old, old)
  }
  await write(folder, ['read'], 1)
  await write(folder, ['forgotten'], 2)
  age()
  expect(openFileCache(folder).read(['read'])).toBe(1)
  await write(folder, ['new'], 3)
  const cache = openFileCache(folder)
  expect(['read', 'forgotten', 'new'].map((name) => cache.read([name]))).toEqual([1, undefined, 3])
})

test('a folder that cannot be used makes no error', async () => {
  const folder = cacheFolder()
  writeFileSync(folder, 'a file')
  const cache = openFileCache(folder)
  cache.write(['a'], 1)
  await cache.written()
  expect(cache.read(['a'])).toBeUndefined()
})

test('an entry is of the contents of the code, not of its sizes and times', async () => {
  const copy = mkdtempSync(join(tmpdir(), 'file-cache-code-'))
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }))
  const root = join(import.meta.dirname, '../..')
  for (const part of ['src', 'schemas', 'package.json']) cpSync(join(root, part), join(copy, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  const folder = cacheFolder()
  const script = `const { openFileCache } = await import(${JSON.stringify(join(copy, 'src/manifest/read/file-cache.ts'))})
    const cache = openFileCache(${JSON.stringify(folder)})
    console.log(JSON.stringify(cache.read(['a']) ?? null))
    cache.write(['a'], 'kept')
    await cache.written()`
  const start = () => execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }).trim()
  expect([start(), start()]).toEqual(['null', '"kept"'])
  const file = join(copy, 'schemas/config.schema.json')
  const { atime, mtime } = statSync(file)
  writeFileSync(file, readFileSync(file, 'utf8').replace('description', 'descriptioN'))
  utimesSync(file, atime, mtime)
  expect(start()).toBe('null')
})
