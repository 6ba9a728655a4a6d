import type { Snapshot } from '../../snapshot/snapshot.ts'
import type { Store } from '../../store/open.ts'
import type { Args, Syntax } from '../args.ts'

/** The database and the files of the configuration. */
export type LedgerSource = { store: Store; snapshot: Snapshot }

/** The result of an action; unless it is `ok` the exit code is 1. */
export type Finding = { json: object; text: string; ok: boolean }

/** An action of `ledger`. `prepare` checks the arguments before anything is opened. Throws UsageError. */
export type LedgerAction = {
  options: Syntax['options']
  prepare(args: Args): (source: LedgerSource) => Finding | Promise<Finding>
}
