import { isDuplicate, StoreError } from './store-error.ts'

/** The name is in use already. */
export class NameTaken extends StoreError {
  constructor(message: string, cause: unknown) {
    super(message, cause)
    this.name = 'NameTaken'
  }
}

/** Runs an insert. Throws NameTaken, with this message, when it violates a unique constraint. */
export function unlessTaken(message: string, insert: () => void): void {
  try {
    insert()
  } catch (thrown) {
    throw isDuplicate(thrown) ? new NameTaken(message, thrown) : thrown
  }
}
