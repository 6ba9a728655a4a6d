import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import jsonata from 'jsonata'
import { expect } from 'vitest'
import { functions } from '../../src/mapping/functions.ts'
import { MappingError, readMapping } from '../../src/mapping/mapping.ts'
import { testInRuns } from '../helpers/slow.ts'
import { expressions, values } from './random-expressions.ts'

testInRuns(
  `random expressions over random JSON give the result of the library`,
  { fast: 150, slow: 1_000 },
  async (numRuns) => {
    const counts = { compiled: 0, interpreted: 0, failed: 0 }
    await fc.assert(
      fc.asyncProperty(expressions, values, async (text, input) => {
        const before = JSON.stringify(input)
        const mapping = readable(text)
        if (mapping === undefined) return
        if (!mapping.compiled) {
          counts.interpreted++
          return
        }
        counts.compiled++
        const actual = compiledOutcome(() => mapping.run(structuredClone(input)))
        const given = structuredClone(input)
        const expected = await libraryOutcome(text, given)
        // The library itself changed the input, and worked with the changed one.
        if (!isDeepStrictEqual(given, input)) return
        if ('code' in expected) counts.failed++
        expect(JSON.stringify(input)).toBe(before)
        if (!agree(expected, actual, text)) {
          expect({ text, input, outcome: actual }).toEqual({ text, input, outcome: expected })
        }
      }),
      { numRuns },
    )
    console.log(`random expressions: ${JSON.stringify(counts)}`)
    expect(counts.compiled).toBeGreaterThan(numRuns / 2)
  },
)

type Outcome = { result: unknown } | { code: string | undefined }

function readable(text: string) {
  try {
    return readMapping(text)
  } catch (error) {
    if (error instanceof MappingError) return undefined
    throw error
  }
}

function compiledOutcome(run: () => unknown): Outcome {
  try {
    return { result: run() }
  } catch (error) {
    if (!(error instanceof MappingError)) throw error
    return { code: error.code }
  }
}

async function libraryOutcome(text: string, input: unknown): Promise<Outcome> {
  const expression = jsonata(text, { timeout: 500 } as jsonata.JsonataOptions)
  for (const [name, { run, signature }] of Object.entries(functions)) {
    expression.registerFunction(name, run as (...args: unknown[]) => unknown, signature)
  }
  try {
    return { result: withoutFunctions(await expression.evaluate(input, {})) }
  } catch (error) {
    return { code: (error as { code?: string }).code }
  }
}

/** JSON of a result of the library. Throws D1016 where it contains a function, which the library represents by an object. */
function withoutFunctions(result: unknown): unknown {
  const text = JSON.stringify(result, (_, value) => {
    if (typeof value === 'function' || value?._jsonata_lambda || value?._jsonata_function) throw { code: 'D1016' }
    return value
  })
  return text === undefined ? undefined : JSON.parse(text)
}

function agree(expected: Outcome, actual: Outcome, text: string): boolean {
  // Where the library itself stumbles, without a code of its own, there is nothing to agree with.
  if ('code' in expected && expected.code === undefined) return true
  // Evaluations that the library cannot finish are bounded here by steps or by depth.
  if ('code' in expected && expected.code === 'D1012')
    return 'code' in actual && /^D101[124]$|^D2015$/.test(actual.code ?? '')
  if ('code' in expected && expected.code === 'D1016') return 'code' in actual
  // The library lets a transform change anything, here it changes its copy alone.
  if ('code' in actual && actual.code === 'T2014') return true
  if ('code' in expected && 'code' in actual) {
    // Members of a constructor are evaluated side by side by the library, so which of two failing members is reported
    // depends on how deep each is.
    return expected.code === actual.code || /[[{].*,.*[\]}]/.test(text)
  }
  // The library adds an item to an empty list that is the context of a constructor.
  return (
    isDeepStrictEqual(expected, actual) ||
    JSON.stringify(expected).replaceAll('[null]', '[]') === JSON.stringify(actual)
  )
}
