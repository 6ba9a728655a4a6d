import { createRequire } from 'node:module'
import type { JsonObject } from '../core/json.ts'
import type { Problem } from './problem.ts'
import { schemaProblems } from './schema.ts'
import type { Source } from './source.ts'

/** Who has options: `name` for people, its schema; `source` is the place of the options, `blame` says what is wrong with the schema. */
export type OptionsOf = {
  name: string
  schema: JsonObject | undefined
  source: Source
  blame(message: string): Problem
}

const require = createRequire(import.meta.url)

/** A copy of options with the defaults of their schema, which names all that there are. */
export function checkOptions(
  given: JsonObject,
  { name, schema, source, blame }: OptionsOf,
): { options: JsonObject; problems: Problem[] } {
  const options = structuredClone(given)
  if (!schema) {
    const isEmpty = Object.keys(given).length === 0
    return { options, problems: isEmpty ? [] : [source.problem([], `the plugin \`${name}\` has no options`)] }
  }
  const { Ajv2020 } = require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')
  const ajv = new Ajv2020({ ...howToCheck, useDefaults: true })
  try {
    const accepts = ajv.compile({ type: 'object', additionalProperties: false, ...schema })
    return { options, problems: accepts(options) ? [] : schemaProblems(source, accepts.errors, '`options`') }
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
