import jsonata from 'jsonata'
import { expect, test } from 'vitest'
import { MappingError, readMapping } from '../../src/mapping/mapping.ts'

const values = [
  'a',
  '{}',
  '{"a": 1}',
  '{"b": 1}',
  '{"a": 1, "b": 2}',
  '{"b": 2, "a": 1}',
  '{"a": {"b": 1}}',
  '{"a": [1, 2]}',
  '{"a": [1]}',
  '[]',
  '[1]',
  '[{"a": 1}]',
  '[{"a": 1, "b": 2}]',
  'null',
  '0',
  '"0"',
]

test.each(values)('%s equals what it equals in the library, and nothing else', async (left) => {
  for (const right of values) {
    const text = `[${left} = ${right}, ${left} != ${right}, ${right} = ${left}]`
    const mapping = readMapping(text)
    expect(mapping.compiled).toBe(true)
    expect({ text, result: mapping.run({}) }).toEqual({ text, result: [...((await jsonata(text).evaluate({})) ?? [])] })
  }
})

test('an object equals one with the same members, in any order, and not one that has more', () => {
  const result = (text: string) => readMapping(text).run({})
  expect(result('{"a": 1, "b": 2} = {"b": 2, "a": 1}')).toBe(true)
  expect(result('{"a": 1} = {"a": 1, "b": 2}')).toBe(false)
  expect(result('{"a": 1, "b": 2} = {"a": 1}')).toBe(false)
  expect(result('{"a": 1} != {"a": 1, "b": 2}')).toBe(true)
})

test('a range that is too long is refused at its place in the text', () => {
  const placeOf = (range: string) => {
    try {
      readMapping(`{"a": "b", "c": ${range}}`).run({})
    } catch (thrown) {
      const { code, position } = thrown as MappingError
      return { code, position, isOurs: thrown instanceof MappingError }
    }
    return undefined
  }
  expect(placeOf('[1..99999]')).toBeUndefined()
  const position = '{"a": "b", "c": [1..'.length
  expect(placeOf('[1..100001]')).toEqual({ code: 'D2015', position, isOurs: true })
  expect(placeOf('[1..10000001]')).toEqual({ code: 'D2014', position, isOurs: true })
  expect(placeOf('[1..1.5]')).toEqual({ code: 'T2004', position, isOurs: true })
})
