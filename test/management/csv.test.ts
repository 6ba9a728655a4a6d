import { parse } from 'csv-parse/sync'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callsCsv } from '../../src/management/calls/calls.ts'
import { csvLine, wantsCsv } from '../../src/management/calls/csv.ts'
import type { Store } from '../../src/store/open.ts'
import type { CallsQuery } from '../../src/store/queries/calls-query.ts'
import { connect } from '../../src/store/sqlite/connection.ts'
import { ledgerWriter } from '../../src/store/sqlite/ledger/ledger-writer.ts'
import { simulatorOnly, type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { describeEach } from '../helpers/slow.ts'
import { plainRecord } from '../store/plain-record.ts'
import { administration } from './administration.ts'

const count = 3_000

describeEach([1, 2], { slowIf: (threads) => threads > 1 })('tables (%i threads)', (threads) => {
  let router: TestRouter
  let manage: ReturnType<typeof administration>
  let key: { id: string; secret: string }

  beforeAll(async () => {
    router = await testRouter({ files: simulatorOnly, threads })
    manage = administration(router)
    key = await manage.newKey({ name: '=HYPERLINK("http://x")', labels: { '@team': '+1' } })
    const db = connect(`${router.folder}/data/router.sqlite`)
    const organization = db.prepare<[], string>('SELECT id FROM organizations').pluck().get() as string
    const record = (index: number) =>
      plainRecord({
        organization,
        key: key.id,
        at: Date.UTC(2026, 10, 1) + index,
        user: ['=1+1', '-2', '+3', '@SUM(A1)', '\t=x', ' =y', 'a "quoted", text\nof two lines', 'plain'][index % 8],
        metadata: { note: '=1+1', index },
        cost: { nanoUsd: 1, parts: { input: 1 }, priceVersion: 'x' },
      } as never)
    ledgerWriter(db)([
      ...Array.from({ length: count }, (_, index) => record(index)),
      plainRecord({ organization: 'x' }),
    ])
    db.close()
  })
  afterAll(() => router.end())

  const table = async (path: string) => {
    const response = await fetch(`${router.manageUrl}/v1/manage${path}`, {
      headers: { authorization: `Bearer ${testKey}`, accept: 'text/csv' },
    })
    const text = await response.text()
    return { response, text, rows: response.ok ? (parse(text, { columns: true }) as Record<string, string>[]) : [] }
  }

  test('have all calls of the filters, newest first, and nothing that a spreadsheet would run', async () => {
    const { response, rows } = await table('/calls?start=2026-11-01')
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present')
    expect(rows.map(({ at }) => at)).toEqual(
      Array.from({ length: count }, (_, index) => new Date(Date.UTC(2026, 10, 1) + count - 1 - index).toISOString()),
    )
    const cells = rows.flatMap((row) => Object.values(row))
    expect(cells.filter((text) => /^\s*[=+\-@]/.test(text))).toEqual([])
    expect(rows.at(-1)).toMatchObject({
      key: key.id,
      key_name: `'=HYPERLINK("http://x")`,
      user: "'=1+1",
      labels: '{"@team":"+1"}',
      extra: '{"note":"=1+1","index":0}',
      cost: '0.000000001',
      attempts: '1',
      streamed: 'false',
    })
    expect(new Set(rows.map(({ user }) => user))).toContain('a "quoted", text\nof two lines')
    expect((await table('/calls?user=plain')).rows).toHaveLength(count / 8)
    expect((await table('/calls?user=nobody')).text.split('\r\n')).toHaveLength(2)
  })

  test('have usage by period and group', async () => {
    const { rows } = await table('/org/usage?start=2026-11-01&end=2026-11-02&group_by=key&group_by=user')
    expect(rows).toHaveLength(8)
    expect(rows[0]).toMatchObject({ start: '2026-11-01T00:00:00Z', key: key.id, total_requests: String(count / 8) })
    expect(rows.map(({ user }) => user)).toContain("'=1+1")
    const { rows: own } = await table(`/apikey/${key.id}/usage?start=2026-11-01&end=2026-11-02`)
    expect(own).toMatchObject([{ total_requests: String(count), spend: '0.000003' }])
  })

  test('take no pages', async () => {
    expect((await table('/calls?limit=1')).response.status).toBe(400)
    expect((await table('/calls?cursor=x')).response.status).toBe(400)
    expect((await table('/calls?key=')).response.status).toBe(400)
  })
})

describe('an export', () => {
  /** Pages of one call, which never end; `after` is where each began. */
  function endless() {
    const asked: (string | undefined)[] = []
    const listed = { call: plainRecord(), attempts: [], labels: {} }
    const exported = async ({ after }: CallsQuery) => {
      asked.push(after)
      return { calls: [listed], next: `end of page ${asked.length}` }
    }
    return { asked, store: { calls: { exported } } as unknown as Pick<Store, 'calls'> }
  }
  const query = { organization: 'org-1', from: 0, to: 1, filters: {} }

  test('reads a page when the client has taken the last, and none when it has left', async () => {
    const { asked, store } = endless()
    const pieces = callsCsv(query, store, async () => {})
    expect(asked).toEqual([])
    expect((await pieces.next()).value).toContain('id,request_id,at')
    await new Promise(setImmediate)
    expect(asked).toEqual([undefined])
    expect((await pieces.next()).value).not.toContain('id,request_id,at')
    expect(asked).toEqual([undefined, 'end of page 1'])
    await pieces.return?.()
    expect((await pieces.next()).done).toBe(true)
    expect(asked).toHaveLength(2)
  })

  test('breaks off for a key that may not read any more', async () => {
    const { asked, store } = endless()
    let isRevoked = false
    const pieces = callsCsv(query, store, async () => {
      if (isRevoked) throw new Error('revoked')
    })
    await pieces.next()
    isRevoked = true
    await expect(pieces.next()).rejects.toThrow('revoked')
    expect(asked).toHaveLength(1)
  })
})

test.each([
  ['text/csv', true],
  ['text/csv; q=0.5, */*; q=0.1', true],
  ['TEXT/CSV', true],
  ['application/json, text/csv', false],
  ['application/json;q=0.5, text/csv;q=0.9', true],
  ['text/csv;q=0', false],
  ['*/*', false],
  ['', false],
])('Accept: %s', (accept, wanted) => {
  expect(wantsCsv({ accept })).toBe(wanted)
})

test.each(['=1', '+1', '-1', '@x', ' =1', '\tx', '\rx', '\nx', ' \tx'])('the text %j is marked as text', (text) => {
  const [, shown] = /^"?(.*?)"?\r\n$/s.exec(csvLine([text])) ?? []
  expect(shown).toBe(`'${text}`)
})

test.each(['x=1', 'x', ' x', "'=1"])('the text %j needs no mark', (text) => {
  expect(csvLine([text])).toBe(`${text}\r\n`)
})

test('numbers have no exponents', () => {
  expect(csvLine([1e-9, 1.5e-7, 0, 1e9, -2, null, undefined, true])).toBe(
    '0.000000001,0.00000015,0,1000000000,-2,,,true\r\n',
  )
})

test.each([
  ['=1+1', "'=1+1"],
  ['＝1+1', "'＝1+1"],
  ['＋1', "'＋1"],
  ['\u200b=1', "'\u200b=1"],
  ['\ufeff\u202e @x', "'\ufeff\u202e @x"],
  [';=1', ";'=1"],
  ['a; =1', "a;' =1"],
  ['a\t+1', "a\t'+1"],
  ['\tx', "'\tx"],
  ['a=1; b', 'a=1; b'],
  ['1-2', '1-2'],
])('a cell of %j is %j', (text, cell) => {
  expect(csvLine([text])).toBe(`${cell}\r\n`)
})
