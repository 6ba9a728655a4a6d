import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Mapping, MappingError, readMapping } from '../../src/mapping/mapping.ts'
import { testEach, testInRuns } from '../helpers/slow.ts'
import { limit, processorTime } from '../helpers/time.ts'
import { changed, deepFrozen, sharedObjects, stateOf, staticNames } from './library-state.ts'
import { expressions, values } from './random-expressions.ts'

/** Whatever a mapping does, only its result is different afterwards. */

const input = {
  a: { x: 1 },
  list: [{ y: 1 }, { y: 2 }],
  messages: [{ role: 'user', parts: [{ type: 'text', text: 't' }] }],
}

let before: ReadonlyMap<object, readonly unknown[]>
beforeAll(async () => {
  // Freezes what mappings share; it is loaded with the first one that is interpreted.
  await import('../../src/mapping/interpret.ts')
  before = stateOf(await sharedObjects())
})

/** Runs a text compiled and interpreted, on a frozen input. */
async function runBoth(text: string, given: unknown): Promise<void> {
  for (const each of [text, `($eval("1"); ${text})`]) {
    const copy = structuredClone(given)
    await run(each, copy)
    expect(copy).toEqual(given)
    await run(each, deepFrozen(structuredClone(given)))
  }
}

async function run(text: string, given: unknown): Promise<unknown> {
  let mapping: Mapping | undefined
  try {
    mapping = readMapping(text)
    return await mapping.run(given)
  } catch (error) {
    if (error instanceof MappingError) {
      // A compiled mapping must not fail because of a frozen input; the library works on a copy.
      if (mapping?.compiled)
        expect(error.message).not.toMatch(/read only|not extensible|Cannot (add|assign|delete|define|redefine)/)
      return error
    }
    throw error
  }
}

const assault =
  '{"native": {"run": "x"}, "arity": 9, "signature": "x", "implementation": "x", "apply": "x", "call": "x", "token": "x"}'
const callables = [
  '$join',
  '$map',
  '$string',
  '$eval',
  '$clone',
  '$parseJson',
  '$now',
  '$',
  '/a/',
  'function($x) {$x}',
  '$append(?, 1)',
  '$uppercase ~> $trim',
]

const hostile = [
  ...callables.flatMap((callable) => [
    `({} ~> |${callable}|${assault}|)`,
    `({} ~> |[${callable}]|${assault}, ["signature", "native"]|)`,
    `({} ~> |{"f": ${callable}}.f|${assault}|)`,
    `({} ~> |$spread(${callable})|${assault}|)`,
    `({} ~> |$spread([${callable}]).*|${assault}|)`,
    `({} ~> |$each({"f": ${callable}}, function($v) {$v})|${assault}|)`,
    `$each(${callable}, function($v, $k) { {} ~> |$v|${assault}| })`,
    `$sift(${callable}, function($v, $k) { {} ~> |$v|${assault}| })`,
    `$map([${callable}], function($v) { {} ~> |$v|${assault}| })`,
    `({} ~> |$merge([${callable}]).*|${assault}|)`,
    `({} ~> |$lookup(${callable}, "implementation")|${assault}|)`,
    `({} ~> |$keys(${callable})|${assault}|)`,
    `({} ~> |${callable}.**|${assault}|)`,
    `({} ~> |[${callable}].*|${assault}|)`,
    `({} ~> |$distinct([${callable}, ${callable}])|${assault}|)`,
    `({} ~> |$reduce([${callable}, 1], function($l, $r) {$l})|${assault}|)`,
  ]),
  // A function of the library without its mark is an object, and exposes its members.
  ...['global', 'base.options', 'base', 'base.RegexEngine', 'base.base.guardrails', 'timestamp'].map(
    (place) => `(
      $f := function($x) {$x};
      {} ~> |$f|{"a": 1}, "_jsonata_lambda"|;
      $inside := $f;
      {} ~> |$inside.environment.${place}|{"ancestry": "x", "timeout": 0, "stack": 0, "polluted": 1}, ["sequence"]|;
      {} ~> |$inside.body|{"type": "x"}|;
      {} ~> |$inside.body.steps|{"value": "x"}|;
      $inside.environment.bind("join", 1);
      $inside.environment.base.bind("join", 1)
    )`,
  ),
  '$ ~> |$|{"self": $}|',
  '$ ~> |$$|{"a": 2}|',
  '$ ~> |$$.list|{"y": 3}, "y"|',
  '{} ~> |$$.messages.parts|{"text": "changed"}, ["type"]|',
  '($in := $$; {} ~> |$in.a|{"x": 2}|)',
  '($clone := function($x){$x}; $ ~> |messages|{"role": "changed"}|)',
  '($clone := function($x){$$}; $ ~> |messages|{"role": "changed"}|)',
  '($clone := function($x){[$x]}; $ ~> |messages.parts|{"text": "changed"}, "type"|)',
  '($c := list; $d := $append($c, 1); $d ~> |$|{"y": 7}|)',
  '($s := list; $s[]; $sort($s, function($l, $r) {$l.y < $r.y}); $reverse($s); $shuffle($s); $s)',
  '{} ~> |$|{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}|',
  '$merge([{"__proto__": {"polluted": 1}}]) ~> |`__proto__`|{"polluted": 1}|',
  '($o := {}; $o.`__proto__` ~> |$|{"polluted": 1}|)',
  '$ ~> |`__proto__`|{"polluted": 1}|',
  '$ ~> |constructor|{"polluted": 1}|',
  '$ ~> |constructor.prototype|{"polluted": 1}|',
  '$replace("aa", /a/, function($m) { {} ~> |$m.next|{"x": 1}| })',
  '$match("aa", /a/) ~> |$|{"next": 1}|',
]

testEach(hostile, { slowIf: (_, index) => index % 3 !== 0 })('%s changes nothing', async (text) => {
  await runBoth(text, input)
  expect(changed(before)).toEqual([])
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
})

testInRuns('random mappings change nothing', { fast: 40, slow: 250 }, async (numRuns) => {
  const random = fc.oneof(
    expressions,
    fc.tuple(expressions, expressions, expressions).map(([a, b, c]) => `(${a} ~> |${b}|${c}|)`),
    fc.tuple(expressions, expressions).map(([a, b]) => `($clone := function($x){${a}}; $ ~> |${b}|{"a": 1}, "b"|)`),
    fc.tuple(fc.constantFrom(...callables), expressions).map(([f, e]) => `({"f": ${f}, "g": ${e}} ~> |*|{"a": ${f}}|)`),
  )
  await fc.assert(
    fc.asyncProperty(random, values, async (text, value) => {
      try {
        readMapping(text)
      } catch {
        return
      }
      await runBoth(text, value)
    }),
    { numRuns },
  )
  expect(changed(before)).toEqual([])
})

test('nothing that mappings share can be changed', async () => {
  const builtIn = [Object, Function, Array, String, Number, RegExp, Promise, Map, Set, Date, Error, JSON, Math]
  const intrinsics = stateOf([...builtIn, async () => {}, function* () {}])
  const [library, ...definitions] = (await sharedObjects()).slice(0, staticNames.length + 1)
  for (const shared of [library, ...definitions] as object[]) {
    for (const reached of stateOf([shared]).keys()) {
      if (!intrinsics.has(reached)) expect(Object.isFrozen(reached)).toBe(true)
    }
  }
})

describe('a transform', () => {
  test('fails where it would change anything but its copy', () => {
    for (const text of [
      '$ ~> |$$.a|{"x": 2}|',
      '$ ~> |$join|{"x": 2}|',
      '$ ~> |"text"|{"x": 2}|',
      '$ ~> |{"made": "here"}|{"x": 2}|',
    ]) {
      expect(() => readMapping(text).run(input)).toThrow(expect.objectContaining({ code: 'T2014' }))
    }
  })

  test('of the whole input copies nothing that stays as it is', () => {
    const result = readMapping('$ ~> |$|{"a": 1}, "list"|').run(input) as Record<string, unknown>
    expect(result).toEqual({ a: 1, messages: input.messages })
    expect(result.messages).toBe(input.messages)
  })

  test.each<[unknown, unknown]>([
    [{ a: 0.1 + 0.2 }, { a: 0.3, b: 1 }],
    [{ a: [{ x: -0 }] }, { a: [{ x: 0 }], b: 1 }],
    [{ a: { x: undefined } }, { a: {}, b: 1 }],
    [
      [{ a: 1 }, { a: 2 }],
      [
        { a: 1, b: 1 },
        { a: 2, b: 1 },
      ],
    ],
  ])('of the whole of %j gives the same as the library', async (given, expected) => {
    for (const text of ['$ ~> |$|{"b": 1}|', '($eval("1"); $ ~> |$|{"b": 1}|)']) {
      expect(await readMapping(text).run(given)).toStrictEqual(expected)
    }
  })

  test('with its own $clone changes a copy of its result', () => {
    const text = '($clone := function($x){$x.a}; {"copy": $ ~> |$|{"x": 2}|, "a": a})'
    expect(readMapping(text).run(input)).toEqual({ copy: { x: 2 }, a: { x: 1 } })
  })
})

describe('a result that shares its parts', () => {
  const big = { list: Array.from({ length: 100_000 }, (_, index) => `item ${index}`), text: 'x'.repeat(1_000_000) }
  test.each([
    ['{"lists": [1..99999].{"l": $$.list}}'],
    ['{"texts": [1..99999].{"t": $$.text}}'],
    ['[1..99999].($$.text)'],
    [
      `($o0 := {"a": 1}; ${Array.from({ length: 40 }, (_, n) => `$o${n + 1} := {"a": $o${n}, "b": $o${n}}`).join('; ')}; $o40)`,
    ],
    ['$reduce([1..40], function($x) { {"a": $x, "b": $x} }, 1)'],
    ['$reduce([1..40], function($x) { [[$x], [$x]] }, [1])'],
  ])('%s is refused soon, compiled and interpreted', async (text) => {
    for (const each of [text, `($eval("1"); ${text})`]) {
      const { result, ms } = await processorTime(() => run(each, big))
      expect(result).toBeInstanceOf(MappingError)
      expect(ms).toBeLessThan(limit(4_000))
    }
  })

  test('is given when its expanded size is within the bounds', () => {
    const result = readMapping('{"copies": [1..10].{"l": $$.list}}').run(big) as { copies: unknown[] }
    expect(result.copies.length).toBe(10)
  })
})
