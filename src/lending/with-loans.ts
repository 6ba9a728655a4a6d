import type { Need, Standing } from './account.ts'
import { Borrowing, type Loan } from './purse.ts'

/** A call asks again when what it was granted does not fit any more: limits may change meanwhile. */
const mostRounds = 50

/**
 * Admits a call in one synchronous step. Where a purse is too small it waits for the bank, checks again what may have changed
 * meanwhile, and tries again. Throws what `admit` throws, or the refusal of the bank.
 */
export function withLoans<Admitted>(
  admit: () => Admitted,
  checkAgain: () => unknown = () => {},
): Admitted | Promise<Admitted> {
  try {
    return admit()
  } catch (thrown) {
    if (!(thrown instanceof Borrowing)) throw thrown
    return withLent(thrown, admit, checkAgain)
  }
}

async function withLent<Admitted>(
  first: Borrowing,
  admit: () => Admitted,
  checkAgain: () => unknown,
): Promise<Admitted> {
  const asked = new AskedNeeds()
  let borrowing = first
  for (let round = 2; ; round++) {
    asked.add(borrowing)
    const loan = await borrowing.lent(asked.needs())
    asked.answered(loan)
    try {
      // No `await` between this and the admission, unless something has to be read: no other call can take what was granted.
      const admitting = loan.use(() => {
        const checking = checkAgain()
        return checking instanceof Promise ? checking : { admitted: admit() }
      })
      if (!(admitting instanceof Promise)) return admitting.admitted
      await admitting
      return admit()
    } catch (thrown) {
      if (!(thrown instanceof Borrowing) || round === mostRounds) throw thrown
      borrowing = thrown
    }
  }
}

/**
 * All that one call has needed so far: an account is missing when those before it have enough, and while the call waits for that one,
 * other calls may take the others.
 */
class AskedNeeds {
  readonly #needs = new Map<string, Need>()
  /** What was needed of the accounts that were short: they are asked for again only when less is needed or the limit is another. */
  readonly #short = new Map<string, Need>()
  /** How all accounts stood when the bank refused. */
  readonly #standings = new Map<string, Standing>()

  /** Throws the refusal of an account that is still needed as it was refused. */
  add({ needs, refusal }: Borrowing): void {
    const isFinal = ({ account, least, limit }: Need) => {
      const short = this.#short.get(account)
      return short !== undefined && least >= short.least && limit === short.limit
    }
    if (needs.some(isFinal)) throw refusal(needs.flatMap(({ account }) => this.#standings.get(account) ?? []))
    for (const need of needs) {
      this.#short.delete(need.account)
      this.#needs.set(need.account, need)
    }
  }

  needs(): Need[] {
    return [...this.#needs.values()]
  }

  answered({ refused = [] }: Loan): void {
    for (const standing of refused) {
      const { account, isShort } = standing
      this.#standings.set(account, standing)
      const need = this.#needs.get(account)
      if (!isShort || !need) continue
      this.#short.set(account, need)
      this.#needs.delete(account)
    }
  }
}
