import type { Need, Reserved } from '../../accounts/account.ts'
import type { HeldAccount } from '../../accounts/replaced-process.ts'
import type { RowsText } from '../../money/ledger-entries.ts'
import type { Finding } from '../../routing/findings.ts'
import type { RememberedSignatures } from '../../routing/signature-cache.ts'
import type { SentError, StoreChange } from '../threads/messages.ts'

/** Changes when two versions of the router do not understand each other. */
export const handoverVersion = 3

/** Sent by either process. */
type Either =
  | { kind: 'changed'; change: StoreChange }
  | { kind: 'signatures'; remembered: RememberedSignatures }
  | { kind: 'found'; findings: readonly Finding[] }

/**
 * A message of the process that is being replaced. `held`: `answered` is the last `reserved` of which the accounts know. Accounts that have
 * not changed are left out.
 */
export type FromOld =
  | Either
  | { kind: 'refused'; reason: string }
  | { kind: 'released'; port: number }
  | { kind: 'held'; answered: number; accounts: readonly HeldAccount[] }
  | { kind: 'reserve'; id: number; needs: readonly Need[] }
  | { kind: 'rows'; id: number; rows: RowsText }

/** A message of the process that replaces it. */
export type FromNew =
  | Either
  | { kind: 'takeOver'; version: number }
  | { kind: 'reserved'; id: number; reserved?: Reserved; error?: SentError }
  | { kind: 'settled'; id: number; refused: { index: number; error: SentError }[] }
  | { kind: 'stop' }
