import type { Problem } from '../check/problem.ts'
import type { CountLimit, Limits, NumberLimit, TextLimit } from '../limits.ts'
import type { SchemaLimit } from '../run/fit-schema.ts'
import { readPattern } from './pattern.ts'
import type { Path } from './position.ts'
import type { Source } from './source.ts'

/** Limits as files write them: patterns are texts. */
export type LimitsFile = { [name: string]: LimitFile }

type LimitFile = Omit<TextLimit, 'pattern'> & NumberLimit & Partial<CountLimit> & SchemaLimit & { pattern?: string }

type Reading = { source: Source; problems: Problem[] }

/** Reads the limits of a family. One that cannot be used is left out, with a problem. */
export function readLimits(reading: Reading, path: Path, file: LimitsFile): Limits {
  const limits: { [name: string]: unknown } = {}
  for (const [name, limit] of Object.entries(file)) {
    const at = [...path, name]
    const { min, max, pattern } = limit
    if (min !== undefined && max !== undefined && min > max) {
      reading.problems.push(reading.source.problem(at, `\`min\` (${min}) is larger than \`max\` (${max})`))
      continue
    }
    if (pattern === undefined) {
      limits[name] = limit
      continue
    }
    const read = readPattern(reading, [...at, 'pattern'], pattern, { whole: true })
    if (read) limits[name] = { ...limit, pattern: read }
  }
  return limits as Limits
}
