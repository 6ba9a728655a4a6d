import { openPlugin, type TestCall } from 'inference-router/plugin/test'
import { afterAll, describe, expect, test } from 'vitest'
import { Batches } from '../../plugins/langfuse-export/batches.ts'
import langfuseExport from '../../plugins/langfuse-export/index.ts'
import { type PluginWorld, pluginWorld } from '../e2e/plugins/plugin-world.ts'
import { answerJson, loopbackProvider } from '../helpers/provider.ts'

const secrets = { LANGFUSE_PUBLIC_KEY: 'pk-lf-1', LANGFUSE_SECRET_KEY: 'sk-lf-1' }
type Sent = { url: string; authorization: string; batch: { type: string; id: string; body: Record<string, unknown> }[] }

async function exported(options: object, ...calls: TestCall[]) {
  const sent: Sent[] = []
  const tested = await openPlugin(langfuseExport, {
    options: { every_seconds: 3_600, ...options },
    secrets,
    fetch: async (url, { body, headers } = {}) => {
      const { authorization = '' } = headers as Record<string, string>
      sent.push({ url: String(url), authorization, batch: JSON.parse(String(body)).batch })
      return new Response('{"successes":[],"errors":[]}', { status: 207 })
    },
  })
  for (const call of calls) await tested.call(call)
  await tested[Symbol.asyncDispose]()
  return { sent, tested, events: sent.flatMap(({ batch }) => batch) }
}

describe('langfuse-export', () => {
  test('sends a trace and a generation for a call, without what was said', async () => {
    const record = {
      at: 1_000,
      durationMs: 500,
      firstEventMs: 100,
      user: 'anna',
      metadata: { session_id: 's', a: 'b' },
    }
    const cost = { nanoUsd: 2_000_000, parts: {}, priceVersion: '' }
    const { sent, events } = await exported({}, { text: 'private words', record: { ...record, cost } })
    expect(sent).toMatchObject([
      { url: 'https://cloud.langfuse.com/api/public/ingestion', authorization: `Basic ${btoa('pk-lf-1:sk-lf-1')}` },
    ])
    expect(events).toMatchObject([
      {
        type: 'trace-create',
        body: { id: 'call-1', userId: 'anna', sessionId: 's', metadata: { a: 'b', key: 'key-1' } },
      },
      {
        type: 'generation-create',
        body: {
          id: 'call-1',
          traceId: 'call-1',
          name: 'chat',
          startTime: '1970-01-01T00:00:01.000Z',
          endTime: '1970-01-01T00:00:01.500Z',
          completionStartTime: '1970-01-01T00:00:01.100Z',
          model: 'model',
          usageDetails: { input: 1, output: 1 },
          costDetails: { total: 0.002 },
          level: 'DEFAULT',
        },
      },
    ])
    expect(new Set(events.map(({ id }) => id)).size).toBe(2)
    expect(JSON.stringify(sent)).not.toContain('private words')
  })

  test('with what was said where that is wanted, up to a length', async () => {
    const { events } = await exported({ contents: true }, { text: 'Hello', answer: 'Well.', stream: [2] })
    expect(events[1]?.body).toMatchObject({
      input: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      output: [{ type: 'text', text: 'Well.' }],
    })
    const { events: cut } = await exported({ contents: true, max_content_characters: 80 }, { text: 'x'.repeat(90) })
    expect(cut[1]?.body.input).toMatch(/^\[\d+ characters\]$/)
  })

  test('failures are errors', async () => {
    const { events } = await exported({}, { record: { outcome: 'failed', status: 502, error: 'provider_timeout' } })
    expect(events[1]?.body).toMatchObject({
      level: 'ERROR',
      statusMessage: 'provider_timeout',
      metadata: { status: 502 },
    })
  })

  test('needs its keys', async () => {
    await expect(openPlugin(langfuseExport)).rejects.toThrow('LANGFUSE_PUBLIC_KEY')
  })
})

describe('batches', () => {
  const logged: unknown[] = []
  const write = (facts: object, message: string) => void logged.push({ ...facts, message })
  const log = { warn: write, error: write }
  const opened = (statuses: number[], bounds: object = {}) => {
    const sizes: number[] = []
    logged.length = 0
    const usual = { every_seconds: 0.01, attempts: 4, max_waiting: 1_000, firstPauseMs: 5, log }
    const batches = new Batches({ ...usual, ...bounds }, async (batch) => {
      sizes.push(batch.length)
      return new Response('{}', { status: statuses.shift() ?? 207 })
    })
    return { batches, sizes }
  }

  test('are sent together, and again where that may help', async () => {
    // So long that all of them are there before the first batch, however busy the machine is.
    const { batches, sizes } = opened([500, 429], { every_seconds: 0.3 })
    for (let call = 0; call < 10; call++) batches.add(() => [{ call }])
    await expect.poll(() => sizes).toEqual([10, 10, 10])
    expect(logged).toEqual([])
    batches.add(() => [{}])
    await batches.close()
    expect(sizes.at(-1)).toBe(1)
  })

  test('are given up where it does not help, and the next ones go out', async () => {
    const { batches, sizes } = opened([401])
    batches.add(() => [{}])
    await expect.poll(() => logged).toMatchObject([{ status: 401, message: 'calls were not exported' }])
    batches.add(() => [{}])
    await expect.poll(() => sizes).toEqual([1, 1])
    await batches.close()
  })

  test('are no larger than is taken at once, and no more wait than may', async () => {
    const { batches, sizes } = opened([], { max_waiting: 5, every_seconds: 60 })
    for (let call = 0; call < 8; call++) batches.add(() => [{ text: 'x'.repeat(400_000) }])
    await batches.close()
    expect(sizes).toEqual([2, 2, 1])
    expect(logged).toMatchObject([{ left_out: 3 }])
  })
})

const open: PluginWorld[] = []
afterAll(async () => {
  for (const world of open) await world.end()
})

test('through the router: whole and streamed calls', async () => {
  const langfuse = await loopbackProvider((_, response) => answerJson(response, { successes: [], errors: [] }))
  const { host } = new URL(langfuse.url)
  const options = { url: langfuse.url, contents: true, every_seconds: 0.05, public_key: '$LF_PK', secret_key: '$LF_SK' }
  const world = await pluginWorld(
    {},
    { settings: { plugins: [{ name: 'langfuse-export', options, fetch: [host] }] }, env: { LF_PK: 'p', LF_SK: 's' } },
  )
  open.push(world)
  await world.ask()
  await world.ask({ stream: true })
  const bodies = () => langfuse.received.flatMap(({ body }) => body.batch as Sent['batch'])
  await expect.poll(() => bodies().length).toBe(4)
  const generations = bodies().filter(({ type }) => type === 'generation-create')
  for (const { body } of generations) expect(body.output).toMatchObject([{ type: 'text', text: 'Hi you.' }])
  expect(generations.map(({ body }) => body.id)).toEqual(world.rows().map(({ id }) => id))
  expect(generations[0]?.body).toMatchObject({
    usageDetails: { input: 3, output: 2 },
    costDetails: { total: 0.000_01 },
  })
  await langfuse.close()
})
