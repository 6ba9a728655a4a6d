import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import { CallMetrics } from '../../src/observe/call-metrics.ts'
import { writeMetrics } from '../../src/observe/exposition.ts'
import { bounded, type Family, Histogram } from '../../src/observe/families.ts'

const record = (facts: Partial<CallRecord> = {}): CallRecord => ({
  id: 'c',
  at: 0,
  organization: 'o1',
  key: 'k1',
  api: 'chat',
  operation: 'chat',
  requested: 'p/m',
  provider: 'p',
  model: 'm',
  stream: false,
  outcome: 'complete',
  status: 200,
  usage: { input: 10, output: 20, searches: 1 },
  cost: { nanoUsd: 1_500, parts: {}, priceVersion: '' },
  dropped: [],
  attempts: 1,
  durationMs: 812,
  ...facts,
})

function counted(records: readonly CallRecord[], settings: Partial<ConstructorParameters<typeof CallMetrics>[0]> = {}) {
  const metrics = new CallMetrics({ series: 1_000, labels: [], ...settings })
  for (const one of records) metrics.count(one)
  return metrics.families()
}

const samplesOf = (families: readonly Family[], name: string) =>
  families.find((family) => family.name === name)?.samples ?? []

describe('calls are counted', () => {
  test('by how they ended, with what they used and cost', () => {
    const families = counted([
      record(),
      record({ stream: true, firstEventMs: 112 }),
      record({
        outcome: 'failed',
        status: 502,
        error: 'provider_failed',
        usage: {},
        cost: { nanoUsd: 0, parts: {}, priceVersion: '' },
      }),
    ])
    const labels = { api: 'chat', operation: 'chat', provider: 'p', model: 'm' }
    expect(samplesOf(families, 'inference_router_calls_total')).toEqual([
      { labels: { ...labels, outcome: 'complete', code: '' }, value: 2 },
      { labels: { ...labels, outcome: 'failed', code: 'provider_failed' }, value: 1 },
    ])
    expect(samplesOf(families, 'inference_router_cost_usd_total').map(({ value }) => value)).toEqual([0.000003])
    expect(
      samplesOf(families, 'inference_router_tokens_total').map(({ labels, value }) => [labels.class, value]),
    ).toEqual([
      ['input', 20],
      ['output', 40],
      ['searches', 2],
    ])
    const counts = ['request_duration', 'time_to_first_token', 'time_per_output_token'].map(
      (what) =>
        samplesOf(families, `gen_ai_server_${what}_seconds`).findLast(({ name }) => name?.endsWith('_count'))?.value,
    )
    expect(counts).toEqual([3, 1, 1])
    const perToken = samplesOf(families, 'gen_ai_server_time_per_output_token_seconds')
    expect(perToken.find(({ name }) => name?.endsWith('_sum'))?.value).toBeCloseTo(0.7 / 19)
  })

  test('attempts by the class of their failure, and are no calls', () => {
    const failed = { outcome: 'failed', status: 502, error: 'provider_unreachable', failure: 'connection' } as const
    const families = counted([record({ attemptOf: 'c', ...failed }), record({ attempts: 2 })])
    expect(samplesOf(families, 'inference_router_calls_total').map(({ value }) => value)).toEqual([1])
    expect(samplesOf(families, 'inference_router_attempts_total')).toEqual([
      { labels: { provider: 'p', model: 'm', failure: 'connection' }, value: 1 },
      { labels: { provider: 'p', model: 'm', failure: '' }, value: 1 },
    ])
  })

  test('by organization and key only where that is asked for', () => {
    const [plain, told] = [[], ['organization', 'key'] as const].map((labels) => counted([record()], { labels }))
    expect(JSON.stringify(plain)).not.toContain('o1')
    expect(samplesOf(told ?? [], 'inference_router_cost_usd_total')[0]?.labels).toMatchObject({
      organization: 'o1',
      key: 'k1',
    })
  })

  test('however many models and organizations there are: what is too much is counted together', () => {
    const records = Array.from({ length: 500 }, (_, index) =>
      record({ model: `m${index}`, organization: `o${index}`, firstEventMs: 3 }),
    )
    const families = counted(records, { series: 20, labels: ['organization'] })
    for (const { samples } of families) {
      const models = new Set(samples.map(({ labels }) => labels.model ?? labels.gen_ai_request_model))
      expect(models.size).toBe(21)
      expect([...models].at(-1)).toBe('other')
    }
    const calls = samplesOf(families, 'inference_router_calls_total')
    expect(calls.length).toBe(21)
    expect(calls.reduce((sum, { value }) => sum + value, 0)).toBe(500)
    expect(calls.at(-1)?.labels.organization).toBe('other')
  })
})

test('rows that are texts count as they would one by one', () => {
  const some = <Value>(...values: Value[]) => fc.constantFrom(...values)
  const facts = fc.record(
    {
      organization: some('o1', 'o2'),
      key: some('k1', 'k2'),
      group: some('g1', 'g2'),
      model: some('m1', 'm2', 'm3'),
      outcome: some('complete', 'partial', 'failed'),
      error: some('provider_failed', 'provider_timeout'),
      failure: some('connection', 'timeout'),
      attemptOf: some('c1', 'c2'),
      usage: fc.record({ input: fc.nat(99), output: fc.nat(99), searches: fc.nat(9) }, { requiredKeys: [] }),
      cost: fc.nat(9_999).map((nanoUsd) => ({ nanoUsd, parts: {}, priceVersion: '' })),
      durationMs: fc.nat(99_999),
      firstEventMs: fc.nat(999),
    } as const,
    { requiredKeys: [] },
  )
  const labels = fc.subarray(['organization', 'key', 'group'] as const)
  const messages = fc.array(fc.array(facts, { minLength: 1, maxLength: 90 }), { maxLength: 9 })
  fc.assert(
    fc.property(messages, labels, some(2, 1_000), (sent, labels, series) => {
      const rows = sent.map((message) => message.map((one) => record(one as Partial<CallRecord>)))
      const metrics = new CallMetrics({ series, labels })
      for (const message of rows) metrics.countText(JSON.stringify(message))
      const all = (families: Family[]) =>
        families.map(({ name, samples }) => [
          name,
          // Sums of fractions depend on their order.
          samples.map(({ name: of, labels, value }) => JSON.stringify([of, labels, value.toFixed(6)])).toSorted(),
        ])
      expect(all(metrics.families())).toEqual(all(counted(rows.flat(), { series, labels })))
    }),
  )
})

describe('rows as text', () => {
  const rows = (count: number, facts: Partial<CallRecord> = {}) =>
    JSON.stringify(Array.from({ length: count }, () => record(facts)))
  const calls = (metrics: CallMetrics) =>
    samplesOf(metrics.families(), 'inference_router_calls_total').map(({ value }) => value)

  test('are counted once, however often somebody asks', () => {
    const metrics = new CallMetrics({ series: 1_000, labels: [] })
    for (let round = 1; round <= 5; round++) {
      metrics.countText(rows(3))
      expect([calls(metrics), calls(metrics)]).toEqual([[3 * round], [3 * round]])
    }
  })

  test('wait for somebody who asks, or until there are many', () => {
    const parse = vi.spyOn(JSON, 'parse')
    onTestFinished(() => parse.mockRestore())
    const metrics = new CallMetrics({ series: 1_000, labels: [] })
    // About 8 kB each.
    const text = rows(1, { requested: 'x'.repeat(8_000) })
    const most = Math.ceil((128 * 1024) / text.length)
    let messages = 0
    for (let round = 1; round <= 4; round++) {
      for (let message = 1; message < most; message++) metrics.countText(text)
      expect(parse).toHaveBeenCalledTimes(messages)
      metrics.countText(text)
      messages += most
      expect(parse).toHaveBeenCalledTimes(messages)
    }
    expect(calls(metrics)).toEqual([messages])
  })
})

describe('the text of metrics', () => {
  const families: Family[] = [
    { name: 'a_total', help: 'Has\na line.', type: 'counter', samples: [{ labels: { x: 'a"b\\c\nd' }, value: 3 }] },
    { name: 'b', help: 'B.', type: 'histogram', samples: new Histogram([1, 2]).samples('b', {}) },
    { name: 'c', help: 'C.', type: 'gauge', samples: [] },
  ]

  test('escapes what labels may not have', async () => {
    const { text, mediaType } = await writeMetrics(families)
    expect(mediaType).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(text.split('\n').slice(0, 5)).toEqual([
      '# HELP a_total Has\\na line.',
      '# TYPE a_total counter',
      'a_total{x="a\\"b\\\\c\\nd"} 3',
      '# HELP b B.',
      '# TYPE b histogram',
    ])
  })

  test('is OpenMetrics where that is asked for', async () => {
    const { text, mediaType } = await writeMetrics(families, 'application/openmetrics-text;version=1.0.0')
    expect(mediaType).toContain('application/openmetrics-text')
    expect(text).toContain('# TYPE a counter\na_total{')
    expect(text.endsWith('# EOF\n')).toBe(true)
  })

  test('is the same in one piece and in several', async () => {
    const samples = Array.from({ length: 1_200 }, (_, index) => ({ labels: { n: String(index) }, value: index }))
    const { text } = await writeMetrics([{ name: 'd', help: 'D.', type: 'gauge', samples }])
    const lines = text.trimEnd().split('\n')
    expect(lines.length).toBe(1_202)
    expect(new Set(lines).size).toBe(1_202)
    expect(lines.at(-1)).toBe('d{n="1199"} 1199')
  })
})

test('a histogram counts each value in the buckets that it fits into', () => {
  const histogram = new Histogram([1, 2])
  for (const value of [0.5, 1, 1.5, 7]) histogram.add(value)
  expect(histogram.samples('h', {}).map(({ value }) => value)).toEqual([2, 3, 4, 10, 4])
})

test('a gauge has so many label sets at most, and loses nothing of its sum', () => {
  const samples = Array.from({ length: 50 }, (_, index) => ({ labels: { limit: `p/m${index}` }, value: 2 }))
  const family: Family = { name: 'g', help: 'G.', type: 'gauge', samples }
  const { samples: left } = bounded(family, 10)
  expect([left.length, left.at(-1), left.reduce((sum, { value }) => sum + value, 0)]).toEqual([
    11,
    { labels: { limit: 'other' }, value: 80 },
    100,
  ])
  expect(bounded(family, 50)).toBe(family)
})
