import type { AdoptedLines, Handed } from './threads/adopted-lines.ts'
import type { FromNew } from './threads/handover-messages.ts'

/** The lines of other processes, whose last calls still run there, which use the books of this one. */
export type Adoption = {
  /** Those of the process that has handed over its books. */
  first(handed: Handed): void
  /** Those of an older process, when the one that had adopted them has ended. Throws the engine's errors. */
  later(handed: Handed): void
  /** Tells all of them. */
  tell(told: FromNew): void
  /** What one of their purses holds of accounts. Rejects when it cannot be asked any more. */
  recall: AdoptedLines['recall']
  purses(): number[]
  /** Resolves when all those processes have ended. */
  ended(): Promise<void>
  /** What they say from now on is not answered. */
  close(): void
}
