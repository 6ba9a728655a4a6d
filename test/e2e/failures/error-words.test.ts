import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { alone, type TestRouter, testRouter } from '../../helpers/router.ts'

// Errors of providers as clients read them: whatever the client API, the provider's format, and the moment at which the error comes.

let provider: LoopbackProvider
let router: TestRouter
/** What the provider fails with, by the beginning of the path; it answers other requests. */
let failing: { path: string; status: number; body: object; inStream?: boolean } | undefined

const answers = {
  chat: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  },
}

beforeAll(async () => {
  provider = await loopbackProvider(({ path }, response) => {
    if (!failing || !path.startsWith(failing.path)) return answerJson(response, answers.chat)
    const { status, body, inStream } = failing
    if (!inStream) return answerJson(response, body, status)
    beginStream(response)
    response.end(`event: error\ndata: ${JSON.stringify({ type: 'error', ...body })}\n\n`)
  })
  const at = (path: string) => ({ base_url: `${provider.url}/${path}`, secret: 'sk-ours' })
  const slugs = ['openai', 'openai-responses', 'anthropic', 'groq', 'xai', 'deepseek', 'mistral']
  router = await testRouter({ providers: alone(Object.fromEntries(slugs.map((slug) => [slug, at(slug)]))) })
})

afterAll(async () => {
  await router.end()
  await provider.close()
})

const messages = [{ role: 'user', content: 'Hello' }]
const clients = {
  '/v1/chat/completions': { messages },
  '/v1/responses': { input: 'Hello' },
  '/v1/messages': { messages, max_tokens: 10 },
}
type Path = keyof typeof clients

type Failure = {
  status: number
  code: string
  message: string
  param: string | null
  type: string
  provider_code?: string
}

async function ask(
  path: Path,
  model: string,
  more: object = {},
): Promise<Failure | { status: number; served: string }> {
  const response = await router.call(path, { model, ...clients[path], ...more })
  const { status } = response
  const text = await response.text()
  if (status === 200) return { status, served: response.headers.get('x-router-model') ?? '' }
  return { status, ...(JSON.parse(text) as { error: Omit<Failure, 'status'> }).error }
}

const models = {
  openai: 'openai/gpt-4.1',
  'openai-responses': 'openai-responses/gpt-4.1',
  anthropic: 'anthropic/claude-sonnet-4-6',
  mistral: 'mistral/mistral-large-2512',
}
const cases = Object.entries(models).flatMap(([slug, model]) =>
  (Object.keys(clients) as Path[]).flatMap((path) => [false, true].map((stream) => ({ slug, model, path, stream }))),
)

describe.each(cases)('$path to $model, stream $stream', ({ slug, model, path, stream }) => {
  test.each([false, true])(
    'a full context is written in the words of the client, inside a stream %s',
    async (inStream) => {
      if (inStream && !stream) return
      const message = "The input (200000 tokens) is longer than the model's context length (131072 tokens)."
      failing = {
        path: `/${slug}`,
        status: 400,
        body: { error: { message, type: 'invalid_request_error', code: 400 } },
        inStream,
      }
      const failure = await ask(path, model, { stream })
      expect(failure).toMatchObject({ status: 400, code: 'context_length_exceeded', type: 'invalid_request_error' })
      const begins = path === '/v1/messages' ? 'prompt is too long: 200000 tokens > 131072 maximum. ' : ''
      expect(failure).toMatchObject({ message: `${begins}${message}` })
    },
  )

  test('the member that the provider blames is named', async () => {
    const error = {
      message: 'Unsupported value',
      type: 'invalid_request_error',
      param: 'temperature',
      code: 'unsupported_value',
    }
    failing = { path: `/${slug}`, status: 400, body: { error } }
    expect(await ask(path, model, { stream, temperature: 0.5 })).toMatchObject({
      status: 400,
      code: 'unsupported_value',
      param: 'temperature',
    })
  })
})

describe.each(Object.keys(clients) as Path[])('%s', (path) => {
  test.each([
    [
      'groq',
      'groq/openai/gpt-oss-120b',
      { message: 'The model `x` has been decommissioned.', code: 'model_decommissioned' },
    ],
    [
      'deepseek',
      'deepseek/deepseek-v4-flash',
      { message: 'Model Not Exist', type: 'invalid_request_error', code: null },
    ],
  ])('a model of %s that is gone with status 400 is a 404, and another target is asked', async (slug, model, error) => {
    failing = { path: `/${slug}`, status: 400, body: { error } }
    expect(await ask(path, model, { models: [model, models.mistral] })).toEqual({ status: 200, served: models.mistral })
    expect(await ask(path, model)).toMatchObject({ status: expect.toBeOneOf([404, 503]) })
  })

  test('a wrong key of the router is not reported in words about a key', async () => {
    failing = {
      path: '/xai',
      status: 400,
      body: { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: xa***.' },
    }
    const failure = await ask(path, 'xai/grok-4.7')
    expect(failure).toMatchObject({ status: expect.toBeOneOf([502, 503]) })
    expect(JSON.stringify(failure)).not.toMatch(/incorrect|api[- ]key/i)
  })
})
