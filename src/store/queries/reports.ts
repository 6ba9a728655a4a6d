import type { Connection } from '../sqlite/connection.ts'
import { type AllCallsQuery, allCallsReader } from './all-calls-query.ts'
import { type CallsPage, type CallsQuery, callFinder, callsReader, type ListedCall } from './calls-query.ts'
import { type Latency, type LatencyQuery, latencyReader } from './latency-query.ts'
import { type Queries, queries } from './query-thread.ts'
import { type Targets, type TargetsQuery, targetsReader } from './targets-query.ts'
import { type UsageQuery, type UsageRow, usageReporter } from './usage-query.ts'

/** Settled calls by their filters, newest first. */
type Calls = {
  /** A page of calls. Rejects with StoreError. */
  page(query: CallsQuery): Promise<CallsPage>
  /** A page of the calls of all organizations, in the order in which they ended. Rejects with StoreError. */
  pageOfAll(query: AllCallsQuery): Promise<CallsPage>
  /** Reads pages like `page`, for many pages one after the other, without delaying other readers. */
  exported(query: CallsQuery): Promise<CallsPage>
  /** Returns the durations of calls. Rejects with StoreError. */
  latency(query: LatencyQuery): Promise<Latency>
  /** Returns how targets have answered lately. Rejects with StoreError. */
  targets(query: TargetsQuery): Promise<Targets>
  /** Checks whether a page of an organization, or of all, may begin after the row with this id. */
  isCursor(id: string, organization?: string): boolean
  /** A call of an organization, by its id or that of an attempt. */
  find(id: string, organization: string): ListedCall | undefined
  /** A call of whatever organization, by its id or that of an attempt. */
  findAnywhere(id: string): ListedCall | undefined
  /** The call of an organization with this id, or with an attempt of this id. `at` is Unix milliseconds. */
  callOf(id: string, organization: string): { id: string; at: number } | undefined
  close(): void
}

/** The settled calls of a database. */
export function calls(db: Connection): Calls {
  const pages = queries(db, 'calls', callsReader)
  const ofAll = queries(db, 'all-calls', allCallsReader)
  const exports = queries(db, 'calls', callsReader)
  const latencies = queries(db, 'latency', latencyReader)
  const targets = queries(db, 'targets', targetsReader)
  const known = db.prepare<[{ id: string; organization: string | null }]>(
    'SELECT 1 FROM ledger WHERE id = @id AND (@organization IS NULL OR organization = @organization)',
  )
  const callOf = db.prepare<[string, string], { id: string; at: number }>(
    'SELECT coalesce(attempt_of, id) AS id, at FROM ledger WHERE id = ? AND organization = ?',
  )
  const callAnywhere = db.prepare<[string], string>('SELECT coalesce(attempt_of, id) FROM ledger WHERE id = ?').pluck()
  const find = callFinder(db)
  return {
    async page(asked) {
      const [page] = await pages.query(asked)
      return page as CallsPage
    },
    async pageOfAll(asked) {
      const [page] = await ofAll.query(asked)
      return page as CallsPage
    },
    async exported(asked) {
      const [page] = await exports.query(asked)
      return page as CallsPage
    },
    async latency(asked) {
      const [found] = await latencies.query(asked)
      return found as Latency
    },
    async targets(asked) {
      const [found] = await targets.query(asked)
      return found as Targets
    },
    isCursor: (id, organization) => known.get({ id, organization: organization ?? null }) !== undefined,
    find(id, organization) {
      const found = callOf.get(id, organization)
      return found && find(found.id)
    },
    findAnywhere(id) {
      const found = callAnywhere.get(id)
      return found === undefined ? undefined : find(found)
    },
    callOf: (id, organization) => callOf.get(id, organization),
    close() {
      pages.close()
      ofAll.close()
      exports.close()
      latencies.close()
      targets.close()
    },
  }
}

/** Usage reports. */
type Usage = Queries<UsageQuery, UsageRow>

/** Usage reports of a database. */
export function usage(db: Connection): Usage {
  return queries(db, 'usage', (own) => usageReporter(own))
}
