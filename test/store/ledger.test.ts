import { writeFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import { usageClasses } from '../../src/core/usage.ts'
import { openStore } from '../../src/store/open.ts'
import { ledgerThread } from '../../src/store/sqlite/ledger/ledger-thread.ts'
import { plainRecord } from './plain-record.ts'
import { temporaryFile } from './temporary.ts'

/** A store and a writer, in memory or in a file with its thread. */
async function open(where: 'memory' | 'file') {
  const path = where === 'memory' ? ':memory:' : temporaryFile('router.sqlite')
  const store = await openStore(`sqlite:${path}`)
  const writer = store.ledger.openWriter()
  onTestFinished(async () => {
    await writer.close()
    await store.close()
  })
  return { path, store, writer }
}

const at = Date.UTC(2026, 10, 21, 12)

describe.each(['memory', 'file'] as const)('a ledger (%s)', (where) => {
  test('gives every field of a record back', async () => {
    const { store, writer } = await open(where)
    const usage = Object.fromEntries(usageClasses.map((name, index) => [name, index + 1]))
    const record: CallRecord = {
      ...plainRecord(),
      api: 'messages',
      stream: true,
      outcome: 'partial',
      status: 502,
      error: 'provider_cut',
      group: 'group-1',
      usage: {
        ...usage,
        seconds: 12.25,
        megapixels: 1.048576,
        queries: 1,
        input_images: 3,
        reported_cost: 0.00123,
        modes: ['priority', 'us'],
      },
      cost: { nanoUsd: 7, parts: { input: 6.5 }, priceVersion: 'abc', unpriced: true, estimated: true },
      dropped: ['seed', 'n'],
      attempts: 3,
      attemptOf: 'call-1',
      damaged: true,
      failure: 'failed',
      startedMs: 3,
      firstEventMs: 4,
      user: 'ü\u0000x',
      metadata: { team: 'a', nested: [1, { b: null }] },
    }
    const plain = plainRecord()
    expect(await writer.write([record, plain])).toEqual([])
    expect(await store.ledger.find(record.id)).toEqual(record)
    expect(await store.ledger.find(plain.id)).toEqual(plain)
  })

  test('has a call once, and its cost once, however often it is written', async () => {
    const { store, writer } = await open(where)
    const record = plainRecord({ at })
    await writer.write([record, record])
    await writer.write([{ ...record, cost: { ...record.cost, nanoUsd: 5 } }])
    expect(await Array.fromAsync(store.ledger.each({ key: 'key-1' }))).toEqual([record])
    expect(await store.spend.ofKey('key-1', at)).toBe(1_000n)
    expect(await store.spend.ofOrganization('org-1', at)).toBe(1_000n)
  })

  test('adds up by key, organization and month', async () => {
    const { store, writer } = await open(where)
    const december = Date.UTC(2026, 11, 1)
    const other = plainRecord({ key: 'key-2', at })
    await writer.write([plainRecord({ at }), plainRecord({ at }), other, plainRecord({ at: december })])
    expect(await store.spend.ofKey('key-1', at)).toBe(2_000n)
    expect(await store.spend.ofKey('key-1', december)).toBe(1_000n)
    expect(await store.spend.ofKey('key-2', at)).toBe(1_000n)
    expect(await store.spend.ofKey('key-3', at)).toBe(0n)
    expect(await store.spend.ofOrganization('org-1', at)).toBe(3_000n)
    expect(await Array.fromAsync(store.ledger.each({ key: 'key-1', from: at + 1 }))).toHaveLength(1)
  })

  test('adds up by group while a key is in it, and of all time by organization', async () => {
    const { store, writer } = await open(where)
    const december = Date.UTC(2026, 11, 1)
    await writer.write([
      plainRecord({ at, group: 'group-1' }),
      plainRecord({ at, group: 'group-1', key: 'key-2' }),
      plainRecord({ at: december, group: 'group-1' }),
      plainRecord({ at, group: 'group-2' }),
      plainRecord({ at }),
    ])
    expect(await store.spend.ofGroup('group-1', at)).toBe(2_000n)
    expect(await store.spend.ofGroup('group-1', december)).toBe(1_000n)
    expect(await store.spend.ofGroup('group-2', at)).toBe(1_000n)
    expect(await store.spend.ofGroup('group-3', at)).toBe(0n)
    expect(await store.spend.ofKey('key-1', at)).toBe(3_000n)
    expect(await store.spend.totalOfOrganization('org-1')).toBe(5_000n)
    expect(await store.spend.totalOfOrganization('nobody')).toBe(0n)
  })

  test('takes counts that are no counts for missing, and rounds fractions', async () => {
    const { store, writer } = await open(where)
    const record = plainRecord({
      usage: { input: 2.6, output: Number.NaN, searches: -1, images: 1e300 },
      durationMs: 1.4,
    })
    await writer.write([record])
    const usage = { input: 3, searches: 0, images: Number.MAX_SAFE_INTEGER }
    expect(await store.ledger.find(record.id)).toEqual({ ...record, usage, durationMs: 1 })
  })

  test('refuses a record that can never be written, and writes the others', async () => {
    const { store, writer } = await open(where)
    const bad = plainRecord({ provider: null as never })
    const good = [plainRecord(), plainRecord()] as const
    const refused = await writer.write([good[0], bad, good[1]])
    expect(refused).toEqual([{ index: 1, reason: expect.stringContaining('ledger.provider') }])
    expect(await Array.fromAsync(store.ledger.each({ key: 'key-1' }))).toHaveLength(2)
    expect(await store.spend.ofKey('key-1', at)).toBe(2_000n)
  })

  test('counts a record that is known already once, also in a batch with one that can never be written', async () => {
    const { store, writer } = await open(where)
    const known = plainRecord({ at, group: 'group-1' })
    await writer.write([known])
    const bad = plainRecord({ provider: null as never })
    const refused = await writer.write([known, bad, plainRecord({ at, group: 'group-1' })])
    expect(refused.map(({ index }) => index)).toEqual([1])
    expect(await Array.fromAsync(store.ledger.each({ key: 'key-1' }))).toHaveLength(2)
    expect(await store.spend.ofKey('key-1', at)).toBe(2_000n)
    expect(await store.spend.ofGroup('group-1', at)).toBe(2_000n)
    expect(await store.spend.ofOrganization('org-1', at)).toBe(2_000n)
    expect(await store.verifySums(1_000)).toMatchObject({ wrong: 0 })
  })

  test('refuses records of JSON texts, whose index counts on through the texts', async () => {
    const { store, writer } = await open(where)
    const bad = () => plainRecord({ provider: null as never })
    const texts = [
      [plainRecord(), plainRecord()],
      [bad(), plainRecord(), bad()],
    ].map((rows) => JSON.stringify(rows))
    const refused = await writer.write([plainRecord()], [], texts)
    expect(refused.map(({ index }) => index)).toEqual([3, 5])
    expect(await Array.fromAsync(store.ledger.each({ key: 'key-1' }))).toHaveLength(4)
  })

  test('refuses a record whose sums would be too large for the database, and its row with it', async () => {
    const { store, writer } = await open(where)
    const nanoUsd = Number.MAX_SAFE_INTEGER
    const cost = { nanoUsd, parts: {}, priceVersion: '' }
    // The largest integer of the database is 1,024 times the largest of a row.
    for (const records of [1_000, 23]) await writer.write(Array.from({ length: records }, () => plainRecord({ cost })))
    const refused = await writer.write([plainRecord({ cost }), plainRecord({ cost }), plainRecord({ key: 'key-2' })])
    expect(refused.map(({ index }) => index)).toEqual([1])
    expect(await Array.fromAsync(store.ledger.each({ key: 'key-1' }))).toHaveLength(1_024)
    expect(await store.spend.ofKey('key-1', at)).toBe(1_024n * BigInt(nanoUsd))
    expect(await store.spend.totalOfOrganization('org-1')).toBe(1_024n * BigInt(nanoUsd) + 1_000n)
  })
})

describe('the thread of a ledger', () => {
  test('reports the reason when the table is missing, and writes once it is back', async () => {
    const { path, store, writer } = await open('file')
    const blocker = new Database(path)
    blocker.exec('ALTER TABLE ledger RENAME TO hidden')
    await expect(writer.write([plainRecord()])).rejects.toThrow(/router\.sqlite: .*no such table/)
    blocker.exec('ALTER TABLE hidden RENAME TO ledger')
    blocker.close()
    expect(await writer.write([plainRecord()])).toEqual([])
    expect(await Array.fromAsync(store.ledger.each({ key: 'key-1' }))).toHaveLength(1)
  })

  test('waits for another process that writes', async () => {
    const { path, store, writer } = await open('file')
    const blocker = new Database(path)
    blocker.exec('BEGIN IMMEDIATE')
    const written = writer.write([plainRecord()])
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(await Array.fromAsync(store.ledger.each({ key: 'key-1' }))).toHaveLength(0)
    blocker.exec('COMMIT')
    blocker.close()
    await written
    expect(await Array.fromAsync(store.ledger.each({ key: 'key-1' }))).toHaveLength(1)
  })

  test('reports that a file is not a database', async () => {
    const path = temporaryFile('broken.sqlite')
    const store = await openStore(`sqlite:${path}`)
    const writer = store.ledger.openWriter()
    await store.close()
    writeFileSync(path, 'not a database '.repeat(1_000))
    await expect(writer.write([plainRecord()])).rejects.toThrow(/broken\.sqlite: .*(not an SQLite database|damaged)/)
    await writer.close()
  })

  test('that dies reports the reason, and is replaced', async () => {
    const path = temporaryFile('router.sqlite')
    const store = await openStore(`sqlite:${path}`)
    const writer = ledgerThread(path, new URL('./dying-worker.ts', import.meta.url))
    const record = plainRecord()
    await expect(writer.write([record])).rejects.toThrow(/thread that writes the ledger failed \(out of order\)/)
    await writer.write([record])
    expect(await store.ledger.find(record.id)).toEqual(record)
    await writer.close()
    await store.close()
  })

  test('restarts after it was closed', async () => {
    const { store, writer } = await open('file')
    await writer.write([plainRecord()])
    await writer.close()
    await writer.close()
    await writer.write([plainRecord()])
    expect(await Array.fromAsync(store.ledger.each({ key: 'key-1' }))).toHaveLength(2)
  })
})
