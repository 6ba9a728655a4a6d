import type { CallRecord } from '../core/call.ts'
import { parseRows, type RefusedRow, type RowsText } from '../money/ledger-entries.ts'
import { addUp, type CountedRows, type ExtraLabel } from '../observe/counted-rows.ts'
import { costNano } from '../store/ledger-row.ts'
import type { SentResponse } from '../store/responses.ts'
import { monthOf } from '../store/spend.ts'

/**
 * Rows that a line has settled, for the books: as text, which goes to the ledger's thread as it is, and what they add up to, which is
 * all that the books read. That is JSON as well: to clone objects takes longer.
 */
export type SentRows = RowsText & { sums: string }

/** What rows add up to, for the bank and for metrics. */
type RowSums = { payments: Payment[]; counted: CountedRows[] }

/** What rows cost that the same accounts pay for. */
type Payment = { accounts: readonly string[]; cost: bigint }

/** A ledger that counts and settles the rows of lines. Resolves to those that can never be written. */
export type SentRowsLedger = { settleSent(rows: RowsText, counted: CountedRows[]): Promise<readonly RefusedRow[]> }

/** `labels` are those that metrics tell rows apart by; undefined where rows are not counted. */
export function sentRows(
  rows: readonly { record: CallRecord; response: SentResponse | undefined }[],
  labels: readonly ExtraLabel[] | undefined,
): SentRows {
  const records = rows.map(({ record }) => record)
  const hasResponses = rows.some(({ response }) => response)
  return {
    text: JSON.stringify(records),
    count: records.length,
    ...(hasResponses && { responses: rows.map(({ response }) => response) }),
    sums: JSON.stringify(
      { payments: paymentsOf(records), counted: labels ? addUp(records, labels) : [] },
      bigintAsText,
    ),
  }
}

export function sumsOf({ sums }: SentRows): RowSums {
  const { payments, counted } = JSON.parse(sums)
  for (const payment of payments) payment.cost = BigInt(payment.cost)
  return { payments, counted }
}

function bigintAsText(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
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
    const name = payersOf({ accounts })
    const known = found.get(name)
    if (known) known.cost += cost
    else found.set(name, { accounts, cost })
  }
  return [...found.values()]
}

/** Accounts as one text. */
export function payersOf({ accounts }: Pick<Payment, 'accounts'>): string {
  return accounts.join('\n')
}

/** Who pays for rows that can never be written. */
export function refusedPayers(rows: RowsText, refused: readonly RefusedRow[]): string[] {
  const records = parseRows(rows)
  return refused.flatMap(({ index }) => {
    const record = records[index]
    return record ? [payersOf(paymentOf(record))] : []
  })
}

/** The accounts that pay for a call, as the purses name them. */
function accountsOf({ key, group, organization, at }: CallRecord): string[] {
  const month = monthOf(at)
  const names = [`key ${key} ${month}`, `organization ${organization}`]
  return group === undefined ? names : [...names, `group ${group} ${month}`]
}
