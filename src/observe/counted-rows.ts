import type { CallRecord } from '../core/call.ts'
import { ModelCounts, type ModelSums } from './model-counts.ts'

/** What metrics are counted by only where the operator asks for it. */
export type ExtraLabel = 'organization' | 'key' | 'group'

/** What tells rows apart that are counted; of `attemptOf`, whether there is one. */
export type Counted = Pick<
  CallRecord,
  'provider' | 'model' | 'api' | 'operation' | 'outcome' | 'error' | 'failure' | 'attemptOf' | ExtraLabel
>

/** Rows that are counted alike, added up for a `CallMetrics` in another thread. */
export type CountedRows = { of: Counted; rows: number; sums: ModelSums }

/** Adds up rows, so that they can be counted by these labels elsewhere without being read there. */
export function addUp(records: readonly CallRecord[], labels: readonly ExtraLabel[]): CountedRows[] {
  const found = new Map<string, { of: Counted; rows: number; counts: ModelCounts }>()
  for (const record of records) {
    const name = [callKey(record), ...labels.map((label) => record[label])].join('\n')
    let one = found.get(name)
    if (!one) {
      one = { of: countedOf(record), rows: 0, counts: new ModelCounts() }
      found.set(name, one)
    }
    one.rows++
    one.counts.add(record)
  }
  return [...found.values()].map(({ of, rows, counts }) => ({ of, rows, sums: counts.sums() }))
}

/** The label sets of calls, without what else they are counted by, as one text. */
export function callKey(row: Counted): string {
  return `${row.provider}\n${row.model}\n${withoutModel(row)}`
}

function countedOf(record: CallRecord): Counted {
  const { provider, model, api, operation, outcome, error, failure, attemptOf, organization, key, group } = record
  return {
    provider,
    model,
    api,
    operation,
    outcome,
    ...(error !== undefined && { error }),
    ...(failure !== undefined && { failure }),
    ...(attemptOf !== undefined && { attemptOf }),
    organization,
    key,
    ...(group !== undefined && { group }),
  }
}

/** What is still told apart of calls whose model is not. */
export function withoutModel({ api, operation, outcome, error, failure, attemptOf }: Counted): string {
  return `${api}\n${operation}\n${outcome}\n${error ?? ''}\n${failure ?? ''}\n${attemptOf === undefined}`
}
