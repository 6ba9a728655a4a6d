import { expect, test } from 'vitest'
import { readSource } from '../../src/manifest/read/source.ts'
import { formatted } from './files.ts'

const at = (text: string, path: (string | number)[], what?: 'value' | 'name') => {
  const { line, column } = readSource('f.yaml', text).at(path, what)
  return `${line}:${column}`
}

test('values and names are found at their positions', () => {
  const text = 'a:\n  - x: 1\n    y: { 429: z }\n'
  expect(at(text, ['a', 0, 'x'])).toBe('2:8')
  expect(at(text, ['a', 0, 'y', '429'])).toBe('3:15')
  expect(at(text, ['a', 0, 'y', '429'], 'name')).toBe('3:10')
})

test('a missing value has the position of its nearest parent, and an empty file its beginning', () => {
  expect(at('a:\n  b: 1\n', ['a', 'missing', 'deeper'])).toBe('2:3')
  expect(at('', ['a'])).toBe('1:1')
})

test('a character of a text is found inside the YAML that writes it', () => {
  const source = readSource(
    'f.yaml',
    ['block: |', '    first', '      second', "single: 'it''s X'", 'double: "a\\tb\\u0041X"', 'plain: ab X', ''].join(
      '\n',
    ),
  )
  const place = (name: string, character: string) => {
    const text = (source.value as { [name: string]: string })[name] as string
    const { line, column } = source.inText([name], text.indexOf(character))
    return `${line}:${column}`
  }
  expect(place('block', 'f')).toBe('2:5')
  expect(place('block', 's')).toBe('2:8')
  expect(place('block', 'econd')).toBe('3:8')
  expect(place('single', 'X')).toBe('4:16')
  expect(place('double', 'X')).toBe('5:20')
  expect(place('plain', 'X')).toBe('6:11')
})

test('text that is not YAML is reported once, with its position', () => {
  const { value, problems } = readSource('f.yaml', 'a: 1\n  b: 2\n')
  expect(value).toBeUndefined()
  expect(formatted(problems)).toEqual([expect.stringMatching(/^1:4 not YAML: Nested mappings/)])
})

test.each([
  ['provider: [acme', 'Flow sequence in block collection must be sufficiently indented and end with a ]'],
  ['provider: [acme\n', 'Flow sequence in block collection must be sufficiently indented and end with a ]'],
  ['a: { "b" "c" }\n', 'Missing , or : between flow map items'],
])('what is wrong with %j is said to the end', (text, message) => {
  expect(formatted(readSource('f.yaml', text).problems)).toEqual([expect.stringContaining(`not YAML: ${message}`)])
})

test.each([
  'a: "\\secret"\n',
  'a: |secret\n  b\n',
  'a: !<secret b\n',
  '%secret\n---\na: 1\n',
  'a: { b }} secret\n',
  'secret\n: 1\n- 2\n',
])('what is wrong with %j is said without what the file says', (text) => {
  const { problems } = readSource('f.yaml', text)
  expect(formatted(problems).join()).not.toContain('secret')
})

test('a duplicate name is reported', () => {
  expect(formatted(readSource('f.yaml', 'a: 1\nb:\n  c: 1\n  c: 2\n').problems)).toEqual([
    '4:3 `c` appears twice here; remove one of them',
  ])
})

test('a bare reference inside braces is explained', () => {
  const [problem] = readSource('f.yaml', 'auth: { scheme: bearer, secret: ${KEY} }\n').problems
  expect(problem?.message).toContain('write "${KEY}" with quotes')
})

test('unknown and exploding aliases are problems, not exceptions', () => {
  expect(formatted(readSource('f.yaml', 'a: *nothing\n').problems)).toEqual([expect.stringContaining('cannot be used')])
  const bomb = [
    'a: &a [x,x,x,x,x,x,x,x,x]',
    ...'bcdefg'.split('').map((name, index) => {
      const below = 'abcdef'[index]
      return `${name}: &${name} [${Array(9).fill(`*${below}`).join(',')}]`
    }),
  ].join('\n')
  expect(readSource('f.yaml', bomb).problems[0]?.message).toContain('alias')
})
