import { expect, test } from 'vitest'
import { MappingError, readMapping } from '../../src/mapping/mapping.ts'
import { limit, processorTime } from '../helpers/time.ts'

/** The error of a mapping. */
function failure(text: string, input: unknown = {}): { code: string; message: string } {
  try {
    const mapping = readMapping(text)
    expect(mapping.compiled).toBe(true)
    mapping.run(input)
  } catch (error) {
    if (!(error instanceof MappingError)) throw error
    return { code: error.code, message: error.message }
  }
  throw new Error(`no failure: ${text}`)
}

const hostile: [what: string, text: string, code: string, input?: unknown][] = [
  ['recursion without end', '($f := function($n) { 1 + $f($n) }; $f(1))', 'D1011'],
  ['mutual recursion without end', '($f := function() { [$g()] }; $g := function() { [$f()] }; $f())', 'D1011'],
  ['tail recursion without end', '($f := function() { $f() }; $f())', 'D1012'],
  ['tail recursion that grows a list', '($f := function($l) { $f($append($l, $l)) }; $f([1, 2]))', 'D2015'],
  ['tail recursion that grows a text', '($f := function($t) { $f($t & $t) }; $f("xx"))', 'D1014'],
  ['tail recursion that grows an object', '($f := function($o) { $f({"a": $o, "b": $o}) }; $f(1))', 'D1012'],
  ['an object that shares its parts', doubled('{"a": $, "b": $}'), 'D1012'],
  ['text of an object that shares its parts', `$string(${doubled('{"a": $, "b": $}')})`, 'D1012'],
  ['JSON of an object that shares its parts', `$toJson(${doubled('{"a": $, "b": $}')})`, 'D1012'],
  ['an object that shares its parts, without nulls', `$withoutNulls(${doubled('{"a": $, "b": $}')})`, 'D1012'],
  ['a large text in capitals many times', '[1..99999].$uppercase($$.t)', 'D1012'],
  ['a large list that gets one more item many times', '[1..99999].$append($$.l, 1)', 'D1012'],
  ['a range of a thousand million', '[1..1000000000]', 'D2014'],
  ['a range above the bound', '[1..1000000]', 'D2015'],
  ['nested loops', '$sum([1..99999].($x := $; [1..99999].($x * $)))', 'D1012'],
  ['nested map', '$map([1..9999], function($x) { $map([1..9999], function($y) { $x }) })', 'D1012'],
  ['a product of distinct items', '$distinct([1..99999].{"a": $})', 'D1012'],
  ['a number format of infinity', '$formatNumber(1/0, "0.0e0")', 'D1001'],
  ['letters of infinity', '$formatInteger(1/0, "a")', 'D1001'],
  ['padding without end', '$pad("x", 1000000000)', 'D1014'],
  ['a text replaced by itself', '$reduce([1..40], function($t) { $replace($t, "x", "xx") }, "x")', 'D3050'],
  ['a text that doubles', '$reduce([1..40], function($t, $i) { $replace($t, "x", "xx") }, "x")', 'D1012'],
  ['a joined text that doubles', '$reduce([1..60], function($t, $i) { $join([$t, $t]) }, "xx")', 'D1014'],
  ['a sort that never agrees', '$sort([1..99999], function($a, $b) { true ~> $not() ~> $not() })', 'D1012'],
  ['a regular expression with nested repetition, ignoring case', '$match(t, /^(a+)+$/i)', 'S0303'],
  ['a regular expression with counted nested repetition', '$match(t, /(.*a){20}/)', 'S0303'],
  ['a regular expression with a back reference', '$match(t, /^(a+)+\\1$/)', 'S0303'],
  ['a regular expression with repetition in sequence', '$match(t, /a*a*a*a*a*a*b/i)', 'D1015'],
]

function doubled(step: string): string {
  return `$reduce([1..40], function($x, $i) { $x.(${step}) }, {"c": 1})`
}

test.each(hostile)('%s is bounded', async (_, text, code) => {
  const input = { t: `${'a'.repeat(50_000)}!`, l: Array.from({ length: 50_000 }, () => 1) }
  const { result: found, ms } = await processorTime(() => failure(text, input))
  expect(found).toMatchObject({ code })
  expect(found.message).not.toBe('')
  expect(ms).toBeLessThan(limit(3_000))
})

test('a regular expression with nested repetition runs in time linear in the text', async () => {
  const mapping = readMapping('[$contains(t, /^(a+)+$/), $contains(t, /(a|a)*b/), $contains(t, /.*a.*a.*a.*a!/)]')
  const { result, ms } = await processorTime(() => mapping.run({ t: `${'a'.repeat(20_000)}!` }))
  expect(result).toEqual([false, false, true])
  expect(ms).toBeLessThan(limit(2_000))
})

test('a text nested too deeply is refused, or runs', () => {
  for (const depth of [100, 1_000, 10_000, 100_000]) {
    for (const [open, close] of [
      ['(', ')'],
      ['[', ']'],
      ['{"a":', '}'],
      ['$not(', ')'],
      ['function(){', '}'],
    ] as const) {
      const text = `${open.repeat(depth)}1${close.repeat(depth)}`
      try {
        readMapping(text).run({})
      } catch (error) {
        expect(error).toBeInstanceOf(MappingError)
      }
    }
  }
})

test('input nested too deeply is refused, or read', () => {
  let input: unknown = 1
  for (let depth = 0; depth < 100_000; depth++) input = { a: [input] }
  for (const text of ['$string($)', '{"a": $, "b": a.a.a}', '$ = $$.a', '$ ~> |a|{"b":1}|', '$spread($)']) {
    try {
      readMapping(text).run(input)
    } catch (error) {
      expect(error).toBeInstanceOf(MappingError)
    }
  }
})

const inherited = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__', 'length']

test.each(inherited)('the inherited name %s is just missing', (name) => {
  for (const text of [`\`${name}\``, `a.\`${name}\``, `a.\`${name}\`.x`, `$lookup(a, "${name}")`, `a[\`${name}\`]`]) {
    expect(readMapping(text).run({ a: { b: 1 } })).toBeUndefined()
    expect(readMapping(text).run({ a: [1, 'x'] })).toBeUndefined()
    expect(readMapping(text).run({ a: 'x' })).toBeUndefined()
  }
  // The library has a function of that name.
  if (name !== 'length') expect(readMapping(`$${name}`).run({})).toBeUndefined()
})

test.each(inherited)('the name %s is an own member like any other where it is given', (name) => {
  const input = JSON.parse(`{"${name}": {"x": 1}}`)
  expect(readMapping(`\`${name}\`.x`).run(input)).toBe(1)
  for (const text of [
    `{"${name}": \`${name}\`}`,
    `{"a": 1, "${name}": \`${name}\`, "b": 2}`,
    `{$string("${name}"): \`${name}\`}`,
    `$merge([{"${name}": 1}, {"a": 1}])`,
    `$sift($, function($v, $k) { true })`,
    `$ ~> |$|{"${name}": 2}|`,
    `$spread($)`,
  ]) {
    const result = readMapping(text).run(input) as object
    expect(Object.hasOwn(result, name)).toBe(true)
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype)
  }
  expect(({} as Record<string, unknown>).x).toBeUndefined()
})

test('names and literals of a text cannot become code', () => {
  const marks = [
    '"]; throw 1; ["',
    "'); throw 1; ('",
    '\u2028throw 1',
    '\\"; throw 1; \\"',
    '\u0024{throw 1}',
    '*/ throw 1 /*',
  ]
  for (const mark of marks) {
    const quoted = JSON.stringify(mark)
    for (const text of [
      `\`${mark}\``,
      `a.\`${mark}\`.b`,
      `{${quoted}: \`${mark}\`}`,
      `${quoted} & a`,
      `a[b = ${quoted}]`,
    ]) {
      const mapping = readMapping(text)
      expect(mapping.compiled).toBe(true)
      mapping.run({ [mark]: 1, a: { b: mark } })
    }
  }
  expect(readMapping('($x"y\u2028\'z := 2; $x"y\u2028\'z + 1)').run({})).toBe(3)
})

test('a hostile run leaves nothing behind for the next one', () => {
  failure('($f := function() { $f() }; $f())')
  failure('($f := function($n) { 1 + $f($n) }; $f(1))')
  expect(readMapping('$sum([1..1000].($ * 2))').run({})).toBe(1_001_000)
})

test('texts that evaluate themselves end, and their error stays short', async () => {
  // At these depths a message that quotes the one before it has a thousand backslashes; at the full depth it fills the memory.
  for (const levels of [4, 12]) {
    const text = `($e := function($n) { $n > 0 ? $eval("$e(" & $string($n - 1) & ")") : $error('"no"') }; $e(${levels}))`
    const run = Promise.resolve(readMapping(text).run({}))
    await expect(run).rejects.toMatchObject({ code: 'D3121' })
    await expect(run).rejects.toHaveProperty('message', expect.stringMatching(/^.{1,1000}$/))
  }
})

test('interpreted mappings are bounded as well', async () => {
  const mapping = readMapping('$eval("($f := function() { $f() }; $f())")')
  expect(mapping.compiled).toBe(false)
  expect(mapping.fallback).toBe('$eval')
  await expect(mapping.run({})).rejects.toBeInstanceOf(MappingError)
  for (const text of ['$count(x.**)', '$count(x.*.*)', 'x = y', '$string(x)', 'x']) {
    const shared = `($x := ${doubled('{"a": $, "b": $}')}; $y := ${doubled('{"a": $, "b": $}')}; ${text.replaceAll(/\b[xy]\b/g, (name) => `$${name}`)})`
    await expect(readMapping(`($eval("1"); ${shared})`).run({})).rejects.toMatchObject({ code: 'D1012' })
  }
  const { ms } = await processorTime(async () => {
    const many = readMapping('($eval("1"); $distinct([1..100000].($ % 50000)))')
    await expect(many.run({})).rejects.toMatchObject({ code: 'D1012' })
  })
  expect(ms).toBeLessThan(limit(3_000))
  const formatting = readMapping('$eval("$formatInteger(1/0, \'a\')")')
  await expect(formatting.run({})).rejects.toBeInstanceOf(MappingError)
})
