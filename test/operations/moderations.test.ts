import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerJson } from '../helpers/provider.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { type JsonWorld, jsonWorld, testMoney } from './json-world.ts'

const free = { api: 'moderation', pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }] }
const paid = { api: 'moderation', pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 0 }] }
const verdict = {
  flagged: true,
  categories: { violence: true, hate: false },
  category_scores: { violence: 0.9, hate: 0.1 },
  category_applied_input_types: { violence: ['text'], hate: ['text'] },
}

let world: JsonWorld
beforeAll(async () => {
  world = await jsonWorld(
    ({ body }, response) =>
      answerJson(
        response,
        body.model === 'own'
          ? {
              id: 'm',
              results: [{ categories: { selfharm: true, pii: false }, category_scores: { selfharm: 0.7, pii: 0.2 } }],
              usage: { prompt_tokens: 5, total_tokens: 5 },
            }
          : { id: 'modr-1', model: 'omni', results: [verdict] },
      ),
    { providers: { openai: { models: { omni: free } }, mistral: { models: { own: paid } } } },
  )
})
afterAll(() => world?.end())

const client = () => new OpenAI({ baseURL: `${world.router.url}/v1`, apiKey: world.secret, maxRetries: 0 })

describe('POST /v1/moderations', () => {
  test.each([
    ['a text', 'I hurt you'],
    ['texts', ['a', 'b']],
    [
      'a text and an image',
      [
        { type: 'text', text: 'a' },
        { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
      ],
    ],
  ])('%s by the SDK of OpenAI, for nothing', async (_, input) => {
    const reply = await client().moderations.create({
      model: 'openai/omni',
      input: input as string,
    })
    expect(reply).toMatchObject({ id: 'modr-1', model: 'openai/omni', results: [verdict], usage: { cost: 0 } })
    expect(world.provider.received.at(-1)).toMatchObject({ path: '/moderations', body: { model: 'omni', input } })
    expect((await world.rows()).at(-1)).toMatchObject({ api: 'moderations', cost: { nanoUsd: 0 } })
  })

  test('Mistral’s categories have the names of OpenAI, and what it does not look for is said', async () => {
    const reply = await client().moderations.create({ model: 'mistral/own', input: 'x' })
    const [result] = reply.results
    expect(reply).toMatchObject({ model: 'mistral/own', usage: { prompt_tokens: 5, total_tokens: 5, cost: 5e-6 } })
    expect(result).toMatchObject({
      flagged: true,
      categories: { 'self-harm': true, pii: false, harassment: false, 'violence/graphic': false },
      category_scores: { 'self-harm': 0.7, pii: 0.2, harassment: 0 },
      category_applied_input_types: { 'self-harm': ['text'], pii: ['text'], harassment: [] },
    })
    expect(Object.keys(result?.categories ?? {})).not.toContain('selfharm')
    expect(world.provider.received.at(-1)?.body).toEqual({ model: 'own', input: 'x' })
  })

  test.each([
    ['nothing', 'openai/omni', {}, 'input'],
    ['an empty text', 'openai/omni', { input: '' }, 'input'],
    ['an empty list', 'openai/omni', { input: [] }, 'input'],
    ['texts and parts', 'openai/omni', { input: ['a', { type: 'text', text: 'b' }] }, 'input[1]'],
    ['an unknown part', 'openai/omni', { input: [{ type: 'video' }] }, 'input[0].type'],
    [
      'an image where texts alone are read',
      'mistral/own',
      { input: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }] },
      'input',
    ],
  ])('%s is a 400 before anything is sent', async (_, model, fields, param) => {
    const before = world.provider.received.length
    const response = await world.ask('/v1/moderations', { model, ...fields })
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }])
    expect(world.provider.received).toHaveLength(before)
  })
})

describe('money', () => {
  testMoney({
    api: 'moderations',
    path: '/v1/moderations',
    body: { input: 'ab' },
    entry: paid,
    answer: { id: 'm', results: [verdict], usage: { prompt_tokens: 10 } },
    nano: 10_000n,
  })
})

describe.skipIf(recordingsMissing)('recorded exchanges', () => {
  const cases = recordings('openai-moderations').map((one) => [one.case, one] as const)
  test.each(cases)('%s', async (_, { request, response }) => {
    const replay = await jsonWorld((__, answer) => answerJson(answer, response.body, response.status), {
      providers: { openai: {} },
    })
    // The router must be told who is asked.
    const body = { model: 'omni-moderation-latest', ...request?.body }
    const answer = await replay.ask('/v1/moderations', { ...body, model: `openai/${body.model}` })
    const reply = (await answer.json()) as { results: object; id: string }
    expect(replay.provider.received.at(-1)?.body).toEqual(body)
    if (response.status === 200) expect(reply).toMatchObject({ id: response.body.id, results: response.body.results })
    else
      expect([answer.status, reply]).toMatchObject([502, { error: { origin: 'provider', code: 'provider_refused' } }])
    await replay.end()
  })
})
