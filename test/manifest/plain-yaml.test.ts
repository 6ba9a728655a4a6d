import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseDocument, stringify } from 'yaml'
import { readPlainYaml } from '../../src/manifest/plain-yaml.ts'

const pieces = [
  'a',
  'b',
  'x y',
  'a: ',
  'b: ',
  'c:',
  '"q": ',
  "'s': ",
  '- ',
  '\n',
  '\n',
  '\n  ',
  '\n    ',
  '\n ',
  'a: |\n',
] as const
const scalars = [
  '1',
  '1.5',
  '1e3',
  '-0',
  '007',
  '0x1',
  'true',
  'True',
  'null',
  '~',
  '"t"',
  "'t'",
  '.5',
  '5.',
  '+1',
  'y',
] as const
const marks = [
  '[',
  ']',
  '{',
  '}',
  ',',
  ' # c',
  '#',
  '|',
  '>',
  '&x',
  '*x',
  '!',
  '@',
  '%',
  ':',
  '"',
  "'",
  '`',
  '?',
  '? ',
] as const
const traps = [
  '[1, 2]',
  '{ a: 1, b: x }',
  "it's",
  '1:30',
  '__proto__: ',
  '<<: ',
  '2024-01-01',
  '- - ',
  '5s',
  '1_0',
  '0o7',
  '127.0.0.1',
  '12e',
  'b: |-\n',
  'x: y: z',
  '"\\n"',
] as const
const soup = fc.array(fc.constantFrom(...pieces, ...scalars, ...marks, ...traps), { maxLength: 14 })

test('whatever it reads, the whole parser reads the same way', () => {
  let read = 0
  fc.assert(
    fc.property(soup, (tokens) => {
      const text = tokens.join('')
      const value = readPlainYaml(text)
      if (value === undefined) return
      read++
      const document = parseDocument(text, { prettyErrors: false })
      expect(document.errors).toEqual([])
      expect(value).toEqual(document.toJS())
    }),
    { numRuns: 20_000 },
  )
  expect(read).toBeGreaterThan(100)
})

test('it reads block maps, lists, texts with several lines and numbers as they are usually written', () => {
  const entry = fc.record({
    a: fc.integer(),
    b: fc.array(fc.record({ c: fc.double({ noNaN: true }), d: fc.boolean() })),
  })
  const word = fc.stringMatching(/^[a-z]{1,8}$/)
  fc.assert(
    fc.property(
      fc.dictionary(word, fc.oneof(entry, word, fc.constant('one\n\n  two\nthree\n')), { minKeys: 1 }),
      (value) => {
        const text = stringify(value)
        const read = readPlainYaml(text)
        if (read !== undefined) expect(read).toEqual(parseDocument(text).toJS())
      },
    ),
  )
  const literal = 'a: |\n  one\n\n    two\n  three\nb: 1\n'
  expect(readPlainYaml(literal)).toEqual({ a: 'one\n\n  two\nthree\n', b: 1 })
})

test('the catalogs of this project are plain: they are read fast', () => {
  const root = join(import.meta.dirname, '../..')
  for (const file of globSync('catalog/*.yaml', { cwd: root })) {
    expect(readPlainYaml(readFileSync(join(root, file), 'utf8')), file).toBeTypeOf('object')
  }
})
