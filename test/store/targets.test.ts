import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import { type Connection, connect } from '../../src/store/connection.ts'
import { inMemory } from '../../src/store/database-files.ts'
import { ledgerWriter } from '../../src/store/ledger/ledger-writer.ts'
import { RecentAttempts, tallyMs } from '../../src/store/queries/recent-attempts.ts'
import { targetsReader } from '../../src/store/queries/targets-query.ts'
import { migrate, migrations } from '../../src/store/schema/migrations.ts'
import { plainRecord } from './plain-record.ts'

let db: Connection
let write: ReturnType<typeof ledgerWriter>

beforeEach(() => {
  db = connect(inMemory)
  migrate(db, migrations)
  write = ledgerWriter(db)
})
afterEach(() => db.close())

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const ago = (ms: number, changes: Partial<CallRecord> = {}) => plainRecord({ at: Date.now() - ms, ...changes })
const failed = { outcome: 'failed', status: 502, error: 'provider_timeout', failure: 'timeout' } as const
const day = () => ({ from: Date.now() - 24 * hourMs, periodMs: hourMs })

describe('what is read of the ledger', () => {
  test('is what is new since the last query, also of rows that a query has left out', () => {
    const read = targetsReader(db, 0)
    write(Array.from({ length: 12_000 }, () => ago(10 * minuteMs)))
    // Without patience each query reads one step further back.
    expect(read(day())[0].targets).toMatchObject([{ succeeded: 5_000 }])
    expect(read(day())[0].since).toBeGreaterThan(Date.now() - hourMs)
    write([ago(0)])
    expect(read(day())[0].targets).toMatchObject([{ succeeded: 12_001 }])
    expect(read(day())[0].since).toBeLessThanOrEqual(Date.now() - 24 * hourMs)
  })

  test('is completed ahead of the next query', () => {
    const read = targetsReader(db, 0)
    expect(read.readAhead()).toBe(false)
    write(Array.from({ length: 12_000 }, () => ago(10 * minuteMs)))
    expect(read(day())[0].targets).toMatchObject([{ succeeded: 5_000 }])
    expect(read.readAhead()).toBe(true)
    expect(read.readAhead()).toBe(false)
    expect(read(day())[0].targets).toMatchObject([{ succeeded: 12_000 }])
  })

  test('is that of the last day only', () => {
    const read = targetsReader(db)
    write([ago(30 * hourMs), ago(23 * hourMs), ago(hourMs)])
    const [{ targets }] = read(day())
    expect(targets).toMatchObject([{ succeeded: 2 }])
    expect(targets[0]?.periods).toHaveLength(2)
    expect(read({ from: Date.now() - 2 * hourMs, periodMs: tallyMs })[0].targets).toMatchObject([{ succeeded: 1 }])
  })

  test('has the times of attempts, not of calls', () => {
    const read = targetsReader(db)
    const at = Date.now() - minuteMs
    const call = { at, attempts: 2, stream: true, startedMs: 5_000, durationMs: 5_400, firstEventMs: 5_100 }
    write([plainRecord({ at, attemptOf: 'call', startedMs: 0, durationMs: 5_000, ...failed }), plainRecord(call)])
    const [target] = read(day())[0].targets
    expect(target).toMatchObject({ succeeded: 1, failed: 1, failures: { timeout: 1 } })
    expect(target?.durationMs?.p50).toBeGreaterThan(388)
    expect(target?.durationMs?.p50).toBeLessThan(412)
    expect(target?.firstEventMs?.p50).toBeGreaterThan(97)
    expect(target?.firstEventMs?.p50).toBeLessThan(103)
    expect(target).toMatchObject({ lastSuccessAt: at + 5_400, lastFailure: { at: at + 5_000, call: 'call' } })
    expect(target?.failingSince).toBeUndefined()
  })

  test('begins a time of failures after the last success, in whatever order rows are', () => {
    const rows = [ago(50 * minuteMs, failed), ago(40 * minuteMs), ago(30 * minuteMs, failed), ago(minuteMs, failed)]
    for (const order of [rows, rows.toReversed(), [rows[1], rows[3], rows[0], rows[2]]]) {
      db.exec('DELETE FROM ledger')
      write(order as CallRecord[])
      const [target] = targetsReader(db)(day())[0].targets
      const first = rows[2] as CallRecord
      expect(target?.failingSince).toBe(first.at + first.durationMs)
      expect(target?.sinceFailure).toBe(0)
    }
  })

  test('counts the successes since the last failure, in whatever order rows are', () => {
    const rows = [ago(50 * minuteMs), ago(40 * minuteMs, failed), ago(30 * minuteMs), ago(2 * minuteMs), ago(minuteMs)]
    for (const order of [rows, rows.toReversed()]) {
      db.exec('DELETE FROM ledger')
      write(order as CallRecord[])
      expect(targetsReader(db)(day())[0].targets).toMatchObject([{ sinceFailure: 3, succeeded: 4 }])
    }
  })

  test('has the message of a provider only while it may be kept', () => {
    write([ago(minuteMs, { ...failed, providerMessage: 'Out of tokens' })])
    const read = targetsReader(db)
    expect(read(day())[0].targets[0]?.lastFailure?.message).toBe('Out of tokens')
    db.exec('DELETE FROM provider_messages')
    expect(read(day())[0].targets[0]?.lastFailure).not.toHaveProperty('message')
  })

  test('leaves out calls that reached no target, and tells organizations apart', () => {
    write([ago(0, { provider: '', model: '' }), ago(0), ago(0, { organization: 'org-2', model: 'a\nb' })])
    const read = targetsReader(db)
    expect(read({ ...day(), organization: 'org-1' })[0].targets).toMatchObject([{ model: 'm1' }])
    expect(read({ ...day(), organization: 'org-2' })[0].targets).toMatchObject([{ model: 'a\nb' }])
    expect(read(day())[0].targets).toHaveLength(2)
  })
})

test('where there are too many targets, the oldest times are forgotten, and the sums say since when they count', () => {
  const attempts = new RecentAttempts(10)
  const attempt = (index: number, ended: number) => ({
    ...{ id: String(index), call: String(index), organization: 'o', provider: 'p', model: `m${index}` },
    ...{ outcome: 'complete', status: 200, durationMs: 1, ended },
  })
  for (let index = 0; index < 12; index++) attempts.add(attempt(index, index < 6 ? tallyMs : 5 * tallyMs))
  expect([...attempts.tallies(undefined, 0)]).toHaveLength(6)
  expect(attempts.keptSince).toBe(2 * tallyMs)
  attempts.add(attempt(0, tallyMs))
  expect([...attempts.tallies(undefined, 0)]).toHaveLength(6)
})
