import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { type Mapping, MappingError, readMapping } from '../../src/mapping/mapping.ts'
import { slow } from '../helpers/slow.ts'
import { type Case, suiteCases, suiteMissing } from './suite-cases.ts'

/** The suite builds ranges of ten million items and recurses some hundred times. */
const bounds = { depth: 1_000, steps: 50_000_000, sequence: 10_000_000, text: 1 << 27 }

test.skipIf(suiteMissing)(
  `every case of JSONata’s own suite gives the expected result or error code${suiteMissing ? `: ${suiteMissing}` : ''}`,
  slow,
  async () => {
    const differences: string[] = []
    const fallbacks = new Map<string, number>()
    let compiled = 0
    let refused = 0
    const cases = suiteCases()
    for (const each of cases) {
      const { mapping, outcome } = await run(each)
      if (mapping?.compiled) compiled++
      else if (mapping) fallbacks.set(mapping.fallback ?? '', (fallbacks.get(mapping.fallback ?? '') ?? 0) + 1)
      else refused++
      if (!agrees(each, outcome)) {
        const kind = mapping?.compiled ? 'compiled' : 'interpreted'
        differences.push(
          `${each.name} (${kind}): ${each.expr.slice(0, 200)}\n  expected ${JSON.stringify(each.expected)?.slice(0, 300)}\n  got ${JSON.stringify(outcome)?.slice(0, 300)}`,
        )
      }
    }
    const constructs = [...fallbacks].map(([construct, count]) => `${count} × ${construct}`).join(', ')
    console.log(
      `JSONata suite: ${cases.length} cases, ${compiled} compiled, ${refused} refused when read, ` +
        `${cases.length - compiled - refused} interpreted (${constructs}), ${differences.length} differences`,
    )
    expect(differences).toEqual([])
    expect(compiled / (cases.length - refused)).toBeGreaterThanOrEqual(0.89)
  },
)

type Outcome = { result: unknown } | { code: string; message: string }

async function run(each: Case): Promise<{ mapping?: Mapping; outcome: Outcome }> {
  let mapping: Mapping | undefined
  try {
    // The suite's runner counts nested evaluations: three for each call of its recursive functions.
    const depth = each.depth === undefined ? bounds.depth : Math.floor(each.depth / 3)
    mapping = readMapping(each.expr, { bounds: { ...bounds, depth }, variables: Object.keys(each.bindings) })
    const result = mapping.run(each.input, each.bindings)
    if (mapping.compiled && result instanceof Promise) throw new Error('a compiled mapping gave a promise')
    return { mapping, outcome: { result: roundTrip(await result) } }
  } catch (error) {
    if (!(error instanceof MappingError)) throw new Error(`${each.name}: ${each.expr}`, { cause: error })
    const outcome = { code: error.code, message: error.message }
    return mapping ? { mapping, outcome } : { outcome }
  }
}

function roundTrip(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value))
}

function agrees({ expected, unordered }: Case, outcome: Outcome): boolean {
  // U1001 is the code of the suite's own guard against endless recursion.
  if ('code' in expected && expected.code === 'U1001') return 'code' in outcome && /^D101[12]$/.test(outcome.code)
  if ('code' in expected || 'code' in outcome) {
    return 'code' in expected && 'code' in outcome && expected.code === outcome.code
  }
  if (unordered && Array.isArray(outcome.result) && Array.isArray(expected.result)) {
    return isDeepStrictEqual(sorted(outcome.result), sorted(expected.result))
  }
  return isDeepStrictEqual(outcome.result, roundTrip(expected.result))
}

function sorted(list: unknown[]): string[] {
  return list.map((item) => JSON.stringify(item)).sort()
}
