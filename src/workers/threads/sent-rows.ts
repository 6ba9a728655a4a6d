import type { CallRecord } from '../../core/call.ts'
import { parseRows, type RefusedRow, type RowsText } from '../../money/ledger-entries.ts'
import { costNano } from '../../store/ledger/ledger-row.ts'
import { monthOf } from '../../store/ledger/sums.ts'
import type { SentResponse } from '../../store/responses.ts'

/**
 * Rows that a line has settled, for the books: as text, which goes to the ledger's thread as it is, and what they cost, which is all
 * that the books have to know at once.
 */
export type SentRows = RowsText & { payments: readonly Payment[] }

/** What rows cost that the same accounts pay for. */
type Payment = { accounts: readonly string[]; cost: bigint }

/** A ledger that counts and settles the rows of lines. Resolves to those that can never be written. */
export type SentRowsLedger = { settleSent(rows: RowsText): Promise<readonly RefusedRow[]> }

export function sentRows(rows: readonly { record: CallRecord; response: SentResponse | undefined }[]): SentRows {
  const records = rows.map(({ record }) => record)
  const hasResponses = rows.some(({ response }) => response)
  return {
    text: JSON.stringify(records),
    count: records.length,
    ...(hasResponses && { responses: rows.map(({ response }) => response) }),
    payments: paymentsOf(records),
  }
}

/** Whose money a row has spent, and how much. */
export function paymentOf(record: CallRecord): Payment {
  return { accounts: accountsOf(record), cost: costNano(record) }
}

/** One for all rows that the same accounts pay for. */
function paymentsOf(records: readonly CallRecord[]): Payment[] {
  const found = new Map<string, Payment>()
  for (const record of records) {
    const { accounts, cost } = paymentOf(record)
    const name = accountsOfCall({ accounts })
    const known = found.get(name)
    if (known) known.cost += cost
    else found.set(name, { accounts, cost })
  }
  return [...found.values()]
}

/** Accounts as one text. */
export function accountsOfCall({ accounts }: Pick<Payment, 'accounts'>): string {
  return accounts.join('\n')
}

/** Who pays for rows that can never be written. */
export function refusedPayers(rows: RowsText, refused: readonly RefusedRow[]): string[] {
  const records = parseRows(rows)
  return refused.flatMap(({ index }) => {
    const record = records[index]
    return record ? [accountsOfCall(paymentOf(record))] : []
  })
}

/** The accounts that pay for a call, as the purses name them. */
function accountsOf({ key, group, organization, at }: CallRecord): string[] {
  const month = monthOf(at)
  const names = [`key ${key} ${month}`, `organization ${organization}`]
  return group === undefined ? names : [...names, `group ${group} ${month}`]
}
