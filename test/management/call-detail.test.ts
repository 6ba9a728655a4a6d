import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { connect } from '../../src/store/sqlite/connection.ts'
import { ledgerWriter } from '../../src/store/sqlite/ledger/ledger-writer.ts'
import { schemaOf, validator } from '../helpers/openapi.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import { plainRecord } from '../store/plain-record.ts'
import { administration } from './administration.ts'

const pricing = '[{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }]'
const manifest = (slug: string, url: string) => `slug: ${slug}
name: ${slug}
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
models: { m1: { api: chat, pricing: ${pricing} } }
`
const prompt = 'the treasure is under the oak'
const stranger = plainRecord({ organization: 'elsewhere' })

let provider: LoopbackProvider
let router: TestRouter
let manage: ReturnType<typeof administration>

/** One provider that repeats what it was asked in its error, one that is not there, one that answers. */
beforeAll(async () => {
  provider = await loopbackProvider(({ path, body }, response) => {
    const said = body.messages[0].content
    if (path.startsWith('/echoing')) {
      const error = { message: `I will not answer '${said}'.`, code: 'too_secret' }
      return answerJson(response, { error, usage: { prompt_tokens: 4, completion_tokens: 0 } }, 503)
    }
    const message = { role: 'assistant', content: 'Hello.' }
    const usage = { prompt_tokens: 1_001, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 1 } }
    answerJson(response, { id: 'x', model: 'm1', choices: [{ index: 0, message, finish_reason: 'stop' }], usage })
  })
  router = await testRouter({
    files: {
      'providers/echoing.yaml': manifest('echoing', `${provider.url}/echoing`),
      'providers/gone.yaml': manifest('gone', 'http://127.0.0.1:9'),
      'providers/good.yaml': manifest('good', `${provider.url}/good`),
    },
    settings: { policies: { all: { targets: ['echoing/m1', 'gone/m1', 'good/m1'] } } },
  })
  manage = administration(router)
  const db = connect(`${router.folder}/data/router.sqlite`)
  ledgerWriter(db)([stranger])
  db.close()
})
afterAll(async () => {
  await router.end()
  await provider.close()
})

const matchesSchema = validator(schemaOf('CallDetail'))

/** Makes a call, and reads all that is known of it. */
async function detailOf(model: string, headers: Record<string, string> = {}) {
  const body = { model, messages: [{ role: 'user', content: prompt }], max_tokens: 100, seed: 7 }
  const response = await router.call('/v1/chat/completions', body, headers)
  const reply = await response.text()
  const { status, body: detail, text } = await manage.get(`/calls/${response.headers.get('x-request-id')}`)
  expect(status).toBe(200)
  expect(matchesSchema(detail), JSON.stringify(matchesSchema.errors)).toBe(true)
  expect(text).not.toContain('treasure')
  return { reply: JSON.parse(reply) as JsonObject, detail }
}

describe('one call', () => {
  test('has what it used and cost part by part', async () => {
    const { detail } = await detailOf('good/m1', {
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    })
    expect(detail).toMatchObject({
      usage: [
        { class: 'input', units: 1_000 },
        { class: 'cache_read', units: 1 },
        { class: 'output', units: 7 },
      ],
      cost_parts: [
        { class: 'input', units: 1_000, price: 1, per: 1_000_000, cost: 0.001 },
        { class: 'cache_read', units: 1, price: 1, per: 1_000_000, cost: 0.000001 },
        { class: 'output', units: 7, price: 2, per: 1_000_000, cost: 0.000014 },
      ],
      cost: 0.001015,
      rows: [
        {
          attempt: 1,
          at_ms: expect.any(Number),
          provider: 'good',
          model: 'good/m1',
          outcome: 'complete',
          status: 200,
          cost: 0.001015,
        },
      ],
      dropped: [],
      trace_id: '0af7651916cd43dd8448eb211c80319c',
    })
    expect(detail.reserved).toBeGreaterThanOrEqual(0.0002)
    expect(detail).not.toHaveProperty('error')
  })

  test('has its attempts in their order, and what each of them cost', async () => {
    const { detail } = await detailOf('policy/all', { 'x-router-explain': 'true' })
    const facts = (detail.rows as JsonObject[]).map(({ attempt, model, outcome, code, provider_code, status }) =>
      [attempt, model, outcome, code, provider_code, status].join(' '),
    )
    expect(facts).toEqual([
      '1 echoing/m1 failed provider_overloaded too_secret 502',
      '2 gone/m1 failed provider_unreachable  502',
      '3 good/m1 complete   200',
    ])
    expect((detail.rows as JsonObject[]).map(({ provider_message }) => provider_message)).toEqual([
      "I will not answer '[content]'.",
      undefined,
      undefined,
    ])
    const begun = (detail.rows as JsonObject[]).map(({ at_ms }) => Number(at_ms))
    expect(begun).toEqual([...begun].sort((one, other) => one - other))
    const parts = detail.cost_parts as JsonObject[]
    expect(parts.map(({ attempt }) => attempt)).toContain(3)
    const sum = (list: JsonObject[]) => list.reduce((total, { cost }) => total + Number(cost), 0)
    expect(sum(parts)).toBeCloseTo(detail.cost as number, 12)
    expect(sum(detail.rows as JsonObject[])).toBeCloseTo(detail.cost as number, 12)
    expect(detail.explanation).toMatchObject({ sort: 'order' })
    expect(detail.attempts).toBe(3)
  })

  test('has its error, and the words of the provider without what they repeat of the prompt', async () => {
    const { reply, detail } = await detailOf('echoing/m1')
    expect(JSON.stringify(reply)).toContain(prompt)
    const message = "I will not answer '[content]'."
    expect(detail.error).toEqual({
      code: 'provider_overloaded',
      provider_code: 'too_secret',
      provider_message: message,
    })
    expect(detail.rows).toMatchObject([{ attempt: 1, provider_message: message }])
    const gone = await detailOf('gone/m1')
    const { message: own } = gone.reply.error as JsonObject
    expect(gone.detail.error).toEqual({ code: 'provider_unreachable', message: own })
    expect(gone.detail).toMatchObject({ outcome: 'failed', code: 'provider_unreachable', class: 'connection', cost: 0 })
  })

  test.each([
    ['of another organization', stranger.id],
    ['that is not there', 'nothing'],
    ['without an id', '%20'],
  ])('%s is a 404', async (_, id) => {
    expect(await manage.get(`/calls/${id}`)).toMatchObject({ status: 404 })
  })

  test('takes no parameters', async () => {
    expect(await manage.get('/calls/x?limit=1')).toMatchObject({ status: 400, body: { error: { param: 'limit' } } })
  })
})
