import type { Held } from './account.ts'
import { lendMore } from './bank-account.ts'

/** A purse that has not told yet what it holds of these accounts, and what it has been lent of each since it was asked. */
type Recall = { purse: number; lentSince: Map<string, bigint | null> }

export type RecallOptions = {
  /** Asks a purse for what it holds; rejects when it is gone. */
  recall(purse: number, accounts: readonly string[]): Promise<Held[]>
  /** How long a purse may take before all that does not depend on it is decided. */
  patienceMs?: number
  /** A purse gave back what lay idle; it was lent `amount` without that. */
  onHeld(purse: number, account: string, amount: bigint): void
}

const defaultPatienceMs = 2_000

/** Calls back what lies idle in purses. What a purse answers counts whenever it comes. */
export class Recalls {
  readonly #options: RecallOptions
  readonly #running = new Set<Recall>()

  constructor(options: RecallOptions) {
    this.#options = options
  }

  /** Asks each purse for these accounts, if there are any. Resolves to the purses that have not answered in time. */
  async from(purses: readonly number[], accountsOf: (purse: number) => readonly string[]): Promise<readonly number[]> {
    const late = purses.map(async (purse) => {
      const accounts = accountsOf(purse)
      return accounts.length === 0 || (await this.#isAnswered(purse, accounts)) ? [] : [purse]
    })
    return (await Promise.all(late)).flat()
  }

  /** A purse has been lent more, null without limit: it tells what it holds without that if it has been asked before. */
  lent(purse: number, account: string, amount: bigint | null): void {
    for (const { purse: asked, lentSince } of this.#running)
      if (asked === purse && lentSince.has(account)) lendMore(lentSince, account, amount)
  }

  /** Whether the purse has answered in time, or is gone. */
  async #isAnswered(purse: number, accounts: readonly string[]): Promise<boolean> {
    const recall: Recall = { purse, lentSince: new Map(accounts.map((account) => [account, 0n])) }
    this.#running.add(recall)
    const answered = this.#options.recall(purse, accounts).then(
      (held) => this.#hear(recall, held),
      () => void this.#running.delete(recall),
    )
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#options.patienceMs ?? defaultPatienceMs)
    })
    await Promise.race([answered, late])
    clearTimeout(timer)
    return !this.#running.has(recall)
  }

  #hear(recall: Recall, held: readonly Held[]): void {
    this.#running.delete(recall)
    for (const { account, held: amount } of held) {
      const since = recall.lentSince.get(account)
      if (typeof since === 'bigint') this.#options.onHeld(recall.purse, account, amount + since)
    }
  }
}
