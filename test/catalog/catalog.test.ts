import { expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import { findingsIn } from '../../src/catalog/findings.ts'
import type { PricingTier } from '../../src/core/model.ts'

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

test('every model says what it does, and a name belongs to one model', () => {
  expect(findingsIn({ m: {}, n: { ...chat, aliases: ['m', 'x'] }, o: { ...chat, aliases: ['x'] } })).toEqual([
    { path: ['m'], message: '`m` needs `api`, such as chat' },
    { path: ['n', 'aliases', 0], message: 'the alias `m` already names the model `m`' },
    { path: ['o', 'aliases', 0], message: 'the alias `x` already names the model `n`' },
  ])
})
