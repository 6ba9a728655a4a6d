import { RouterError } from '../core/errors.ts'
import type { Json, JsonObject } from '../core/json.ts'
import type { RateLimits } from '../core/limits.ts'
import { nanoOf } from '../money/usd.ts'
import type { Store } from '../store/open.ts'
import type { Organization } from '../store/organizations.ts'
import { CannotDo, type Words, WrongUsage } from './store-command.ts'

/** The organization of a name or an id. Throws CannotDo. */
export function organizationOf(store: Store, nameOrId: string): Organization {
  const found = store.organizations.findByName(nameOrId) ?? store.organizations.find(nameOrId)
  if (found) return found
  const names = store.organizations.list().map(({ name }) => name)
  throw new CannotDo(
    `There is no organization '${nameOrId}'. There is: ${names.join(', ') || 'none; org create makes one'}`,
  )
}

/** What a user wrote, by the rule that the management API has for it; `what` names it. Throws WrongUsage. */
export function checked<T, Written extends Json>(
  check: (value: Written, what: string) => T,
  value: Written,
  what: string,
): T {
  try {
    return check(value, what)
  } catch (thrown) {
    throw thrown instanceof RouterError ? new WrongUsage(thrown.message) : thrown
  }
}

/** A sum of USD that a user wrote. Throws WrongUsage. */
export function usdFrom(text: string, what: string): bigint {
  const nano = nanoOf(text)
  if (nano === undefined)
    throw new WrongUsage(`${what} is '${text}'; write USD as 25 or 0.5, with at most nine decimals`)
  return nano
}

/** The limits that options name: `--requests-per-minute`, `--tokens-per-minute`, `--concurrent`; 0 is none. Throws WrongUsage. */
export function limitsSaid(words: Words): Partial<RateLimits> {
  const options = [
    ['requestsPerMinute', 'requests-per-minute'],
    ['tokensPerMinute', 'tokens-per-minute'],
    ['concurrentCalls', 'concurrent'],
  ] as const
  return Object.fromEntries(
    options.flatMap(([name, option]) => {
      const text = words.text(option)
      if (text === undefined) return []
      if (/^\d{1,12}$/.test(text)) return [[name, Number(text) || null]]
      throw new WrongUsage(`--${option} is '${text}'; write a whole number, 0 for no limit`)
    }),
  )
}

/** Names of models as a user wrote them, each once; `all` is null. Throws WrongUsage. */
export function modelsFrom(names: readonly string[], what: string): string[] | null {
  if (names.length === 1 && names[0] === 'all') return null
  if (names.includes('all')) throw new WrongUsage(`${what}: write either all or names of models`)
  return [...new Set(names)]
}

/** What the log of changes says of one, besides when it was made. */
type Noted = { organization: string; action: string; subject: string; before?: JsonObject; after?: JsonObject }

/** Makes a change and notes it as one of the command line: both or neither. */
export function noted<Result>(store: Store, change: () => { result: Result } & Noted): Result {
  return store.atomically(() => {
    const { result, ...said } = change()
    store.audit.append({ actor, ...said })
    return result
  })
}

/** Who makes the changes of the command line. */
export const actor = 'cli'
