import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import { findingsIn } from '../../src/catalog/findings.ts'
import { type ModelIds, readForm } from '../../src/catalog/model-ids.ts'
import type { ModelEntry, PriceChange, PricingTier } from '../../src/core/models/model.ts'

const chat = { api: 'chat' }
const tier = (threshold: number): PricingTier => ({
  prompt_tokens_threshold: threshold,
  input_price: 1,
  output_price: 2,
})

test('a model is found by its id and by its aliases, of its own provider only', () => {
  const { find } = createCatalog([
    { provider: 'a', models: { big: { ...chat, aliases: ['big-latest'] } } },
    { provider: 'b', models: { small: chat } },
  ])
  expect(find('a', 'big')).toBe(find('a', 'big-latest'))
  expect(find('a', 'small')).toBeUndefined()
  expect(find('c', 'big')).toBeUndefined()
})

test('an id goes before an alias of the same name', () => {
  const { find } = createCatalog([
    {
      provider: 'a',
      models: { one: { ...chat, aliases: ['two'], description: 'one' }, two: { ...chat, description: 'two' } },
    },
  ])
  expect(find('a', 'two')?.description).toBe('two')
})

test('of two entries of a model the later one wins, fact by fact, and the model is listed once', () => {
  const { find, list } = createCatalog([
    { provider: 'a', models: { m: { ...chat, context_window: 10, description: 'early' } } },
    { provider: 'a', models: { m: { ...chat, description: 'late' } } },
  ])
  expect(find('a', 'm')).toEqual({ api: 'chat', context_window: 10, description: 'late' })
  expect(list()).toEqual([{ provider: 'a', model: 'm', entry: find('a', 'm') }])
})

test('an entry with prices of its own is rid of the price changes of the one below it', () => {
  const price_changes = [{ from: '2026-12-01T00:00:00Z', pricing: [tier(0)] }]
  const below = { provider: 'a', models: { m: { ...chat, pricing: [tier(0)], price_changes } } }
  const over = (own: Partial<ModelEntry>) =>
    createCatalog([below, { provider: 'a', models: { m: { ...chat, ...own } } }]).find('a', 'm')?.price_changes
  expect(over({ context_window: 5, multipliers: { flex: 1 } })).toEqual(price_changes)
  expect(over({ pricing: [] })).toBeUndefined()
  expect(over({ pricing: [], price_changes })).toEqual(price_changes)
  expect(over({ price_changes: [] })).toEqual([])
})

describe('other ids of a model', () => {
  const models = {
    'Big-1': { ...chat, pricing: [tier(0)] },
    small: chat,
    mine: { is: 'Big-1', context_window: 5 } as ModelEntry,
  }
  const list = { provider: 'a', models }
  const ids = (ignore: ('case' | 'blanks')[], ...forms: string[]): ModelIds => ({
    ignore: new Set(ignore),
    forms: forms.map((form) => readForm(form) as RegExp),
  })
  const catalog = (own: ModelIds) => createCatalog([list], new Map([['a', own]]))

  test('are those that the provider takes for it: it is sent the listed one', () => {
    const { identify, find } = catalog(ids(['case', 'blanks']))
    for (const id of ['big-1', 'BIG-1', ' Big-1\t']) {
      expect(identify('a', id), id).toEqual({ model: 'Big-1', name: 'Big-1', is: 'Big-1', entry: find('a', 'Big-1') })
    }
    expect(catalog(ids(['case'])).find('a', 'big-1 ')).toBeUndefined()
    expect(catalog(ids(['blanks'])).find('a', ' small')).toBeDefined()
    for (const id of ['big-1', 'Big-1 ']) expect(createCatalog([list]).find('a', id), id).toBeUndefined()
  })

  test('may be inside of a resource name, which is sent as it is', () => {
    const { identify } = catalog(ids([], 'arn:*:models:*:*:model/{model}'))
    const arn = 'arn:x:models:eu-1:123:model/Big-1'
    expect(identify('a', arn)).toMatchObject({ model: arn, name: 'Big-1', is: 'Big-1' })
    for (const other of [`${arn}0`, `x${arn}`, 'arn:x:models:eu/1:123:model/Big-1', 'arn:x:models:eu-1:model/Big-1'])
      expect(identify('a', other), other).toBeUndefined()
  })

  test('may be those of deployments, which have the facts of the model that they are', () => {
    const { identify, list: listed } = catalog(ids(['case']))
    expect(identify('a', 'MINE')).toEqual({
      model: 'mine',
      name: 'mine',
      is: 'Big-1',
      entry: { api: 'chat', is: 'Big-1', context_window: 5, pricing: [tier(0)] },
    })
    expect(listed().map(({ model }) => model)).toEqual(['Big-1', 'small', 'mine'])
  })

  test('are any, where an entry is for all: it is not listed, and no other model is mixed up with one of them', () => {
    const { identify, list: listed } = createCatalog([
      list,
      { provider: 'a', models: { '*': { ...chat, created: 1 } } },
    ])
    expect(identify('a', 'other')).toMatchObject({ model: 'other', name: 'other', entry: { created: 1 } })
    expect(identify('a', 'small')?.entry.created).toBeUndefined()
    expect(listed().map(({ model }) => model)).not.toContain('*')
  })

  test('have forms with one place for the id', () => {
    expect([readForm('a/{model}/b/{model}'), readForm('a/b')]).toEqual([undefined, undefined])
  })
})

test('names that every object has are no models', () => {
  const { find } = createCatalog([{ provider: 'a', models: {} }])
  expect(find('a', 'constructor')).toBeUndefined()
  expect(find('toString', 'x')).toBeUndefined()
})

test('tiers begin at 0 and ascend', () => {
  expect(findingsIn({ m: { ...chat, pricing: [tier(0), tier(100), tier(200)] } })).toEqual([])
  expect(findingsIn({ m: { ...chat, pricing: [] } })).toEqual([])
  expect(findingsIn({ m: { ...chat, pricing: [tier(5), tier(5), tier(1)] } })).toEqual([
    { path: ['m', 'pricing', 0, 'prompt_tokens_threshold'], message: 'the first tier must have threshold 0, not 5' },
    { path: ['m', 'pricing', 1, 'prompt_tokens_threshold'], message: 'tiers must ascend: the threshold 5 follows 5' },
    { path: ['m', 'pricing', 2, 'prompt_tokens_threshold'], message: 'tiers must ascend: the threshold 1 follows 5' },
  ])
})

test('a price change needs new prices and a period of existing times', () => {
  const found = (change: PriceChange) =>
    findingsIn({ m: { ...chat, price_changes: [change] } }).map(({ path, message }) => `${path.join('.')} ${message}`)
  const at = 'm.price_changes.0'
  const pricing = [tier(0)]
  const [november, december] = ['2026-11-01T00:00:00Z', '2026-12-01T00:00:00Z']
  expect(found({ from: november, until: december, pricing })).toEqual([])
  expect(found({ weekly: { hours: ['09:00-12:00', '22:00-24:00'] }, other_prices: { per_image: 1 } })).toEqual([])
  expect(found({ until: december, multipliers: {} })).toEqual([])
  expect(found({ from: november })).toEqual([
    `${at} a price change needs what it changes: \`pricing\`, \`other_prices\`, \`image_prices\` or \`multipliers\``,
  ])
  expect(found({ pricing })).toEqual([
    `${at} a price change needs a time when it applies: \`from\`, \`until\` or \`weekly\``,
  ])
  expect(found({ from: '2026-02-30T00:00:00Z', pricing })).toEqual([
    `${at}.from 2026-02-30T00:00:00Z is not a valid time`,
  ])
  expect(found({ from: december, until: november, pricing })).toEqual([
    `${at}.until \`until\` must be after \`from\`, 2026-12-01T00:00:00Z`,
  ])
  expect(found({ weekly: { hours: ['09:00-12:00', '22:00-06:00'] }, pricing })).toEqual([
    `${at}.weekly.hours.1 22:00-06:00 must end after it begins; split hours past midnight between two days`,
  ])
  expect(found({ from: november, pricing: [tier(3)] })).toEqual([
    `${at}.pricing.0.prompt_tokens_threshold the first tier must have threshold 0, not 3`,
  ])
})

test('every model has an api, and a name belongs to one model', () => {
  expect(findingsIn({ m: {}, n: { ...chat, aliases: ['m', 'x'] }, o: { ...chat, aliases: ['x'] } })).toEqual([
    { path: ['m'], message: '`m` needs `api`, such as chat' },
    { path: ['n', 'aliases', 0], message: 'the alias `m` already names the model `m`' },
    { path: ['o', 'aliases', 0], message: 'the alias `x` already names the model `n`' },
  ])
})
