import { dayMs } from '../../core/time.ts'
import type { Connection } from '../connection.ts'
import { messageReader } from '../provider-messages.ts'
import type { Quantiles } from './latency-query.ts'
import { type Attempt, type LastFailure, type Period, RecentAttempts, type Tally } from './recent-attempts.ts'

/**
 * Query for how targets have answered since `from` (Unix milliseconds, at most a day ago): in the calls of an organization, or of all where
 * none is named. Periods of `periodMs` are multiples of ten minutes.
 */
export type TargetsQuery = { organization?: string; from: number; periodMs: number }

/** The attempts of one target. `others` are those that say nothing about it: the request was refused, or the client left. */
export type TargetFigures = {
  provider: string
  model: string
  succeeded: number
  failed: number
  others: number
  failures: Record<string, number>
  durationMs?: Quantiles
  firstEventMs?: Quantiles
  lastSuccessAt?: number
  /** Time of the first failure since the last success. */
  failingSince?: number
  lastFailure?: LastFailure & { message?: string }
  /** Number of successes since the last failure. */
  sinceFailure: number
  periods: { start: number; succeeded: number; failed: number }[]
}

/** `since` is the time from which all attempts are counted; it is later than that of the query where there are very many. */
export type Targets = { since: number; targets: TargetFigures[] }

type Row = {
  row: number
  id: string
  at: number
  organization: string
  provider: string
  model: string
  outcome: string
  status: number
  error: string | null
  failure: string | null
  provider_code: string | null
  duration_ms: number
  started_ms: number | null
  first_event_ms: number | null
  attempt_of: string | null
}

const columns = `rowid AS row, id, at, organization, provider, model, outcome, status, error, failure, provider_code,
  duration_ms, started_ms, first_event_ms, attempt_of`
const rowsAtOnce = 5_000
/** Time that a query takes at most to read rows that are older than all it has read; the rest is read ahead of the next one. Milliseconds. */
const maxMs = 100

/**
 * A function that reads how targets have answered, attempt by attempt. It remembers the sums of the last day, so that each query reads only the
 * rows that are new since the one before. Throws the engine's errors.
 */
export function targetsReader(
  db: Connection,
  patienceMs = maxMs,
): ((query: TargetsQuery) => [Targets]) & { readAhead(): boolean } {
  const messageOf = messageReader(db)
  const newer = db.prepare<[number, number], Row>(
    `SELECT ${columns} FROM ledger WHERE rowid > ? ORDER BY rowid LIMIT ?`,
  )
  const older = db.prepare<[number, number], Row>(
    `SELECT ${columns} FROM ledger WHERE rowid < ? ORDER BY rowid DESC LIMIT ?`,
  )
  const newest = db.prepare<[], number>('SELECT coalesce(max(rowid), 0) FROM ledger').pluck()
  const attempts = new RecentAttempts()
  /** The rows that have been read lie between these. */
  let place: { first: number; last: number } | undefined
  /** Time from which all rows have been read. */
  let readSince = Number.POSITIVE_INFINITY

  const readNewer = (from: { first: number; last: number }) => {
    for (;;) {
      const rows = newer.all(from.last, rowsAtOnce)
      for (const row of rows) attempts.add(attemptOf(row))
      from.last = rows.at(-1)?.row ?? from.last
      if (rows.length < rowsAtOnce) return
    }
  }
  const readOlder = (from: { first: number; last: number }, until: { horizon: number; patienceMs: number }) => {
    const { horizon } = until
    const deadline = performance.now() + until.patienceMs
    while (readSince > horizon) {
      const rows = older.all(from.first, rowsAtOnce)
      const read = rows.map(attemptOf)
      for (const attempt of read) attempts.add(attempt)
      from.first = rows.at(-1)?.row ?? from.first
      // Rows are in the order in which calls ended, but for those that had to wait to be written.
      const latest = Math.max(...read.map(({ ended }) => ended))
      readSince = rows.length < rowsAtOnce || latest < horizon ? Number.NEGATIVE_INFINITY : latest
      if (performance.now() >= deadline) return
    }
  }
  const answer = ({ organization, from, periodMs }: TargetsQuery): [Targets] => {
    const horizon = Date.now() - dayMs
    if (!place) {
      const last = newest.get() ?? 0
      place = { first: last + 1, last }
    }
    readNewer(place)
    readOlder(place, { horizon, patienceMs })
    attempts.forget(horizon)
    const since = Math.max(from, attempts.keptSince, Number.isFinite(readSince) ? readSince : from)
    const targets = [...attempts.tallies(organization, from)].map((periods) => figuresOf(periods, periodMs, messageOf))
    return [{ since, targets }]
  }
  const readAhead = () => {
    const horizon = Date.now() - dayMs
    if (place) readOlder(place, { horizon, patienceMs: 0 })
    return place !== undefined && readSince > horizon
  }
  return Object.assign(answer, { readAhead })
}

function attemptOf(row: Row): Attempt {
  const { at, started_ms, duration_ms, first_event_ms, attempt_of, provider_code, error, failure, ...facts } = row
  const started = started_ms ?? 0
  // The row of a call has the time of the whole call, that of another attempt its own.
  const durationMs = attempt_of === null ? Math.max(duration_ms - started, 0) : duration_ms
  return {
    ...facts,
    ended: at + started + durationMs,
    durationMs,
    ...(first_event_ms !== null && { firstEventMs: Math.max(first_event_ms - started, 0) }),
    call: attempt_of ?? row.id,
    ...(error !== null && { error }),
    ...(failure !== null && { failure }),
    ...(provider_code !== null && { providerCode: provider_code }),
  }
}

function figuresOf(
  { provider, model, periods, total }: Tally,
  periodMs: number,
  messageOf: ReturnType<typeof messageReader>,
): TargetFigures {
  const {
    succeeded,
    failed,
    others,
    failures,
    duration,
    firstEvent,
    lastSuccess,
    failingSince,
    lastFailure,
    sinceFailure,
  } = total
  const message = lastFailure && messageOf({ id: lastFailure.id, error: lastFailure.code })
  return {
    provider,
    model,
    succeeded,
    failed,
    others,
    failures: Object.fromEntries(failures),
    sinceFailure,
    ...(duration.quantiles && { durationMs: duration.quantiles }),
    ...(firstEvent.quantiles && { firstEventMs: firstEvent.quantiles }),
    ...(lastSuccess !== undefined && { lastSuccessAt: lastSuccess }),
    ...(failingSince !== undefined && { failingSince }),
    ...(lastFailure && { lastFailure: { ...lastFailure, ...(message !== undefined && { message }) } }),
    periods: joined(periods, periodMs),
  }
}

function joined(periods: readonly Period[], periodMs: number): TargetFigures['periods'] {
  const found = new Map<number, TargetFigures['periods'][number]>()
  for (const { start: at, succeeded, failed } of periods) {
    const start = Math.floor(at / periodMs) * periodMs
    const period = found.get(start) ?? { start, succeeded: 0, failed: 0 }
    found.set(start, { start, succeeded: period.succeeded + succeeded, failed: period.failed + failed })
  }
  return [...found.values()]
}
