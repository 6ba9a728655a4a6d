import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { dataPath, missingData } from '../helpers/optional-data.ts'

/** One case of JSONata's own suite. */
export type Case = {
  name: string
  expr: string
  input: unknown
  bindings: Record<string, unknown>
  expected: { result: unknown } | { code: string }
  unordered: boolean
  /** How deeply the suite's own runner lets evaluations nest. */
  depth: number | undefined
}

const groups = dataPath('JSONATA_SUITE', 'groups')

/** The reason why the suite cannot be read; undefined when it can. */
export const suiteMissing = missingData('JSONATA_SUITE', 'groups')

/** All cases of the suite. */
export function suiteCases(): Case[] {
  return readdirSync(groups).flatMap((group) =>
    readdirSync(join(groups, group)).flatMap((file) => {
      const content = read(join(groups, group, file)) as RawCase | RawCase[]
      const cases = Array.isArray(content) ? content : [content]
      return cases.map((each, index) => readCase(`${group}/${file}${cases.length > 1 ? `#${index}` : ''}`, each))
    }),
  )
}

type RawCase = {
  expr: string
  data?: unknown
  dataset?: string | null
  bindings?: Record<string, unknown>
  result?: unknown
  undefinedResult?: boolean
  code?: string
  error?: { code: string }
  unordered?: boolean
  depth?: number
}

function readCase(name: string, raw: RawCase): Case {
  const code = raw.code ?? raw.error?.code
  return {
    name,
    expr: raw.expr,
    // Each case has an input of its own, as the library may mark lists of its input.
    input: raw.dataset ? read(dataPath('JSONATA_SUITE', `datasets/${raw.dataset}.json`)) : raw.data,
    bindings: raw.bindings ?? {},
    expected: code === undefined ? { result: raw.result } : { code },
    unordered: raw.unordered ?? false,
    depth: raw.depth,
  }
}

function read(path: string): unknown {
  return JSON.parse(readFileSync(path, 'utf8'))
}
