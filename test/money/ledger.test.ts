import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import { type LedgerErrorListener, openLedger } from '../../src/money/ledger.ts'
import type { LedgerWriter } from '../../src/store/ledger/writer.ts'
import { openStore } from '../../src/store/open.ts'
import type { SentResponse } from '../../src/store/responses.ts'
import { ledgerThread } from '../../src/store/sqlite/ledger/ledger-thread.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { eventually, limit } from '../helpers/time.ts'
import { plainRecord } from '../store/plain-record.ts'
import { temporaryFile } from '../store/temporary.ts'

type Refused = Awaited<ReturnType<LedgerWriter['write']>>

/** A writer whose results the test sets, batch by batch. */
function controlledWriter() {
  type Batch = {
    records: readonly CallRecord[]
    responses: readonly SentResponse[]
    texts: readonly string[]
    done(refused?: Refused): void
    fail(message: string, reason?: string): void
  }
  const batches: Batch[] = []
  const arrivals = new EventTarget()
  const closed = vi.fn()
  const writer: LedgerWriter = {
    write: (records, responses = [], texts = []) => {
      const { promise, resolve, reject } = Promise.withResolvers<Refused>()
      batches.push({
        records,
        responses,
        texts,
        done: (refused = []) => resolve(refused),
        fail: (message, reason) => reject(new StoreError(message, undefined, reason)),
      })
      arrivals.dispatchEvent(new Event('batch'))
      return promise
    },
    ready: async () => {},
    close: async () => closed(),
  }
  /** The next batch, waited for. */
  const next = async () => {
    if (batches.length === 0) await once(arrivals, 'batch', { signal: AbortSignal.timeout(limit(5_000)) })
    return batches.shift() as Batch
  }
  return { writer, next, batches, closed }
}

function open(times: { patienceMs?: number; closingMs?: number } = {}) {
  const controlled = controlledWriter()
  const onError = vi.fn<LedgerErrorListener>()
  const onRecovery = vi.fn()
  const ledger = openLedger(controlled.writer, { onError, onRecovery, ...times })
  return { ...controlled, onError, onRecovery, ledger }
}

const records = (count: number) => Array.from({ length: count }, () => plainRecord())

describe('settling', () => {
  test('waits for the disk', async () => {
    const { ledger, next } = open()
    let settled = false
    const settling = ledger.settle(plainRecord()).then(() => {
      settled = true
    })
    const batch = await next()
    await new Promise(setImmediate)
    expect(settled).toBe(false)
    expect(ledger.backlog()).toBe(1)
    batch.done()
    await settling
    expect(ledger.backlog()).toBe(0)
  })

  test('shares commits: rows that arrive during a write form one batch', async () => {
    const { ledger, next, batches } = open()
    const rows = records(6)
    const settling = rows.map((record) => ledger.settle(record))
    const first = await next()
    expect(first.records).toEqual(rows)
    const later = records(3)
    settling.push(...later.map((record) => ledger.settle(record)))
    await new Promise(setImmediate)
    expect(batches).toHaveLength(0)
    first.done()
    const second = await next()
    expect(second.records).toEqual(later)
    second.done()
    await Promise.all(settling)
  })

  test('while several calls end in a few milliseconds they share a commit; one that ends alone waits for no other', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const { ledger, next, batches } = open()
    vi.advanceTimersByTime(1_000)
    const alone = ledger.settle(plainRecord())
    ;(await next()).done()
    await alone
    const together = records(2).map((record) => ledger.settle(record))
    const both = await next()
    both.done()
    await Promise.all(together)
    const rows = records(2)
    const settling = [ledger.settle(rows[0] as CallRecord)]
    await new Promise(setImmediate)
    settling.push(ledger.settle(rows[1] as CallRecord))
    await new Promise(setImmediate)
    expect(batches).toEqual([])
    vi.advanceTimersByTime(4)
    const shared = await next()
    expect(shared.records).toEqual(rows)
    shared.done()
    await Promise.all(settling)
  })

  test('keeps batches small enough to be quick', async () => {
    const { ledger, next } = open()
    const settling = records(1_500).map((record) => ledger.settle(record))
    const sizes = []
    for (let batch = 0; batch < 2; batch++) {
      const { records, done } = await next()
      sizes.push(records.length)
      done()
    }
    expect(sizes).toEqual([1_000, 500])
    await Promise.all(settling)
  })
})

describe('a failure', () => {
  test('resolves waiting calls, since the provider has answered and is paid; the rows are retried and written in order', async () => {
    const { ledger, next, onError, onRecovery } = open()
    const [one, two] = [plainRecord(), plainRecord()]
    const first = ledger.settle(one)
    const batch = await next()
    const second = ledger.settle(two)
    expect(ledger.writeFailure()).toBeUndefined()
    batch.fail('/secret/path: the disk is full', 'the disk is full')
    await Promise.all([first, second])
    expect(ledger.writeFailure()).toBe('The router cannot write its ledger: the disk is full.')
    const failure = expect.objectContaining({ message: '/secret/path: the disk is full' })
    expect(onError).toHaveBeenCalledExactlyOnceWith(failure, { backlog: 2, lost: [] })
    const retried = await next()
    expect(retried.records).toEqual([one, two])
    retried.done()
    await ledger.close()
    expect(ledger.backlog()).toBe(0)
    expect(ledger.writeFailure()).toBeUndefined()
    expect(onRecovery).toHaveBeenCalledOnce()
  })

  test('is reported once while it lasts, and when its reason changes; its message has no path', async () => {
    const { ledger, next, onError } = open()
    ledger.settle(plainRecord())
    const reasons = ['the disk is full', 'the disk is full', undefined]
    for (const reason of reasons) (await next()).fail('/secret/path: broken', reason)
    await eventually(() => expect(onError).toHaveBeenCalledTimes(2))
    expect(ledger.writeFailure()).toBe('The router cannot write its ledger: the database cannot be used.')
    ;(await next()).done()
    await ledger.close()
  })

  test('does not lose the response that is stored with a row', async () => {
    const { ledger, next } = open()
    const response = { id: 'resp_1' } as SentResponse
    const settling = ledger.settle(plainRecord(), response)
    const batch = await next()
    batch.fail('full')
    await settling
    const retried = await next()
    expect(retried.responses).toEqual([response])
    retried.done()
    await ledger.close()
  })

  test('makes the tries rarer, up to one a second', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { ledger, next, batches } = open()
    ledger.settle(plainRecord())
    for (const waitMs of [50, 100, 200, 400, 800, 1_000, 1_000]) {
      const batch = await next()
      batch.fail('busy')
      await new Promise(setImmediate)
      await vi.advanceTimersByTimeAsync(waitMs - 1)
      expect(batches).toHaveLength(0)
      await vi.advanceTimersByTimeAsync(1)
      expect(batches).toHaveLength(1)
    }
  })

  test('does not prevent a later row from being written with the next retry', async () => {
    const { ledger, next } = open()
    const first = ledger.settle(plainRecord())
    const batch = await next()
    batch.fail('busy')
    await first
    const second = ledger.settle(plainRecord())
    const retried = await next()
    expect(retried.records).toHaveLength(2)
    retried.done()
    await second
  })

  test('of a single record is reported with the record; the others are settled', async () => {
    const { ledger, next, onError } = open()
    const [good, bad] = [plainRecord(), plainRecord()]
    const settling = [ledger.settle(good), ledger.settle(bad)]
    const batch = await next()
    batch.done([{ index: 1, reason: 'NOT NULL constraint failed' }])
    await settling[0]
    await expect(settling[1]).rejects.toMatchObject({ code: 'internal' })
    const error = new Error('a call cannot be written to the ledger: NOT NULL constraint failed')
    expect(onError).toHaveBeenCalledExactlyOnceWith(error, { backlog: 0, lost: [bad] })
  })

  test('of the disk to respond is bounded, also for later calls; the sent batch counts when the response arrives', async () => {
    const { ledger, next, onError } = open({ patienceMs: 30 })
    const first = ledger.settle(plainRecord())
    const batch = await next()
    await first
    expect(ledger.writeFailure()).toBe('The router cannot write its ledger: the disk does not respond.')
    expect(onError.mock.calls[0]?.[0].message).toBe('the disk did not respond within 30 ms')
    await ledger.settle(plainRecord())
    expect(ledger.backlog()).toBe(2)
    batch.done()
    const rest = await next()
    expect(rest.records).toHaveLength(1)
    rest.done()
    await ledger.close()
    expect(ledger.writeFailure()).toBeUndefined()
  })
})

test('a call waits no longer than usual for the disk after the ledger was idle', async () => {
  const cleared = vi.spyOn(globalThis, 'clearInterval')
  onTestFinished(() => cleared.mockRestore())
  const { ledger, next } = open({ patienceMs: 20 })
  for (let round = 1; round <= 2; round++) {
    let isSettled = false
    void ledger.settle(plainRecord()).then(() => {
      isSettled = true
    })
    const batch = await next()
    await eventually(() => expect(isSettled).toBe(true), 5_000)
    batch.done()
    // The ledger is idle when nothing has happened for that long.
    await eventually(() => expect(cleared).toHaveBeenCalledTimes(round))
  }
})

describe('the spill file', () => {
  test('has the rows while the database fails, and is emptied once all of them are written', async () => {
    const { ledger, next, writer } = open()
    const spilled: CallRecord[] = []
    writer.spill = {
      append: async (rows) => void spilled.push(...rows),
      clear: async () => void spilled.splice(0),
      close: async () => {},
    }
    const [first, second] = [plainRecord(), plainRecord()]
    const settling = ledger.settle(first)
    ;(await next()).fail('busy')
    await settling
    expect(spilled).toEqual([first])
    const again = await next()
    const later = ledger.settle(second)
    again.fail('busy')
    await later
    expect(spilled).toEqual([first, second])
    ;(await next()).done()
    await eventually(() => expect(ledger.backlog()).toBe(0))
    expect(spilled).toEqual([])
  })

  test('is not touched where nothing has failed', async () => {
    const { ledger, next, writer } = open()
    const clear = vi.fn(async () => {})
    writer.spill = { append: async () => {}, clear, close: async () => {} }
    const settling = ledger.settle(plainRecord())
    ;(await next()).done()
    await settling
    expect(clear).not.toHaveBeenCalled()
  })
})

describe('rows that another thread has sent', () => {
  const textOf = (rows: readonly CallRecord[]) => ({ text: JSON.stringify(rows), count: rows.length })

  test('go on as text, in one commit with others, and with the responses to store', async () => {
    const { ledger, next } = open()
    const rows = records(3)
    const response = { id: 'r' } as SentResponse
    const sent = ledger.settleRows({ ...textOf(rows), responses: [undefined, response, undefined] })
    const record = plainRecord()
    const settling = ledger.settle(record)
    expect(ledger.backlog()).toBe(4)
    const batch = await next()
    expect(batch).toMatchObject({ records: [record], responses: [response], texts: [JSON.stringify(rows)] })
    batch.done()
    await settling
    expect(await sent).toEqual([])
    expect(ledger.backlog()).toBe(0)
  })

  test('are told apart from others where some can never be written', async () => {
    const { ledger, next, onError } = open()
    const [first, second] = [records(2), records(3)]
    const sent = [ledger.settleRows(textOf(first)), ledger.settleRows(textOf(second))]
    const bad = plainRecord()
    const settling = expect(ledger.settle(bad)).rejects.toMatchObject({ code: 'internal' })
    // What is no text comes first.
    const batch = await next()
    batch.done([0, 2, 3, 5].map((index) => ({ index, reason: `of ${index}` })))
    await settling
    const indices = (await Promise.all(sent)).map((refused) => refused.map(({ index }) => index))
    expect(indices).toEqual([[1], [0, 2]])
    const lost = onError.mock.calls.map(([error, { lost }]) => [error.message.slice(-4), lost])
    expect(lost).toEqual([
      ['of 0', [bad]],
      ['of 2', [first[1]]],
      ['of 3', [second[0]]],
      ['of 5', [second[2]]],
    ])
  })

  test('are not divided, however many they are', async () => {
    const { ledger, next } = open()
    const sent = [1_500, 600, 400, 1].map((count) => ledger.settleRows(textOf(records(count))))
    const sizes = []
    for (let batch = 0; batch < 3; batch++) {
      const { texts, done } = await next()
      sizes.push(texts.map((text) => JSON.parse(text).length))
      done()
    }
    expect(sizes).toEqual([[1_500], [600, 400], [1]])
    await Promise.all(sent)
  })

  test('are tried again while the database fails, in the spill file meanwhile, and lost ones are reported', async () => {
    const { ledger, next, writer, onError } = open({ closingMs: 60 })
    const append = vi.fn(async () => {})
    writer.spill = { append, clear: async () => {}, close: async () => {} }
    const rows = records(2)
    const sent = ledger.settleRows(textOf(rows))
    ;(await next()).fail('busy')
    expect(await sent).toEqual([])
    expect(append).toHaveBeenCalledExactlyOnceWith(rows)
    const again = await next()
    expect(again.texts).toEqual([JSON.stringify(rows)])
    append.mockRejectedValueOnce(new Error('full'))
    const others = records(1)
    const later = ledger.settleRows(textOf(others))
    again.fail('busy')
    await later
    await expect(ledger.close()).rejects.toThrow('1 settled calls could not be written')
    expect(onError).toHaveBeenLastCalledWith(expect.any(Error), { backlog: 0, lost: others })
  })

  test('are refused once the ledger is closed', async () => {
    const { ledger } = open()
    await ledger.close()
    const refused = await ledger.settleRows(textOf(records(2)))
    expect(refused).toMatchObject([
      { index: 0, error: { code: 'internal' } },
      { index: 1, error: { code: 'internal' } },
    ])
  })
})

describe('closing', () => {
  test('a batch that fails when the writer is being closed is not tried again: that would start its thread anew', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const { ledger, next, batches } = open({ patienceMs: 30, closingMs: 60 })
    const settling = ledger.settle(plainRecord())
    const batch = await next()
    await vi.advanceTimersByTimeAsync(30)
    await settling
    const closing = expect(ledger.close()).rejects.toThrow('could not be written')
    await vi.advanceTimersByTimeAsync(60)
    await closing
    batch.fail('the disk is full')
    await vi.advanceTimersByTimeAsync(60_000)
    expect([batches, vi.getTimerCount()]).toEqual([[], 0])
  })

  test('writes the rest, then closes the writer; later calls are rejected', async () => {
    const { ledger, next, closed } = open()
    const settling = records(3).map((record) => ledger.settle(record))
    const closing = ledger.close()
    await expect(ledger.settle(plainRecord())).rejects.toMatchObject({ code: 'internal' })
    const batch = await next()
    expect(closed).not.toHaveBeenCalled()
    batch.done()
    await Promise.all([...settling, closing])
    expect(closed).toHaveBeenCalledOnce()
    await ledger.close()
  })

  test('retries after a failure', async () => {
    const { ledger, next } = open()
    const settling = ledger.settle(plainRecord())
    const closing = ledger.close()
    const batch = await next()
    batch.fail('busy')
    await settling
    const retried = await next()
    retried.done()
    await closing
  })

  test('gives up in the end, and reports the lost calls', async () => {
    const { ledger, next, onError, closed } = open({ patienceMs: 30, closingMs: 60 })
    const record = plainRecord()
    const settling = ledger.settle(record)
    await next()
    const closing = expect(ledger.close()).rejects.toThrow('1 settled calls could not be written')
    await settling
    await closing
    expect(onError).toHaveBeenLastCalledWith(expect.any(Error), { backlog: 0, lost: [record] })
    expect(closed).toHaveBeenCalledOnce()
  })
})

describe('with a real thread', () => {
  test('it is ready when the thread has started, which no call has to wait for', async () => {
    const path = temporaryFile('router.sqlite')
    const store = await openStore(`sqlite:${path}`)
    const writer = ledgerThread(path, new URL('../store/held-back-worker.ts', import.meta.url))
    const ledger = openLedger(writer, { onError: vi.fn() })
    const onReady = vi.fn()
    const ready = ledger.ready().then(onReady)
    await eventually(() => expect(existsSync(`${path}.waits`)).toBe(true))
    expect(onReady).not.toHaveBeenCalled()
    // Without any row to write.
    writeFileSync(`${path}.start`, '')
    await ready
    await ledger.close()
    await store.close()
  })

  test('it is ready when the thread could not start: then each batch tries to start it', async () => {
    const path = temporaryFile('router.sqlite')
    const writer = ledgerThread(path, new URL('./no-such-worker.ts', import.meta.url))
    const ledger = openLedger(writer, { onError: vi.fn() })
    await ledger.ready()
    await ledger.close()
  })

  test('a thousand calls at once are in the file once each, and the event loop goes on meanwhile', async () => {
    const store = await openStore(`sqlite:${temporaryFile('router.sqlite')}`)
    const ledger = openLedger(store.ledger.openWriter(), { onError: vi.fn() })
    const rows = records(1_000)
    await Promise.all([...rows, ...rows].map((record) => ledger.settle(record)))
    expect(await Array.fromAsync(store.ledger.each({ key: 'key-1' }))).toHaveLength(1_000)
    expect(await store.spend.ofKey('key-1', rows[0]?.at ?? 0)).toBe(1_000_000n)
    await ledger.close()
    await store.close()
  })

  test('a database that another process keeps locked delays calls, it does not lose them', async () => {
    const path = temporaryFile('router.sqlite')
    const store = await openStore(`sqlite:${path}`)
    const ledger = openLedger(store.ledger.openWriter(), { onError: vi.fn(), patienceMs: 100 })
    const blocker = new Database(path)
    blocker.exec('BEGIN IMMEDIATE')
    const record = plainRecord()
    await ledger.settle(record)
    expect(ledger.writeFailure()).toBe('The router cannot write its ledger: the disk does not respond.')
    blocker.exec('ROLLBACK')
    blocker.close()
    await eventually(() => expect(ledger.backlog()).toBe(0))
    expect(await store.ledger.find(record.id)).toEqual(record)
    await ledger.close()
    await store.close()
  })
})
