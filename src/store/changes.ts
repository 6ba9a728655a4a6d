import type { Connection } from './connection.ts'
import { fileAt, requireSameFile } from './file-guard.ts'

/** Those who want to know that something of one kind has changed. */
export type Topic<Subject> = {
  /** Tells all listeners, as soon as the transaction that is open has ended. */
  tell(subject: Subject): void
  listen(listener: (subject: Subject) => void): void
}

/** What this process changes, told after it was committed: whoever asks the database then gets what is new. */
export type Changes = {
  /** The hash of a key that was changed; undefined when it were many. */
  keys: Topic<Buffer | undefined>
  /** The id of an organization of which anything was changed: its rules, groups, aliases, policies or credit. */
  organizations: Topic<string>
  /** Runs changes all or nothing; no other process writes meanwhile. */
  atomically<Result>(change: () => Result): Result
}

/** Opens the changes of one connection. */
export function openChanges(db: Connection): Changes {
  const file = fileAt(db.name)
  let waiting: (() => void)[] = []
  const topic = <Subject>(): Topic<Subject> => {
    const listeners = new Set<(subject: Subject) => void>()
    return {
      tell(subject) {
        const tellAll = () => {
          for (const listener of listeners) listener(subject)
        }
        if (db.inTransaction) waiting.push(tellAll)
        else tellAll()
      },
      listen(listener) {
        listeners.add(listener)
      },
    }
  }
  return {
    keys: topic(),
    organizations: topic(),
    atomically(change) {
      const isOutermost = !db.inTransaction
      requireSameFile(db.name, file)
      try {
        return db.transaction(change).immediate()
      } finally {
        // Also after a rollback: what was read meanwhile and kept is then as wrong as what was read before.
        if (isOutermost) {
          const told = waiting
          waiting = []
          for (const tell of told) tell()
        }
      }
    },
  }
}
