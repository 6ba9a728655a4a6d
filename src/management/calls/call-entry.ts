import type { CallRecord } from '../../core/call.ts'
import type { JsonObject } from '../../core/json.ts'
import { usageClasses } from '../../core/usage.ts'
import { type CostPart, costParts } from '../../money/cost-parts.ts'
import { usdOf, usdOfPico } from '../../money/usd.ts'
import { costNano, tokensOf } from '../../store/ledger/ledger-row.ts'
import type { ListedCall } from '../../store/queries/calls-query.ts'
import { timeText } from '../key-entry.ts'

/** Returns a call in a list: its cost and usage in all of its attempts. Facts that its row lacks are missing. */
export function callEntry({ call, attempts, keyName, groupName, labels }: ListedCall): JsonObject {
  const { id, requestId = id, at, key, group, operation, api, requested, stream, metadata, user, firstEventMs } = call
  const rows = [...attempts, call]
  return {
    id,
    request_id: requestId,
    at: timeText(at),
    key: { id: key, ...(keyName !== undefined && { name: keyName }) },
    ...(group !== undefined && { group: { id: group, ...(groupName !== undefined && { name: groupName }) } }),
    operation,
    api,
    asked: requested,
    ...servedBy(call),
    streamed: stream,
    ...endOf(call),
    duration_ms: call.durationMs,
    ...(firstEventMs !== undefined && { first_event_ms: firstEventMs }),
    ...tokensIn(rows),
    cost: usdOf(rows.reduce((sum, row) => sum + costNano(row), 0n)),
    estimated: rows.some(({ cost }) => cost.estimated === true),
    unpriced: rows.some(({ cost }) => cost.unpriced === true),
    ...(Object.keys(labels).length > 0 && { labels: { ...labels } }),
    ...(user !== undefined && { user }),
    ...(metadata !== undefined && { extra: metadata }),
    attempts: call.attempts,
  }
}

/** Names the provider and model that served a call or an attempt; `served` is the provider's own name of the model, where it differs. */
function servedBy({ provider, model, served }: CallRecord): JsonObject {
  if (provider === '') return {}
  return { provider, model: `${provider}/${model}`, ...(served !== undefined && { served }) }
}

/** Describes how a call or an attempt ended; `class` is that of its failure. */
function endOf({ outcome, error, failure, status }: CallRecord): JsonObject {
  return { outcome, ...(error && { code: error }), ...(failure !== undefined && { class: failure }), status }
}

function tokensIn(rows: readonly CallRecord[]): JsonObject {
  const total = { input_tokens: 0, cached_tokens: 0, output_tokens: 0, reasoning_tokens: 0 }
  for (const row of rows) {
    const { input, cached, output, reasoning } = tokensOf(row)
    total.input_tokens += input
    total.cached_tokens += cached
    total.output_tokens += output
    total.reasoning_tokens += reasoning
  }
  return total
}

/**
 * Returns a call with everything recorded about it: its usage and cost part by part, the targets it tried, and the fields that were left
 * out.
 */
export function callDetail(listed: ListedCall): JsonObject {
  const { call, attempts, traceId } = listed
  const { id, dropped, reservedNano, error, message, providerCode, providerMessage, damaged, explanation } = call
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
        ...(providerMessage !== undefined && { provider_message: providerMessage }),
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

/** Describes the attempt at one target. The row of a call has the time of the whole call, which ends with its last attempt. */
function rowEntry(row: CallRecord, { attempt, isLast }: { attempt: number; isLast: boolean }): JsonObject {
  const { attemptOf, startedMs, durationMs, firstEventMs, providerCode, providerMessage, usage } = row
  const isCall = attemptOf === undefined
  return {
    attempt,
    ...(startedMs !== undefined && { at_ms: startedMs }),
    ...servedBy(row),
    ...endOf(row),
    ...(providerCode !== undefined && { provider_code: providerCode }),
    ...(providerMessage !== undefined && { provider_message: providerMessage }),
    ...(!isCall && { duration_ms: durationMs }),
    ...(isCall && isLast && { duration_ms: Math.max(durationMs - (startedMs ?? 0), 0) }),
    ...(firstEventMs !== undefined && { first_event_ms: Math.max(firstEventMs - (startedMs ?? 0), 0) }),
    ...(usage.modes && { modes: usage.modes }),
    ...(usage.reported_cost !== undefined && { reported_cost: usage.reported_cost }),
    ...(row.cost.priceVersion !== '' && { price_version: row.cost.priceVersion }),
    cost: usdOf(costNano(row)),
  }
}

/**
 * Finds the router's own id in a text. Where the provider gives a reply no id, it has that of its call, in the form of the API:
 * `cmpl-0199…`.
 */
export function ownIdIn(text: string): string | undefined {
  const [, ...parts] =
    /([\da-f]{8})-?([\da-f]{4})-?([\da-f]{4})-?([\da-f]{4})-?([\da-f]{12})/.exec(text.toLowerCase()) ?? []
  return parts.length === 0 ? undefined : parts.join('-')
}
