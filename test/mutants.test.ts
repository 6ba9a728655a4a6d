import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { equivalent } from '../tools/mutants/equivalent.ts'
import { mutantsOf } from '../tools/mutants/mutants.ts'
import { Imports, type TestFile, testsFor } from '../tools/mutants/tests.ts'
import { folderOf } from './manifest/files.ts'

const root = join(import.meta.dirname, '..')

describe('mutants', () => {
  const config = JSON.stringify({ compilerOptions: { strict: true, noEmit: true, types: [] }, include: ['src'] })
  const changes = (code: string, seed = 1) => {
    const folder = folderOf({ 'tsconfig.json': config, 'src/a/b.ts': code })
    return [...mutantsOf(folder, 'a', seed)].map(({ line, after }) => `${line}: ${after}`)
  }

  test('change one place of a line each', () => {
    const code = `export function f(a: number, b: number) {
      if (a < b && b > 0) return Math.max(a, b)
      return a + b
    }`
    expect(changes(code).sort()).toEqual(
      [
        '2: if (a < b && b <= 0) return Math.max(a, b)',
        '2: if (a < b && b > 1) return Math.max(a, b)',
        '2: if (a < b && b >= 0) return Math.max(a, b)',
        '2: if (a < b || b > 0) return Math.max(a, b)',
        '2: if (a < b && b > 0) return Math.min(a, b)',
        '2: if (a <= b && b > 0) return Math.max(a, b)',
        '2: if (a >= b && b > 0) return Math.max(a, b)',
        '2: if (false) return Math.max(a, b)',
        '2: if (true) return Math.max(a, b)',
        '3: return a - b',
      ].sort(),
    )
  })

  test('compile', () => {
    const code = `export function f(a: string, list: string[] | undefined) {
      list?.push(a)
      return a + (list ? list.length : 'none')
    }`
    // Not: a - …, which is no operation of texts, nor list.length where there may be no list.
    expect(changes(code).sort()).toEqual([
      '2: {}',
      "3: return a + (('none'))",
      "3: return a + (list ? list.length : '')",
    ])
  })

  test('are in the text of SQL statements, and not in messages of errors', () => {
    const code = `export const sql = 'SELECT a FROM t WHERE b >= ? AND c = ?'
    export function refuse(a: boolean): never { throw new Error(a ? 'first' : 'second') }`
    expect(changes(code).sort()).toEqual([
      "1: export const sql = 'SELECT a FROM t WHERE b > ? AND c = ?'",
      "1: export const sql = 'SELECT a FROM t WHERE b >= ? AND c <> ?'",
      "1: export const sql = 'SELECT a FROM t WHERE b >= ? OR c = ?'",
    ])
  })

  test('come in an order that the seed decides', () => {
    const code = Array.from({ length: 20 }, (_, n) => `export const a${n} = ${n}`).join('\n')
    expect(changes(code, 1)).toEqual(changes(code, 1))
    expect(changes(code, 2)).not.toEqual(changes(code, 1))
    expect(changes(code, 2).sort()).toEqual(changes(code, 1).sort())
  })
})

describe('the tests of a mutant', () => {
  const file = (path: string, ms: number, executed: TestFile['executed'] = {}): TestFile => ({ path, ms, executed })
  const place = { file: 'src/money/price.ts', start: 50, isInFunction: true }
  const files = {
    'src/money/price.ts': '',
    'test/near.test.ts': "import '../src/money/price.ts'",
    'test/far.test.ts': "import './near.test.ts'",
    'test/none.test.ts': '',
  }
  const chosen = (tests: TestFile[], at = place, mostMs = 1_000) =>
    testsFor(at, tests, new Imports(folderOf(files)), mostMs)

  test('are those that execute it, the quickest and those of its own folder first, as far as the time suffices', () => {
    const ran = { 'src/money/price.ts': [[0, 100, 1]] } as TestFile['executed']
    const notRan = {
      'src/money/price.ts': [
        [0, 100, 1],
        [40, 60, 0],
      ],
    } as TestFile['executed']
    const tests = [
      file('test/near.test.ts', 5, notRan),
      file('test/http/a.test.ts', 10, ran),
      file('test/http/b.test.ts', 1, ran),
      file('test/money/c.test.ts', 50, ran),
      file('test/http/d.test.ts', 980, ran),
    ]
    expect(chosen(tests)).toEqual(['test/http/b.test.ts', 'test/money/c.test.ts', 'test/http/a.test.ts'])
    expect(chosen(tests, place, 12)).toEqual(['test/http/b.test.ts', 'test/http/a.test.ts'])
    expect(chosen([file('test/http/a.test.ts', 10, ran)], place, 1)).toEqual(['test/http/a.test.ts'])
  })

  test('are those that import it, the nearest first, where none is known to execute it', () => {
    const tests = ['none', 'far', 'near'].map((name) => file(`test/${name}.test.ts`, 1))
    expect(chosen(tests)).toEqual(['test/near.test.ts', 'test/far.test.ts'])
  })
})

test.each(equivalent)('$file has the line of an equivalent mutant: $before', ({ file, before, after, reason }) => {
  const path = join(root, file)
  expect(existsSync(path)).toBe(true)
  expect(readFileSync(path, 'utf8').replace(/\s+/g, ' ')).toContain(before)
  expect(after).not.toBe(before)
  expect(reason).not.toBe('')
})
