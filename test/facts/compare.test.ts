import { describe, expect, test } from 'vitest'
import type { ModelEntry } from '../../src/core/models/model.ts'
import { compare } from '../../tools/facts/compare.ts'
import type { Exception } from '../../tools/facts/exceptions.ts'
import type { Facts, ListedModel } from '../../tools/facts/listed.ts'
import type { List } from '../../tools/facts/lists.ts'
import { disagreementText, reportOf } from '../../tools/facts/report.ts'
import { decide, type Statement } from '../../tools/facts/vote.ts'

const newest = '2026-11-20'
const said = (origin: string, value: Statement['value'], more: Partial<Statement> = {}): Statement => ({
  list: origin,
  origin,
  asOf: newest,
  value,
  ...more,
})

describe('a vote', () => {
  const kindOf = (ours: number | undefined, ...statements: Statement[]) =>
    decide('input_price', ours, statements, newest)?.kind

  test('contradicts us by a majority of at least two origins', () => {
    expect(kindOf(2e-6, said('a', 1e-6), said('b', 1e-6))).toBe('majority')
    expect(kindOf(2e-6, said('a', 1e-6), said('b', 1e-6), said('c', 2e-6))).toBe('majority')
    expect(kindOf(undefined, said('a', 1e-6), said('b', 1e-6))).toBe('majority')
  })

  test('agrees where as many origins state our value as any other', () => {
    expect(kindOf(2e-6, said('a', 2e-6), said('b', 1e-6))).toBe('agree')
    expect(kindOf(1e-6, said('a', 1.005e-6))).toBe('agree')
  })

  test('of one origin is uncertain, and of several without a majority contested', () => {
    expect(kindOf(2e-6, said('a', 1e-6))).toBe('single')
    expect(kindOf(2e-6, said('a', 1e-6), said('b', 3e-6))).toBe('contested')
    expect(decide('input_price', 2e-6, [], newest)).toBeUndefined()
  })

  test('gives lists of one origin one voice: that of the first', () => {
    const verdict = decide('input_price', 2e-6, [said('a', 1e-6), said('a', 3e-6, { list: 'older' })], newest)
    expect(verdict).toMatchObject({ kind: 'single', value: 1e-6 })
    expect(verdict?.votes).toHaveLength(1)
  })

  test('does not hear old lists where two origins are current', () => {
    const old = { asOf: '2026-08-01' }
    expect(kindOf(2e-6, said('a', 1e-6), said('b', 1e-6), said('c', 2e-6, old), said('d', 2e-6, old))).toBe('majority')
    expect(kindOf(2e-6, said('a', 1e-6), said('c', 1e-6, old))).toBe('majority')
  })

  test('about a retirement is decided by the page of the provider', () => {
    const dated = (page?: string) => [said('a', '2026-10-23', page === undefined ? {} : { page })]
    expect(decide('shutdown', undefined, dated(), newest)?.kind).toBe('single')
    expect(decide('shutdown', undefined, dated('https://provider.example/deprecations'), newest)?.kind).toBe('majority')
  })

  test('takes limits for the same that are rounded', () => {
    expect(decide('context_window', 131_072, [said('a', 128_000), said('b', 128_000)], newest)?.kind).toBe('agree')
    expect(decide('context_window', 262_144, [said('a', 128_000), said('b', 128_000)], newest)?.kind).toBe('majority')
  })
})

const listOf = (name: string, models: { [id: string]: Facts }, more: Partial<List> = {}): List => ({
  name,
  origin: name,
  as_of: newest,
  format: 'litellm',
  path: '',
  models: Object.entries(models).map(
    ([id, facts]): ListedModel => ({ provider: 'maker', ids: [id], api: 'chat', facts }),
  ),
  ...more,
})

const priced = (input: number, more: Partial<ModelEntry> = {}): ModelEntry => ({
  api: 'chat',
  pricing: [{ prompt_tokens_threshold: 0, input_price: input, output_price: 4e-6 }],
  ...more,
})

const compared = (models: { [model: string]: ModelEntry }, ...lists: List[]) =>
  compare([{ provider: 'maker', models }], lists, '2026-11-28')

describe('a comparison', () => {
  test('finds a price that two lists contradict, by an alias too', () => {
    const facts = { input_price: 1e-6, output_price: 4e-6 }
    const { disagreements, agreed } = compared(
      { m: priced(2e-6, { aliases: ['m-latest'] }) },
      listOf('a', { m: facts }),
      listOf('b', { 'm-latest': facts }),
    )
    expect(disagreements).toMatchObject([
      { model: 'm', fact: 'input_price', verdict: 'majority', ours: 2e-6, value: 1e-6 },
    ])
    expect(agreed).toEqual({ price: 1 })
  })

  test('uses the price in force on the day', () => {
    const changes = [{ from: '2026-11-01T00:00:00Z', pricing: priced(1e-6).pricing as [] }]
    const facts = { input_price: 1e-6 }
    const { disagreements } = compared(
      { m: priced(2e-6, { price_changes: changes }) },
      listOf('a', { m: facts }),
      listOf('b', { m: facts }),
    )
    expect(disagreements).toEqual([])
  })

  test('takes a context that is counted without the output for the same', () => {
    const facts = { context_window: 922_000 }
    const entry = priced(1e-6, { context_window: 1_050_000, max_output_tokens: 128_000 })
    expect(compared({ m: entry }, listOf('a', { m: facts }), listOf('b', { m: facts })).disagreements).toEqual([])
  })

  test('of a retired model is about its retirement alone', () => {
    const retired = priced(2e-6, { shutdown: '2026-10-16' })
    const facts = { input_price: 1e-6 }
    const { disagreements } = compared(
      { m: retired },
      listOf('a', { m: facts }, { prunes: true }),
      listOf('b', { m: facts }, { prunes: true }),
    )
    expect(disagreements).toMatchObject([{ fact: 'shutdown', verdict: 'majority', ours: '2026-10-16', value: 'none' }])
  })

  test('finds new models, without those that are retired or only in lists with a history', () => {
    const { newModels } = compared(
      { m: priced(1e-6) },
      listOf('a', { m: {}, new: {}, gone: { shutdown: '2026-11-01' } }),
      listOf('b', { new: {}, gone: {}, past: {} }, { history: true }),
      listOf('c', { older: {} }, { as_of: '2026-01-01' }),
    )
    expect(newModels).toMatchObject([{ model: 'new', origins: ['a', 'b'], api: 'chat' }])
  })

  test('knows a provider by the names of a list', () => {
    const theirs = (name: string, provider: string, names = {}) => ({
      ...listOf(name, {}, names),
      models: [{ provider, ids: ['m'] as [string], facts: { input_price: 1e-6 } }],
    })
    const catalog = { provider: 'maker', models: { m: priced(2e-6) }, listed_as: { litellm: 'maker_ai' } }
    const lists = [
      theirs('a', 'maker_ai', { listed_as: 'litellm' }),
      theirs('b', 'the-maker', { names: { maker: 'the-maker' } }),
      theirs('c', 'stranger'),
    ]
    const { disagreements } = compare([catalog], lists, '2026-11-28')
    expect(disagreements[0]?.votes.map(({ list }) => list)).toEqual(['a', 'b'])
  })
})

describe('a report', () => {
  const facts = { input_price: 1e-6, context_window: 10_000 }
  const entry = priced(2e-6, {
    context_window: 10_000,
    verified: { page: 'https://maker.example/prices', on: '2026-11-01' },
  })
  const comparison = () =>
    compared({ m: entry }, listOf('a', { m: facts, new: {} }), listOf('b', { m: facts, new: {} }))
  const exception = (more: Partial<Exception>): Exception => ({
    models: ['maker/m'],
    because: 'x',
    on: '2026-11-28',
    ...more,
  })

  test('counts by kind, and lists what is open', () => {
    const { open, missing, counts } = reportOf(comparison(), [])
    expect(open.map(({ fact }) => fact)).toEqual(['input_price'])
    expect(missing.map(({ model }) => model)).toEqual(['new'])
    expect(counts.price).toEqual({ agree: 0, open: 1, explained: 0, single: 0, contested: 0 })
    expect(counts.limit.agree).toBe(1)
  })

  test('leaves out what an exception explains, and names exceptions that explain nothing', () => {
    const used = exception({ facts: ['input_price'] })
    const ofNew = exception({ models: ['maker/n*'] })
    const stale = exception({ facts: ['context_window'] })
    const { open, missing, explained, stale: found } = reportOf(comparison(), [used, ofNew, stale])
    expect([open, missing, explained, found]).toEqual([[], [], 1, [stale]])
  })

  test('says which list states what, and against which page ours was checked', () => {
    const [first] = reportOf(comparison(), []).open
    expect(disagreementText(first as NonNullable<typeof first>)).toBe(
      `maker/m input_price: 2 $/M here; a 1 $/M (${newest}), b 1 $/M (${newest})
    ours was checked on 2026-11-01: https://maker.example/prices`,
    )
  })
})
