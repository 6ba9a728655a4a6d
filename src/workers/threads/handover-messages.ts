import type { CallRecord } from '../../core/call.ts'
import type { AccountState, Answer, Held, Need, Use } from '../../lending/account.ts'
import type { Finding } from '../../routing/findings.ts'
import type { RememberedSignatures } from '../../routing/signature-cache.ts'
import type { SentResponse } from '../../store/responses.ts'
import type { SentError } from './messages.ts'

/** Changes when two versions of the router do not understand each other. */
export const handoverVersion = 2

/** Nobody is lent anything under this number: a row of it comes out of nothing that was lent. */
export const noPurse = 0

/** A row, and whose money it has spent: the cost comes out of what the purse was lent of the accounts. */
export type HandedRow = Spending & { record: CallRecord; response: SentResponse | undefined }
export type Spending = { purse: number; accounts: readonly string[]; cost: bigint }

/** What each of the processes tells the other of its own accord. */
type Either =
  | { kind: 'key'; hash: Uint8Array | undefined }
  | { kind: 'organization'; id: string }
  | { kind: 'signatures'; remembered: RememberedSignatures }
  | { kind: 'found'; findings: readonly Finding[] }
  | { kind: 'refused'; reason: string }

/** What a process says that hands over its books. Purses are the lines whose calls still run there. */
export type FromOld =
  | Either
  | { kind: 'books'; accounts: AccountState[]; purses: number[]; port: number }
  | { kind: 'released' }
  | { kind: 'adopt'; version: number; accounts: AccountState[]; purses: number[]; port: number }
  | { kind: 'join'; purse: number }
  | { kind: 'leave'; purse: number }
  | { kind: 'lend'; id: number; purse: number; needs: readonly Need[] }
  | { kind: 'giveBack'; purse: number; account: string; amount: bigint; closes: boolean }
  | { kind: 'use'; purse: number; uses: readonly Use[] }
  | ({ kind: 'row'; id: number } & HandedRow)
  | { kind: 'held'; id: number; held: Held[] | undefined }

/** What the process says that takes them over. */
export type FromNew =
  | Either
  | { kind: 'takeOver'; version: number }
  | { kind: 'adopted' }
  | { kind: 'lent'; id: number; answer: Answer | string }
  | { kind: 'settled'; id: number; error?: SentError }
  | { kind: 'recall'; id: number; purse: number; accounts: readonly string[] }
  | { kind: 'failure'; failure: string | undefined }
  | { kind: 'retire' }
