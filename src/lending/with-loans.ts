import type { Need } from './account.ts'
import { Borrowing, type Loan } from './purse.ts'

/** A call asks again when what it was granted does not fit any more: limits may change meanwhile. */
const mostRounds = 50

/**
 * Admits a call in one synchronous step. Where a purse is too small it waits for the bank and tries again: `isRetry` tells
 * that what was checked before may have changed. Throws what `admit` throws, or the refusal of the bank.
 */
export async function withLoans<Admitted>(admit: (isRetry: boolean) => Admitted): Promise<Admitted> {
  let last: { loan: Loan; needs: readonly Need[] } | undefined
  for (let round = 1; ; round++) {
    try {
      // No `await` between this and the admission: no other call can take what was granted.
      last?.loan.use()
      return admit(last !== undefined)
    } catch (thrown) {
      if (!(thrown instanceof Borrowing) || round === mostRounds) throw thrown
      const refused = last?.loan.refused
      if (last && refused && !thrown.needsLessThan(refused, last.needs)) throw thrown.refusal(refused)
      last = { needs: thrown.needs, loan: await thrown.lent() }
    }
  }
}
