import type { CallRecord } from '../../core/call.ts'
import { callRecord, type LedgerRow } from '../ledger/ledger-row.ts'
import { messageReader } from '../provider-messages.ts'
import type { Connection } from '../sqlite/connection.ts'
import { storedJson } from '../store-error.ts'
import type { CallFilters } from './call-filters.ts'
import { callHours, placesOf, rowsBetween, type Span, startOf } from './call-places.ts'

/** A page of calls: those of an organization that arrived in a range of Unix milliseconds (`to` is exclusive) and pass the filters. */
export type CallsQuery = Span & {
  organization: string
  limit: number
  /** The id of the row after which the page begins. */
  after?: string
  filters: CallFilters
}

/** Calls, the newest first; `next` is where the next page begins, missing when there are no more. A page may have none and a `next`. */
export type CallsPage = { calls: ListedCall[]; next?: string }

/** Rows that are examined in the first step, and at most in a later one: few calls pass some filters, and nearly all pass most. */
const [firstRows, maxRows] = [200, 1_000]
/** Maximum duration of a page, however few calls it has. Milliseconds. */
const maxMs = 70
/** Length of labels and metadata after which a page ends: other threads read, write and parse it at once. Characters. */
const maxCharacters = 1_000_000

/** A function that reads pages of calls, by the index of organizations and times. Throws the engine's errors. */
export function callsReader(db: Connection, patienceMs = maxMs): (query: CallsQuery) => [CallsPage] {
  const listed = listing(db)
  return (query) => {
    const { organization, limit, after, filters } = query
    const deadline = performance.now() + patienceMs
    const places = placesOf(db, filters)
    const begin = after === undefined ? undefined : places.of(after, organization)
    const to = begin ? Math.min(query.to, Number(begin.at) + 1) : query.to
    const rowsIn = rowsBetween<LedgerRow>(db, '*', query)
    const found: CallRecord[] = []
    const page = (next?: string): [CallsPage] => [pageOf(found.slice(0, limit), listed, next)]
    let rows = firstRows
    for (const span of callHours(db, { organization, from: query.from, to, filters })) {
      let place = begin && Number(begin.at) < span.to ? begin : startOf(span.to)
      for (let more = true; more; ) {
        const end = places.further(organization, place, { span, rows })
        found.push(...rowsIn(place, end ?? startOf(span.from), limit + 1 - found.length).map(callRecord))
        if (found.length > limit) return page(found[limit - 1]?.id)
        if (performance.now() > deadline) {
          const reached = end ? places.idOf(end) : places.oldest(organization, span.from)
          // Where it began, nothing was left of the hour: a page that ends there would be asked for forever.
          if (reached !== undefined && reached !== after) return page(reached)
        }
        more = end !== undefined
        place = end ?? place
        rows = Math.min(rows * 2, maxRows)
      }
    }
    return page()
  }
}

/** Returns a page of calls; one that is long enough ends early. */
export function pageOf(
  found: readonly CallRecord[],
  listed: (call: CallRecord) => ListedCall,
  next?: string,
): CallsPage {
  const calls: ListedCall[] = []
  let characters = 0
  for (const call of found) {
    if (characters > maxCharacters) return { calls, next: (calls.at(-1) as ListedCall).call.id }
    const one = listed(call)
    calls.push(one)
    characters += JSON.stringify([one.labels, call.metadata]).length
  }
  return { calls, ...(next !== undefined && { next }) }
}

/** A call, with what it names by an id, as that is today. */
export type ListedCall = {
  call: CallRecord
  /** The other attempts of the call that have rows, in their order. */
  attempts: CallRecord[]
  keyName?: string
  groupName?: string
  labels: Record<string, string>
  /** Id of a trace that the client began. */
  traceId?: string
}

/** A function that reads a call by its id. */
export function callFinder(db: Connection): (id: string) => ListedCall | undefined {
  const byId = db.prepare<[string], LedgerRow>('SELECT * FROM ledger WHERE id = ?').safeIntegers()
  const listed = listing(db)
  const messageOf = messageReader(db)
  const withMessage = (record: CallRecord): CallRecord => {
    const providerMessage = messageOf(record)
    return providerMessage === undefined ? record : { ...record, providerMessage }
  }
  return (id) => {
    const row = byId.get(id)
    if (!row) return undefined
    const found = listed(callRecord(row))
    return {
      ...found,
      call: withMessage(found.call),
      attempts: found.attempts.map(withMessage),
      ...(row.trace_id !== null && { traceId: String(row.trace_id) }),
    }
  }
}

/** A function that adds to a call what belongs to it. */
export function listing(db: Connection): (call: CallRecord) => ListedCall {
  const keyOf = db.prepare<[string], { name: string; labels: string }>('SELECT name, labels FROM api_keys WHERE id = ?')
  const groupName = db.prepare<[string], string>('SELECT name FROM groups WHERE id = ?').pluck()
  const attemptsOf = db
    .prepare<[string, bigint, string, string], LedgerRow>(
      'SELECT * FROM ledger WHERE organization = ? AND at = ? AND key = ? AND attempt_of = ? ORDER BY rowid',
    )
    .safeIntegers()
  return (call) => {
    const { id, organization, at, key: keyId, group } = call
    const key = keyOf.get(keyId)
    const name = group === undefined ? undefined : groupName.get(group)
    // Attempts have the time and the key of their call.
    const rows = call.attempts > 1 ? attemptsOf.all(organization, BigInt(at), keyId, id) : []
    return {
      call,
      attempts: rows.map(callRecord),
      ...(key && { keyName: key.name }),
      ...(name !== undefined && { groupName: name }),
      labels: storedJson(key?.labels ?? '{}'),
    }
  }
}
