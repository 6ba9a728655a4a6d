/** What an account limits: money, which is spent for good; uses within a minute; or calls that run at the same time. */
export type Kind = 'money' | 'minute' | 'running'

/** An account and its present limit, null for none. The names are those of the store's tables or of the limits. */
export type Named = { account: string; kind: Kind; limit: bigint | null }

/**
 * What a call needs of an account: `least`, or the call cannot run; `wish`, as far as that is left. `passesAlone`: a need
 * above the limit is granted while nothing else uses the account.
 */
export type Need = Named & { least: bigint; wish: bigint; passesAlone?: boolean }

/**
 * How an account stands after a request. `granted` is for the call, `extra` for later ones; `left` is what nobody has been
 * lent. `isOverdrawn`: more is spent and lent than the limit, which was lowered. Of a refused one: `waitMs` until so much is free, as far as that is known, and `resetMs` until all of it is.
 */
export type Standing = Named & {
  granted: bigint
  extra: bigint
  spent: bigint
  lent: bigint
  left: bigint
  isOverdrawn: boolean
  isShort: boolean
  waitMs: number
  resetMs: number
}

/** The answer to the needs of one call: all of them are granted, or none. */
export type Answer = { isGranted: boolean; standings: Standing[] }

/**
 * The amount that a purse holds for running calls of an account, after all that it reported before, and a number that has grown whenever
 * the purse has admitted another call since.
 */
export type Held = { account: string; held: bigint; admitted?: number }

/** Uses of an account in the interval that counts until `endsAt`; `lent` of them come from what the purse was lent. */
export type Use = { account: string; endsAt: number; uses: bigint; lent: bigint }

/** An account as one bank hands it over to another: uses by the time at which they end, and what each purse has been lent. */
export type AccountState = Named & {
  uses: [endsAt: number, uses: bigint][]
  lent: [purse: number, amount: bigint | null][]
}
