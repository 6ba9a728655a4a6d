import type { Snapshot } from '../snapshot/snapshot.ts'
import type { Store } from '../store/open.ts'
import type { Words } from './args.ts'

/** What an action works with. */
export type LedgerRoom = { store: Store; snapshot: Snapshot }

/** What an action found; not `fine` is exit code 1. */
export type Finding = { json: object; text: string; fine: boolean }

/** An action: reads its words before anything is opened. Throws WrongUsage. */
export type LedgerAction = {
  options: readonly string[]
  read(words: Words): (room: LedgerRoom) => Finding | Promise<Finding>
}
