import { expect, test } from 'vitest'
import { mappingsIn } from '../../src/cli/load-one.ts'
import { readMapping } from '../../src/mapping/mapping.ts'
import { parse, parseTree, sharedBeginning } from '../../src/mapping/parse.ts'
import { shippedFiles } from '../helpers/shipped.ts'

const plain = (tree: unknown) => JSON.parse(JSON.stringify(tree)) as unknown

test('every shipped mapping has the tree of its whole text, although its definitions are parsed once for all', async () => {
  const { dialects, providers } = await shippedFiles()
  const placed = mappingsIn([...dialects.map(({ layer }) => layer), ...providers.flatMap(({ layers }) => layers ?? [])])
  for (const { mapping } of placed) expect(plain(mapping.tree)).toEqual(plain(parse(mapping.text).ast()))
})

const definitions = [
  '$a := 1;\n',
  '$f := function($x) { $x.b[c = 1] }; /* ; */ $s := ";)";\n',
  '$l := [1, 2].$;\n$r := /a;b/;\n',
]
const expressions = [
  'a.b',
  '$f($a)',
  '{ "a": $a, "b": [$s, c[0]] }',
  '$x := 2; $x + $a',
  '[a].b',
  '$map(a, function($v) { $v & $s })',
  '',
]

test.each(definitions.flatMap((given) => expressions.map((text) => [given, text])))('%j before %j', (given, text) => {
  const beginning = sharedBeginning(`(${given}`)
  for (const whole of [`(${given}(${text}\n))`, `(${given}${text}\n)`]) {
    const tree = parseTree(whole, { beginning })
    expect(tree).toBeDefined()
    expect(plain(tree)).toEqual(plain(parse(whole).ast()))
  }
})

test.each([
  ['definitions that close the block', '$a := 1) + (2;\n', '3'],
  ['an expression that closes the block', '$a := 1;\n', '1)) + ((2'],
  ['parents, which are numbered by the text', '$a := b.(%.c);\n', 'd.(%.e)'],
  ['a syntax error', '$a := 1;\n', 'a b'],
  ['a syntax error of a definition', '$a := ;\n', 'a'],
])('%s are left to a parse of the whole text', (_, given, text) => {
  const beginning = sharedBeginning(`(${given}`)
  const whole = `(${given}(${text}\n))`
  expect(parseTree(whole, { beginning })).toBeUndefined()
  const read = (options: Parameters<typeof readMapping>[1]) => {
    try {
      return plain(readMapping(whole, options).tree)
    } catch (error) {
      return error
    }
  }
  expect(read({ beginning })).toEqual(read({}))
})

test('names that only another definition of the block binds are not unbound, whoever asks first', () => {
  const beginning = sharedBeginning('($a := 1; $b := $a + $c;\n')
  const read = (text: string) => readMapping(`${beginning.text}(${text}\n))`, { beginning }).unbound
  expect(read('$d')).toEqual([
    { name: 'c', position: 21 },
    { name: 'd', position: 26 },
  ])
  expect(read('$c := 1; $b')).toEqual([])
})
