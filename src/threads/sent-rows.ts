import type { CallRecord } from '../core/call.ts'
import type { RefusedRow, RowsText } from '../money/ledger-entries.ts'
import { addUp, type CountedRows } from '../observe/counted-rows.ts'
import { costNano } from '../store/ledger-row.ts'
import type { SentResponse } from '../store/responses.ts'
import { monthOf } from '../store/spend.ts'

/**
 * Rows that a line has settled, for the books: as text, which goes to the ledger's thread as it is, and what the books need to know
 * of them without reading it.
 */
export type SentRows = RowsText & { spent: Spent[]; counted: CountedRows[] }

/** What rows cost that the same accounts pay for. */
export type Spent = { accounts: readonly string[]; cost: bigint }

/** A ledger that counts and settles the rows of lines. Resolves to those that can never be written. */
export type SentRowsLedger = { settleSent(rows: SentRows): Promise<readonly RefusedRow[]> }

export function sentRows(rows: readonly { record: CallRecord; response: SentResponse | undefined }[]): SentRows {
  const records = rows.map(({ record }) => record)
  const hasResponses = rows.some(({ response }) => response)
  return {
    text: JSON.stringify(records),
    count: records.length,
    ...(hasResponses && { responses: rows.map(({ response }) => response) }),
    spent: spentBy(records),
    counted: addUp(records),
  }
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
