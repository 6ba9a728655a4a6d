import { expect, test } from 'vitest'
import { durationMs } from '../../src/core/time.ts'
import { nearest } from '../../src/manifest/check/did-you-mean.ts'
import { hasBrokenReference, isReference, resolveText } from '../../src/manifest/read/environment.ts'

test('references take the value of the environment, else their default, else they are missing', () => {
  const env = { HOST: 'h', EMPTY: '' }
  expect(resolveText('http://${HOST}:${PORT:-80}/${PATH_}', env)).toEqual({ text: 'http://h:80/', missing: ['PATH_'] })
  expect(resolveText('${EMPTY}', env)).toEqual({ text: '', missing: ['EMPTY'] })
  expect(resolveText('${EMPTY:-x}${NOTHING:-}', env)).toEqual({ text: 'x', missing: [] })
  expect(resolveText('$HOST {HOST} $(x)', env)).toEqual({ text: '$HOST {HOST} $(x)', missing: [] })
})

test('a value that looks like a reference is not resolved again', () => {
  expect(resolveText('${A}', { A: '${B}', B: 'secret' }).text).toBe('${B}')
})

test('one reference and nothing else is a reference', () => {
  expect(['${A}', '${A:-x}'].map(isReference)).toEqual([true, true])
  expect(['a', '${A}b', '${A}${B}', ''].map(isReference)).toEqual([false, false, false, false])
  expect(['x ${1A} ${B}', '${A', '${A}'].map(hasBrokenReference)).toEqual([true, true, false])
})

test('durations have a unit', () => {
  expect(['500ms', '5s', '1.5m', '2h'].map(durationMs)).toEqual([500, 5_000, 90_000, 7_200_000])
  expect(['5', 's', '5 s', '-5s', '5d'].map(durationMs)).toEqual(Array(5).fill(undefined))
})

test('the nearest name is the one that was meant, and none when nothing is near', () => {
  expect(nearest('endpoint', ['endpoints', 'errors'])).toBe('endpoints')
  expect(nearest('baes_url', ['base_url', 'name'])).toBe('base_url')
  expect(nearest('x', ['slug', 'name'])).toBeUndefined()
})
