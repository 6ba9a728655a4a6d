import { outputColumns } from '../ledger/ledger-row.ts'
import type { Connection } from '../sqlite/connection.ts'
import type { CallFilters } from './call-filters.ts'
import { callHours, placesOf, rowsBetween, type Span, startOf } from './call-places.ts'

/**
 * Query for the durations of an organization's calls that arrived in a range of Unix milliseconds (`to` is exclusive) and pass the
 * filters.
 */
export type LatencyQuery = Span & { organization: string; filters: CallFilters; groupBy?: LatencyGroup }

/** Criteria by which calls are grouped. */
export const latencyGroups = ['provider', 'model', 'key', 'group', 'operation', 'asked'] as const
export type LatencyGroup = (typeof latencyGroups)[number]

/** The value that half of the calls do not exceed, and that of 95 %; missing where no call has one. */
export type Quantiles = { p50: number; p95: number }
/** Figures of complete calls; first events, and tokens per second after them, are those of streams. */
export type Figures = { calls: number; firstEventMs?: Quantiles; durationMs?: Quantiles; tokensPerSecond?: Quantiles }

/** `isWhole`: all calls of the range were examined. The group with the most calls comes first. */
export type Latency = Figures & { isWhole: boolean; groups: (Figures & { value: string | null })[] }

/** Maximum number of calls examined: the newest ones are representative. */
const maxCalls = 20_000
const rowsAtOnce = 2_000
/** Milliseconds. */
const maxMs = 100
const maxGroups = 100

type Row = { took: bigint; first: bigint | null; tokens: bigint; value: string | null }

const groupColumns: { readonly [name in LatencyGroup]: string } = {
  provider: 'provider',
  model: "provider || '/' || model",
  key: 'key',
  group: 'group_id',
  operation: 'operation',
  asked: 'requested',
}

/** A function that reads how long calls took. Throws the engine's errors. */
export function latencyReader(db: Connection): (query: LatencyQuery) => [Latency] {
  return (query) => {
    const { organization, filters, groupBy } = query
    const deadline = performance.now() + maxMs
    const tokens = outputColumns.map((name) => `coalesce(${name}, 0)`).join(' + ')
    const value = groupBy === undefined ? 'NULL' : groupColumns[groupBy]
    const columns = `duration_ms AS took, first_event_ms AS first, ${tokens} AS tokens, ${value} AS value`
    const asked = { organization, filters: { ...filters, outcome: 'complete' } }
    const places = placesOf(db, filters)
    const rowsIn = rowsBetween<Row>(db, columns, asked)
    const found: Row[] = []
    for (const span of callHours(db, { ...query, ...asked })) {
      let place = startOf(span.to)
      for (let more = true; more; ) {
        const end = places.further(organization, place, { span, rows: rowsAtOnce })
        found.push(...rowsIn(place, end ?? startOf(span.from), maxCalls + 1 - found.length))
        if (found.length > maxCalls || performance.now() > deadline) return [latencyOf(found, false, groupBy)]
        more = end !== undefined
        place = end ?? place
      }
    }
    return [latencyOf(found, true, groupBy)]
  }
}

function latencyOf(found: readonly Row[], isWhole: boolean, groupBy: LatencyGroup | undefined): Latency {
  const rows = found.slice(0, maxCalls)
  const byValue = groupBy === undefined ? [] : [...Map.groupBy(rows, ({ value }) => value)]
  const groups = byValue
    .sort(([, one], [, other]) => other.length - one.length)
    .slice(0, maxGroups)
    .map(([value, of]) => ({ value, ...figuresOf(of) }))
  return { ...figuresOf(rows), isWhole, groups }
}

function figuresOf(rows: readonly Row[]): Figures {
  const streams = rows.flatMap(({ took, first, tokens }) =>
    first === null ? [] : [{ first: Number(first), ms: Number(took - first), tokens: Number(tokens) }],
  )
  // The first token comes with the first event.
  const speeds = streams.flatMap(({ ms, tokens }) => (ms > 0 && tokens > 1 ? [((tokens - 1) / ms) * 1_000] : []))
  return {
    calls: rows.length,
    ...quantiles(
      'firstEventMs',
      streams.map(({ first }) => first),
    ),
    ...quantiles(
      'durationMs',
      rows.map(({ took }) => Number(took)),
    ),
    ...quantiles('tokensPerSecond', speeds),
  }
}

function quantiles<Name extends string>(name: Name, values: number[]): { [name in Name]?: Quantiles } {
  if (values.length === 0) return {}
  const sorted = Float64Array.from(values).sort()
  const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] as number
  return { [name]: { p50: at(0.5), p95: at(0.95) } } as { [name in Name]: Quantiles }
}
