import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import { openStore } from '../../src/store/open.ts'
import { QueryTooLarge } from '../../src/store/queries/query.ts'
import { queries } from '../../src/store/queries/query-thread.ts'
import {
  isUsageGroup,
  maxUsageRows,
  type UsageQuery,
  type UsageRow,
  usageReporter,
} from '../../src/store/queries/usage-query.ts'
import { connect } from '../../src/store/sqlite/connection.ts'
import { inMemory } from '../../src/store/sqlite/database-files.ts'
import { sqliteDatabase } from '../../src/store/sqlite/driver.ts'
import { ledgerWriter } from '../../src/store/sqlite/ledger/ledger-writer.ts'
import { migrate, migrations } from '../../src/store/sqlite/schema/migrations.ts'
import { describeEach } from '../helpers/slow.ts'
import { plainRecord } from './plain-record.ts'
import { temporaryFile } from './temporary.ts'

const hour = 3_600_000
const november = Date.UTC(2026, 10, 1)
const december = Date.UTC(2026, 11, 1)

/** A store with records, in memory or in a file where a thread counts. */
async function filled(where: 'memory' | 'file', records: readonly CallRecord[] = []) {
  const store = await openStore(`sqlite:${where === 'memory' ? ':memory:' : temporaryFile('router.sqlite')}`)
  onTestFinished(() => store.close())
  const writer = store.ledger.openWriter()
  await writer.write(records)
  await writer.close()
  const query = (changes: Partial<UsageQuery> = {}) =>
    store.usage.query({
      organization: 'org-1',
      from: november,
      to: december,
      resolution: 'day',
      groupBy: [],
      ...changes,
    })
  const ask = async (changes?: Partial<UsageQuery>) => (await query(changes)).map(flat)
  return { store, query, ask }
}

/** A row with the first of its figures as its own. */
function flat({ figures, ...row }: UsageRow) {
  const { requests, nano, input_tokens, output_tokens } = figures
  return {
    ...row,
    requests: Number(requests),
    nano,
    inputTokens: Number(input_tokens),
    outputTokens: Number(output_tokens),
  }
}

type FlatRow = ReturnType<typeof flat>

describeEach(['memory', 'file'], { slowIf: (where) => where === 'memory' })('usage (%s)', (where) => {
  test('is grouped by a field of metadata, whatever stands in its name', async () => {
    const fields = ['C:\\', '\\', 'a\\u0062', "it's", 'a.b[0]', '$', '*', 'ü', '__proto__']
    const records = fields.flatMap((field) => {
      const metadata = JSON.parse(`{${JSON.stringify(field)}:"x"}`)
      const facts = { at: november, organization: `org of ${field}` }
      return [plainRecord({ ...facts, metadata }), plainRecord({ ...facts, metadata: { ab: 1 } })]
    })
    const { ask } = await filled(where, records)
    for (const field of fields) {
      const rows = await ask({ organization: `org of ${field}`, groupBy: [`extra.${field}`] })
      expect([field, ...rows.map((row) => row.values[0]).sort()]).toEqual([field, null, 'x'])
    }
  })

  test('is counted by hours, days and months of UTC', async () => {
    const at = [0, hour - 1, hour, 24 * hour - 1, 24 * hour].map((after) => november + after)
    const records = [...at, december - 1, december].map((at) => plainRecord({ at }))
    const { ask } = await filled(where, records)
    const requests = async (changes: Partial<UsageQuery>) =>
      (await ask(changes)).map(({ start, requests }) => [new Date(start).toISOString(), requests])
    expect(await requests({ resolution: 'hour', to: november + 24 * hour })).toEqual([
      ['2026-11-01T00:00:00.000Z', 2],
      ['2026-11-01T01:00:00.000Z', 1],
      ['2026-11-01T23:00:00.000Z', 1],
    ])
    expect(await requests({})).toEqual([
      ['2026-11-01T00:00:00.000Z', 4],
      ['2026-11-02T00:00:00.000Z', 1],
      ['2026-11-30T00:00:00.000Z', 1],
    ])
    expect(await requests({ resolution: 'month', to: december + hour, groupBy: [] })).toEqual([
      ['2026-11-01T00:00:00.000Z', 6],
      ['2026-12-01T00:00:00.000Z', 1],
    ])
    expect(await requests({ resolution: 'month', to: december + hour, groupBy: ['user'] })).toEqual([
      ['2026-11-01T00:00:00.000Z', 6],
      ['2026-12-01T00:00:00.000Z', 1],
    ])
  })

  test('is counted to the millisecond', async () => {
    const at = [0, 0.4, 1.5, 2.9, 3, 4].map((hours) => november + hours * hour)
    const { ask } = await filled(
      where,
      at.map((at) => plainRecord({ at })),
    )
    const ranges: [what: string, from: number, to: number, requests: number][] = [
      ['within one hour', 1.2, 1.8, 1],
      ['in two hours that are not whole', 1.7, 2.95, 1],
      ['to the very call, which is not in it', 0, 1.5, 2],
      ['from the very call', 1.5, 3, 2],
      ['with whole hours between', 0.5, 3.5, 3],
      ['of whole hours', 0, 3, 4],
      ['of a second', 2.9, 2.9 + 1 / 3_600, 1],
      ['of nothing', 1.6, 2.8, 0],
    ]
    for (const [what, from, to, expected] of ranges) {
      const range = { from: Math.round(november + from * hour), to: Math.round(november + to * hour) }
      for (const resolution of ['hour', 'day', 'month'] as const)
        for (const groupBy of [[], ['key'], ['model'], ['user']]) {
          const rows = await ask({ ...range, resolution, groupBy })
          const requests = rows.reduce((sum, row) => sum + row.requests, 0)
          expect([what, resolution, groupBy, requests]).toEqual([what, resolution, groupBy, expected])
        }
    }
  })

  test('counts what was cached, reasoned, failed, cut, estimated and unpriced', async () => {
    const usage = { input: 1, cache_read: 2, cache_read_audio: 4, output: 8, reasoning: 16 }
    const cost = { nanoUsd: 1, parts: {}, priceVersion: '' }
    const at = november + 1.5 * hour
    const records = [
      plainRecord({ at, usage, cost }),
      plainRecord({ at, usage, cost: { ...cost, estimated: true }, outcome: 'partial' }),
      plainRecord({ at, usage: {}, cost, outcome: 'failed', status: 502 }),
      plainRecord({ at: at + hour, usage, cost: { ...cost, unpriced: true, estimated: true } }),
    ]
    const { query, store } = await filled(where, records)
    const figures = { cached_tokens: 18n, reasoning_tokens: 48n, input_tokens: 21n, output_tokens: 72n }
    const counts = { requests: 4n, failed: 1n, partial: 1n, estimated: 2n, unpriced: 1n, nano: 4n }
    for (const groupBy of [[], ['key'], ['user']])
      for (const from of [november, at]) {
        expect((await query({ from, groupBy })).map((row) => row.figures)).toEqual([{ ...figures, ...counts }])
      }
    expect(await store.verifySums(9)).toMatchObject({ wrong: 0 })
  })

  test('is grouped by the names of the described service as well', async () => {
    const { store, ask } = await filled(where)
    const { id: organization } = await store.organizations.create('acme')
    const team = (await store.groups.create({ organization, name: 'the team' })).id
    const writer = store.ledger.openWriter()
    await writer.write([
      plainRecord({ organization, group: team, user: 'ann', requested: 'fast', metadata: { origin_title: 'An App' } }),
      plainRecord({ organization, group: 'gone' }),
    ])
    await writer.close()
    const groups = async (name: string) => (await ask({ organization, groupBy: [name] })).map(({ values }) => values[0])
    for (const [name, values] of Object.entries({
      model_requested: ['fast', 'maker/m1'],
      model_used: ['maker/m1'],
      provider_used: ['maker'],
      api_key_id: ['key-1'],
      user_id: ['ann', null],
      group_id: [team, 'gone'],
      group_name: ['the team', null],
      origin_title: ['An App', null],
      is_byok: ['false'],
    }))
      expect([name, new Set(await groups(name))]).toEqual([name, new Set(values)])
    expect(await groups('model_used')).toEqual(await groups('model'))
  })

  test('is money exactly, tokens of prompt and answer, and calls by operation', async () => {
    const usage = {
      input: 1,
      cache_read: 2,
      cache_write_5m: 4,
      input_audio: 8,
      output: 16,
      reasoning: 32,
      searches: 64,
    }
    const cost = { nanoUsd: Number.MAX_SAFE_INTEGER, parts: {}, priceVersion: '' }
    const records = [
      plainRecord({ usage, cost }),
      plainRecord({ usage, cost }),
      plainRecord({ usage: {}, cost: { ...cost, nanoUsd: 2 } }),
    ]
    const { ask } = await filled(where, records)
    for (const groupBy of [[], ['key'], ['user']]) {
      expect(await ask({ groupBy })).toEqual([
        {
          start: Date.UTC(2026, 10, 21),
          values: groupBy.map((word) => (word === 'key' ? 'key-1' : null)),
          requests: 3,
          byOperation: { chat: 3 },
          nano: 2n ** 54n,
          inputTokens: 30,
          outputTokens: 96,
        },
      ])
    }
  })

  test('is that of one organization, or of one key', async () => {
    const { ask } = await filled(where, [
      plainRecord(),
      plainRecord({ key: 'key-2' }),
      plainRecord({ organization: 'org-2', key: 'key-3' }),
    ])
    const requests = async (changes: Partial<UsageQuery>) => (await ask(changes)).map((row) => row.requests)
    expect(await requests({})).toEqual([2])
    expect(await requests({ key: 'key-2' })).toEqual([1])
    expect(await requests({ key: 'key-3' })).toEqual([])
    expect(await requests({ organization: 'org-2' })).toEqual([1])
    expect(await requests({ key: 'key-2', groupBy: ['user'] })).toEqual([1])
  })

  test('is grouped by properties of calls and of keys', async () => {
    const { store, ask } = await filled(where)
    const { id: organization } = await store.organizations.create('acme')
    const key = async (labels: Record<string, string>) =>
      (
        await store.keys.create({
          organization,
          hash: randomBytes(32),
          prefix: 'ir-abcde',
          name: 'laptop',
          permissions: { manage: 'none', completions: 'write' },
          createdBy: { id: 'someone', email: '' },
          labels,
        })
      ).id
    const keys = [
      await key({ team: 'a', 'cost "center"': '7' }),
      await key({ 'cost "center"': '7', team: 'a' }),
      await key({}),
    ] as const
    const writer = store.ledger.openWriter()
    await writer.write([
      plainRecord({ organization, key: keys[0], user: 'ü', metadata: { task: 'x', "it's": 1, deep: { a: [true] } } }),
      plainRecord({ organization, key: keys[1], user: 'ü', metadata: { task: 'x', 'a.b': true } }),
      plainRecord({ organization, key: keys[2], model: 'm2', metadata: { task: null } }),
      plainRecord({ organization, key: 'gone', provider: '', model: '', outcome: 'failed', status: 429 }),
    ])
    await writer.close()
    const groups = async (...groupBy: string[]) =>
      (await ask({ organization, groupBy })).map(({ values, requests }) => [...values, requests]).sort()
    expect(await groups('model')).toEqual(
      [
        [null, 1],
        ['maker/m1', 2],
        ['maker/m2', 1],
      ].sort(),
    )
    expect(await groups('provider')).toEqual(
      [
        [null, 1],
        ['maker', 3],
      ].sort(),
    )
    expect(await groups('key')).toEqual([...keys, 'gone'].map((id) => [id, 1]).sort())
    expect(await groups('label')).toEqual(
      [
        ['{"cost \\"center\\"":"7","team":"a"}', 2],
        ['{}', 2],
      ].sort(),
    )
    expect(await groups('label.team')).toEqual(
      [
        [null, 2],
        ['a', 2],
      ].sort(),
    )
    expect(await groups('label.__proto__')).toEqual([[null, 4]])
    expect(await groups('user')).toEqual(
      [
        [null, 2],
        ['ü', 2],
      ].sort(),
    )
    expect(await groups('extra.task')).toEqual(
      [
        [null, 2],
        ['x', 2],
      ].sort(),
    )
    expect(await groups("extra.it's")).toEqual(
      [
        [null, 3],
        ['1', 1],
      ].sort(),
    )
    expect(await groups('extra.a.b')).toEqual(
      [
        [null, 3],
        ['true', 1],
      ].sort(),
    )
    expect(await groups('extra.deep')).toEqual(
      [
        [null, 3],
        ['{"a":[true]}', 1],
      ].sort(),
    )
    expect(await groups('label.team', 'extra.task', 'model')).toEqual(
      [
        ['a', 'x', 'maker/m1', 2],
        [null, null, 'maker/m2', 1],
        [null, null, null, 1],
      ].sort(),
    )
  })

  test('adds up to the same however it is grouped, for any calls', async () => {
    let seed = 7
    const pick = (most: number) => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % most
    }
    const records = Array.from({ length: 2_000 }, () =>
      plainRecord({
        at: november + pick(70 * 24) * hour + pick(hour),
        key: `key-${pick(7)}`,
        model: `m${pick(3)}`,
        usage: { input: pick(1_000), output: pick(100) },
        cost: { nanoUsd: pick(1_000_000), parts: {}, priceVersion: '' },
        ...(pick(2) === 1 && { user: `user-${pick(4)}` }),
      }),
    )
    const { ask } = await filled(where, records)
    const [from, to] = [november + 5 * hour + 1_234, november + 40 * 24 * hour + 9 * hour - 4_321]
    const counted = records.filter(({ at }) => at >= from && at < to)
    const total = (rows: readonly FlatRow[]) => [
      rows.reduce((sum, row) => sum + row.requests, 0),
      rows.reduce((sum, row) => sum + row.nano, 0n),
      rows.reduce((sum, row) => sum + row.inputTokens * 1e9 + row.outputTokens, 0),
    ]
    const expected = [
      counted.length,
      counted.reduce((sum, { cost }) => sum + BigInt(cost.nanoUsd), 0n),
      counted.reduce((sum, { usage: { input = 0, output = 0 } }) => sum + input * 1e9 + output, 0),
    ]
    for (const resolution of ['hour', 'day', 'month'] as const) {
      for (const groupBy of [[], ['model'], ['key'], ['label'], ['user'], ['extra.x', 'key'], ['is_byok']]) {
        expect(total(await ask({ from, to, resolution, groupBy }))).toEqual(expected)
      }
    }
  })
})

test('has a bound', async () => {
  expect(maxUsageRows).toBe(100_000)
  const db = connect(inMemory)
  onTestFinished(() => void db.close())
  migrate(db, migrations)
  ledgerWriter(db)(Array.from({ length: 101 }, (_, index) => plainRecord({ user: `u${index}` })))
  const question = { organization: 'org-1', from: november, to: december, resolution: 'day' } as const
  const requests = async (groupBy: string[], mostRows: number) => {
    const report = queries({ db: sqliteDatabase(db), path: inMemory }, 'usage', (own) => usageReporter(own, mostRows))
    return (await report.query({ ...question, groupBy })).map(({ figures }) => Number(figures.requests))
  }
  await expect(requests(['user'], 100)).rejects.toThrow(QueryTooLarge)
  await expect(requests(['user'], 100)).rejects.toThrow(/more than 100 rows: ask for fewer days/)
  expect(await requests(['user'], 101)).toHaveLength(101)
  expect(await requests(['key'], 1)).toEqual([101])
})

test('takes at most 30 seconds', () => {
  const db = connect(inMemory)
  onTestFinished(() => void db.close())
  migrate(db, migrations)
  const clock = vi.spyOn(performance, 'now')
  onTestFinished(() => clock.mockRestore())
  const report = usageReporter(db)
  const question = { organization: 'org-1', from: november, to: december, resolution: 'day', groupBy: [] } as const
  clock.mockReturnValueOnce(1_000).mockReturnValue(31_000)
  expect(report(question)).toEqual([])
  clock.mockReturnValueOnce(1_000).mockReturnValue(31_001)
  expect(() => report(question)).toThrow(/longer than 30 s: ask for fewer days/)
})

test('calls from before the tables of sums are in them', async () => {
  const path = temporaryFile('router.sqlite')
  const before = connect(path)
  migrate(before, migrations.slice(0, 3))
  const insert = before.prepare(`
    INSERT INTO ledger (id, at, organization, key, api, operation, requested, provider, model, stream, outcome, status,
      attempts, duration_ms, cost_nano, cost_parts, price_version, unpriced, estimated, input, cache_read, output, dropped)
    VALUES (?, ?, 'org-1', ?, 'chat', 'chat', 'm', 'maker', ?, 0, 'complete', 200, 1, 1, 7, '{}', '', 0, 0, 10, NULL, 5, '[]')`)
  const rows = [0, 1, hour, 25 * hour].entries()
  for (const [index, after] of rows) insert.run(`${index}`, november + after, `key-${index % 2}`, `m${index % 3}`)
  before.exec("UPDATE ledger SET outcome = 'partial', estimated = 1 WHERE id = '1'")
  before.exec("UPDATE ledger SET outcome = 'failed', unpriced = 1 WHERE id = '3'")
  before.exec(`UPDATE ledger SET cache_read = 1, cache_write_5m = 2, cache_write_1h = 4, input_audio = 8, input_image = 16,
    reasoning = 1, output_audio = 2, output_image = 4 WHERE id = '0'`)
  before.close()
  const store = await openStore(`sqlite:${path}`)
  onTestFinished(() => store.close())
  const question: UsageQuery = {
    organization: 'org-1',
    from: november,
    to: december,
    resolution: 'day',
    groupBy: [],
  }
  const counted = async (groupBy: string[]) =>
    (await store.usage.query({ ...question, groupBy }))
      .map(flat)
      .map(({ values, ...row }) => [...values, row.requests, row.nano, row.inputTokens, row.outputTokens])
  expect(await counted([])).toEqual([
    [3, 21n, 61, 22],
    [1, 7n, 10, 5],
  ])
  // The sums of spend are older than those rows, which were written without them.
  expect((await store.verifySums(9)).listed.filter(({ table }) => table.endsWith('usage'))).toEqual([])
  expect(await counted(['key'])).toEqual([
    ['key-0', 2, 14n, 51, 17],
    ['key-1', 1, 7n, 10, 5],
    ['key-1', 1, 7n, 10, 5],
  ])
  expect((await Array.fromAsync(store.ledger.each({ key: 'key-1' }))).map(({ id }) => id)).toEqual(['1', '3'])
})

test('a long answer comes in parts, and whole', async () => {
  const records = Array.from({ length: 2_500 }, (_, index) => plainRecord({ user: `u${index}` }))
  const { ask } = await filled('file', records)
  const [byUser, short] = await Promise.all([ask({ groupBy: ['user'] }), ask()])
  expect(new Set(byUser.map(({ values }) => values[0])).size).toBe(2_500)
  expect(short).toMatchObject([{ requests: 2_500 }])
})

test('a query that is pending when the database is closed is rejected', async () => {
  const { store, ask } = await filled('file', [plainRecord()])
  const requested = Promise.allSettled([ask(), ask()])
  await store.close()
  expect((await requested).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})

test('the thread of reports replies in order, and reports failures of the database', async () => {
  const { store, ask } = await filled('file', [plainRecord()])
  const answers = await Promise.all([ask(), ask({ groupBy: ['model'] }), ask({ organization: 'nobody' })])
  expect(answers.map((rows) => rows.map(({ values }) => values))).toEqual([[[]], [['maker/m1']], []])
  await expect(ask({ groupBy: ['user"'], resolution: 'decade' as never })).rejects.toThrow(/router\.sqlite: /)
  expect(await ask()).toHaveLength(1)
  await store.close()
})

test.each([
  ['model', true],
  ['label', true],
  ['label.team', true],
  ['extra.a b.c', true],
  ['extra.', false],
  ['extra."', false],
  ['model_used', true],
  ['group_name', true],
  ['model_usedx', false],
  ['colour', false],
  ['constructor', false],
])('%j is a word to group by: %j', (word, is) => {
  expect(isUsageGroup(word)).toBe(is)
})
