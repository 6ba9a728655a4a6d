import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Json } from '../../src/core/json.ts'
import { isLongerThan, jsonPieces, jsonText } from '../../src/core/json-pieces.ts'

/** Strings with what is escaped, and what may be cut in two. */
const piece = fc.constantFrom('x', '"', '\\', '\u0000', '🙂', 'ż', '\ud83d', '\ude00', '\\ud83d', 'a🙂')
const texts = fc
  .array(fc.tuple(piece, fc.nat(12)), { maxLength: 4 })
  .map((runs) => runs.map(([one, count]) => one.repeat(count)).join(''))
const names = fc.oneof(texts, fc.constantFrom('__proto__', 'toString', '7', '10'))
const values = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'medium' },
    texts,
    fc.constantFrom(0, -1.5e300, true, null),
    fc.array(tie('value'), { maxLength: 8 }),
    fc.dictionary(names, fc.option(tie('value'), { nil: undefined }), { maxKeys: 8 }),
  ) as fc.Arbitrary<Json>,
})).value

test('the pieces of a JSON text are that text, with others let in after each', async () => {
  const property = fc.asyncProperty(values, fc.integer({ min: 4, max: 60 }), async (value, perStep) => {
    let steps = 0
    const pieces = await jsonPieces(value, async () => void steps++, perStep)
    const text = pieces.join('')
    expect(JSON.parse(text)).toEqual(JSON.parse(jsonText(value)))
    expect(text.isWellFormed()).toBe(true)
    expect(text).not.toMatch(/(?<!\\)(?:\\\\)*\\ud[89a-f]/)
    expect(steps).toBe(pieces.length)
  })
  await fc.assert(property, { numRuns: 1_000 })
})

test('no piece is longer than a step, escapes aside', async () => {
  const long = { text: '"'.repeat(1_000_000), list: Array.from({ length: 100_000 }, (_, at) => at), more: { a: 1 } }
  const pieces = await jsonPieces(long, async () => {})
  expect(pieces.length).toBeGreaterThan(20)
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(2 * 65_536)
})

test('how long a JSON text is, is known from a look at as much of it', () => {
  fc.assert(
    fc.property(values, fc.nat(200), (value, characters) => {
      const { length } = JSON.stringify(value)
      // Escapes are longer than what they stand for, six times at most; numbers count as if they were short.
      if (2 * length < characters) expect(isLongerThan(value, characters)).toBe(false)
      if (length > 8 * characters + 8) expect(isLongerThan(value, characters)).toBe(true)
    }),
  )
  const endless = new Proxy([] as Json[], { get: (_, name) => (name === 'length' ? 1e9 : 'x') })
  expect(isLongerThan(endless, 1_000)).toBe(true)
})
