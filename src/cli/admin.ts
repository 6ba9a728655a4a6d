import { RouterError } from '../core/errors.ts'
import type { Json, JsonObject } from '../core/json.ts'
import type { ModelDirectory } from '../management/names.ts'
import { pluginsFrom } from '../management/plugin-rules.ts'
import { nanoOf, usdOf } from '../money/usd.ts'
import type { PluginRules } from '../plugin/loaded.ts'
import type { Group } from '../store/groups.ts'
import type { RateLimits } from '../store/keys.ts'
import type { Organization } from '../store/organizations.ts'
import type { Tables } from '../store/tables.ts'
import { type Args, CommandError, UsageError } from './command.ts'

/** Returns the organization of a name or an id. Rejects with CommandError. */
export async function organizationOf(
  { organizations }: Pick<Tables, 'organizations'>,
  nameOrId: string,
): Promise<Organization> {
  const found = (await organizations.findByName(nameOrId)) ?? (await organizations.find(nameOrId))
  if (found) return found
  const names = (await organizations.list()).map(({ name }) => name)
  throw new CommandError(
    `There is no organization '${nameOrId}'. Known: ${names.join(', ') || 'none; org create creates one'}`,
  )
}

/** Returns a value that passed a check of the management API; `name` is what messages call it. Throws UsageError. */
export function checked<T, Written extends Json>(
  check: (value: Written, name: string) => T,
  value: Written,
  name: string,
): T {
  try {
    return check(value, name)
  } catch (thrown) {
    throw thrown instanceof RouterError ? new UsageError(thrown.message) : thrown
  }
}

/** Returns an amount of USD, in nano-USD. Throws UsageError. */
export function usdFrom(text: string, name: string): bigint {
  const nano = nanoOf(text)
  if (nano === undefined)
    throw new UsageError(`${name} is '${text}'; write USD as 25 or 0.5, with at most nine decimals`)
  return nano
}

/** The options of rate limits. */
export const rateLimitOptions = {
  'requests-per-minute': { type: 'string' },
  'tokens-per-minute': { type: 'string' },
  concurrent: { type: 'string' },
} as const

/** Returns the rate limits that are given; 0 is no limit. Throws UsageError. */
export function rateLimitsFrom(args: Args): Partial<RateLimits> {
  const options = [
    ['requestsPerMinute', 'requests-per-minute'],
    ['tokensPerMinute', 'tokens-per-minute'],
    ['concurrentCalls', 'concurrent'],
  ] as const
  return Object.fromEntries(
    options.flatMap(([name, option]) => {
      const text = args.text(option)
      if (text === undefined) return []
      if (/^\d{1,12}$/.test(text)) return [[name, Number(text) || null]]
      throw new UsageError(`--${option} is '${text}'; write a whole number, 0 for no limit`)
    }),
  )
}

/** Returns the rate limits that are given, as fields of the management API; 0 is no limit. Throws UsageError. */
export function rateLimitFields(args: Args): JsonObject {
  const { requestsPerMinute, tokensPerMinute, concurrentCalls } = rateLimitsFrom(args)
  return {
    ...(requestsPerMinute !== undefined && { requests_per_minute: requestsPerMinute }),
    ...(tokensPerMinute !== undefined && { tokens_per_minute: tokensPerMinute }),
    ...(concurrentCalls !== undefined && { concurrent_calls: concurrentCalls }),
  }
}

/** Returns the names of models without repetitions; `all` is null. Throws UsageError. */
export function modelsFrom(names: readonly string[], argument: string): string[] | null {
  if (names.length === 1 && names[0] === 'all') return null
  if (names.includes('all')) throw new UsageError(`${argument}: write either all or names of models`)
  return [...new Set(names)]
}

/** The actor of changes made on the command line. */
export const actor = 'cli'

/** Returns the change that texts such as `mask-pii=on` make to the rules about plugins. Throws UsageError. */
export async function pluginChange(
  texts: readonly string[],
  loadDirectory: () => Promise<ModelDirectory>,
): Promise<(before: PluginRules) => PluginRules> {
  if (texts.length === 0) return (before) => before
  const states = pluginStates(texts)
  const directory = await loadDirectory()
  return checked((plugins) => pluginsFrom({ plugins }, directory), states, 'plugins')
}

/** Returns the states of plugins from texts such as `mask-pii=on`, null for the default. Throws UsageError. */
export function pluginStates(texts: readonly string[]): { [name: string]: boolean | null } {
  const states = texts.map((text) => {
    const [, name, state = ''] = /^([^=]+)=(on|off|default)$/.exec(text) ?? []
    if (name === undefined)
      throw new UsageError(`'${text}' is not a plugin with a state; write NAME=on, off or default`)
    return [name, state === 'default' ? null : state === 'on'] as const
  })
  return Object.fromEntries(states)
}

/** Returns the id of an organization that is named, or of the only one. Rejects with UsageError, CommandError. */
export async function organizationFor(
  tables: Pick<Tables, 'organizations'>,
  nameOrId: string | undefined,
): Promise<string> {
  if (nameOrId !== undefined) return (await organizationOf(tables, nameOrId)).id
  const [first, ...others] = await tables.organizations.list()
  if (!first) throw new CommandError('There is no organization yet. Create one: org create <name>')
  if (others.length > 0) throw new UsageError('there are several organizations; name one with --org NAME')
  return first.id
}

/** Returns a monthly limit in USD, 0 for none. Throws UsageError. */
export function monthlyLimitFrom(text: string, name: string): number {
  const limit = usdFrom(text, name)
  if (limit < 0n) throw new UsageError(`${name} is negative; 0 is unlimited`)
  return usdOf(limit)
}

/** Returns a group of an organization, by name or id. Rejects with CommandError. */
export async function groupOf(
  { groups }: Pick<Tables, 'groups'>,
  organization: string,
  nameOrId: string,
): Promise<Group> {
  const found = (await groups.findByName(organization, nameOrId)) ?? (await groups.find(nameOrId))
  if (found?.organization === organization) return found
  throw new CommandError(`There is no group '${nameOrId}' in this organization; group list shows them.`)
}
