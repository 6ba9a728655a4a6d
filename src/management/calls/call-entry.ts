import type { CallRecord } from '../../core/call.ts'
import type { JsonObject } from '../../core/json.ts'
import { usdOf } from '../../money/usd.ts'
import { costNano, tokensOf } from '../../store/ledger/ledger-row.ts'
import type { ListedCall } from '../../store/queries/listed-call.ts'
import { timeText } from '../key-entry.ts'

/** A call in a list: what it cost and used in all of its attempts. What its row lacks is missing. */
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

/** Who served a call or an attempt; `served` is the provider's own name of the model, where that is another one. */
export function servedBy({ provider, model, served }: CallRecord): JsonObject {
  if (provider === '') return {}
  return { provider, model: `${provider}/${model}`, ...(served !== undefined && { served }) }
}

/** How a call or an attempt ended; `class` is that of its failure. */
export function endOf({ outcome, error, failure, status }: CallRecord): JsonObject {
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
