import { randomUUID } from 'node:crypto'
import type { CallRecord, Json, JsonObject } from 'inference-router/plugin'

/** Contents of a call, where they are exported. */
export type CallContents = { system?: unknown; input?: unknown; output?: unknown }

/** Returns a trace and the generation in it, as Langfuse's ingestion takes them. */
export function eventsOf(record: CallRecord, contents: CallContents, mostCharacters: number): JsonObject[] {
  const { id, at, trace, requested, operation, user, metadata, organization, key, group } = record
  const traceId = trace?.traceId ?? id
  const timestamp = timeOf(at)
  const session = metadata?.session_id
  const shown = shownOf(contents, mostCharacters)
  const owner = { organization, key, ...(group !== undefined && { group }) }
  return [
    event('trace-create', timestamp, {
      ...{ id: traceId, timestamp, name: requested, metadata: { ...metadata, ...owner }, ...shown },
      ...(user !== undefined && { userId: user }),
      ...(typeof session === 'string' && { sessionId: session }),
    }),
    event('generation-create', timestamp, { ...generationOf(record), id, traceId, name: operation, ...shown }),
  ]
}

function event(type: string, timestamp: string, body: JsonObject): JsonObject {
  return { id: randomUUID(), type, timestamp, body }
}

function generationOf(record: CallRecord): JsonObject {
  const { at, durationMs, firstEventMs, provider, model, served, usage, cost, outcome, error, status } = record
  const { api, stream, attempts, dropped } = record
  const counts = Object.entries(usage).filter((entry): entry is [string, number] => typeof entry[1] === 'number')
  return {
    startTime: timeOf(at),
    endTime: timeOf(at + durationMs),
    ...(firstEventMs !== undefined && { completionStartTime: timeOf(at + firstEventMs) }),
    model: served ?? model,
    usageDetails: Object.fromEntries(counts),
    costDetails: { total: cost.nanoUsd / 1e9 },
    level: outcome === 'complete' ? 'DEFAULT' : 'ERROR',
    ...(error && { statusMessage: error }),
    metadata: { provider, model, api, stream, status, attempts, outcome, dropped },
  }
}

function shownOf({ system, input, output }: CallContents, mostCharacters: number): { input?: Json; output?: Json } {
  const bounded = (value: unknown): Json => {
    const text = JSON.stringify(value)
    return text.length <= mostCharacters ? (value as Json) : `[${text.length} characters]`
  }
  return {
    ...(input !== undefined && { input: bounded(system === undefined ? input : { system, messages: input }) }),
    ...(output !== undefined && { output: bounded(output) }),
  }
}

function timeOf(at: number): string {
  return new Date(at).toISOString()
}
