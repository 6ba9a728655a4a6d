import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { type Entry, tarOf } from '../../tools/build/tar.ts'

const long = `${'folder/'.repeat(20)}${'n'.repeat(90)}`
const entries: Entry[] = [
  { path: 'bin/', mode: 0o755 },
  { path: 'bin/program', mode: 0o755, bytes: Buffer.from('#!/bin/sh\n'), owner: 10001 },
  { path: 'bin/link', mode: 0o777, link: 'program' },
  { path: 'empty', mode: 0o600, bytes: Buffer.alloc(0) },
  { path: long, mode: 0o644, bytes: Buffer.alloc(512, 'x') },
]

test('tar lists what was put in', () => {
  const listed = execFileSync('tar', ['--utc', '--numeric-owner', '-tvf', '-'], {
    input: tarOf(entries, 86_400),
    encoding: 'utf8',
  })
  expect(
    listed
      .trim()
      .split('\n')
      .map((line) => line.replaceAll(/ +/g, ' ')),
  ).toEqual([
    'drwxr-xr-x 0/0 0 1970-01-02 00:00 bin/',
    '-rwxr-xr-x 10001/10001 10 1970-01-02 00:00 bin/program',
    'lrwxrwxrwx 0/0 0 1970-01-02 00:00 bin/link -> program',
    '-rw------- 0/0 0 1970-01-02 00:00 empty',
    `-rw-r--r-- 0/0 512 1970-01-02 00:00 ${long}`,
  ])
})

test('the bytes depend on entries and time alone', () => {
  expect(tarOf(entries, 86_400).equals(tarOf(structuredClone(entries), 86_400))).toBe(true)
  expect(tarOf(entries, 86_400).equals(tarOf(entries, 86_401))).toBe(false)
})

test('a path that no header can hold is refused', () => {
  expect(() => tarOf([{ path: 'x'.repeat(101), mode: 0o644 }], 0)).toThrow('the path is too long')
})
