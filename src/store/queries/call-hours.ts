import { hourMs } from '../../core/time.ts'
import type { Connection } from '../connection.ts'
import type { CallFilters } from './call-filters.ts'

/** A range of Unix milliseconds; `to` is exclusive. */
export type Span = { from: number; to: number }

/**
 * The parts of a range in which an organization may have calls that pass the filters, the latest first: hours whose sums have such
 * calls, or all of it where no filter is one that sums tell apart. The request ids of clients are kept by hour, too.
 */
export function* callHours(
  db: Connection,
  { organization, from, to, filters }: Span & { organization: string; filters: CallFilters },
): Generator<Span> {
  const conditions = sumsConditions(filters)
  if (conditions.length === 0 && filters.requestId === undefined) {
    yield { from, to }
    return
  }
  const { key, provider, model, operation } = filters
  const bound = { organization, ...defined({ key, provider, model, operation }) }
  const latest = db
    .prepare<[Record<string, string | number>], number>(`
      SELECT hour FROM ${key === undefined ? 'organization_usage' : 'key_usage'}
      WHERE organization = @organization AND hour BETWEEN @first AND @last AND ${['requests > 0', ...conditions].join(' AND ')}
      ORDER BY hour DESC LIMIT 1`)
    .pluck()
  const first = Math.floor(from / hourMs)
  let last = Math.floor((to - 1) / hourMs)
  for (;;) {
    const hour = latest.get({ ...bound, first, last })
    if (hour === undefined) return
    yield { from: Math.max(from, hour * hourMs), to: Math.min(to, (hour + 1) * hourMs) }
    last = hour - 1
  }
}

function sumsConditions({ key, provider, model, operation, outcome, code }: CallFilters): string[] {
  return [
    ...Object.keys(defined({ key, provider, model, operation })).map((name) => `${name} = @${name}`),
    ...(outcome === 'failed' || outcome === 'partial' ? [`${outcome} > 0`] : []),
    ...(code === undefined ? [] : ['failed + partial > 0']),
  ]
}

function defined(values: { [name: string]: string | undefined }): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined))
}
