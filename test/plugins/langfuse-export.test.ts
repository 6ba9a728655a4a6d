import { openPlugin, type TestCall } from 'inference-router/plugin/test'
import { afterAll, describe, expect, test } from 'vitest'
import { Batches } from '../../plugins/langfuse-export/batches.ts'
import { boundedJson } from '../../plugins/langfuse-export/bounded-json.ts'
import langfuseExport from '../../plugins/langfuse-export/index.ts'
import { type PluginWorld, pluginWorld } from '../e2e/plugins/plugin-world.ts'
import { type JsonSpan, readOtlpJson } from '../helpers/otlp-json.ts'
import { answerJson, loopbackProvider } from '../helpers/provider.ts'

const secrets = { LANGFUSE_PUBLIC_KEY: 'pk-lf-1', LANGFUSE_SECRET_KEY: 'sk-lf-1' }
type Sent = { url: string; headers: Record<string, string>; spans: JsonSpan[] }

async function exported(options: object, ...calls: TestCall[]) {
  const sent: Sent[] = []
  const tested = await openPlugin(langfuseExport, {
    options: { every_seconds: 3_600, ...options },
    secrets,
    fetch: async (url, { body, headers } = {}) => {
      const spans = readOtlpJson(JSON.parse(String(body)))
      sent.push({ url: String(url), headers: headers as Record<string, string>, spans })
      return Response.json({})
    },
  })
  for (const call of calls) await tested.call(call)
  await tested[Symbol.asyncDispose]()
  const spans = sent.flatMap(({ spans }) => spans)
  return { sent, tested, spans, attributes: spans[0]?.attributes ?? {} }
}

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const trace = { traceId, spanId: '00f067aa0ba90200', isSampled: false }

describe('langfuse-export', () => {
  test('sends a call as a generation over OTLP, without its contents', async () => {
    const record = {
      at: 1_000,
      durationMs: 500,
      firstEventMs: 100,
      user: 'anna',
      metadata: { session_id: 's', tags: 'a, b', topic: 'maps', key: 'forged' },
      trace,
      usage: { input: 10, cache_read: 4, output: 3, reasoning: 2, searches: 1, seconds: 1.5 },
      cost: { nanoUsd: 2_000_000, parts: { input: 500_000, cache_read: 500_000, output: 1_000_000 }, priceVersion: '' },
    }
    const body = { temperature: 0.5, messages: ['private words'], stop: 'private words' }
    const { sent, spans, attributes } = await exported(
      { environment: 'staging', release: 'v7' },
      { text: 'private words', facts: { body }, record },
    )
    expect(sent).toMatchObject([
      {
        url: 'https://cloud.langfuse.com/api/public/otel/v1/traces',
        headers: {
          authorization: `Basic ${btoa('pk-lf-1:sk-lf-1')}`,
          'content-type': 'application/json',
          'x-langfuse-ingestion-version': '4',
        },
      },
    ])
    expect(spans).toMatchObject([
      {
        traceId,
        spanId: trace.spanId,
        name: 'chat',
        startMs: 1_000,
        endMs: 1_500,
        status: {},
        resource: {
          'service.name': 'inference-router',
          'langfuse.environment': 'staging',
          'langfuse.release': 'v7',
        },
      },
    ])
    expect(spans[0]).not.toHaveProperty('parentSpanId')
    expect(attributes).toMatchObject({
      'langfuse.observation.type': 'generation',
      'langfuse.observation.model.name': 'model',
      'langfuse.observation.model.parameters': '{"temperature":0.5}',
      'langfuse.observation.completion_start_time': '1970-01-01T00:00:01.100Z',
      'langfuse.observation.level': 'DEFAULT',
      'langfuse.observation.metadata.topic': 'maps',
      'langfuse.observation.metadata.key': 'key-1',
      'langfuse.observation.metadata.call': 'call-1',
      'langfuse.trace.name': 'acme/model',
      'langfuse.trace.tags': ['a', 'b'],
      'user.id': 'anna',
      'session.id': 's',
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'acme',
      'gen_ai.request.model': 'acme/model',
    })
    expect(JSON.parse(`${attributes['langfuse.observation.usage_details']}`)).toEqual({
      ...{ input: 10, input_cache_read: 4, output: 3, output_reasoning: 2, searches: 1 },
      total: 19,
    })
    expect(JSON.parse(`${attributes['langfuse.observation.cost_details']}`)).toEqual({
      ...{ input: 0.000_5, input_cache_read: 0.000_5, output: 0.001 },
      total: 0.002,
    })
    expect(JSON.stringify(sent)).not.toContain('private words')
  })

  test('a trace that the client began keeps its name and is the parent', async () => {
    const parentId = '00f067aa0ba902b7'
    const { spans, attributes } = await exported({}, { record: { trace: { ...trace, parentId } } })
    expect(spans).toMatchObject([{ traceId, parentSpanId: parentId }])
    expect(attributes).not.toHaveProperty('langfuse.trace.name')
  })

  test('the header x-session-id names the session where the body has none', async () => {
    const { attributes } = await exported({}, { facts: { headers: { 'x-session-id': 'from-header' } } })
    expect(attributes['session.id']).toBe('from-header')
  })

  test('contents are sent if the operator enables them, up to a length', async () => {
    const { attributes } = await exported({ contents: true }, { text: 'Hello', answer: 'Well.', stream: [2] })
    expect(JSON.parse(`${attributes['langfuse.observation.input']}`)).toMatchObject([
      { role: 'user', parts: [{ text: 'Hello' }] },
    ])
    expect(JSON.parse(`${attributes['langfuse.observation.output']}`)).toMatchObject([{ type: 'text', text: 'Well.' }])
    const long = await exported({ contents: true, max_content_characters: 80 }, { text: 'x'.repeat(90) })
    expect(long.attributes['langfuse.observation.input']).toBe('[more than 80 characters]')
  })

  test('failures are errors with their code and message', async () => {
    const record = { outcome: 'failed', status: 502, error: 'provider_timeout', message: 'No answer.' } as const
    const { spans, attributes } = await exported({}, { record })
    expect(spans[0]?.status).toEqual({ code: 2, message: 'provider_timeout' })
    expect(attributes).toMatchObject({
      'langfuse.observation.level': 'ERROR',
      'langfuse.observation.status_message': 'provider_timeout: No answer.',
      'langfuse.observation.metadata.status': 502,
    })
  })

  test('needs its keys', async () => {
    await expect(openPlugin(langfuseExport)).rejects.toThrow('LANGFUSE_PUBLIC_KEY')
  })
})

test('a value is written up to a bound, and one that is far too long is never written', () => {
  expect(boundedJson([{ a: 'b' }], 20)).toBe('[{"a":"b"}]')
  expect(boundedJson([1, 2, 3], 5)).toBe('[7 characters]')
  const unwritable = { text: 'x'.repeat(30), toJSON: () => expect.fail('it was written') }
  expect(boundedJson(unwritable, 20)).toBe('[more than 20 characters]')
})

describe('batches', () => {
  const logged: unknown[] = []
  const log = { error: (facts: object, message: string) => void logged.push({ ...facts, message }) }
  const opened = (answers: (number | Response)[], bounds: object = {}) => {
    const sizes: number[] = []
    logged.length = 0
    const usual = { every_seconds: 0.01, attempts: 4, max_waiting: 1_000, max_waiting_characters: 10_000_000 }
    const batches = new Batches({ ...usual, firstPauseMs: 5, log, ...bounds }, async (batch) => {
      sizes.push(batch.length)
      const answer = answers.shift() ?? 200
      return answer instanceof Response ? answer : new Response('{}', { status: answer })
    })
    const add = (text = '{}') => batches.add({ text: () => text, size: text.length })
    return { batches, sizes, add }
  }

  test('are sent together, and again where that may help', async () => {
    // So long that all of them are there before the first batch, however busy the machine is.
    const { batches, sizes, add } = opened([500, 429], { every_seconds: 0.3 })
    for (let call = 0; call < 10; call++) add()
    await expect.poll(() => sizes).toEqual([10, 10, 10])
    expect(logged).toEqual([])
    add()
    await batches.close()
    expect(sizes.at(-1)).toBe(1)
  })

  test('wait as long as the receiver asks', async () => {
    const busy = new Response('{}', { status: 503, headers: { 'retry-after': '1' } })
    const { batches, sizes, add } = opened([busy])
    add()
    await expect.poll(() => sizes.length).toBe(1)
    const at = performance.now()
    await expect.poll(() => sizes.length, { timeout: 10_000 }).toBe(2)
    expect(performance.now() - at).toBeGreaterThan(500)
    await batches.close()
  })

  test('that fail are counted in one line a minute, and the next ones are sent', async () => {
    const { batches, sizes, add } = opened([401, 401, 401])
    for (const sent of [1, 2, 3, 4]) {
      add()
      await expect.poll(() => sizes.length).toBe(sent)
    }
    expect(logged).toMatchObject([{ status: 401, calls: 1, message: 'calls were not exported' }])
    await batches.close()
    expect(logged).toMatchObject([{ calls: 1 }, { status: 401, calls: 2 }])
  })

  test('of which spans are rejected are counted', async () => {
    const partial = Response.json({ partialSuccess: { rejectedSpans: '2', errorMessage: 'no ids' } })
    const { batches, add } = opened([partial])
    for (let call = 0; call < 5; call++) add()
    await expect.poll(() => logged).toMatchObject([{ calls: 2, error: 'no ids' }])
    await batches.close()
  })

  test('are no larger than is accepted at once, and the calls that wait are bounded in number and memory', async () => {
    const { batches, sizes, add } = opened([], { max_waiting: 5, every_seconds: 60 })
    for (let call = 0; call < 8; call++) add('x'.repeat(400_000))
    await batches.close()
    expect(sizes).toEqual([2, 2, 1])
    expect(logged).toMatchObject([
      { calls: 1, reason: 'too many calls were waiting' },
      { calls: 2, reason: 'too many calls were waiting' },
    ])
    const small = opened([], { max_waiting_characters: 1_000, every_seconds: 60 })
    for (let call = 0; call < 8; call++) small.add('x'.repeat(400))
    await small.batches.close()
    expect(small.sizes).toEqual([2])
    expect(logged).toMatchObject([{ calls: 1 }, { calls: 5 }])
  })

  test('are given up at the end if the receiver does not answer', async () => {
    const { batches, sizes, add } = opened(Array(20).fill(500), { every_seconds: 60 })
    for (let call = 0; call < 8; call++) add('x'.repeat(400_000))
    await batches.close()
    expect(sizes).toEqual([2, 2])
    expect(logged).toMatchObject([{ calls: 8, status: 500 }])
  })
})

const open: PluginWorld[] = []
afterAll(async () => {
  for (const world of open) await world.end()
})

test('through the router: whole and streamed calls, in the trace of the client', async () => {
  const langfuse = await loopbackProvider((_, response) => answerJson(response, {}))
  const { host } = new URL(langfuse.url)
  const options = { url: langfuse.url, contents: true, every_seconds: 0.05, public_key: '$LF_PK', secret_key: '$LF_SK' }
  const world = await pluginWorld(
    {},
    { settings: { plugins: [{ name: 'langfuse-export', options, fetch: [host] }] }, env: { LF_PK: 'p', LF_SK: 's' } },
  )
  open.push(world)
  await world.ask()
  await world.ask({ stream: true }, { traceparent: `00-${traceId}-00f067aa0ba902b7-01` })
  const spans = () => langfuse.received.flatMap(({ body }) => readOtlpJson(body))
  await expect.poll(() => spans().length).toBe(2)
  expect(new Set(langfuse.received.map(({ path }) => path))).toEqual(new Set(['/api/public/otel/v1/traces']))
  const rows = await world.rows()
  for (const { attributes } of spans()) {
    expect(JSON.parse(`${attributes['langfuse.observation.output']}`)).toMatchObject([
      { type: 'text', text: 'Hi you.' },
    ])
  }
  expect(spans().map(({ attributes }) => attributes['langfuse.observation.metadata.call'])).toEqual(
    rows.map(({ id }) => id),
  )
  expect(spans()[0]?.traceId).toBe(rows[0]?.id.replaceAll('-', ''))
  expect(spans()[1]).toMatchObject({ traceId, parentSpanId: '00f067aa0ba902b7' })
  expect(JSON.parse(`${spans()[0]?.attributes['langfuse.observation.usage_details']}`)).toEqual({
    ...{ input: 3, output: 2, total: 5 },
  })
  expect(JSON.parse(`${spans()[0]?.attributes['langfuse.observation.cost_details']}`).total).toBe(0.000_01)
  await langfuse.close()
})
