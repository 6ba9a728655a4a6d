import type { Connection } from './sqlite/connection.ts'
import { fileAt, requireSameFile } from './sqlite/database-files.ts'

/** Listeners for one kind of change. */
export type Topic<Subject> = {
  /** Calls all listeners, after the transaction if one is open. */
  notify(subject: Subject): void
  listen(listener: (subject: Subject) => void): void
}

/** Announces what this process changes, after the commit, so that a listener reads the new state. */
export type Changes = {
  /** The hash of a changed key; undefined when many keys changed. */
  keys: Topic<Buffer | undefined>
  /** The id of an organization whose rules, groups, aliases, policies or credit changed. */
  organizations: Topic<string>
  /** Runs changes in a transaction that excludes other writers. */
  atomically<Result>(change: () => Result): Result
}

/** Creates the notifications of one connection. */
export function openChanges(db: Connection): Changes {
  const file = fileAt(db.name)
  let waiting: (() => void)[] = []
  const topic = <Subject>(): Topic<Subject> => {
    const listeners = new Set<(subject: Subject) => void>()
    return {
      notify(subject) {
        const notifyAll = () => {
          for (const listener of listeners) listener(subject)
        }
        if (db.inTransaction) waiting.push(notifyAll)
        else notifyAll()
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
        // Also after a rollback: a listener may have cached uncommitted state.
        if (isOutermost) {
          const notifications = waiting
          waiting = []
          for (const notify of notifications) notify()
        }
      }
    },
  }
}
