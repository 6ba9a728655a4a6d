import type { Database } from './database.ts'
import { monthOf } from './ledger/sums.ts'

/** Spend by calendar month, and in total. */
export type SpendSums = ReturnType<typeof spend>

/** Queries of the sums of spend, which are written in the same transactions as the ledger. In nano-USD. */
export function spend(db: Database) {
  const sum = async (sql: string, parameters: { [name: string]: string }): Promise<bigint> =>
    (await db.get<{ nano: bigint }>(sql, parameters))?.nano ?? 0n
  return {
    /** The spend of a key in the month of a time (Unix milliseconds). */
    ofKey: (key: string, at: number): Promise<bigint> =>
      sum('SELECT nano FROM key_spend WHERE key = @key AND month = @month', { key, month: monthOf(at) }),
    /** The spend of the keys of a group, while they were in it, in the month of a time (Unix milliseconds). */
    ofGroup: (group: string, at: number): Promise<bigint> =>
      sum('SELECT nano FROM group_spend WHERE group_id = @group AND month = @month', { group, month: monthOf(at) }),
    /** The spend of an organization in the month of a time (Unix milliseconds). */
    ofOrganization: (organization: string, at: number): Promise<bigint> =>
      sum('SELECT nano FROM organization_spend WHERE organization = @organization AND month = @month', {
        organization,
        month: monthOf(at),
      }),
    /** The spend of all organizations in the month of a time (Unix milliseconds). */
    ofAll: (at: number): Promise<bigint> => sum(`${total} month = @month`, { month: monthOf(at) }),
    /** The total spend of an organization; its credit minus this is its balance. */
    totalOfOrganization: (organization: string): Promise<bigint> =>
      sum(`${total} organization = @organization`, { organization }),
  }
}

const total = 'SELECT CAST(coalesce(sum(nano), 0) AS BIGINT) AS nano FROM organization_spend WHERE'
