import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MappingError, narrowMapping, readMapping } from '../../src/mapping/mapping.ts'
import { type PathTree, whole } from '../../src/mapping/mentions.ts'
import { testInRuns } from '../helpers/slow.ts'
import { expressions, values } from './random-expressions.ts'

const wanted: PathTree = new Map<string, PathTree>([
  ['a', whole],
  ['list', new Map([['type', whole]])],
])

/** What a whole and a narrowed mapping make of an input. */
function both(text: string, input: unknown): { all: unknown; less: unknown } {
  const mapping = readMapping(text)
  return { all: mapping.run(input), less: narrowMapping(mapping, wanted).run(input) }
}

/** The members that are wanted of a result. */
function pick(result: unknown): unknown {
  if (result === null || typeof result !== 'object') return result
  if (Array.isArray(result)) return result.map(pick)
  const { a, list } = result as { a?: unknown; list?: unknown }
  return { a, list: types(list) }
}

function types(list: unknown): unknown {
  if (Array.isArray(list)) return list.map(types)
  return list !== null && typeof list === 'object' ? { type: (list as { type?: unknown }).type } : list
}

const input = {
  kind: 'x',
  items: [
    { k: 1, t: 'one' },
    { k: 2, t: 'two' },
  ],
  big: 'text',
}

describe('a narrowed mapping', () => {
  test.each<[string, object]>([
    ['{"a": 1, "b": $string(big)}', { a: 1 }],
    ['kind = "x" ? {"a": kind, "b": big} : {"b": big}', { a: 'x' }],
    ['(kind; $b := $uppercase(big); {"a": kind, "b": $b})', { a: 'x' }],
    ['$merge([{"a": 1, "b": 2}, kind = "x" ? {"a": 3, "c": 4}])', { a: 3 }],
    ['{"list": items.{"type": t, "k": k}}', { list: [{ type: 'one' }, { type: 'two' }] }],
    ['{"list": [items[k = 1].{"type": t, "k": k}]}', { list: [{ type: 'one' }] }],
    [
      '($of := function($i) { $i.k = 1 ? {"type": "first", "k": $i.k} : $more($i) }; $more := function($m) {{"type": $m.t, "m": 1}}; {"list": items.$of($), "b": 1})',
      { list: [{ type: 'first' }, { type: 'two' }] },
    ],
  ])('%s makes only what is wanted', (text, expected) => {
    const { all, less } = both(text, input)
    expect(less).toEqual(expected)
    expect(all).not.toEqual(expected)
    expect(pick(all)).toEqual(pick(less))
  })

  test.each([
    '($o := {"a": 1, "b": 2}; $o)',
    '{"list": [items.{"type": t, "k": k}][k = 2]}',
    '{$string(kind): 1, "b": 2}',
    '($f := function() {{"a": 1, "b": 2}}; $f := function() {{"b": 3}}; $f())',
    '$map(items, function($i) {{"a": $i, "b": 1}})',
    '($merge := function($l) { $l[1] }; $merge([{"a": 1}, {"b": 2}]))',
  ])('%s stays whole, where the text does not show what is made', (text) => {
    const { all, less } = both(text, input)
    expect(less).toEqual(all)
  })

  test('does not fail where only others would', () => {
    const mapping = readMapping('{"a": kind, "b": $sum(big)}')
    expect(() => mapping.run(input)).toThrow(MappingError)
    expect(narrowMapping(mapping, wanted).run(input)).toEqual({ a: 'x' })
  })

  test('is the same mapping where that is interpreted', async () => {
    const mapping = readMapping('{"a": **.k, "b": 1}')
    expect(narrowMapping(mapping, wanted)).toBe(mapping)
  })
})

/** Objects that are made in all the ways that are narrowed, of random expressions. */
const made = fc.letrec<{ object: string; list: string }>((tie) => ({
  object: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc
      .tuple(expressions, expressions, tie('list'))
      .map(([a, b, list]) => `{"a": (${a}), "b": (${b}), "list": (${list})}`),
    fc.tuple(expressions, tie('object'), tie('object')).map(([e, x, y]) => `((${e}) ? ${x} : ${y})`),
    fc.tuple(tie('object'), tie('object')).map(([x, y]) => `$merge([${x}, ${y}])`),
    fc.tuple(tie('object'), expressions).map(([x, e]) => `($f := function($p) { ${x} }; $f(${e}))`),
    fc.tuple(expressions, tie('object')).map(([e, x]) => `($v := (${e}); ${x})`),
  ),
  list: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.tuple(expressions, expressions).map(([t, u]) => `{"type": (${t}), "u": (${u})}`),
    fc.tuple(expressions, expressions).map(([e, t]) => `(${e}).{"type": (${t}), "u": 1}`),
    fc.tuple(tie('list'), tie('list')).map(([x, y]) => `[${x}, ${y}]`),
    fc.tuple(expressions, tie('list')).map(([e, x]) => `((${e}) ? ${x})`),
  ),
})).object

testInRuns(
  'a narrowed mapping gives of what is wanted the same, whatever the mapping',
  { fast: 40, slow: 200 },
  (numRuns) => {
    fc.assert(
      fc.property(made, values, (text, value) => {
        let all: unknown
        try {
          const mapping = readMapping(text)
          fc.pre(mapping.compiled)
          all = mapping.run(value)
        } catch (error) {
          if (error instanceof MappingError) return
          throw error
        }
        expect(pick(both(text, value).less)).toEqual(pick(all))
      }),
      { numRuns },
    )
  },
)
