import type { CallRecord } from '../core/call.ts'
import type { RouterError } from '../core/errors.ts'
import type { Refused } from '../store/ledger/writer.ts'
import type { SentResponse } from '../store/responses.ts'

/** Rows as a JSON array, how many they are, and the response to store with each, where any has one. */
export type RowsText = { text: string; count: number; responses?: readonly (SentResponse | undefined)[] }

/** A row that can never be written: its index, and the error for its call. */
export type RefusedRow = { index: number; error: RouterError }

export function parseRows({ text }: Pick<RowsText, 'text'>): CallRecord[] {
  return JSON.parse(text)
}

/**
 * Rows that were settled at once: one row, or several as text. `isReleased`: its `settle` no longer waits. `isSpilled`: it is in the
 * spill file and survives a crash.
 */
export type Entry = {
  rows: CallRecord | RowsText
  responses: readonly (SentResponse | undefined)[]
  isReleased: boolean
  isSpilled: boolean
  /** The rows of it that can never be written. */
  readonly refused: RefusedRow[]
  resolve(): void
}

/** Rows per commit: a transaction of this many takes about 20 ms. A text is not divided, and should not have more. */
export const maxBatch = 1_000

/** Returns the number of these entries that make up the next batch. */
export function batchLength(entries: readonly Entry[]): number {
  let rows = 0
  const end = entries.findIndex((entry) => {
    rows += rowsIn(entry)
    return rows > maxBatch
  })
  return end < 0 ? entries.length : Math.max(end, 1)
}

export function countRows(entries: readonly Entry[]): number {
  return entries.reduce((sum, entry) => sum + rowsIn(entry), 0)
}

function rowsIn({ rows }: Entry): number {
  return 'text' in rows ? rows.count : 1
}

export function recordsIn({ rows }: Entry): CallRecord[] {
  return 'text' in rows ? parseRows(rows) : [rows]
}

/** Returns the contents of a batch for a writer. */
export function writtenOf(entries: readonly Entry[]): {
  records: CallRecord[]
  texts: string[]
  responses: SentResponse[]
} {
  const [records, texts, responses]: [CallRecord[], string[], SentResponse[]] = [[], [], []]
  for (const { rows, responses: own } of entries) {
    if ('text' in rows) texts.push(rows.text)
    else records.push(rows)
    for (const response of own) if (response) responses.push(response)
  }
  return { records, texts, responses }
}

/** Finds the rows that a writer has refused, by the order in which it gets them: those of texts come last. */
export function refusedRows(
  entries: readonly Entry[],
  refused: readonly Refused[],
): { entry: Entry; index: number; record: CallRecord; reason: string }[] {
  const isText = ({ rows }: Entry) => 'text' in rows
  const inOrder = [...entries.filter((entry) => !isText(entry)), ...entries.filter(isText)]
  const rows = inOrder.flatMap((entry) => recordsIn(entry).map((record, index) => ({ entry, index, record })))
  return refused.flatMap(({ index, reason }) => {
    const row = rows[index]
    return row ? [{ ...row, reason }] : []
  })
}
