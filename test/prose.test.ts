import { describe, expect, test } from 'vitest'
import { describeFinding, type Finding, proseFiles, proseOf, type Rule } from './helpers/prose.ts'

/**
 * Maximum number of findings per rule. They only go down: lower a bound when you have mended something. `node test/helpers/prose.ts [path…]`
 * lists what is left. The goal is 0 names and fewer than 60 doc comments that start wrongly.
 */
const bounds: Readonly<Record<Rule, number>> = {
  name: 0,
  'comment start': 0,
  'comment start, other': 0,
  phrase: 0,
  'word in a page': 0,
  'word in code': 3,
}

const findings = Map.groupBy(proseFiles().flatMap(proseOf), ({ rule }) => rule)

describe('names and prose are the terms of the field', () => {
  test.each(Object.entries(bounds) as [Rule, number][])('%s: at most %i findings', (rule, bound) => {
    const found = findings.get(rule) ?? []
    expect(found.length, report(found, bound)).toBeLessThanOrEqual(bound)
  })

  test('code and pages are read', () => {
    const paths = proseFiles().map(({ path }) => path)
    expect(paths.filter((path) => path.startsWith('src/')).length).toBeGreaterThan(300)
    expect(paths).toEqual(
      expect.arrayContaining(['README.md', 'docs/architecture.md', 'console/main.ts', 'src/main.ts']),
    )
    expect(paths.filter((path) => path.includes('.test.'))).toEqual([])
  })
})

describe('finds', () => {
  const rulesOf = (text: string, path = 'src/x/y.ts') =>
    proseOf({ path, text }).map(({ rule, found }) => `${rule}: ${found}`)

  test.each([
    ['export type FarBooks = 1', ['name: FarBooks']],
    ['export async function openPurse() {}', ['name: openPurse']],
    ['export const longestWaitMs = 1', ['name: longestWaitMs']],
    ['export function mostTokensIn() {}', []],
    ['export type Rest = 1', ['name: Rest']],
    ['export class RestHeaders {}', []],
    ['export const toldest = 1\nexport type Embankment = 1', []],
    ['const purse = 1', []],
  ])('exported names that contain a private word as a whole part: %s', (text, expected) => {
    expect(rulesOf(text)).toEqual(expected)
  })

  test('files named by a private word', () => {
    expect(rulesOf('', 'src/money/purse-of-key.ts')).toEqual(['name: purse-of-key.ts'])
  })

  test('nothing in code that is redesigned with accounts', () => {
    for (const path of ['src/lending/purse.ts', 'src/workers/threads/port.ts', 'src/app/handover.ts'])
      expect(rulesOf('/** What the books tell. */\nexport class Purse {}', path)).toEqual([])
  })

  test.each([
    ['/** What is left. */', ['comment start: What is left.']],
    ['/**\n * Whether it may.\n */', ['comment start: Whether it may.']],
    ['/** How long it takes. */', ['comment start, other: How long it takes.']],
    ['/** Called when a request has ended. */', []],
    ['/** The remaining budget. Whether it is known is asked first. */', []],
    ['// What is left.', []],
  ])('doc comments that start with neither a verb nor a noun: %s', (text, expected) => {
    expect(rulesOf(text)).toEqual(expected)
  })

  test('stiff phrases and private words in comments and messages, with their lines', () => {
    const text = "// Fine.\nconst a = 1\n// Until the target is well again.\nthrow new Error('the dearest model')"
    expect(proseOf({ path: 'src/x/y.ts', text })).toEqual([
      expect.objectContaining({ rule: 'phrase', line: 3, found: 'is well again' }),
      expect.objectContaining({ rule: 'word in code', line: 4, found: 'dearest' }),
    ])
  })

  test('private words in the text of pages, but not in their code', () => {
    const page = 'The [maker](x/maker.md) of `maker`.\n```\nthe books\n```\nIt is told of it.\n'
    expect(rulesOf(page, 'docs/x.md')).toEqual(['word in a page: maker', 'phrase: told of', 'word in a page: told'])
  })
})

/** The failure message: every place with what to say instead. */
function report(found: Finding[], bound: number): string {
  const shown = found.slice(0, 100).map(describeFinding)
  const more = found.length > 100 ? [`… all of them: node test/helpers/prose.ts`] : []
  return [`${found.length} findings, at most ${bound} are accepted:`, ...shown, ...more].join('\n')
}
