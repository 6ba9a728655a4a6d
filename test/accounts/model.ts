import type { Kind, Need } from '../../src/accounts/account.ts'

/** One account as it should be: plain sums, and a list of all uses. */
type Modelled = {
  kind: Kind
  spent: bigint
  reserved: bigint
  uses: { endsAt: number; count: bigint }[]
}

/** A reservation of the model. `amounts` are those of the needs. */
export type ModelHold = { needs: readonly Need[]; amounts: bigint[]; endsAt: number; reserved: bigint }

/** Accounts in the simplest form: everything is in one map, and a window is a list of uses. */
export class ModelAccounts {
  readonly #accounts = new Map<string, Modelled>()
  readonly #readSpent: (account: string) => bigint

  constructor(readSpent: (account: string) => bigint) {
    this.#readSpent = readSpent
  }

  of({ account, kind }: Pick<Need, 'account' | 'kind'>, at: number): Modelled {
    const known = this.#accounts.get(account)
    const spent = kind === 'money' ? this.#readSpent(account) : 0n
    const found = known ?? { kind, spent, reserved: 0n, uses: [] }
    this.#accounts.set(account, found)
    if (kind === 'minute') {
      found.uses = found.uses.filter(({ endsAt }) => endsAt > at)
      found.spent = found.uses.reduce((sum, { count }) => sum + count, 0n)
    }
    return found
  }

  reserve(needs: readonly Need[], at: number): ModelHold | undefined {
    const accounts = needs.map((need) => ({ need, account: this.of(need, at) }))
    if (accounts.some(({ need, account }) => isShort(need, account))) return undefined
    const endsAt = (Math.floor(at / 100) + 1) * 100 + 60_000
    const amounts = accounts.map(({ need: { limit, least, wish, kind }, account }) => {
      const free = limit === null ? wish : limit - account.spent - account.reserved
      const amount = [least, free < wish ? free : wish].reduce((one, other) => (one > other ? one : other))
      if (kind === 'minute') account.uses.push({ endsAt, count: amount })
      else account.reserved += amount
      return amount
    })
    return { needs, amounts, endsAt, reserved: amounts[0] ?? 0n }
  }

  /** Spends money that a hold has reserved. */
  spend(hold: ModelHold, cost: bigint, released: bigint, at: number): void {
    hold.reserved -= released
    for (const need of hold.needs) {
      const account = this.of(need, at)
      account.reserved -= released
      account.spent += cost
    }
  }

  raise(hold: ModelHold, more: bigint, at: number): boolean {
    const needs = hold.needs.map((need) => ({ ...need, least: more, wish: more }))
    if (this.reserve(needs, at) === undefined) return false
    hold.reserved += more
    return true
  }

  end(hold: ModelHold, changes: readonly bigint[], at: number): void {
    hold.needs.forEach((need, index) => {
      const account = this.of(need, at)
      if (need.kind === 'running') account.reserved -= hold.amounts[index] ?? 0n
      else if (hold.endsAt > at) account.uses.push({ endsAt: hold.endsAt, count: changes[index] ?? 0n })
    })
  }
}

function isShort({ limit, least, passesAlone }: Need, { spent, reserved }: Modelled): boolean {
  if (limit === null || least <= 0n || limit - spent - reserved >= least) return false
  return !(passesAlone && spent <= 0n && reserved <= 0n)
}
