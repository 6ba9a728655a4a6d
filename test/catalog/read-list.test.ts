import { expect, test } from 'vitest'
import { type CatalogFile, readList } from '../../src/catalog/read-list.ts'
import { readSource } from '../../src/manifest/read/source.ts'
import { loadCatalog } from '../../src/snapshot/load-files.ts'

const file: CatalogFile = {
  provider: 'maker',
  defaults: {
    api: 'chat',
    geolocation: 'eu',
    data_retention: false,
    supports_vision: true,
    multipliers: { priority: 2 },
  },
  models: { talker: { context_window: 10 } },
  by_api: {
    embedding: { defaults: { max_inputs: 5, geolocation: 'us' }, models: { e1: { dimensions: 8 } } },
    decision: { models: { d1: { pricing: { input: 1e-6 } }, d2: { pricing: { input: 1e-6, output: 2e-6 } } } },
  },
}

test('models of other APIs have the facts of the provider, not those of its chat models', () => {
  const { models, findings } = readList(file)
  expect(findings).toEqual([])
  expect(models.e1).toEqual({
    api: 'embedding',
    geolocation: 'us',
    data_retention: false,
    max_inputs: 5,
    dimensions: 8,
  })
  expect(models.talker).toMatchObject({ api: 'chat', supports_vision: true, context_window: 10 })
})

test('prices of input and output are one tier', () => {
  const { models } = readList(file)
  expect(models.d1?.pricing).toEqual([{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 0 }])
  expect(models.d2?.pricing).toEqual([{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 2e-6 }])
})

test('a model is listed once, and problems lead to its place', () => {
  const text = [
    'provider: maker',
    'models:',
    '  twice: { api: chat }',
    'by_api:',
    '  image:',
    '    models:',
    '      twice: { other_prices: { per_image: 1 } }',
    '      odd: { other_prices: { per_frame: 1 } }',
  ].join('\n')
  const { problems } = loadCatalog(readSource('catalog/maker.yaml', text))
  expect(problems.map(({ line, message }) => `${line} ${message.slice(0, 40)}`)).toEqual([
    '8 no usage is billed at `per_frame`; the n',
    '7 `twice` is listed already: a model has o',
  ])
  const wrong = loadCatalog(
    readSource('catalog/maker.yaml', 'provider: maker\nmodels: {}\nby_api: { painting: { models: {} } }'),
  )
  expect(wrong.problems).not.toEqual([])
})

test('a successor and a snapshot are models of the same list', () => {
  const models = {
    old: { successor: 'new', snapshot: 'e1' },
    new: { aliases: ['newest'] },
    older: { successor: 'newest' },
  }
  expect(readList({ ...file, models }).findings).toEqual([])
  const { findings } = readList({ ...file, models: { old: { successor: 'gone' } } })
  expect(findings).toEqual([
    { path: ['models', 'old', 'successor'], message: '`successor` names `gone`, which is not listed here' },
  ])
})
