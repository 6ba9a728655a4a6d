import type { CallRecord } from '../../core/call.ts'
import type { JsonObject } from '../../core/json.ts'
import { usageClasses } from '../../core/usage.ts'
import { type CostPart, costParts } from '../../money/cost-parts.ts'
import { usdOf, usdOfPico } from '../../money/usd.ts'
import { costNano } from '../../store/ledger/ledger-row.ts'
import type { ListedCall } from '../../store/queries/listed-call.ts'
import { callEntry, endOf, servedBy } from './call-entry.ts'

/** A call with all that is known of it: what it used and cost part by part, whom it asked, and what was left out. */
export function callDetail(listed: ListedCall): JsonObject {
  const { call, attempts, traceId } = listed
  const { id, dropped, reservedNano, error, message, providerCode, damaged, explanation } = call
  const rows = [...attempts, call].sort((one, other) => (one.startedMs ?? 0) - (other.startedMs ?? 0))
  return {
    ...callEntry(listed),
    usage: usageIn(rows),
    cost_parts: rows.flatMap((row, index) =>
      costParts(row).map((part) => partEntry(part, rows.length > 1 ? index + 1 : undefined)),
    ),
    rows: rows.map((row, index) => rowEntry(row, { attempt: index + 1, isLast: index + 1 === rows.length })),
    dropped,
    ...(reservedNano !== undefined && { reserved: usdOf(BigInt(reservedNano)) }),
    ...(error && {
      error: {
        code: error,
        ...(message !== undefined && { message }),
        ...(providerCode !== undefined && { provider_code: providerCode }),
      },
    }),
    ...(damaged && { damaged }),
    ...(explanation && { explanation }),
    trace_id: traceId ?? id.replaceAll('-', ''),
  }
}

function usageIn(rows: readonly CallRecord[]): JsonObject[] {
  return usageClasses.flatMap((name) => {
    const units = rows.reduce((sum, { usage }) => sum + (usage[name] ?? 0), 0)
    return units > 0 ? [{ class: name, units }] : []
  })
}

function partEntry({ picoUsd, ...part }: CostPart, attempt: number | undefined): JsonObject {
  return { ...(attempt !== undefined && { attempt }), ...part, cost: usdOfPico(picoUsd) }
}

/** What was asked of one target. The row of a call has the time of the whole call, which ends with its last attempt. */
function rowEntry(row: CallRecord, { attempt, isLast }: { attempt: number; isLast: boolean }): JsonObject {
  const { attemptOf, startedMs, durationMs, firstEventMs, providerCode, usage } = row
  const isCall = attemptOf === undefined
  return {
    attempt,
    ...(startedMs !== undefined && { at_ms: startedMs }),
    ...servedBy(row),
    ...endOf(row),
    ...(providerCode !== undefined && { provider_code: providerCode }),
    ...(!isCall && { duration_ms: durationMs }),
    ...(isCall && isLast && { duration_ms: Math.max(durationMs - (startedMs ?? 0), 0) }),
    ...(isCall && firstEventMs !== undefined && { first_event_ms: Math.max(firstEventMs - (startedMs ?? 0), 0) }),
    ...(usage.modes && { modes: usage.modes }),
    ...(usage.reported_cost !== undefined && { reported_cost: usage.reported_cost }),
    ...(row.cost.priceVersion !== '' && { price_version: row.cost.priceVersion }),
    cost: usdOf(costNano(row)),
  }
}
