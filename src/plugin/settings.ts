import { createRequire } from 'node:module'
import type { JsonObject } from '../core/json.ts'
import { durationMs } from '../core/time.ts'
import type { Problem } from '../manifest/check/problem.ts'
import { schemaProblems } from '../manifest/check/schema.ts'
import { type Source, withOldNames } from '../manifest/read/source.ts'
import { withNewNames } from '../manifest/renamed-keys.ts'
import type { LoadedPlugin } from './loaded.ts'

/** Settings of a plugin in config.yaml, with the defaults filled in; `timeoutMs` and `onError` are missing where the plugin's own apply. */
export type PluginSettings = Omit<LoadedPlugin, 'hooks' | 'timeoutMs' | 'onError' | 'guards'> & {
  options: JsonObject
  timeoutMs?: number
  onError?: LoadedPlugin['onError']
  /** Hosts, or `host:port`, that its `fetch` may reach whatever their address is. */
  fetch: readonly string[]
}

/** The same as the file writes it, after its schema has accepted it. */
export type PluginFile = {
  name: string
  options?: JsonObject | null
  on_error?: 'open' | 'closed'
  timeout?: string
  fetch?: string[]
  organizations?: string[] | 'all'
  enabled?: boolean
}

export function pluginSettings(file: PluginFile): PluginSettings {
  const { name, options, on_error, timeout, fetch = [], organizations = 'all', enabled = true } = file
  return {
    name,
    options: options ?? {},
    ...(on_error !== undefined && { onError: on_error }),
    ...(timeout !== undefined && { timeoutMs: durationMs(timeout) as number }),
    fetch,
    organizations: organizations === 'all' ? 'all' : new Set(organizations),
    enabled,
  }
}

/** The most that a hook may be given. */
export const maxTimeoutMs = 600_000

/**
 * Options and their owner: `name` is for messages, `renamed` has new names by former ones; `source` is the place of the options, `blame`
 * reports problems of the schema.
 */
type OptionsOf = {
  name: string
  schema: JsonObject | undefined
  renamed?: Readonly<Record<string, string>> | undefined
  source: Source
  problemOf(message: string): Problem
}

const require = createRequire(import.meta.url)

/** Returns a copy of the options with the defaults of their schema, which names all options. Former names are warnings. */
export function checkOptions(given: JsonObject, about: OptionsOf): { options: JsonObject; problems: Problem[] } {
  const { name, schema, renamed = {}, problemOf } = about
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
    return { options, problems: [problemOf(`\`options\` is not a valid JSON schema: ${(thrown as Error).message}`)] }
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
