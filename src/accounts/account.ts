/** Quantity that an account limits: money, which is spent for good; uses within a minute; or calls that run at the same time. */
export type Kind = 'money' | 'minute' | 'running'

/**
 * An account and its present limit, null for none. The names, after that of the organization (`accountName`), are `key <id> <month>`,
 * `group <id> <month>`, `organization` for money, and `<calls|requests|tokens> key <id>`, `<calls|requests|tokens> organization` for limits.
 */
export type Named = { account: string; kind: Kind; limit: bigint | null }

/**
 * The need of a call for an account: at least `least`, or the call cannot run; `wish`, as far as that is left. `passesAlone`: a need
 * above the limit is met while nothing else uses the account.
 */
export type Need = Named & { least: bigint; wish: bigint; passesAlone?: boolean }

/**
 * The state of an account after a request. `reserved` is held by running calls, `left` is what others can still use. For a short one:
 * `waitMs` until so much is free, as far as that is known; `resetMs` until all of it is.
 */
export type QuotaStatus = Named & {
  spent: bigint
  reserved: bigint
  left: bigint
  isShort: boolean
  waitMs: number
  resetMs: number
}

/** The place of an account in the table, valid while its generation is the same. `slot` and `endsAt` are those of uses within a minute. */
export type Part = { row: number; generation: number; amount: bigint; slot: number; endsAt: number }

/**
 * The answer to the needs of one call: all of them are met, or none. `needsGrant`: the limits would allow it, but other instances have been
 * granted what it needs.
 */
export type Reserved = { statuses: QuotaStatus[] } & (
  | { isReserved: true; parts: Part[] }
  | { isReserved: false; needsGrant: boolean }
)

/** Returns the name of an account in the table: it begins with the organization, which has accounts of its own. */
export function accountName(organization: string, name: string): string {
  return `${organization}\n${name}`
}

/** Parses the name of a money account. */
export function parseAccount(account: string): { organization: string; owner: string; id: string; month: string } {
  const end = account.indexOf('\n')
  const organization = account.slice(0, end)
  const name = account.slice(end + 1)
  const first = name.indexOf(' ')
  if (first < 0) return { organization, owner: name, id: organization, month: '' }
  const last = name.lastIndexOf(' ')
  return { organization, owner: name.slice(0, first), id: name.slice(first + 1, last), month: name.slice(last + 1) }
}
