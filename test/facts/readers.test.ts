import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readExceptions } from '../../tools/facts/exceptions.ts'
import { factNames } from '../../tools/facts/listed.ts'
import { listSources, readList } from '../../tools/facts/lists.ts'
import { readGenaiPrices } from '../../tools/facts/readers/genai-prices.ts'
import { readLitellm } from '../../tools/facts/readers/litellm.ts'
import { readModelPrices, readModelsDev, readPiAi } from '../../tools/facts/readers/models-dev.ts'
import { readLlmGateway, readLlmPrices, readPortkey } from '../../tools/facts/readers/others.ts'
import { readPython } from '../../tools/facts/readers/python.ts'

describe('a list is read', () => {
  test('from LiteLLM, with multipliers, pages and the date of retirement', () => {
    const entry = {
      litellm_provider: 'openai',
      mode: 'responses',
      input_cost_per_token: 2e-6,
      input_cost_per_token_flex: 1e-6,
      output_cost_per_token: 8e-6,
      cache_creation_input_token_cost_above_12hr: 5e-6,
      max_input_tokens: 1_000,
      max_output_tokens: 100,
      supports_vision: true,
      deprecation_date: '2027-01-14',
      deprecation_source: 'https://provider.example/deprecations',
      source: 'https://provider.example/pricing',
    }
    const sample = { litellm_provider: 'one of https://docs.example', mode: 'chat' }
    expect(readLitellm({ 'openai/m': entry, sample_spec: sample })).toEqual([
      {
        provider: 'openai',
        ids: ['m'],
        api: 'chat',
        facts: {
          input_price: 2e-6,
          output_price: 8e-6,
          caching_1h_price: 5e-6,
          flex: 0.5,
          context_window: 1_000,
          max_output_tokens: 100,
          supports_vision: true,
          shutdown: '2027-01-14',
        },
        page: 'https://provider.example/pricing',
        retirementPage: 'https://provider.example/deprecations',
      },
    ])
  })

  test('from genai-prices, with the price in force on the day', () => {
    const text = `"""Text."""
providers: list[Provider] = [
    Provider(id='maker', models=[
        ModelInfo(id='m', match=ClauseOr(or_=[ClauseEquals(equals='m-0'), ClauseRegex(regex='^m-\\\\d')]),
            context_window=1_000,
            prices=[
                ConditionalPrice(prices=ModelPrice(input_mtok=Decimal('2'))),
                ConditionalPrice(constraint=StartDateConstraint(start_date=datetime.date(2026, 10, 29)),
                    prices=ModelPrice(input_mtok=TieredPrices(base=Decimal('0.7'), tiers=[Tier(start=200, price=Decimal('1.4'))]))),
                ConditionalPrice(constraint=StartDateConstraint(start_date=datetime.date(2026, 12, 1)),
                    prices=ModelPrice(input_mtok=Decimal('9'))),
            ],
            price_variants=[PriceVariant(when={'processing': 'batch'}, prices=ModelPrice(input_mtok=Decimal('0.35')))],
        ),
    ]),
]
`
    const [model] = readGenaiPrices(text, '2026-11-28')
    expect(model?.ids).toEqual(['m', 'm-0'])
    expect(model?.facts).toEqual({ input_price: expect.closeTo(0.7e-6, 12), batch: 0.5, context_window: 1_000 })
  })

  test('from models.dev, pi-ai and model-prices', () => {
    const cost = { input: 2, output: 8, cache_read: 0 }
    const entry = { cost, limit: { context: 1_000 }, modalities: { input: ['text', 'image'] }, reasoning: false }
    const facts = { input_price: expect.closeTo(2e-6, 12), output_price: expect.closeTo(8e-6, 12) }
    const limits = { context_window: 1_000, supports_vision: true, supports_reasoning: false }
    expect(readModelsDev({ maker: { models: { m: entry } } })[0]?.facts).toEqual({ ...facts, ...limits })
    const chat = { id: 'm', type: 'chat', provider: 'maker', cost: { input: 2, output: 8 }, contextWindow: 1_000 }
    const own = { ...chat, input: ['text', 'image'], reasoning: false }
    const other = { ...chat, type: 'classifier' }
    const read = readPiAi({ 'openai-responses': { 'chat:m': own, 'classifier:m': other } })
    expect(read).toMatchObject([{ provider: 'maker', ids: ['m'], facts: { ...facts, ...limits } }])
    const standard = [
      { start: null, rates: { input: 9, output: 9 } },
      { start: '2026-10-01T00:00:00Z', rates: { input: 2, output: 8, source: 'https://maker.example' } },
      { start: '2026-12-01T00:00:00Z', rates: { input: 9, output: 9 } },
    ]
    const [model] = readModelPrices({ prices: { maker: { m: { standard } } } }, '2026-11-28')
    expect(model).toMatchObject({ provider: 'maker', page: 'https://maker.example', facts })
  })

  test('from llmgateway, Portkey and llm-prices', () => {
    const facts = { input_price: expect.closeTo(2e-6, 12), output_price: expect.closeTo(8e-6, 12) }
    const at = { providerId: 'maker', externalId: 'm', inputPrice: '2e-6', outputPrice: '8e-6' }
    const elsewhere = { ...at, region: 'eu' }
    expect(readLlmGateway([{ providers: [at, elsewhere] }])).toEqual([{ provider: 'maker', ids: ['m'], facts }])
    const rates = { request_token: { price: 0.0002 }, response_token: { price: 0.0008 } }
    const portkey = { default: {}, m: { pricing_config: { pay_as_you_go: rates } } }
    expect(readPortkey(portkey, 'maker')).toEqual([{ provider: 'maker', ids: ['m'], facts }])
    const history = [
      { input: 9, output: 9, to_date: '2026-01-01' },
      { input: 2, output: 8, to_date: null },
    ]
    const list = { vendor: 'maker', models: [{ id: 'm', price_history: history }] }
    expect(readLlmPrices(list)).toEqual([{ provider: 'maker', ids: ['m'], facts }])
  })
})

test('data in Python is read without running it', () => {
  const text = `f(1, name='a' "b", list=[True, None, -1.5e3], map={'x': (2), 'y': (1, 2)}, # a comment
    text="it's \\"so\\"\\n", inner=g())`
  expect(readPython(text)).toEqual({
    call: 'f',
    0: 1,
    name: 'ab',
    list: [true, null, -1_500],
    map: { x: 2, y: [1, 2] },
    text: 'it\'s "so"\n',
    inner: { call: 'g' },
  })
  expect(() => readPython('[x for x in y]')).toThrow('neither , nor ]')
  expect(() => readPython('f(')).toThrow('cannot be read')
})

test('a list that is not there is undefined, and one file is enough', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'facts-'))
  const source = { name: 'a', origin: 'a', as_of: '2026-11-20', format: 'models-dev', path: 'dist/api.json' }
  expect(await readList(source, join(folder, 'missing'), '2026-11-28')).toBeUndefined()
  const text = JSON.stringify({ maker: { models: { m: { cost: { input: 1 } } } } })
  mkdirSync(join(folder, 'dist'))
  writeFileSync(join(folder, 'dist/api.json'), text)
  expect((await readList(source, folder, '2026-11-28'))?.models).toHaveLength(1)
  expect((await readList(source, join(folder, 'dist/api.json'), '2026-11-28'))?.models).toHaveLength(1)
})

test('at least four lists of different origin are known, and each exception has a day', () => {
  const packages = listSources().filter((source) => source.package)
  expect(new Set(packages.map(({ origin }) => origin)).size).toBeGreaterThanOrEqual(4)
  for (const { on, because, facts = [] } of readExceptions()) {
    expect(on).toMatch(/^\d{4}-\d\d-\d\d$/)
    expect(because).not.toBe('')
    for (const fact of facts) expect(factNames).toContain(fact)
  }
})
