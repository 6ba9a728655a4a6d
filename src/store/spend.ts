import type { Connection } from './connection.ts'

/** What was spent, by calendar month, and altogether. */
export type Spend = ReturnType<typeof spend>

/** The functions on the sums that are kept beside the ledger, in the same transactions. All in nano-USD. */
export function spend(db: Connection) {
  const read = (sql: string) => db.prepare<string[], bigint>(sql).pluck().safeIntegers()
  const ofKey = read('SELECT nano FROM key_spend WHERE key = ? AND month = ?')
  const ofGroup = read('SELECT nano FROM group_spend WHERE group_id = ? AND month = ?')
  const ofOrganization = read('SELECT nano FROM organization_spend WHERE organization = ? AND month = ?')
  const total = read('SELECT coalesce(sum(nano), 0) FROM organization_spend WHERE organization = ?')
  return {
    /** What a key spent in the month of a moment (Unix milliseconds). */
    ofKey: (key: string, at: number): bigint => ofKey.get(key, monthOf(at)) ?? 0n,
    /** What the keys of a group spent in the month of a moment (Unix milliseconds), while they were in it. */
    ofGroup: (group: string, at: number): bigint => ofGroup.get(group, monthOf(at)) ?? 0n,
    /** What an organization spent in the month of a moment (Unix milliseconds). */
    ofOrganization: (organization: string, at: number): bigint => ofOrganization.get(organization, monthOf(at)) ?? 0n,
    /** What an organization spent since its beginning: its credit less this is its balance. */
    totalOfOrganization: (organization: string): bigint => total.get(organization) ?? 0n,
  }
}

/** The calendar month of a moment, in UTC: `2026-11`. */
export function monthOf(at: number): string {
  return new Date(at).toISOString().slice(0, 7)
}
