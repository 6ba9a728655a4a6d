import { Ajv } from 'ajv'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { decisions } from '../../src/api/operations/decisions/decisions.ts'
import type { Store } from '../../src/store/open.ts'
import { newKey, storeIn } from '../e2e/money/budget-world.ts'
import { answerJson, type LoopbackProvider, loopbackProvider, type Received, within } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import { publishedSpec, specMissing } from '../helpers/specs.ts'
import { limit } from '../helpers/time.ts'

/** What the provider answers next, by its path; a status above 299 is an error. */
let answer: (request: Received) => { status?: number; body: unknown }
/** What it waits for before. */
let wait: (request: Received) => Promise<void>
let provider: LoopbackProvider
let router: TestRouter
let store: Store

beforeAll(async () => {
  provider = await loopbackProvider(async (request, response) => {
    await wait(request)
    const { status = 200, body } = answer(request)
    answerJson(response, body, status)
  })
  const address = { base_url: `${provider.url}/v1`, secret: 's' }
  router = await testRouter({
    providers: {
      openai: address,
      anthropic: { base_url: provider.url, secret: 's' },
      google: { base_url: provider.url, secret: 's' },
      cloudflare: address,
    },
    settings: { policies: { deciders: { targets: ['openai/gpt-4.1-mini', 'anthropic/claude-haiku-4-5'] } } },
    env: { CLOUDFLARE_ACCOUNT_ID: 'account', CLOUDFLARE_API_TOKEN: 's' },
  })
  store = await storeIn(router.folder)
})

afterAll(async () => {
  await store?.close()
  await router?.end()
  await provider?.close()
})

beforeEach(() => {
  wait = async () => {}
  provider.received.length = 0
})

const questions = [
  { type: 'predicate', name: 'urgent', instructions: 'Is it urgent?' },
  {
    type: 'choice',
    instructions: 'Which team?',
    choices: [{ value: 'billing', description: 'Money' }, { value: true }],
  },
  { type: 'score', name: 'anger', instructions: 'How angry?', levels: [{ label: 'Calm' }, { label: 'Angry' }] },
]
const body = { model: 'openai/gpt-6-luna', input: 'My payouts fail.', questions }

const native = {
  model: 'gpt-6-luna-2026',
  answers: [
    { type: 'predicate', name: 'urgent', probability: 0.9 },
    {
      type: 'choice',
      name: null,
      choice: true,
      confidence: 0.5,
      probabilities: [
        { value: 'billing', probability: 0.25 },
        { value: true, probability: 0.75 },
      ],
    },
    {
      type: 'score',
      name: 'anger',
      score: 0.2,
      confidence: 0.6,
      probabilities: [
        { label: 'Calm', value: 0, probability: 0.8 },
        { label: 'Angry', value: 1, probability: 0.2 },
      ],
    },
  ],
  usage: {
    input_tokens: 50,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: 7,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 57,
  },
}

const state = {
  state: { message: 'My payouts fail.', days: 3 },
  questions: {
    urgent: { type: 'noul', instructions: 'Is it urgent?', criteria: { yes: 'At once', no: 'Later' } },
    team: { type: 'choice', instructions: 'Which team?', criteria: { billing: 'Money', tech: null } },
    anger: { type: 'score', instructions: { question: 'How angry?' }, criteria: ['Calm', 'Angry'] },
  },
}

const systemOne = {
  answers: {
    q1: { type: 'noul', noul: 0.9 },
    q2: { type: 'choice', choice: 'tech', confidence: 0.5, probabilities: { billing: 0.25, tech: 0.75 } },
    q3: {
      type: 'score',
      score: 0.2,
      confidence: 0.6,
      legend: { 0: 'Calm', 1: 'Angry' },
      probabilities: { 0: 0.8, 1: 0.2 },
    },
  },
  usage: { input_tokens: 100, output_tokens: 5 },
}

// biome-ignore lint/suspicious/noExplicitAny: a test knows the reply it expects.
type Came = { status: number; headers: Headers; body: any }

async function decide(request: object, headers: Record<string, string> = {}): Promise<Came> {
  const response = await router.call('/v1/decisions', request, headers)
  return { status: response.status, headers: response.headers, body: await response.json() }
}

const rows = async () => await Array.fromAsync(store.ledger.each({}))

/** A model's whole answer in a conversation, in the format of its provider. */
function chatAnswer({ path }: Received, text: string, output = 20) {
  if (path.includes('/messages')) {
    const usage = { input_tokens: 200, output_tokens: output }
    return {
      id: 'm',
      type: 'message',
      role: 'assistant',
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      usage,
    }
  }
  if (path.includes(':generateContent')) {
    const candidates = [{ content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP', index: 0 }]
    return {
      candidates,
      usageMetadata: { promptTokenCount: 200, candidatesTokenCount: output, totalTokenCount: 200 + output },
    }
  }
  const choices = [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }]
  const usage = { prompt_tokens: 200, completion_tokens: output, total_tokens: 200 + output }
  return { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }
}

describe('POST /v1/decisions (15.16)', () => {
  test('of the model that has the API: questions in a list', async () => {
    answer = () => ({ body: native })
    const reply = await decide(body)
    expect(reply.status).toBe(200)
    expect(reply.body).toEqual({
      ...native,
      model: 'openai/gpt-6-luna',
      usage: { ...native.usage, cost: 5e-6 },
    })
    expect(provider.received.map(({ path, body: sent }) => [path, sent])).toEqual([
      ['/v1/decisions', { ...body, model: 'gpt-6-luna' }],
    ])
    expect((await rows()).at(-1)).toMatchObject({
      api: 'decisions',
      operation: 'decide',
      outcome: 'complete',
      usage: { input: 50 },
    })
    expect((await rows()).at(-1)?.cost.nanoUsd).toBe(5_000)
  })

  test.skipIf(specMissing('openai.decisions.schema.json'))('its replies fit the published schema', async () => {
    answer = () => ({ body: native })
    const reply = await decide(body)
    const schema = publishedSpec('openai.decisions.schema.json') as { definitions: object }
    const accepts = new Ajv({ strict: false }).compile({
      definitions: schema.definitions,
      $ref: '#/definitions/Decision',
    })
    const { cost, ...usage } = reply.body.usage
    expect([cost, accepts({ ...reply.body, usage }), accepts.errors]).toEqual([5e-6, true, null])
  })

  test('through the SDK', async () => {
    answer = () => ({ body: native })
    const made = await router.openai().decisions.create(body as never)
    expect(made.answers).toEqual(native.answers)
  })

  test('a state and questions by name, of a provider that knows lists', async () => {
    const answers = native.answers.map((one) =>
      'choice' in one
        ? {
            ...one,
            choice: 'tech',
            probabilities: [
              { value: 'billing', probability: 0.25 },
              { value: 'tech', probability: 0.75 },
            ],
          }
        : one,
    )
    answer = () => ({ body: { ...native, answers } })
    const reply = await decide({ model: 'openai/gpt-6-luna', ...state })
    expect(reply.body.answers).toEqual({
      urgent: { type: 'noul', noul: 0.9 },
      team: { type: 'choice', choice: 'tech', confidence: 0.5, probabilities: { billing: 0.25, tech: 0.75 } },
      anger: {
        type: 'score',
        score: 0.2,
        confidence: 0.6,
        legend: { 0: 'Calm', 1: 'Angry' },
        probabilities: { 0: 0.8, 1: 0.2 },
      },
    })
    expect(provider.received[0]?.body).toEqual({
      model: 'gpt-6-luna',
      input: [{ role: 'user', content: [{ type: 'input_json', data: state.state }] }],
      questions: [
        {
          type: 'predicate',
          name: 'urgent',
          instructions: [
            { type: 'input_text', text: 'Is it urgent?' },
            { type: 'input_json', data: { criteria: { yes: 'At once', no: 'Later' } } },
          ],
        },
        {
          type: 'choice',
          name: 'team',
          instructions: 'Which team?',
          choices: [{ value: 'billing', description: 'Money' }, { value: 'tech' }],
        },
        {
          type: 'score',
          name: 'anger',
          instructions: [{ type: 'input_json', data: { question: 'How angry?' } }],
          levels: [{ label: 'Calm' }, { label: 'Angry' }],
        },
      ],
    })
  })

  test('a state and questions by name, of a provider of that form', async () => {
    answer = () => ({ body: { success: true, errors: [], result: systemOne } })
    const reply = await decide({ model: 'cloudflare/@cf/cloudflare/clef', ...state })
    const { q1: urgent, q2: team, q3: anger } = systemOne.answers
    expect(reply.body).toMatchObject({ model: 'cloudflare/@cf/cloudflare/clef', answers: { urgent, team, anger } })
    expect(reply.body.usage).toMatchObject({ input_tokens: 100, output_tokens: 5, total_tokens: 105, cost: 24e-6 })
    const { urgent: asked, team: chosen, anger: scored } = state.questions
    expect(provider.received.map(({ path, body: sent }) => [path, sent])).toEqual([
      [
        '/v1/run/%40cf/cloudflare/clef',
        { model: 'clef', state: state.state, questions: { q1: asked, q2: chosen, q3: scored } },
      ],
    ])
  })

  test('a list of questions, of a provider that knows names', async () => {
    const q2 = { ...systemOne.answers.q2, choice: 'true', probabilities: { billing: 0.25, true: 0.75 } }
    answer = () => ({ body: { result: { ...systemOne, answers: { ...systemOne.answers, q2 } } } })
    const reply = await decide({ ...body, model: 'cloudflare/@cf/cloudflare/clef-flash' })
    expect(reply.body.answers).toEqual(native.answers)
    expect(provider.received[0]?.body.state).toBe('My payouts fail.')
  })

  test('levels that a provider numbers from 1 are at places from 0 by name', async () => {
    const rows = [
      { label: 'Calm', value: 1, probability: 0.25 },
      { label: 'Angry', value: 2, probability: 0.75 },
    ]
    const answers = [{ type: 'score', name: 'anger', score: 1.75, confidence: 0.5, probabilities: rows }]
    answer = () => ({ body: { ...native, answers } })
    const { anger } = state.questions
    const reply = await decide({ model: 'openai/gpt-6-luna', state: 'x', questions: { anger } })
    expect(reply.body.answers.anger).toMatchObject({ score: 0.75, probabilities: { 0: 0.25, 1: 0.75 } })
  })

  test('a question that the model refuses', async () => {
    const answers = [{ type: 'refusal', name: 'urgent' }, ...native.answers.slice(1)]
    answer = () => ({ body: { ...native, answers } })
    expect((await decide(body)).body.answers[0]).toEqual({ type: 'refusal', name: 'urgent' })
    const named = await decide({
      model: 'openai/gpt-6-luna',
      state: 'x',
      questions: { urgent: state.questions.urgent },
    })
    expect(named.status).toBe(502)
    answer = () => ({ body: { ...native, answers: answers.slice(0, 1) } })
    const one = await decide({ model: 'openai/gpt-6-luna', state: 'x', questions: { urgent: state.questions.urgent } })
    expect(one.body.answers).toEqual({ urgent: { type: 'refusal' } })
  })

  test.each([
    ['no answers', { answers: undefined }],
    ['too few', { answers: native.answers.slice(1) }],
    ['another type', { answers: [native.answers[1], ...native.answers.slice(1)] }],
    ['no probability', { answers: [{ type: 'predicate', probability: 'high' }, ...native.answers.slice(1)] }],
    [
      'an unknown choice',
      { answers: [native.answers[0], { ...native.answers[1], choice: 'sales' }, native.answers[2]] },
    ],
    [
      'a choice of another type',
      { answers: [native.answers[0], { ...native.answers[1], choice: 'true' }, native.answers[2]] },
    ],
  ])('%s is a 502, and paid', async (_, changes) => {
    answer = () => ({ body: { ...native, ...changes } })
    const before = (await rows()).length
    const reply = await decide(body)
    expect([reply.status, reply.body.error.code]).toEqual([502, 'provider_unreadable'])
    expect((await rows()).slice(before)).toMatchObject([{ outcome: 'failed', cost: { nanoUsd: 5_000 } }])
  })

  test('garbage, and a limit of the provider', async () => {
    answer = () => ({ body: 'no object' })
    expect((await decide(body)).status).toBe(502)
    answer = () => ({ status: 429, body: { error: { message: 'Slow down.' } } })
    expect((await decide(body)).status).toBe(429)
  })
})

describe('by a model for conversations', () => {
  const said = JSON.stringify({ q1: 'true', q2: 'true', q3: 'Angry' })
  const emulated = [
    { type: 'predicate', name: 'urgent', answer: true, probability: null },
    { type: 'choice', name: null, choice: true, confidence: null, probabilities: [] },
    { type: 'score', name: 'anger', score: 1, confidence: null, probabilities: [] },
  ]

  test.each([
    ['openai/gpt-4.1-mini', 200 * 0.4e-6 + 20 * 1.6e-6],
    ['anthropic/claude-haiku-4-5', 200 * 1e-6 + 20 * 5e-6],
    ['google/gemini-3.5-flash-lite', 200 * 0.3e-6 + 20 * 2.5e-6],
  ])('%s answers through structured output, and it is said so', async (model, cost) => {
    answer = (request) => ({ body: chatAnswer(request, said) })
    const reply = await decide({ ...body, model })
    expect(reply.body).toMatchObject({ model, emulated: true })
    expect(reply.body.answers).toEqual(emulated)
    expect(reply.body.usage).toMatchObject({ input_tokens: 200, output_tokens: 20, total_tokens: 220 })
    expect(reply.body.usage.cost).toBeCloseTo(cost, 12)
    const sent = JSON.stringify(provider.received[0]?.body)
    for (const text of ['My payouts fail.', 'Is it urgent?', 'Which team?', 'Angry', 'additionalProperties']) {
      if (text !== 'additionalProperties' || !model.startsWith('google')) expect(sent).toContain(text)
    }
    expect((await rows()).at(-1)).toMatchObject({
      api: 'decisions',
      operation: 'decide',
      usage: { input: 200, output: 20 },
    })
  })

  test('in the form of a state', async () => {
    answer = (request) => ({ body: chatAnswer(request, JSON.stringify({ q1: 'false', q2: 'tech', q3: 'Calm' })) })
    const reply = await decide({ model: 'openai/gpt-4.1-mini', ...state })
    expect(reply.body.emulated).toBe(true)
    expect(reply.body.answers).toEqual({
      urgent: { type: 'noul', noul: null, answer: false },
      team: { type: 'choice', choice: 'tech', confidence: null, probabilities: {} },
      anger: { type: 'score', score: 0, confidence: null, legend: { 0: 'Calm', 1: 'Angry' }, probabilities: {} },
    })
  })

  test('images, conversations and calls', async () => {
    answer = (request) => ({ body: chatAnswer(request, '{"q1":"true"}') })
    const image = 'data:image/png;base64,iVBORw0KGgo='
    const input = [
      { role: 'system', content: 'Be just.' },
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'See' },
          { type: 'input_image', image_url: image },
        ],
      },
      { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"at":1}' },
      { type: 'function_call_output', call_id: 'c1', output: 'a cat' },
    ]
    const reply = await decide({ model: 'openai/gpt-4.1-mini', input, questions: questions.slice(0, 1) })
    expect([reply.status, reply.headers.get('x-router-dropped')]).toEqual([200, null])
    const content = provider.received[0]?.body.messages[1].content
    expect(content[1]).toMatchObject({ type: 'image_url', image_url: { url: image } })
    expect(content[0].text).toContain('[system]')
    expect(content[2].text).toMatch(/\[function call look\]\n\{"at":1\}[\s\S]*\[function call output\]\na cat/)
  })

  test.each([
    ['words', 'I think it is urgent.'],
    ['an answer that was not possible', '{"q1":"maybe","q2":"true","q3":"Calm"}'],
    ['a missing answer', '{"q1":"true","q2":"true"}'],
    ['a list', '[]'],
  ])('%s is a 502 and paid, never an answer', async (_, text) => {
    answer = (request) => ({ body: chatAnswer(request, text) })
    const reply = await decide({ ...body, model: 'openai/gpt-4.1-mini' })
    expect([reply.status, reply.body.error.code]).toEqual([502, 'provider_unreadable'])
    expect((await rows()).at(-1)).toMatchObject({ outcome: 'failed', cost: { nanoUsd: 112_000 } })
  })

  test('fields that the model cannot take are named, and refused if strict', async () => {
    answer = (request) => ({ body: chatAnswer(request, said) })
    const asked = {
      ...body,
      model: 'anthropic/claude-haiku-4-5',
      prompt_cache_options: { mode: 'explicit' },
      user: 'ann',
    }
    const reply = await decide(asked)
    expect([reply.status, reply.headers.get('x-router-dropped')]).toEqual([200, 'prompt_cache_options'])
    expect(JSON.stringify(provider.received[0]?.body.metadata)).toContain('ann')
    const refused = await decide(asked, { 'x-router-strict': 'true' })
    expect([refused.status, refused.body.error.param]).toEqual([400, 'prompt_cache_options'])
    expect(provider.received).toHaveLength(1)
  })

  test('a refusal of all, or of one', async () => {
    answer = (request) => {
      const whole = chatAnswer(request, '') as { choices: [{ message: object }] }
      whole.choices[0].message = { role: 'assistant', content: null, refusal: 'No.' }
      return { body: whole }
    }
    const all = await decide({ ...body, model: 'openai/gpt-4.1-mini' })
    expect(all.body.answers).toEqual([
      { type: 'refusal', name: 'urgent' },
      { type: 'refusal', name: null },
      { type: 'refusal', name: 'anger' },
    ])
    answer = (request) => ({ body: chatAnswer(request, '{"q1":"(declined)","q2":"billing","q3":"Calm"}') })
    const one = await decide({ ...body, model: 'openai/gpt-4.1-mini' })
    expect(one.body.answers.slice(0, 2)).toMatchObject([{ type: 'refusal', name: 'urgent' }, { choice: 'billing' }])
  })

  test('a second target answers when the first one cannot', async () => {
    answer = (request) =>
      request.path.includes('/messages')
        ? { body: chatAnswer(request, said) }
        : { status: 503, body: { error: { message: 'Busy.' } } }
    const reply = await decide({ ...body, model: 'deciders' })
    expect([reply.body.model, reply.headers.get('x-router-attempts')]).toEqual(['anthropic/claude-haiku-4-5', '2'])
  })
})

describe('what is refused before anything is sent', () => {
  const model = 'openai/gpt-6-luna'
  const [predicate, choice, score] = questions
  const named = (question: object) => ({ model, state: 'x', questions: { a: question } })
  test.each([
    ['questions', { model, input: 'x' }],
    ['input', { model, questions }],
    ['input', { model, input: '', questions }],
    ['input', { model, input: [], questions }],
    ['questions', { model, input: 'x', questions: [] }],
    ['questions', { model, input: 'x', questions: { a: predicate } }],
    ['questions', { model, state: 'x', questions }],
    ['questions', { model, state: 'x', questions: {} }],
    ['state', { model, state: 'x', input: 'x', questions }],
    ['state', { model, questions: { a: { type: 'noul', instructions: 'x' } } }],
    ['state', { model, state: 7, questions: { a: { type: 'noul', instructions: 'x' } } }],
    ['questions[0].type', { model, input: 'x', questions: [{ type: 'noul', instructions: 'x' }] }],
    ['questions[0].instructions', { model, input: 'x', questions: [{ type: 'predicate' }] }],
    ['questions[1].choices', { model, input: 'x', questions: [predicate, { ...choice, choices: [{ value: 'a' }] }] }],
    [
      'questions[0].choices[1].value',
      { model, input: 'x', questions: [{ ...choice, choices: [{ value: 'a' }, { value: 'a' }] }] },
    ],
    ['questions[0].levels', { model, input: 'x', questions: [{ ...score, levels: [] }] }],
    ['questions[0].levels[0].label', { model, input: 'x', questions: [{ ...score, levels: [{}, {}] }] }],
    ['questions.a.type', named({ type: 'predicate', instructions: 'x' })],
    ['questions.a.instructions', named({ type: 'noul' })],
    ['questions.a.criteria', named({ type: 'choice', instructions: 'x', criteria: { one: null } })],
    ['questions.a.criteria', named({ type: 'score', instructions: 'x', criteria: ['one'] })],
    ['questions.a.criteria', named({ type: 'noul', instructions: 'x', criteria: 'yes' })],
    ['input[0].role', { model, input: [{ content: 'x' }], questions }],
    ['input[0].content', { model, input: [{ role: 'user' }], questions }],
    [
      'input[0].content[0].type',
      { model, input: [{ role: 'system', content: [{ type: 'input_image', image_url: 'https://e.com' }] }], questions },
    ],
    [
      'input[0].content[0].image_url',
      { model, input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'x' }] }], questions },
    ],
    ['input[0].call_id', { model, input: [{ type: 'function_call_output', call_id: 'c', output: 'x' }], questions }],
    ['model', { input: 'x', questions }],
    ['prompt_cache_options', { ...body, prompt_cache_options: 'x' }],
  ])('%s', async (param, request) => {
    const reply = await decide(request)
    expect([reply.status, reply.body.error.param]).toEqual([400, param])
    expect(provider.received).toEqual([])
  })

  test('a model of another modality, no key, a bad one, an unknown model', async () => {
    const embedding = await decide({ ...body, model: 'openai/text-embedding-3-small' })
    expect([embedding.status, embedding.body.error.message]).toEqual([400, expect.stringContaining('/v1/embeddings')])
    expect((await decide(body, { authorization: '' })).status).toBe(401)
    expect((await decide(body, { authorization: 'Bearer no-key' })).status).toBe(403)
    expect((await decide({ ...body, model: 'openai/none' })).status).toBe(404)
    expect(provider.received).toEqual([])
  })
})

describe('money', () => {
  /** What is reserved for the call: at most one token for each byte of the body, and of each answer what it can be at most. */
  const reserved = () => {
    const most = decisions.maxUsage(decisions.read({ json: body }), undefined)
    return 100n * BigInt(most.input ?? 0) + 500n * BigInt(most.output ?? 0)
  }

  /** Calls that are all there before the first of them is answered: how they ended. */
  async function atOnce(count: number, request: object, headers: Record<string, string>): Promise<number[]> {
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    wait = () => released
    const before = provider.received.length
    let refused = 0
    const calls = Array.from({ length: count }, async () => {
      const { status } = await decide(request, headers)
      if (status !== 200) refused++
      return status
    })
    await expect.poll(() => provider.received.length - before + refused, { timeout: limit(5_000) }).toBe(count)
    release()
    return (await Promise.all(calls)).sort()
  }

  test('of 12 calls at once, a key that pays three makes exactly three', async () => {
    answer = () => ({ body: native })
    const key = await newKey(store, { monthlyLimitNano: reserved() * 3n })
    const headers = { authorization: `Bearer ${key.secret}` }
    expect(await atOnce(12, body, headers)).toEqual([...Array(3).fill(200), ...Array(9).fill(402)])
    expect((await Array.fromAsync(store.ledger.each({ key: key.id }))).map(({ cost }) => cost.nanoUsd)).toEqual([
      5_000, 5_000, 5_000,
    ])
    // What was reserved and not used can be spent.
    expect((await decide(body, headers)).status).toBe(200)
  })

  test('so does one that pays two calls by conversation, each with all that the model may write', async () => {
    answer = (request) => ({ body: chatAnswer(request, '{"q1":"true","q2":"true","q3":"Calm"}') })
    const asked = { ...body, model: 'openai/gpt-4.1-mini' }
    // 4,288 tokens of output at 1,600 nano-USD are 6.9 million, and the prompt is less than 2 million.
    const key = await newKey(store, { monthlyLimitNano: 18_000_000n })
    const headers = { authorization: `Bearer ${key.secret}` }
    expect(await atOnce(8, asked, headers)).toEqual([200, 200, ...Array(6).fill(402)])
    expect((await Array.fromAsync(store.ledger.each({ key: key.id }))).map(({ cost }) => cost.nanoUsd)).toEqual([
      112_000, 112_000,
    ])
    const poor = await newKey(store, { monthlyLimitNano: 1_000_000n })
    const before = provider.received.length
    expect((await decide(asked, { authorization: `Bearer ${poor.secret}` })).status).toBe(402)
    expect(provider.received.length).toBe(before)
  })

  test('a client that leaves pays what it asked, by an estimate', async () => {
    answer = () => ({ body: native })
    let arrived = () => {}
    const asked = new Promise<void>((resolve) => {
      arrived = resolve
    })
    wait = async ({ left }) => {
      arrived()
      await left
    }
    const key = await newKey(store)
    const leaving = new AbortController()
    const sent = fetch(`${router.url}/v1/decisions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: leaving.signal,
    }).catch(() => undefined)
    await within(2_000, 'the request', asked)
    leaving.abort()
    await sent
    await expect
      .poll(async () => await Array.fromAsync(store.ledger.each({ key: key.id })), { timeout: limit(5_000) })
      .toMatchObject([{ outcome: 'failed', error: 'client_gone', cost: { nanoUsd: 7_800, estimated: true } }])
  })

  test('usage counts decisions', async () => {
    const reply = await router.call('/v1/manage/org/usage?resolution=month')
    const { usage } = (await reply.json()) as { usage: { [start: string]: { decision_requests: number } } }
    const counted = Object.values(usage).reduce((sum, { decision_requests }) => sum + decision_requests, 0)
    expect(counted).toBe(
      (await rows()).filter(({ operation, attemptOf }) => attemptOf === undefined && operation === 'decide').length,
    )
    expect(counted).toBeGreaterThan(10)
  })
})
