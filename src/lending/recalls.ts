import type { Held } from './account.ts'
import { lendMore } from './bank-account.ts'

/**
 * A purse that has not told yet what it holds of these accounts, and what it has been lent of each since it was asked. `onOver`
 * is called when it has told, or has left.
 */
type Recall = { purse: number; lentSince: Map<string, bigint | null>; onOver(): void }

export type RecallOptions = {
  /** Asks a purse for what it holds. Rejects where it cannot be asked: it has left, or counts as one that does not answer. */
  recall(purse: number, accounts: readonly string[]): Promise<Held[]>
  /** How long a purse may take before all that does not depend on it is decided. */
  patienceMs?: number
  /** A purse gave back what lay idle; it was lent `amount` without that, and has admitted so many calls. */
  onHeld(purse: number, account: string, amount: bigint, admitted: number | undefined): void
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

  /** A purse has left: it holds nothing, whatever it still tells. */
  left(purse: number): void {
    for (const recall of this.#running) if (recall.purse === purse) this.#end(recall)
  }

  /** Whether the purse has answered in time, or has left. */
  async #isAnswered(purse: number, accounts: readonly string[]): Promise<boolean> {
    const over = Promise.withResolvers<void>()
    const lentSince = new Map(accounts.map((account) => [account, 0n]))
    const recall: Recall = { purse, lentSince, onOver: over.resolve }
    this.#running.add(recall)
    this.#options.recall(purse, accounts).then(
      (held) => this.#hear(recall, held),
      // Nothing is known of what it holds before it leaves.
      () => {},
    )
    const timer = setTimeout(over.resolve, this.#options.patienceMs ?? defaultPatienceMs)
    await over.promise
    clearTimeout(timer)
    return !this.#running.has(recall)
  }

  #hear(recall: Recall, held: readonly Held[]): void {
    if (!this.#running.has(recall)) return
    this.#end(recall)
    for (const { account, held: amount, admitted } of held) {
      const since = recall.lentSince.get(account)
      if (typeof since === 'bigint') this.#options.onHeld(recall.purse, account, amount + since, admitted)
    }
  }

  #end(recall: Recall): void {
    this.#running.delete(recall)
    recall.onOver()
  }
}
