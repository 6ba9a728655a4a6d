import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseDocument, stringify } from 'yaml'
import { readYaml } from '../../src/manifest/read/read-yaml.ts'
import { testInRuns } from '../helpers/slow.ts'

/** The value that `yaml` reads from a text; undefined when it rejects it. */
function reference(text: string): { value: unknown } | undefined {
  const document = parseDocument(text, { prettyErrors: false, logLevel: 'silent' })
  return document.errors.length === 0 ? { value: document.toJS() } : undefined
}

const structure = ['a: ', 'b: ', 'c:', '"q": ', "'s': ", '- ', '- - ', '? ', ': ', '[', ']', '{', '}', ', ', ' ', '']
const lines = ['\n', '\n', '\n  ', '\n    ', '\n ', '\n- ', '\n  - ', '\n- a:\n  - ', 'b:\n  - ', '\n\n', '\r\n', '\t']
const keys = ['1: ', '1.0: ', '0x10: ', '-1: ', 'true: ', 'null: ', '~: ', '"1": ', '<<: ', '__proto__: ', '12e: ']
const numbers = ['1', '1.5', '1e3', '1e400', '-0', '007', '0x1', '0o7', '0b1', '.5', '5.', '+1', '.inf', '.nan', '1_0']
const words = ['a', 'x y', 'true', 'True', 'NULL', '~', 'yes', 'off', "it's", '1:30', '2024-01-01', '5s', '127.0.0.1']
const quoted = [
  '"t"',
  "'t'",
  '"\\n"',
  '"\\x41\\u0041\\/\\e"',
  '[x]',
  '{x: y}',
  '{"a":1}',
  '[1, 2]',
  '12345678901234567890',
]
const blocks = ['|\n', '|-\n', '|+\n', '>\n', '>-\n', '|2\n', '>+1\n', '|-\n  x\n', 'a: |\n  x\n']
const marks = ['&x ', '*x', '!t ', '!!str ', '!', '&', '*', '# c', '#', '%', '@', '`', '---\n', '...\n', '%YAML 1.1\n']
const odd = ['\uFEFF', '\u0085', '\u2028', '\u00a0', '"', "'", ':', '>', '|']

testInRuns(
  'a text that it reads has the value that the reference parser reads',
  { fast: 3_000, slow: 20_000 },
  (numRuns) => {
    const pieces = [structure, lines, keys, numbers, words, quoted, blocks, marks, odd].map((set) =>
      fc.constantFrom(...set),
    )
    let count = 0
    fc.assert(
      fc.property(fc.array(fc.oneof(...pieces), { minLength: 1, maxLength: 10 }), (parts) => {
        const text = parts.join('')
        const read = readYaml(text)
        if (!read) return
        count++
        expect(read, JSON.stringify(text)).toEqual(reference(text))
      }),
      { numRuns, seed: 1 },
    )
    expect(count).toBeGreaterThan(numRuns / 40)
  },
)

test('generated documents are read, and to the same value', () => {
  const key = fc.oneof(fc.stringMatching(/^[a-z_]{1,8}$/), fc.integer({ min: 100, max: 599 }).map(String))
  const text = fc.oneof(
    fc.string(),
    fc.stringMatching(/^[a-z :#"'{}[\]-]{0,20}$/),
    fc.constantFrom('one\n\n  two\nthree\n', 'true', '12', 'a: b', '- c'),
  )
  const scalar = fc.oneof(text, fc.double({ min: -1e9, max: 1e9, noNaN: true }), fc.boolean(), fc.constant(null))
  const inner = fc.oneof(scalar, fc.array(scalar), fc.dictionary(key, scalar))
  const tree = fc.oneof(inner, fc.array(inner), fc.dictionary(key, inner))
  let count = 0
  fc.assert(
    fc.property(fc.dictionary(key, tree, { minKeys: 1 }), (document) => {
      const written = stringify(document)
      const read = readYaml(written)
      if (!read) return
      count++
      expect(read).toEqual(reference(written))
    }),
  )
  expect(count).toBeGreaterThan(20)
})

test.each([
  ['a tab', 'a:\tb\n'],
  ['a carriage return', 'a: 1\r\nb: 2\r\n'],
  ['a byte order mark', '\uFEFFa: 1\n'],
  ['a document marker', '---\na: 1\n'],
  ['an anchor before a mapping on its line', 'a: &x b: 1\n'],
  ['an anchor and an alias', 'a: &x 1\nb: *x\n'],
  ['a tag', 'a: !!str 1\n'],
  ['a second value behind a list item', 'a:\n- "x" b: 1\n'],
  ['the same in a nested list', 'x:\n  - a:\n    - {b: c} d: e\n'],
  ['the same in a list of lists', 'a:\n- - [x]d: 1\n'],
  ['a doubled key', 'a: 1\na: 2\n'],
  ['a doubled key of two types', '1: a\n"1": b\n'],
  ['a null key', '~: 1\n'],
  ['a block scalar that keeps its line breaks', 'a: |+\n\n  \n'],
  ['a number beyond a double', 'a: 1e400\n'],
  ['a scalar', 'a\n'],
  ['nothing', ''],
])('%s is left to the reference parser', (_, text) => {
  expect(readYaml(text)).toBeUndefined()
})

test.each([
  ['no', 'no'],
  ['2024-01-01', '2024-01-01'],
  ['010', 10],
  ['0o10', 8],
  ['1_000', '1_000'],
  ['1:30', '1:30'],
  ['9007199254740993', 9007199254740992],
  ['"\\u00e9"', 'é'],
])('%s means what YAML 1.2 says', (written, value) => {
  expect(readYaml(`a: ${written}\n`)).toEqual({ value: { a: value } })
  expect(reference(`a: ${written}\n`)).toEqual({ value: { a: value } })
})

test('a merge key is an ordinary key', () => {
  expect(readYaml('<<: { a: 1 }\n')).toEqual({ value: { '<<': { a: 1 } } })
})

const root = join(import.meta.dirname, '../..')
const shipped = globSync(['catalog/*.yaml', 'providers/*.yaml', 'providers/dialects/*.yaml', 'config.yaml'], {
  cwd: root,
})

test.each(shipped)('%s is read like by the reference parser', (file) => {
  const text = readFileSync(join(root, file), 'utf8')
  const read = readYaml(text)
  if (file.startsWith('catalog/')) expect(read).toBeDefined()
  if (read) expect(read).toEqual(reference(text))
})
