import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { alone, type TestRouter, testRouter } from '../../helpers/router.ts'

// Errors of providers as clients read them: whatever the client API, the provider's format, and the moment at which the error comes.

let provider: LoopbackProvider
let router: TestRouter
/** What the provider fails with, by the beginning of the path; it answers other requests. */
let failing: { path: string; status: number; body: object; inStream?: boolean; after?: string } | undefined

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
    const { status, body, inStream, after = '' } = failing
    if (!inStream) return answerJson(response, body, status)
    beginStream(response)
    response.write(after)
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

/** Events with the first content of a stream, by the provider that sends them. */
const contents = {
  openai: `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi' } }] })}\n\n`,
  anthropic: [
    {
      type: 'message_start',
      message: {
        id: 'm',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        stop_reason: null,
        usage: { input_tokens: 1, output_tokens: 1 },
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
  ]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join(''),
}

const refusals = Object.keys(contents).flatMap((slug) =>
  ['invalid_request_error', 'server_error'].flatMap((type) =>
    (['as a whole', 'before content', 'after content'] as const).map((when) => ({ slug, type, when })),
  ),
) as { slug: keyof typeof contents; type: string; when: 'as a whole' | 'before content' | 'after content' }[]

test.each(refusals)(
  'Claude Code is told that $slug refuses a system message, reported $when as $type',
  async ({ slug, type, when }) => {
    const message = 'System message must be at the beginning.'
    failing = {
      path: `/${slug}`,
      status: type === 'server_error' ? 500 : 400,
      body: { error: { message, type } },
      inStream: when !== 'as a whole',
      ...(when === 'after content' && { after: contents[slug] }),
    }
    const body = { model: models[slug], ...clients['/v1/messages'], stream: true }
    const reported = async (client: string) => {
      const text = await (await router.call('/v1/messages', body, { 'user-agent': client })).text()
      const json = when === 'after content' ? (/event: error\ndata: (.*)\n/.exec(text)?.[1] ?? text) : text
      return (JSON.parse(json) as { error: object }).error
    }
    expect(await reported('claude-cli/2.1.332 (external, cli)')).toMatchObject({
      type: 'invalid_request_error',
      message: 'capability_rejected: mid_conv_system',
      details: { provider_message: message },
    })
    expect(await reported('anthropic/JS')).toMatchObject({ message })
  },
)
