import { describe, expect, test } from 'vitest'
import { listedIn, modelEntry } from '../../src/api/models/list.ts'
import type { ModelEntry } from '../../src/core/models/model.ts'

const chat: ModelEntry = {
  api: 'chat',
  created: 1_790_000_000,
  updated: 1_795_000_000,
  context_window: 400_000,
  max_output_tokens: 128_000,
  description: 'A model.',
  open_weights: false,
  model_lab: 'maker',
  model_canonical_name: 'm1',
  supports_vision: true,
  supports_tool_calling: false,
  data_retention: true,
  data_retention_days: 30,
  geolocation: 'us',
  aliases: ['m1-latest'],
  other_prices: { web_search_per_call: 0.01 },
  pricing: [
    {
      prompt_tokens_threshold: 200_000,
      input_price: 2.5e-6,
      output_price: 15e-6,
      cached_price: 2.5e-7,
      caching_price: 3e-6,
    },
    { prompt_tokens_threshold: 0, input_price: 1.25e-6, output_price: 10e-6, caching_1h_price: 2.5e-6 },
  ],
}

describe('a model entry', () => {
  test('has the published fields and no others; prices are numbers per token without gaps, tiers ascend', () => {
    expect(modelEntry('maker/m1', chat)).toEqual({
      api: 'chat',
      id: 'maker/m1',
      object: 'model',
      created: 1_790_000_000,
      updated: 1_795_000_000,
      owned_by: 'system',
      pricing: [
        {
          prompt_tokens_threshold: 0,
          input_price: 1.25e-6,
          caching_price: 1.25e-6,
          caching_5m_price: 1.25e-6,
          caching_1h_price: 2.5e-6,
          cached_price: 1.25e-6,
          output_price: 10e-6,
        },
        {
          prompt_tokens_threshold: 200_000,
          input_price: 2.5e-6,
          caching_price: 3e-6,
          caching_5m_price: 3e-6,
          caching_1h_price: 3e-6,
          cached_price: 2.5e-7,
          output_price: 15e-6,
        },
      ],
      max_output_tokens: 128_000,
      context_window: 400_000,
      supports_vision: true,
      supports_tool_calling: false,
      description: 'A model.',
      data_retention: true,
      data_retention_days: 30,
      data_used_for_training: true,
      privacy_comments: 'Not stated.',
      geolocation: 'us',
      open_weights: false,
      model_lab: 'maker',
      model_canonical_name: 'm1',
    })
  })

  test('of which little is known is whole all the same: what nobody states is as a careful reader assumes', () => {
    const { id, api, ...facts } = modelEntry('maker/m2', { api: 'chat' })
    expect({ id, api }).toEqual({ id: 'maker/m2', api: 'chat' })
    expect(facts).toEqual({
      object: 'model',
      created: 0,
      updated: 0,
      owned_by: 'system',
      pricing: [],
      description: 'maker/m2',
      data_retention: true,
      data_retention_days: 0,
      data_used_for_training: true,
      privacy_comments: 'Not stated.',
      geolocation: 'global',
      open_weights: false,
      model_lab: 'unknown',
      model_canonical_name: 'm2',
    })
    expect(modelEntry('maker/i1', { api: 'image' })).not.toHaveProperty('open_weights')
    expect(modelEntry('maker/m2', { api: 'chat', created: 5 })).toMatchObject({ created: 5, updated: 5 })
  })

  test('has flat prices on request: those of the lowest tier', () => {
    expect(modelEntry('maker/m1', chat, true)).toMatchObject({
      input_price: 1.25e-6,
      caching_price: 1.25e-6,
      cached_price: 1.25e-6,
      output_price: 10e-6,
    })
    expect(modelEntry('maker/m1', chat)).not.toHaveProperty('input_price')
    expect(modelEntry('maker/i1', { api: 'image' }, true)).toMatchObject({ input_price: 0, output_price: 0 })
  })

  test('of a decision model has its prices as an object', () => {
    const pricing = [{ prompt_tokens_threshold: 0, input_price: 1e-7, output_price: null }]
    expect(modelEntry('maker/d1', { api: 'decision', pricing })).toMatchObject({ pricing: { input: 1e-7, output: 0 } })
  })

  test('does not change the catalog', () => {
    const before = structuredClone(chat)
    modelEntry('maker/m1', chat, true)
    expect(chat).toEqual(before)
  })
})

describe('a model list', () => {
  const models = [
    { id: 'maker/m2', entry: { ...chat, api: 'image' } },
    { id: 'maker/m1', entry: chat },
  ]
  const ids = (list: { id: string }[]) => list.map(({ id }) => id)

  test('is sorted by id', () => {
    expect(ids(listedIn(models))).toEqual(['maker/m1', 'maker/m2'])
  })

  test('has one modality on request', () => {
    expect(ids(listedIn(models, { api: 'chat' }))).toEqual(['maker/m1'])
  })

  test('may be empty', () => {
    expect(listedIn([], {})).toEqual([])
  })
})

test('a list without names has no alias and no policy', () => {
  const models = [
    { id: 'maker/m1', entry: { ...chat, api: 'decision' } },
    { id: 'judge', entry: { ...chat, api: 'decision' }, isName: true },
  ]
  const idsOf = (form: object) => listedIn(models, form).map(({ id }) => id)
  expect(idsOf({ api: 'decision', names: false })).toEqual(['maker/m1'])
  expect(idsOf({ api: 'decision' })).toEqual(['judge', 'maker/m1'])
  expect(idsOf({ api: 'chat' })).toEqual([])
})
