import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  valuesIn as counted,
  deepest,
  exceeded,
  exceededInSteps,
  type JsonBounds,
  maxMembers,
  valuesInSteps,
} from '../../src/core/json.ts'

/** The values of a document, counted after parsing. */
function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((sum: number, member) => sum + valuesIn(member), 1)
}

function membersOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return Math.max(Array.isArray(value) ? 0 : Object.keys(value).length, ...Object.values(value).map(membersOf))
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

const hard = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('"', '\\', '\\"', ',[{', '\\\\', 'x'.repeat(60), `${'y'.repeat(40)}\\`, `${'"\\'.repeat(30)}`),
)
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'large' },
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    hard,
    tie('list'),
    tie('object'),
  ),
  list: fc.array(tie('value'), { maxLength: 6 }),
  object: fc.dictionary(hard, tie('value'), { maxKeys: 6 }),
})).value

describe('what a JSON text holds is counted without parsing it', () => {
  test('values, levels and members of one object, at their edges', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
        // Padding, so that even the smallest document is looked at.
        const text = `${' '.repeat(5_000)}${JSON.stringify(value, null, indent)}`
        const [values, depth, members] = [valuesIn(value), depthOf(value), membersOf(value)]
        expect(counted(text)).toBe(values)
        expect(exceeded(text, { values, depth, members })).toBeUndefined()
        if (values > 1) expect(exceeded(text, { values: values - 1, depth, members })).toBe('values')
        if (members > 0) expect(exceeded(text, { values, depth, members: members - 1 })).toBe('members')
        if (depth > 1) expect(exceeded(text, { values, depth: depth - 1, members })).toBe('depth')
      }),
      { numRuns: 500 },
    )
  })

  test('in steps as at once, wherever a step ends', async () => {
    const property = fc.asyncProperty(json, fc.integer({ min: 1, max: 90 }), async (value, perStep) => {
      const text = `${' '.repeat(5_000)}${JSON.stringify(value)}`
      const [values, depth, members] = [valuesIn(value), depthOf(value), membersOf(value)]
      let steps = 0
      const step = async () => void steps++
      const found = (bounds: JsonBounds) => exceededInSteps(text, bounds, step, perStep)
      expect(await valuesInSteps(text, step)).toBe(values)
      expect(steps).toBe(0)
      expect(await found({ values, depth, members })).toBeUndefined()
      expect(steps).toBeGreaterThan(5_000 / perStep - 1)
      if (values > 1) expect(await found({ values: values - 1, depth, members })).toBe('values')
      if (members > 0) expect(await found({ values, depth, members: members - 1 })).toBe('members')
      if (depth > 1) expect(await found({ values, depth: depth - 1, members })).toBe('depth')
    })
    await fc.assert(property, { numRuns: 500 })
  })

  test('a string of nothing but backslashes and quotes is read once', async () => {
    for (const piece of ['\\\\', '\\"', `\\"${'x'.repeat(70)}`]) {
      const text = `["${piece.repeat(Math.ceil(4_000_000 / piece.length))}",1]`
      let steps = 0
      expect([counted(text), await valuesInSteps(text, async () => void steps++)]).toEqual([3, 3])
      expect(steps).toBeGreaterThan(5)
    }
  })

  test('a text that is too short to exceed a bound does not', () => {
    fc.assert(
      fc.property(fc.nat(400), fc.nat(400), (one, other) => {
        const list = `[${Array.from({ length: one }, () => 1).join(',')}]`
        const nested = '['.repeat(other + 1) + ']'.repeat(other + 1)
        expect(exceeded(list, { values: 200, depth: deepest, members: maxMembers })).toBe(
          one + 1 > 200 ? 'values' : undefined,
        )
        expect(exceeded(nested, { values: 1_000, depth: 200, members: maxMembers })).toBe(
          other + 1 > 200 ? 'depth' : undefined,
        )
      }),
    )
  })
})
