import type { Database } from './database.ts'

/** A request that was made with an idempotency key, in a form that is the same for the same request, and its answer. */
export type AnsweredRequest = { request: string; answer: string }

/** The answers to requests with an idempotency key, which organizations choose. They are kept for good. */
export function idempotency(db: Database) {
  return {
    /** The request of a key and its answer; undefined for a new key. */
    find: (organization: string, key: string): Promise<AnsweredRequest | undefined> =>
      db.get('SELECT request, answer FROM idempotent_answers WHERE organization = @organization AND key = @key', {
        organization,
        key,
      }),
    /** Keeps an answer; called in the transaction of the change itself. */
    async keep(organization: string, key: string, { request, answer }: AnsweredRequest): Promise<void> {
      await db.run(
        `INSERT INTO idempotent_answers (organization, key, request, answer, created_at)
          VALUES (@organization, @key, @request, @answer, @now)`,
        { organization, key, request, answer, now: Date.now() },
      )
    },
  }
}
