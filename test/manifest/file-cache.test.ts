import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openFileCache } from '../../src/manifest/file-cache.ts'

function cacheFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'file-cache-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'files')
}

function only(folder: string): string {
  const [name = '', ...others] = readdirSync(folder)
  expect(others).toEqual([])
  return join(folder, name)
}

test('an entry is read by its whole subject, also by another process', () => {
  const folder = cacheFolder()
  openFileCache(folder).write(['dialect', 'a: 1'], { value: { a: [1, 'é'] } })
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

test('only the owner may read an entry', () => {
  const folder = cacheFolder()
  openFileCache(folder).write(['a'], 1)
  expect(lstatSync(only(folder)).mode & 0o777).toBe(0o600)
  expect(lstatSync(folder).mode & 0o777).toBe(0o700)
})

test('a damaged entry is none, whatever is damaged, and is written again', () => {
  const folder = cacheFolder()
  const cache = openFileCache(folder)
  cache.write(['a'], { value: 1_000 })
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
  expect(cache.read(['a'])).toEqual({ value: 1_000 })
})

test('an entry under the name of another one is none', () => {
  const folder = cacheFolder()
  const cache = openFileCache(folder)
  cache.write(['a'], 1)
  const first = only(folder)
  cache.write(['b'], 2)
  const second = join(folder, readdirSync(folder).find((name) => !first.endsWith(name)) ?? '')
  renameSync(first, second)
  expect(cache.read(['b'])).toBeUndefined()
})

test('what no start has read for a month is deleted, what one reads stays', () => {
  const folder = cacheFolder()
  const old = new Date(Date.now() - 31 * 86_400_000)
  const age = () => {
    for (const name of readdirSync(folder)) utimesSync(join(folder, name), old, old)
  }
  openFileCache(folder).write(['read'], 1)
  openFileCache(folder).write(['forgotten'], 2)
  age()
  expect(openFileCache(folder).read(['read'])).toBe(1)
  openFileCache(folder).write(['new'], 3)
  const cache = openFileCache(folder)
  expect(['read', 'forgotten', 'new'].map((name) => cache.read([name]))).toEqual([1, undefined, 3])
})

test('a folder that cannot be used makes no error', () => {
  const folder = cacheFolder()
  writeFileSync(folder, 'a file')
  const cache = openFileCache(folder)
  cache.write(['a'], 1)
  expect(cache.read(['a'])).toBeUndefined()
})
