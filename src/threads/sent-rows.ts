import type { CallRecord } from '../core/call.ts'
import type { RefusedRow, RowsText } from '../money/ledger-entries.ts'
import { addUp, type CountedRows } from '../observe/counted-rows.ts'
import { costNano } from '../store/ledger-row.ts'
import type { SentResponse } from '../store/responses.ts'
import { monthOf } from '../store/spend.ts'

/**
 * Rows that a line has settled, for the books: as text, which goes to the ledger's thread as it is, and what they add up to, which is
 * all that the books read. That is JSON as well: to clone objects takes ten times as long.
 */
export type SentRows = RowsText & { sums: string }

/** What rows add up to, for the bank and for metrics. */
export type RowSums = { spent: Spent[]; counted: CountedRows[] }

/** What rows cost that the same accounts pay for. */
export type Spent = { accounts: readonly string[]; cost: bigint }

/** A ledger that counts and settles the rows of lines. Resolves to those that can never be written. */
export type SentRowsLedger = { settleSent(rows: RowsText, counted: CountedRows[]): Promise<readonly RefusedRow[]> }

export function sentRows(rows: readonly { record: CallRecord; response: SentResponse | undefined }[]): SentRows {
  const records = rows.map(({ record }) => record)
  const hasResponses = rows.some(({ response }) => response)
  return {
    text: JSON.stringify(records),
    count: records.length,
    ...(hasResponses && { responses: rows.map(({ response }) => response) }),
    sums: JSON.stringify({ spent: spentBy(records), counted: addUp(records) } satisfies RowSums, bigintAsText),
  }
}

export function sumsOf({ sums }: SentRows): RowSums {
  const { spent, counted } = JSON.parse(sums)
  return {
    spent: spent.map(({ accounts, cost }: { accounts: string[]; cost: string }) => ({ accounts, cost: BigInt(cost) })),
    counted,
  }
}

function bigintAsText(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

/** Whose money a row has spent, and how much. */
export function spentOf(record: CallRecord): Spent {
  return { accounts: accountsOf(record), cost: costNano(record) }
}

function spentBy(records: readonly CallRecord[]): Spent[] {
  const found = new Map<string, Spent>()
  for (const record of records) {
    const { accounts, cost } = spentOf(record)
    const name = accounts.join('\n')
    const known = found.get(name)
    if (known) known.cost += cost
    else found.set(name, { accounts, cost })
  }
  return [...found.values()]
}

/** The accounts that pay for a call, as the purses name them. */
function accountsOf({ key, group, organization, at }: CallRecord): string[] {
  const month = monthOf(at)
  const names = [`key ${key} ${month}`, `organization ${organization}`]
  return group === undefined ? names : [...names, `group ${group} ${month}`]
}
