/** Listeners for one kind of change. */
export type Topic<Subject> = {
  /** Calls all listeners; within a transaction, after it. */
  notify(subject: Subject): void
  listen(listener: (subject: Subject) => void): void
}

/** Announces what this process changes, after the commit, so that a listener reads the new state. */
export type Changes = {
  /** The hash of a changed key; undefined when many keys changed. */
  keys: Topic<Buffer | undefined>
  /** The id of an organization whose rules, groups, aliases, policies or credit changed. */
  organizations: Topic<string>
}

/** Creates the notifications of one store. */
export function openChanges(): Changes {
  return { keys: topic(), organizations: topic() }
}

function topic<Subject>(): Topic<Subject> {
  const listeners = new Set<(subject: Subject) => void>()
  return {
    notify(subject) {
      for (const listener of listeners) listener(subject)
    },
    listen(listener) {
      listeners.add(listener)
    },
  }
}

/** The notifications of one transaction: they are collected until `send`. */
export type DeferredChanges = Changes & { send(): void }

/** Creates the notifications of a transaction, which are passed on to those of the store, or of the transaction around it. */
export function deferChanges({ keys, organizations }: Changes): DeferredChanges {
  const waiting: (() => void)[] = []
  const deferred = <Subject>({ notify, listen }: Topic<Subject>): Topic<Subject> => ({
    notify: (subject) => void waiting.push(() => notify(subject)),
    listen,
  })
  return {
    keys: deferred(keys),
    organizations: deferred(organizations),
    send() {
      for (const notify of waiting.splice(0)) notify()
    },
  }
}
