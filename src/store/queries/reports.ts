import type { SqliteDatabase } from '../sqlite/driver.ts'
import { type AllCallsQuery, allCallsReader } from './all-calls-query.ts'
import { type CallsPage, type CallsQuery, callFinder, callsReader, type ListedCall } from './calls-query.ts'
import { type Latency, type LatencyQuery, latencyReader } from './latency-query.ts'
import { type Queries, queries } from './query-thread.ts'
import { type Targets, type TargetsQuery, targetsReader } from './targets-query.ts'
import { type UsageQuery, type UsageRow, usageReporter } from './usage-query.ts'

/** Settled calls by their filters, newest first. */
export type Calls = {
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
  isCursor(id: string, organization?: string): Promise<boolean>
  /** A call of an organization, by its id or that of an attempt. */
  find(id: string, organization: string): Promise<ListedCall | undefined>
  /** A call of whatever organization, by its id or that of an attempt. */
  findAnywhere(id: string): Promise<ListedCall | undefined>
  /** The call of an organization with this id, or with an attempt of this id. `at` is Unix milliseconds. */
  callOf(id: string, organization: string): Promise<{ id: string; at: number } | undefined>
  close(): void
}

/** The settled calls of a database at a path. */
export function calls(db: SqliteDatabase, path: string): Calls {
  const pages = queries({ db, path }, 'calls', callsReader)
  const ofAll = queries({ db, path }, 'all-calls', allCallsReader)
  const exports = queries({ db, path }, 'calls', callsReader)
  const latencies = queries({ db, path }, 'latency', latencyReader)
  const targets = queries({ db, path }, 'targets', targetsReader)
  const finder = callFinder(db.connection)
  const find = (id: string) => db.alone(() => finder(id))
  const callOf = async (id: string, organization: string) => {
    const sql = `${ofAttempt} AND organization = @organization`
    const found = await db.get<{ id: string; at: bigint }>(sql, { id, organization })
    return found && { id: found.id, at: Number(found.at) }
  }
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
    async isCursor(id, organization) {
      const isOwn = organization === undefined ? '' : 'AND organization = @organization'
      const parameters = { id, ...(organization !== undefined && { organization }) }
      return (await db.get(`SELECT 1 FROM ledger WHERE id = @id ${isOwn}`, parameters)) !== undefined
    },
    async find(id, organization) {
      const found = await callOf(id, organization)
      return found && (await find(found.id))
    },
    async findAnywhere(id) {
      const found = await db.get<{ id: string }>(ofAttempt, { id })
      return found && (await find(found.id))
    },
    callOf,
    close() {
      pages.close()
      ofAll.close()
      exports.close()
      latencies.close()
      targets.close()
    },
  }
}

const ofAttempt = 'SELECT coalesce(attempt_of, id) AS id, at FROM ledger WHERE id = @id'

/** Usage reports. */
export type Usage = Queries<UsageQuery, UsageRow>

/** Usage reports of a database at a path. */
export function usage(db: SqliteDatabase, path: string): Usage {
  return queries({ db, path }, 'usage', (connection) => usageReporter(connection))
}
