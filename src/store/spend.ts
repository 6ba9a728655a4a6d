import type { Connection } from './connection.ts'

/** What was spent, by calendar month. */
export type Spend = ReturnType<typeof spend>

/** The functions on the sums that are kept beside the ledger, in the same transactions. */
export function spend(db: Connection) {
  const ofKey = db
    .prepare<[string, string], bigint>('SELECT nano FROM key_spend WHERE key = ? AND month = ?')
    .pluck()
    .safeIntegers()
  const ofOrganization = db
    .prepare<[string, string], bigint>('SELECT nano FROM organization_spend WHERE organization = ? AND month = ?')
    .pluck()
    .safeIntegers()
  return {
    /** What a key spent in the month of a moment (Unix milliseconds), in nano-USD. */
    ofKey: (key: string, at: number): bigint => ofKey.get(key, monthOf(at)) ?? 0n,
    /** What an organization spent in the month of a moment (Unix milliseconds), in nano-USD. */
    ofOrganization: (organization: string, at: number): bigint => ofOrganization.get(organization, monthOf(at)) ?? 0n,
  }
}

/** The calendar month of a moment, in UTC: `2026-11`. */
export function monthOf(at: number): string {
  return new Date(at).toISOString().slice(0, 7)
}
