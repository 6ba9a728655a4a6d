import { describe, expect, test } from 'vitest'
import { functionResults } from '../../src/mapping/function-results.ts'
import { functionNames, readMapping } from '../../src/mapping/mapping.ts'

const known = new Set(functionNames)

/** Texts whose results contain a function, on this input. */
const yielding = [
  '$sum',
  '{"a": $sum}',
  '[1, $sum]',
  '{"a": [{"b": $uppercase}]}',
  '{"a": function($x) {$x}}',
  '{"a": $substring(?, 1)}',
  '{"a": $uppercase ~> $trim}',
  '{"a": /x/}',
  'x ? $sum : 1',
  'none ?: $sum',
  'list.{"a": $sum}',
  'list{name: $sum}',
  '$ ~> |list|{"f": $sum}|',
  '$merge([$, {"f": $sum}])',
  '$map(list, function($item) { {"f": $string} })',
  '($f := function($x) {$x}; {"a": $f})',
  '($f := function($x) { {"b": $x, "c": $sum} }; {"a": $f(1)})',
  '($f := $sum; $g := $f; [$g])',
]

/** Texts that use functions without giving any. */
const plain = [
  '$sum([1, 2])',
  '$map(list.name, $uppercase)',
  'list.name ~> $join',
  '($up := $uppercase ~> $trim; {"a": $up("x")})',
  '($f := function($n) {$n > 1 ? $f($n - 1) : $n}; {"a": $f(3)})',
  '($x := /x/; {"a": $contains("xy", $x)})',
  '($set := |list|{"b": 1}|; $ ~> $set)',
  '($sum := 3; {"a": $sum})',
  'list@$one.{"a": $one.name}',
  '$type($sum)',
]

const input = { x: 1, list: [{ name: 'a' }, { name: 'b' }] }

/** The same text, compiled and interpreted. */
const bothWays = (text: string) => [readMapping(text), readMapping(`($eval("1"); ${text})`)]

describe('a function in a result', () => {
  test.each(yielding)('%s is an error, compiled and interpreted', async (text) => {
    const [compiled, interpreted] = bothWays(text)
    expect(interpreted?.compiled).toBe(false)
    for (const mapping of [compiled, interpreted]) {
      await expect((async () => await mapping?.run(input))()).rejects.toMatchObject({
        name: 'MappingError',
        code: 'D1016',
      })
    }
  })

  test.each(yielding)('%s is found without a run', (text) => {
    for (const mapping of bothWays(text)) expect(functionResults(mapping.tree, known)).toHaveLength(1)
  })

  test('that only a run can show is an error of it', async () => {
    for (const text of ['{"a": $eval("$sum")}', '{"a": [$eval("function($x) {$x}")]}', '$lookup({"f": $sum}, "f")']) {
      await expect((async () => await readMapping(text).run(input))()).rejects.toMatchObject({ code: 'D1016' })
    }
  })

  test('is not what a client calls one', async () => {
    const given = { a: { _jsonata_function: true, implementation: 'x', signature: 'y' } }
    expect(await readMapping('{"a": a.signature, "b": a}').run(given)).toEqual({ a: 'y', b: given.a })
  })
})

test.each(plain)('%s gives no function', async (text) => {
  for (const mapping of bothWays(text)) {
    expect(functionResults(mapping.tree, known)).toEqual([])
    await mapping.run(input)
  }
})

test('definitions that use each other many times are searched within bounds', () => {
  const names = Array.from({ length: 40 }, (_, index) => `$v${index} := [$v${index + 1}, $v${index + 1}]`).reverse()
  const begun = performance.now()
  functionResults(readMapping(`($v40 := $sum; ${names.join('; ')}; $v0)`).tree, known)
  expect(performance.now() - begun).toBeLessThan(5_000)
})
