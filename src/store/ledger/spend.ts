import type { Connection } from '../connection.ts'

/** Spend by calendar month, and in total. */
export type Spend = ReturnType<typeof spend>

/** Queries of the sums of spend, which are written in the same transactions as the ledger. In nano-USD. */
export function spend(db: Connection) {
  const read = (sql: string) => db.prepare<string[], bigint>(sql).pluck().safeIntegers()
  const ofKey = read('SELECT nano FROM key_spend WHERE key = ? AND month = ?')
  const ofGroup = read('SELECT nano FROM group_spend WHERE group_id = ? AND month = ?')
  const ofOrganization = read('SELECT nano FROM organization_spend WHERE organization = ? AND month = ?')
  const total = read('SELECT coalesce(sum(nano), 0) FROM organization_spend WHERE organization = ?')
  return {
    /** The spend of a key in the month of a time (Unix milliseconds). */
    ofKey: (key: string, at: number): bigint => ofKey.get(key, monthOf(at)) ?? 0n,
    /** The spend of the keys of a group, while they were in it, in the month of a time (Unix milliseconds). */
    ofGroup: (group: string, at: number): bigint => ofGroup.get(group, monthOf(at)) ?? 0n,
    /** The spend of an organization in the month of a time (Unix milliseconds). */
    ofOrganization: (organization: string, at: number): bigint => ofOrganization.get(organization, monthOf(at)) ?? 0n,
    /** The total spend of an organization; its credit minus this is its balance. */
    totalOfOrganization: (organization: string): bigint => total.get(organization) ?? 0n,
  }
}

/** The calendar month of a time in UTC: `2026-11`. */
export function monthOf(at: number): string {
  return new Date(at).toISOString().slice(0, 7)
}
