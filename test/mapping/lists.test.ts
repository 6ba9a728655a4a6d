import jsonata from 'jsonata'
import { expect, test } from 'vitest'
import { readMapping } from '../../src/mapping/mapping.ts'

/** Paths that begin with a list that is made there, keep a list that a step finds, or choose from one. */
const texts = [
  '[a, b][c].d',
  '[a, b][c = 1].d',
  '[a, b].d[]',
  '[a][$ = 9].(d)',
  '[a][$ = 9].{ "x": $ }',
  '[a, b][0].d',
  '[a, b][5].d.e',
  '[][x].y',
  '[].y',
  '$exists([a, b][c].d)',
  '$exists([a, b].c)',
  '$exists([].c)',
  '[[a, b][c].d]',
  '[""][$ = ""].x',
  '["xy"][0].$',
  '[{ "length": 2 }][0].d',
  '([a, b][0]).d',
  '[a, b][0].d.e',
  'a[]',
  'a[].b',
  'a.b[]',
  'a[].b[]',
  // An empty list is grouped like no item at all.
  '[[]].{ "k" & "": $count($) }',
  'a.{ "k" & "": 1, "l" & "": $count($) }',
  // A position is rounded down, also from the end.
  '[1, 2, 3][-1.5]',
  '[1, 2, 3][-0.5]',
  '[1, 2, 3][1.5]',
  '[1, 2, 3][[-2.5, 0.5]]',
  'a[-1.5]',
]
const inputs = [
  {},
  { a: 1 },
  { a: { c: 1, d: 2 }, b: [{ c: 1, d: [3] }, { c: 2 }] },
  [],
  [{ a: { c: 1, d: 2 } }],
  [{ a: [[]] }],
  [{ a: [[{ b: [[1]] }]] }],
]

test.each(texts)('%s gives the result of the library', async (text) => {
  const mapping = readMapping(text)
  expect(mapping.compiled).toBe(true)
  for (const input of inputs) {
    const expected: unknown = await jsonata(text).evaluate(structuredClone(input))
    const plain = expected === undefined ? undefined : JSON.parse(JSON.stringify(expected))
    expect({ input, result: mapping.run(input) }).toEqual({ input, result: plain })
  }
})
