import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import { openStore } from '../../src/store/open.ts'
import type { CallFilters } from '../../src/store/queries/call-filters.ts'
import { placesOf, startOf } from '../../src/store/queries/call-places.ts'
import { type CallsQuery, callsReader } from '../../src/store/queries/calls-query.ts'
import { connect } from '../../src/store/sqlite/connection.ts'
import { ledgerWriter } from '../../src/store/sqlite/ledger/ledger-writer.ts'
import { migrate, migrations } from '../../src/store/sqlite/schema/migrations.ts'
import { testEach } from '../helpers/slow.ts'
import { plainRecord } from './plain-record.ts'
import { temporaryFile } from './temporary.ts'

const november = Date.UTC(2026, 10, 1)
const december = Date.UTC(2026, 11, 1)

/** A store in a file with records, and a reader of it. */
async function filled(records: readonly CallRecord[]) {
  const path = temporaryFile('router.sqlite')
  const store = await openStore(`sqlite:${path}`)
  const db = connect(path)
  onTestFinished(async () => {
    await store.close()
    db.close()
  })
  const write = ledgerWriter(db)
  const add = (more: readonly CallRecord[]) => expect(write(more)).toEqual([])
  add(records)
  const asked = (query: Partial<CallsQuery>): CallsQuery => {
    return { organization: 'org-1', from: november, to: december, limit: 100, filters: {}, ...query }
  }
  /** All pages, one after the other; a reader without patience ends a page after each step. */
  const walk = (query: Partial<CallsQuery> = {}, { patienceMs = 100, between = () => {} } = {}) => {
    const read = callsReader(db, patienceMs)
    const ids: string[] = []
    let after: string | undefined
    for (let pages = 0; pages < 1_000; pages++) {
      const [page] = read(asked({ ...query, ...(after !== undefined && { after }) }))
      ids.push(...page.calls.map(({ call }) => call.id))
      after = page.next
      if (after === undefined) return ids
      between()
    }
    throw new Error('the pages do not end')
  }
  return { store, add, walk, asked }
}

/** A generator of the same numbers each time. */
function dice(seed = 1): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (state * 48_271) % 2_147_483_647
    return state % sides
  }
}

function someRecords(count: number, roll = dice()): CallRecord[] {
  return Array.from({ length: count }, (_, index) => {
    const outcome = (['complete', 'complete', 'failed', 'partial'] as const)[roll(4)] ?? 'complete'
    return plainRecord({
      id: `row-${String(index).padStart(6, '0')}`,
      at: november + roll(200) * 1_800_000,
      key: `key-${roll(3)}`,
      provider: `maker-${roll(2)}`,
      model: `m${roll(3)}`,
      requested: `asked-${roll(2)}`,
      operation: roll(5) === 0 ? 'embed' : 'chat',
      outcome,
      ...(outcome !== 'complete' && { error: roll(2) === 0 ? 'provider_timeout' : 'provider_failed' }),
      ...(roll(3) === 0 && { group: 'group-1' }),
      ...(roll(3) === 0 && { user: 'ann' }),
      ...(roll(4) === 0 && { requestId: 'mine' }),
      ...(roll(2) === 0 && { metadata: { task: roll(2) === 0 ? 'x' : roll(3), flag: true } }),
      ...(roll(20) === 0 && { organization: 'org-2' }),
    })
  })
}

const byFilter: { readonly [name: string]: { filters: CallFilters; passes(record: CallRecord): boolean } } = {
  none: { filters: {}, passes: () => true },
  key: { filters: { key: 'key-1' }, passes: ({ key }) => key === 'key-1' },
  model: {
    filters: { provider: 'maker-1', model: 'm2' },
    passes: ({ provider, model }) => provider === 'maker-1' && model === 'm2',
  },
  asked: { filters: { requested: 'asked-1' }, passes: ({ requested }) => requested === 'asked-1' },
  operation: { filters: { operation: 'embed' }, passes: ({ operation }) => operation === 'embed' },
  outcome: { filters: { outcome: 'partial' }, passes: ({ outcome }) => outcome === 'partial' },
  code: { filters: { code: 'provider_timeout' }, passes: ({ error }) => error === 'provider_timeout' },
  group: { filters: { group: 'group-1' }, passes: ({ group }) => group === 'group-1' },
  user: { filters: { user: 'ann' }, passes: ({ user }) => user === 'ann' },
  request: { filters: { requestId: 'mine' }, passes: ({ requestId }) => requestId === 'mine' },
  'request and others': {
    filters: { requestId: 'mine', key: 'key-1', outcome: 'complete' },
    passes: ({ requestId, key, outcome }) => requestId === 'mine' && key === 'key-1' && outcome === 'complete',
  },
  text: { filters: { extra: [['task', 'x']] }, passes: ({ metadata }) => metadata?.task === 'x' },
  number: { filters: { extra: [['task', '2']] }, passes: ({ metadata }) => metadata?.task === 2 },
  several: {
    filters: { key: 'key-2', outcome: 'failed', extra: [['flag', 'true']] },
    passes: ({ key, outcome, metadata }) => key === 'key-2' && outcome === 'failed' && metadata?.flag === true,
  },
  nothing: { filters: { key: 'key-9' }, passes: () => false },
}

describe('pages of calls', () => {
  testEach(Object.keys(byFilter), { slowIf: (name) => !['none', 'several'].includes(name) })(
    'have all calls of the filter %s once, newest first, whatever their size',
    async (name) => {
      const { filters, passes } = byFilter[name] as (typeof byFilter)[string]
      const records = someRecords(2_500)
      const { walk } = await filled(records)
      const range = { from: november + 3_600_000, to: november + 80 * 3_600_000 + 1 }
      const wanted = records
        .map((record, row) => ({ record, row }))
        .filter(({ record }) => record.organization === 'org-1' && record.at >= range.from && record.at < range.to)
        .filter(({ record }) => passes(record))
        .sort(
          (one, other) =>
            other.record.at - one.record.at ||
            (one.record.key < other.record.key ? 1 : one.record.key > other.record.key ? -1 : other.row - one.row),
        )
        .map(({ record }) => record.id)
      for (const limit of [1_000, 7]) expect(walk({ filters, limit, ...range })).toEqual(wanted)
      expect(walk({ filters, ...range }, { patienceMs: -1 })).toEqual(wanted)
    },
  )

  test('are not shifted by calls that end meanwhile', async () => {
    const records = someRecords(300)
    const { walk, add } = await filled(records)
    const before = walk()
    const between = () => add([plainRecord({ at: december - 1 }), plainRecord({ at: december - 1 })])
    expect(walk({ limit: 10 }, { between })).toEqual(before)
  })

  test('have calls with their attempts, and no attempt as a call', async () => {
    const call = plainRecord({ attempts: 2, at: november })
    const attempt = plainRecord({ attemptOf: call.id, at: november, provider: 'other' })
    const { store, asked } = await filled([attempt, call, plainRecord({ at: november })])
    const { calls } = await store.calls.page(asked({ filters: { id: call.id } }))
    expect(calls.map(({ call: { id }, attempts }) => [id, attempts.map((one) => one.id)])).toEqual([
      [call.id, [attempt.id]],
    ])
    expect((await store.calls.page(asked({}))).calls).toHaveLength(2)
    expect(await store.calls.callOf(attempt.id, 'org-1')).toEqual({ id: call.id, at: november })
    expect(await store.calls.callOf(attempt.id, 'org-2')).toBeUndefined()
  })

  test('have the labels and names of today', async () => {
    const { store, add, asked } = await filled([])
    const { id: organization } = await store.organizations.create('org')
    const facts = { organization, prefix: 'p', name: "ann's", createdBy: { id: '', email: '' }, permissions: {} }
    const key = await store.keys.create({ ...facts, hash: Buffer.alloc(32, 1), labels: { team: 'a', 'x.y': 'b' } })
    add([plainRecord({ organization, key: key.id, at: november }), plainRecord({ organization, at: november })])
    const named = async (labels: CallFilters['labels']) => {
      const { calls } = await store.calls.page(asked({ organization, filters: { labels: labels ?? [] } }))
      return calls.map(({ keyName, labels: own }) => ({ keyName, own }))
    }
    expect(await named([['team', 'a']])).toEqual([{ keyName: "ann's", own: { team: 'a', 'x.y': 'b' } }])
    expect(await named([['x.y', 'b']])).toHaveLength(1)
    expect(await named([['team', 'b']])).toEqual([])
    expect(
      await named([
        ['team', 'a'],
        ['x.y', 'c'],
      ]),
    ).toEqual([])
  })
})

test('places go on from the latest to the earliest calls of an organization', () => {
  const db = connect(temporaryFile('router.sqlite'))
  onTestFinished(() => void db.close())
  migrate(db, migrations)
  const calls = [1, 2, 3, 4, 5].map((at) => plainRecord({ at: november + at, key: 'k' }))
  ledgerWriter(db)([...calls, plainRecord({ at: november + 9, organization: 'other' })])
  const places = placesOf(db, {})
  const span = { from: november + 2, to: december }
  const further = (from: number, rows: number) => {
    const place = places.further('org-1', startOf(november + from), { span, rows })
    return place && Number(place.at) - november
  }
  // The place of the row with which so many are done.
  expect([further(10, 1), further(10, 3), further(10, 4), further(10, 5)]).toEqual([5, 3, 2, undefined])
  expect([further(4, 1), further(2, 1)]).toEqual([3, undefined])
})

test('a page takes at most 70 ms, and says where the next one begins', () => {
  const db = connect(temporaryFile('router.sqlite'))
  onTestFinished(() => void db.close())
  migrate(db, migrations)
  ledgerWriter(db)(Array.from({ length: 300 }, (_, at) => plainRecord({ at: november + at })))
  const clock = vi.spyOn(performance, 'now')
  onTestFinished(() => clock.mockRestore())
  const read = callsReader(db)
  const query = { organization: 'org-1', from: november, to: december, limit: 9, filters: { user: 'nobody' } }
  clock.mockReturnValueOnce(1_000).mockReturnValue(1_070)
  expect(read(query)).toEqual([{ calls: [] }])
  clock.mockReturnValueOnce(1_000).mockReturnValue(1_071)
  expect(read(query)).toEqual([{ calls: [], next: expect.any(String) }])
})
