import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readMapping } from '../../src/mapping/mapping.ts'
import { testInRuns } from '../helpers/slow.ts'

/** Texts that look like pieces of generated code. */
const literals = [
  '{  }',
  '{ }',
  '  ',
  '\n  ',
  'a\n    b',
  '\t',
  '}\n{',
  'return',
  'undefined',
  '"',
  '\\',
  '`',
  '${1}',
  '$&',
  "$'",
  '$1',
  ' => {',
  'const x = 1\n  return x',
  '\u2028',
  '_1',
  'object_1',
  '$.unbound',
  '/*',
  '//',
  '\r\n  ',
]

/** Places of a mapping in which a literal may be, at all depths. */
const places: [name: string, text: (literal: string) => string, value: (literal: string) => unknown][] = [
  ['alone', (l) => l, (l) => l],
  ['in an object', (l) => `{"a": ${l}}`, (a) => ({ a })],
  ['as a key', (l) => `{${l}: 1}`, (l) => ({ [l]: 1 })],
  ['in a list', (l) => `[${l}, ${l}]`, (l) => [l, l]],
  ['in a function', (l) => `($f := function($x) {($y := $x & ${l}; $y)}; $f(""))`, (l) => l],
  ['in a branch', (l) => `a ? ($x := {"b": ${l}}; $x) : 1`, (b) => ({ b })],
  ['in the other branch', (l) => `none ? 1 : ($x := [${l}]; $x)`, (l) => [l]],
  ['behind ??', (l) => `none ?? ($x := ${l}; $x)`, (l) => l],
  ['beside and', (l) => `a and ($x := ${l}; $x = ${l})`, () => true],
  ['in a step', (l) => `list.{"k": ($x := $; $y := ${l}; $y)}`, (k) => [{ k }, { k }]],
  ['in a predicate', (l) => `[${l}][$ = ${l}]`, (l) => l],
  ['in a transform', (l) => `{"o": {}} ~> |o|{"k": ($x := ${l}; $x)}|`, (k) => ({ o: { k } })],
  ['in arguments', (l) => `$join([${l}], ($x := ${l}; $x))`, (l) => l],
  ['in computed members', (l) => `{$string(${l}): ${l}}`, (l) => ({ [l]: l })],
]

test.each(places)('a literal %s keeps its value', (_, text, value) => {
  for (const literal of literals) {
    const mapping = readMapping(text(JSON.stringify(literal)))
    expect(mapping.compiled).toBe(true)
    expect(mapping.run({ a: 1, list: [1, 2] })).toEqual(value(literal))
  }
})

test('names and regular expressions keep their text', () => {
  for (const name of literals.filter((each) => !/`/.test(each))) {
    expect(readMapping(`\`${name}\``).run({ [name]: 1 })).toBe(1)
    expect(readMapping(`a.b.\`${name}\`.c`).run({ a: { b: { [name]: { c: 1 } } } })).toBe(1)
  }
  expect(readMapping('$replace("a{  }b", /\\{  \\}/, "\\n  ")').run({})).toBe('a\n  b')
})

testInRuns('any literal keeps its value, at any position', { fast: 60, slow: 1_000 }, (numRuns) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.constantFrom(...places), (literal, [, text, value]) => {
      fc.pre(literal !== '__proto__')
      const mapping = readMapping(text(JSON.stringify(literal)))
      expect(mapping.run({ a: 1, list: [1, 2] })).toEqual(value(literal))
    }),
    { numRuns },
  )
})

test.each([
  ['a@$b.c', 'a binding by @, # or %'],
  ['a#$i.[$i]', 'a binding by @, # or %'],
  ['a.b.%.c', 'a binding by @, # or %'],
  ['a^(b)', 'ordering by ^(…)'],
  ['a{b: c}', 'grouping by {…} after a path'],
  ['a.*', 'the wildcard *'],
  ['a.**.b', 'the wildcard **'],
  ['$append(?, 1)', 'a partial application'],
  ['$eval("1")', '$eval'],
])('%s is left to the library', async (text, construct) => {
  const mapping = readMapping(text)
  expect([mapping.compiled, mapping.fallback]).toEqual([false, construct])
  expect(mapping.explain()).toContain(construct)
})

test('the library gives plain JSON', async () => {
  const input = {
    a: [
      { b: 2, c: 'x' },
      { b: 1, c: 'y' },
    ],
  }
  expect(await readMapping('a^(b).c').run(input)).toEqual(['y', 'x'])
  expect(await readMapping('a{c: b}').run(input)).toEqual({ x: 2, y: 1 })
  expect(await readMapping('a#$i.{"i": $i, "c": c}').run(input)).toEqual([
    { i: 0, c: 'x' },
    { i: 1, c: 'y' },
  ])
  expect(await readMapping('**.nothing').run(input)).toBeUndefined()
})

test('a definition that nothing uses leaves no trace in the code', () => {
  const definitions = `
    $table := { "a": ["x", 1], "b": null };
    $words := function($parts) { $join($parts.text) };
    $both := function($parts) { $words($parts) & $words($parts) };
    $traits := target.traits;
    $odd := function() { $odd() };
    $pattern := /x/;`
  expect(readMapping(`(${definitions} (a))`).explain()).toBe(readMapping('((a))').explain())
  const code = readMapping(`(${definitions} ($words(list)))`).explain()
  expect(code).toContain('const words_1')
  expect(code).not.toMatch(/both|table|traits|odd|pattern/)
  const both = readMapping(`(${definitions} ($both(list)))`)
  expect(both.explain()).toMatch(/words_1[\s\S]*both_1/)
  expect(both.run({ list: [{ text: 'a' }, { text: 'b' }] })).toBe('abab')
})

test('a definition that may fail, or that something uses, stays', () => {
  for (const [text, value] of [
    ['($x := 1; $x := 2; $x)', 2],
    ['($x := 1)', 1],
    ['($x := a.b; $f := function() { $x }; $f())', 7],
    ['($clone := function($o) { {"c": 1} }; {} ~> |$|{"d": 2}|)', { c: 1, d: 2 }],
    ['($f := function() { 1 }; {"f": $f()})', { f: 1 }],
    ['($n := 3; [1..3][$ = $n])', 3],
  ] as const) {
    expect(readMapping(text).run({ a: { b: 7 } })).toEqual(value)
  }
  for (const [text, code] of [
    ['($x := $error("no"); 1)', 'D3137'],
    ['($x := "a" + 1; 1)', 'T2001'],
    ['($x := {"k": 1, "k": 2}; 1)', 'D1009'],
    ['($f := function() { 1 }; f())', 'T1005'],
    ['($clone := 5; {} ~> |$|{"d": 2}|)', 'T2013'],
  ] as const) {
    expect(() => readMapping(text).run({})).toThrow(expect.objectContaining({ code }))
  }
})

test('functions are made once, not in each run', () => {
  const mapping = readMapping(`(
    $traits := target.traits;
    $text := function($part) { $part.text & $traits.suffix & $mark($part) };
    $mark := function($part) { $part.by = maker ? "!" };
    parts.$text($)
  )`)
  const [, main] = mapping.explain().split('const run = ')
  expect(main).toMatch(/^\(input, bindings\) => \{/)
  expect(main?.slice(10)).not.toMatch(/\(.*\) => .*part/)
  const parts = [{ text: 'a', by: 'x' }, { text: 'b' }]
  for (const [maker, suffix, result] of [
    ['x', '1', ['a1!', 'b1']],
    ['y', '2', ['a2', 'b2']],
  ]) {
    expect(mapping.run({ maker, parts, target: { traits: { suffix } } })).toEqual(result)
  }
})

test('nothing of a run is left behind, whether it succeeds or fails', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const mapping = readMapping('( $all := $; $x := a; $f := function() { $x.b + $all.a.c & $count($$) }; [list.$f()] )')
  expect(mapping.explain()).toContain('let ')
  const runOn = (a: object): WeakRef<object> => {
    const input = { a, list: [1] }
    try {
      mapping.run(input)
    } catch (error) {
      expect(error).toMatchObject({ code: 'T2001' })
    }
    return new WeakRef(input)
  }
  const references = [runOn({ b: 1, c: 1 }), runOn({ b: 'no number', c: 1 })]
  await new Promise((resolve) => setImmediate(resolve))
  collectGarbage()
  expect(references.map((reference) => reference.deref())).toEqual([undefined, undefined])
})

test('functions that call each other are bounded as others are', () => {
  const doubling = Array.from({ length: 60 }, (_, n) => `$f${n + 1} := function() { $f${n}() + $f${n}() }`).join('; ')
  for (const [text, code] of [
    [`($f0 := function() { 1 }; ${doubling}; $f60())`, 'D1012'],
    ['($f := function($n) { 1 + $f($n + 1) }; $f(0))', 'D1011'],
    ['($f := function($n) { $g($n) }; $g := function($n) { $f($n + 1) }; $f(0))', 'D1012'],
    ['($f := function($n) { 1 + $g($n) }; $g := function($n) { 1 + $f($n + 1) }; $f(0))', 'D1011'],
  ] as const) {
    expect(() => readMapping(text).run({})).toThrow(expect.objectContaining({ code }))
  }
})

test('constructors in constructors are generated once', () => {
  const depth = 40
  const nested = `${'[a, {"m": '.repeat(depth)}b${'}]'.repeat(depth)}`
  expect(readMapping(nested).explain().length).toBeLessThan(20_000)
})

test('tables of literals are made once', () => {
  const mapping = readMapping('$lookup({"a": "x", "b": 2, "__proto__": null}, key)')
  expect(mapping.explain()).toMatch(/^const table_1 = Object\.freeze\(/m)
  expect(['a', 'b', 'c', 'constructor', '__proto__'].map((key) => mapping.run({ key }))).toEqual([
    'x',
    2,
    undefined,
    undefined,
    null,
  ])
  expect(readMapping('$lookup({"a": [1]}, "a")').explain()).not.toContain('freeze')
})

test('a table before an argument that needs statements stays where it is', () => {
  expect(readMapping('$lookup({"a": 1}, (b; "a"))').run({ b: 2 })).toBe(1)
  expect(readMapping('$lookup({}, ($x := 1; $x & ""))').run({})).toBe(undefined)
  expect(readMapping('$lookup(($x := {"a": 1}), "a")').run({})).toBe(1)
  expect(readMapping('$lookup(($x := {"a": 1}; $x := {"b": 2}), "b")').run({})).toBe(2)
})
