import { createRequire } from 'node:module'
import type { JsonObject } from '../../core/json.ts'
import type { Problem } from '../check/problem.ts'
import { schemaProblems } from '../check/schema.ts'
import { withNewNames } from '../renamed-keys.ts'
import { type Source, withOldNames } from './source.ts'

/**
 * Options and whose they are: `name` is for people, `renamed` has new names by former ones; `source` is the place of the options, `blame`
 * reports what is wrong with the schema.
 */
export type OptionsOf = {
  name: string
  schema: JsonObject | undefined
  renamed?: Readonly<Record<string, string>> | undefined
  source: Source
  blame(message: string): Problem
}

const require = createRequire(import.meta.url)

/** Returns a copy of the options with the defaults of their schema, which names all that there are. Former names are warnings. */
export function checkOptions(given: JsonObject, about: OptionsOf): { options: JsonObject; problems: Problem[] } {
  const { name, schema, renamed = {}, blame } = about
  const keys = Object.entries(renamed).map(([from, to]) => ({ in: [], from, to }))
  const { value, found } = withNewNames(given, keys)
  const source = withOldNames(about.source, found)
  const options = structuredClone(value) as JsonObject
  if (!schema) {
    const isEmpty = Object.keys(given).length === 0
    return { options, problems: isEmpty ? [] : [source.problem([], `the plugin \`${name}\` has no options`)] }
  }
  const doubled = source.problems.slice(about.source.problems.length)
  if (doubled.length > 0) return { options, problems: doubled }
  const warnings = source.warnings.slice(about.source.warnings.length)
  const { Ajv2020 } = require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')
  const ajv = new Ajv2020({ ...howToCheck, useDefaults: true })
  try {
    const accepts = ajv.compile({ type: 'object', additionalProperties: false, ...schema })
    const wrong = accepts(options) ? [] : schemaProblems(source, accepts.errors, '`options`')
    return { options, problems: [...warnings, ...wrong] }
  } catch (thrown) {
    return { options, problems: [blame(`\`options\` is no JSON schema: ${(thrown as Error).message}`)] }
  }
}

const howToCheck = {
  allErrors: true,
  verbose: true,
  strictTypes: false,
  strictRequired: false,
  allowUnionTypes: true,
  validateFormats: false,
} as const
