import type { Held } from './account.ts'
import { lendMore } from './bank-account.ts'

/** A purse that has not told yet what it holds of these accounts, and what it has been lent of each since it was asked. */
type Recall = { purse: number; lentSince: Map<string, bigint | null> }

export type RecallOptions = {
  /** Asks a purse for what it holds; rejects when it is gone. */
  recall(purse: number, accounts: readonly string[]): Promise<Held[]>
  /** How long to wait for that. */
  patienceMs: number
  /** A purse gave back what lay idle; it was lent `amount` without that. */
  onHeld(purse: number, account: string, amount: bigint): void
}

/** Calls back what lies idle in purses. What a purse answers counts whenever it comes. */
export class Recalls {
  readonly #options: RecallOptions
  readonly #running = new Set<Recall>()

  constructor(options: RecallOptions) {
    this.#options = options
  }

  /** Resolves to whether the purse has answered in time, or is gone. */
  async from(purse: number, accounts: readonly string[]): Promise<boolean> {
    const recall: Recall = { purse, lentSince: new Map(accounts.map((account) => [account, 0n])) }
    this.#running.add(recall)
    const answered = this.#options.recall(purse, accounts).then(
      (held) => this.#hear(recall, held),
      () => void this.#running.delete(recall),
    )
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#options.patienceMs)
    })
    await Promise.race([answered, late])
    clearTimeout(timer)
    return !this.#running.has(recall)
  }

  /** A purse has been lent more, null without limit: it tells what it holds without that if it has been asked before. */
  lent(purse: number, account: string, amount: bigint | null): void {
    for (const { purse: asked, lentSince } of this.#running)
      if (asked === purse && lentSince.has(account)) lendMore(lentSince, account, amount)
  }

  #hear(recall: Recall, held: readonly Held[]): void {
    this.#running.delete(recall)
    for (const { account, held: amount } of held) {
      const since = recall.lentSince.get(account)
      if (typeof since === 'bigint') this.#options.onHeld(recall.purse, account, amount + since)
    }
  }
}
