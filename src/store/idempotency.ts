import type { Connection } from './sqlite/connection.ts'

/** A request that was made with an idempotency key, in a form that is the same for the same request, and its answer. */
export type AnsweredRequest = { request: string; answer: string }

/** The answers to requests with an idempotency key, which organizations choose. They are kept for good. */
export function idempotency(db: Connection) {
  const find = db.prepare<[string, string], AnsweredRequest>(
    'SELECT request, answer FROM idempotent_answers WHERE organization = ? AND key = ?',
  )
  const insert = db.prepare('INSERT INTO idempotent_answers VALUES (?, ?, ?, ?, ?)')
  return {
    /** The request of a key and its answer; undefined for a new key. */
    find: (organization: string, key: string): AnsweredRequest | undefined => find.get(organization, key),
    /** Keeps an answer; called in the transaction of the change itself. */
    keep(organization: string, key: string, { request, answer }: AnsweredRequest): void {
      insert.run(organization, key, request, answer, Date.now())
    },
  }
}
