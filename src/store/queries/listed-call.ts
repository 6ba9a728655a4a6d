import type { CallRecord } from '../../core/call.ts'
import type { Connection } from '../connection.ts'
import { callRecord, type LedgerRow } from '../ledger/ledger-row.ts'
import { storedJson } from '../stored-json.ts'

/** A call, with what it names by an id, as that is today. */
export type ListedCall = {
  call: CallRecord
  /** Its other attempts that have rows, in their order. */
  attempts: CallRecord[]
  keyName?: string
  groupName?: string
  labels: Record<string, string>
  /** Of a trace that the client began. */
  traceId?: string
}

/** A function that reads a call by its id. */
export function callFinder(db: Connection): (id: string) => ListedCall | undefined {
  const byId = db.prepare<[string], LedgerRow>('SELECT * FROM ledger WHERE id = ?').safeIntegers()
  const listed = listing(db)
  return (id) => {
    const row = byId.get(id)
    return row && { ...listed(callRecord(row)), ...(row.trace_id !== null && { traceId: String(row.trace_id) }) }
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
