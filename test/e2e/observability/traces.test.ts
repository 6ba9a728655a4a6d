import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { otlpCollector } from '../../helpers/otlp.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { describeEach, testEach } from '../../helpers/slow.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const parentId = '00f067aa0ba902b7'
const traceparent = `00-${traceId}-${parentId}-01`
const reply = {
  id: 'c1',
  created: 1,
  model: 'm1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
}
const manifest = (slug: string, url: string) => `slug: ${slug}
name: ${slug}
base_url: ${url}/${slug}
auth: { scheme: none }
dialect: openai-chat
models:
  m1: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }] }
  e1: { api: embedding, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0 }] }
`
const secretPrompt = 'the secret of the prompt'

/** Fails at one provider, and answers at the other one, whole or as a stream. */
async function provider(): Promise<LoopbackProvider> {
  return await loopbackProvider(({ path, body }, response) => {
    if (path.startsWith('/broken')) return answerJson(response, { error: { message: 'down' } }, 503)
    if (path.endsWith('/embeddings')) {
      return answerJson(response, {
        object: 'list',
        data: [{ index: 0, embedding: [1] }],
        usage: { prompt_tokens: 2, total_tokens: 2 },
      })
    }
    if (!body.stream) return answerJson(response, reply)
    const chunk = (delta: object, more: object = {}) =>
      `data: ${JSON.stringify({ id: 'c1', created: 1, model: 'm1', choices: [{ index: 0, delta, ...more }] })}\n\n`
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(
      `${chunk({ role: 'assistant', content: 'fine' })}${chunk({}, { finish_reason: 'stop' })}data: [DONE]\n\n`,
    )
  })
}

async function opened(env: NodeJS.ProcessEnv, threads?: number) {
  const upstream = await provider()
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  const router = await testRouter({
    env,
    ...(threads && { threads }),
    files: {
      'providers/broken.yaml': manifest('broken', upstream.url),
      'providers/good.yaml': manifest('good', upstream.url),
    },
    settings: { policies: { both: { targets: ['broken/m1', 'good/m1'] } } },
  })
  return { upstream, router }
}

const body = (model: string, more: object = {}) => ({
  model,
  max_tokens: 5,
  messages: [{ role: 'user', content: secretPrompt }],
  ...more,
})

describeEach([1, 2], { slowIf: (threads) => threads > 1 })('with %i threads, a collector', (threads) => {
  let collector: Awaited<ReturnType<typeof otlpCollector>>
  let router: TestRouter
  let upstream: LoopbackProvider

  beforeAll(async () => {
    collector = await otlpCollector()
    const env = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '100' }
    ;({ router, upstream } = await opened(env, threads))
  })
  afterAll(async () => {
    vi.unstubAllEnvs()
    await router?.end()
    await upstream?.close()
    await collector?.close()
  })

  const spansOf = async (id: string, count: number) => {
    await expect
      .poll(() => collector.spans.filter((span) => span.traceId === id).length, { timeout: 10_000 })
      .toBe(count)
    return collector.spans.filter((span) => span.traceId === id)
  }

  test('gets the call and each of its attempts, in the trace that the client began and the providers are told of', async () => {
    const answer = await router.call('/v1/chat/completions', body('policy/both'), { traceparent, baggage: 'team=blue' })
    expect(answer.status).toBe(200)
    const spans = await spansOf(traceId, 3)
    const call = spans.find(({ kind }) => kind === 2)
    const attempts = spans.filter(({ kind }) => kind === 3).toSorted((one, other) => one.startMs - other.startMs)
    expect(call).toMatchObject({
      parentId,
      name: 'chat policy/both',
      status: 0,
      service: 'inference-router',
      events: ['inference_router.attempt_failed'],
    })
    expect(call?.attributes).toMatchObject({
      'gen_ai.request.model': 'policy/both',
      'gen_ai.provider.name': 'good',
      'gen_ai.usage.input_tokens': 7,
      'gen_ai.usage.output_tokens': 3,
      'inference_router.cost_usd': 0.000013,
      'inference_router.attempts': 2,
      'http.response.status_code': 200,
    })
    expect(attempts.map(({ parentId, status }) => [parentId, status])).toEqual([
      [call?.spanId, 2],
      [call?.spanId, 0],
    ])
    expect(attempts[0]?.attributes).toMatchObject({
      'gen_ai.provider.name': 'broken',
      'error.type': 'provider_overloaded',
    })
    for (const one of attempts) {
      expect(one.startMs).toBeGreaterThanOrEqual(call?.startMs ?? Infinity)
      expect(one.endMs).toBeLessThanOrEqual((call?.endMs ?? 0) + 1)
    }
    const told = upstream.received.slice(-2).map(({ headers }) => [headers.traceparent, headers.baggage])
    expect(told).toEqual(attempts.map(({ spanId }) => [`00-${traceId}-${spanId}-01`, 'team=blue']))
  })

  test('gets the first token of a stream, and other operations', async () => {
    const stream = await router.call('/v1/chat/completions', body('good/m1', { stream: true }))
    await stream.text()
    const id = (headers: Headers) => (headers.get('x-request-id') ?? '').replaceAll('-', '')
    const [call] = (await spansOf(id(stream.headers), 2)).filter(({ kind }) => kind === 2)
    expect(call?.events).toEqual(['gen_ai.first_token'])
    const embedded = await router.call('/v1/embeddings', { model: 'good/e1', input: 'x' })
    expect(embedded.status).toBe(200)
    const spans = await spansOf(id(embedded.headers), 2)
    expect(spans.map(({ name }) => name).toSorted()).toEqual(['embed e1', 'embed good/e1'])
  })

  test('gets nothing of a trace that the client does not record, and no contents ever', async () => {
    await router.call('/v1/chat/completions', body('good/m1'), {
      traceparent: traceparent.replace('-01', '-00').replace('4bf9', '4bf8'),
    })
    await router.call('/v1/chat/completions', body('good/m1'), { traceparent: traceparent.replace('4bf9', '4bf7') })
    await spansOf(traceId.replace('4bf9', '4bf7'), 2)
    expect(collector.spans.filter((span) => span.traceId.startsWith('4bf8'))).toEqual([])
    expect(JSON.stringify(collector.spans)).not.toContain(secretPrompt)
  })
})

test('a collector that cannot be reached costs no call anything', async () => {
  const env = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:9/v1/traces',
    OTEL_BSP_SCHEDULE_DELAY: '50',
    OTEL_BSP_EXPORT_TIMEOUT: '500',
  }
  const { router, upstream } = await opened(env)
  try {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => router.call('/v1/chat/completions', body('good/m1'))),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
  } finally {
    vi.unstubAllEnvs()
    await router.end()
    await upstream.close()
  }
})

testEach([1, 2], { slowIf: (threads) => threads > 1 })(
  'spans have what was said only where the operator asks for that, and no file has it: %i threads',
  async (threads) => {
    const collector = await otlpCollector()
    const env = {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true',
    }
    const { router, upstream } = await opened(env, threads)
    try {
      await router.call(
        '/v1/chat/completions',
        body('good/m1', {
          messages: [
            { role: 'system', content: 'Be kind.' },
            { role: 'user', content: secretPrompt },
          ],
        }),
      )
      await (await router.call('/v1/chat/completions', body('good/m1', { stream: true }))).text()
      await expect.poll(() => collector.spans.length, { timeout: 10_000 }).toBe(4)
      const calls = collector.spans.filter(({ kind }) => kind === 2)
      for (const { attributes } of calls) {
        expect(JSON.parse(String(attributes['gen_ai.input.messages']))).toEqual([
          { role: 'user', parts: [{ type: 'text', content: secretPrompt }] },
        ])
        expect(JSON.parse(String(attributes['gen_ai.output.messages']))).toEqual([
          { role: 'assistant', parts: [{ type: 'text', content: 'fine' }], finish_reason: 'stop' },
        ])
      }
      expect(calls.map(({ attributes }) => attributes['gen_ai.system_instructions'])).toContain(
        '[{"type":"text","content":"Be kind."}]',
      )
      for (const name of readdirSync(join(router.folder, 'data'))) {
        expect(readFileSync(join(router.folder, 'data', name)).includes(secretPrompt)).toBe(false)
      }
    } finally {
      vi.unstubAllEnvs()
      await router.end()
      await upstream.close()
      await collector.close()
    }
  },
)
