import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { chat as chatApi } from '../../src/api/chat/api.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { Message } from '../../src/core/request.ts'
import { proveExamples, readStream } from '../../src/manifest/check/examples.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { type Dialect, loadDialect } from '../../src/manifest/read/dialect.ts'
import { countExamples } from '../../src/manifest/read/layer.ts'
import { loadManifest } from '../../src/manifest/read/manifest.ts'
import { readSource } from '../../src/manifest/read/source.ts'
import { readReply } from '../../src/manifest/run/read-reply.ts'
import { patchRequest, unsupportedInRequest, writeRequest } from '../../src/manifest/run/translate.ts'
import { servedBy, targetFacts } from '../../src/manifest/target.ts'
import { errorFor } from '../../src/upstream/provider-error.ts'
import { type Recording, recordedEvents, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { sentTo } from '../helpers/sent.ts'
import { testEach } from '../helpers/slow.ts'
import { assembled, readMessage } from './anthropic-messages-reader.ts'
import * as gemini from './gemini-reader.ts'
import * as chat from './openai-chat-reader.ts'
import { foldFacts } from './replay.ts'

const folder = join(import.meta.dirname, '../../providers')
const dialects = new Map(
  sourcesIn('dialects').map((source) => [nameOf(source), loadDialect(source).dialect as Dialect]),
)
const manifests = new Map(sourcesIn('.').map((source) => [nameOf(source), source]))

function sourcesIn(inner: string) {
  const names = readdirSync(join(folder, inner)).filter((name) => name.endsWith('.yaml'))
  return names.map((name) =>
    readSource(join('providers', inner, name), readFileSync(join(folder, inner, name), 'utf8')),
  )
}

function nameOf({ file }: { file: string }): string {
  return basename(file, '.yaml')
}

function load(slug: string, env: { [name: string]: string } = {}) {
  const source = manifests.get(slug)
  if (!source) throw new Error(`there is no manifest ${slug}`)
  return loadManifest(source, { dialects, manifests, env })
}

/** The provider as it serves a model. */
function serving(slug: string, model: string, env?: { [name: string]: string }): Provider {
  const { loaded } = load(slug, env)
  if (!loaded) throw new Error(`the manifest of ${slug} cannot be loaded`)
  return servedBy(loaded.provider, model)
}

describe.each(['azure', 'vertex', 'perplexity', 'cloudflare', 'mistral'])('%s', (slug) => {
  test('is a manifest without problems, whose examples pass', async () => {
    const { loaded, problems } = load(slug)
    expect(problems).toEqual([])
    const layers = loaded?.layers ?? []
    expect(countExamples(layers.at(-1) as (typeof layers)[number])).toBeGreaterThan(0)
    expect(loaded && (await proveExamples(loaded.provider, layers))).toEqual([])
  })
})

/** All providers with recordings for one of these manifests. */
const speakers = { 'azure-openai': 'azure', perplexity: 'perplexity', mistral: 'mistral' } as const
const recorded = Object.entries(speakers).flatMap(([name, slug]) =>
  recordings(name).map((recording) => ({ recording, slug, case: recording.case })),
)
const ofVertex = ['gemini', 'anthropic-messages'].flatMap((name) =>
  recordings(name).filter(({ provider }) => provider === 'vertex'),
)

async function replayed(provider: Provider, recording: Recording) {
  const facts = targetFacts(provider, { model: recording.model ?? 'm' })
  if (recording.response.sse === undefined) {
    const { reply, error } = await readReply(provider, recording.response.body, foldFacts, facts)
    return { reply, error, complete: true }
  }
  const frames = recordedEvents(recording).map(({ event, data }) => {
    if (data === '[DONE]') return data
    return event === undefined ? JSON.parse(data) : { event, data: JSON.parse(data) }
  })
  const { complete, events, error, ...reply } = await readStream(provider, frames, foldFacts, facts)
  return { reply: reply as unknown as Reply, error, complete }
}

describe.skipIf(recordingsMissing)('every recorded reply is read correctly through its manifest', () => {
  const answered = recorded.filter(({ recording }) => recording.response.status === 200)

  testEach(answered, { slowIf: (_, index) => index % 4 !== 0 })('$case', async ({ recording, slug }) => {
    const { reply, error, complete } = await replayed(serving(slug, recording.model ?? 'm'), recording)
    const { signatures, audio, logprobs, refusal: _, ...expectedReply } = chat.readIndependently(recording)
    const marked = {
      citations: chat.marksIn(recording, expectedReply.text),
      usage: { ...expectedReply.usage, searches: 1 },
    }
    const expected = slug === 'perplexity' ? { ...expectedReply, ...marked } : expectedReply
    expect([error, complete]).toEqual([undefined, true])
    expect(factsOf(reply)).toEqual(expected)
  })

  test.each(ofVertex.filter(({ response }) => response.status === 200))('$case', async (recording) => {
    const provider = serving('vertex', recording.model ?? 'gemini')
    const { reply, error, complete } = await replayed(provider, recording)
    expect(complete).toBe(true)
    if (recording.dialect === 'gemini') {
      const expectedReply = gemini.readIndependently(gemini.chunksOf(recording))
      expect(error).toEqual(
        expectedReply.raw === 'UNEXPECTED_TOOL_CALL' ? expect.objectContaining({ code: expectedReply.raw }) : undefined,
      )
      const { text, reasoning, finish, usage, model, id } = expectedReply
      expect(factsOf(reply)).toMatchObject({ text, reasoning, finish, usage, model, id })
      expect(factsOf(reply).calls.map(({ name, arguments: text }) => ({ name, arguments: JSON.parse(text) }))).toEqual(
        expectedReply.calls.map(({ name, arguments: args }) => ({ name, arguments: args })),
      )
      return
    }
    const { id, model, finish, raw, text, calls, usage } = readMessage(assembled(recording))
    expect(factsOf(reply)).toMatchObject({ id, model, finish, raw, usage, text: text.map(({ text }) => text).join('') })
    expect(
      factsOf(reply).calls.map(({ id, name, arguments: text }) => ({ id, name, input: JSON.parse(text) })),
    ).toEqual(calls)
    expect(provider.sameAs).toBe('messages')
  })

  test('none is left out', () => {
    expect([recorded.length, ofVertex.length]).toEqual([41, 16])
  })
})

describe.skipIf(recordingsMissing)('every recorded refusal has its error', () => {
  const refused = recorded.filter(({ recording }) => recording.response.status !== 200)
  const codes: { [start: string]: string } = {
    'azure-openai/error-404': 'model_not_found',
    'azure-openai/error-429': 'rate_limited',
    'perplexity/error-400': 'context_length',
    'mistral/error-400': 'invalid_request',
  }

  test.each(refused)('$case', ({ recording, slug }) => {
    const { status, headers, body } = recording.response
    const start = Object.keys(codes).find((known) => recording.case.startsWith(known)) ?? ''
    const error = errorFor(serving(slug, 'm'), { status, headers, text: JSON.stringify(body) })
    expect(error.code).toBe(status === 401 ? 'provider_refused' : codes[start])
  })

  test.each(ofVertex.filter(({ response }) => response.status !== 200))('$case', ({ response, model }) => {
    const { status, headers, body } = response
    const error = errorFor(serving('vertex', model ?? 'm'), { status, headers, text: JSON.stringify(body) })
    expect(error.code).toBe('invalid_request')
  })
})

test('a prompt that the filters of azure stop is blocked, not wrong', () => {
  const error = {
    code: 'content_filter',
    message: "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    param: 'prompt',
    status: 400,
    innererror: { code: 'ResponsibleAIPolicyViolation', content_filter_result: {} },
  }
  const answer = { status: 400, headers: {}, text: JSON.stringify({ error }) }
  for (const model of ['gpt-5.2', 'gpt-5.1-codex', 'my-deployment']) {
    expect(errorFor(serving('azure', model), answer).code).toBe('content_blocked')
  }
})

test('platform errors of vertex that come as a list are read, for models of every provider', () => {
  const error = { code: 429, message: 'Quota exceeded.', status: 'RESOURCE_EXHAUSTED' }
  for (const model of ['gemini-3.5-flash', 'claude-opus-5@default', 'meta/llama-maas']) {
    const read = errorFor(serving('vertex', model), { status: 429, headers: {}, text: JSON.stringify([{ error }]) })
    expect([read.code, read.message]).toEqual(['rate_limited', 'Quota exceeded.'])
  }
})

describe('addresses', () => {
  const at = ({ baseUrl, chat }: Provider) => [`${baseUrl}${chat?.path}`, `${baseUrl}${chat?.stream.path}`]

  test('of vertex have project and location, and each publisher its own path', () => {
    const env = {
      GOOGLE_APPLICATION_CREDENTIALS: '/key.json',
      GOOGLE_VERTEX_PROJECT: 'p',
      GOOGLE_VERTEX_LOCATION: 'us-east5',
      GOOGLE_VERTEX_HOST: 'us-east5-aiplatform.googleapis.com',
    }
    const start = (version: string) =>
      `https://us-east5-aiplatform.googleapis.com/${version}/projects/p/locations/us-east5`
    const [google, anthropic] = ['google', 'anthropic'].map((maker) => `/publishers/${maker}/models/{model}`)
    expect(at(serving('vertex', 'gemini-3.5-flash', env))).toEqual([
      `${start('v1beta1')}${google}:generateContent`,
      `${start('v1beta1')}${google}:streamGenerateContent?alt=sse`,
    ])
    expect(at(serving('vertex', 'claude-opus-5@default', env))).toEqual([
      `${start('v1')}${anthropic}:rawPredict`,
      `${start('v1')}${anthropic}:streamRawPredict`,
    ])
    expect(at(serving('vertex', 'meta/llama-maas', env))[0]).toBe(
      `${start('v1beta1')}/endpoints/openapi/chat/completions`,
    )
    expect(
      serving('vertex', 'gemini-3.5-flash', { ...env, GOOGLE_VERTEX_HOST: '', GOOGLE_VERTEX_LOCATION: '' }),
    ).toMatchObject({
      baseUrl: 'https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global',
      missing: [],
    })
  })

  test('of azure are those of the resource, and of its other host for Claude', () => {
    const env = { AZURE_RESOURCE_NAME: 'r', AZURE_API_KEY: 'k' }
    const paths = ['gpt-5.2', 'gpt-5-pro', 'claude-opus-5'].map((model) => at(serving('azure', model, env))[0])
    expect(paths).toEqual([
      'https://r.openai.azure.com/openai/v1/chat/completions',
      'https://r.openai.azure.com/openai/v1/responses',
      'https://r.services.ai.azure.com/anthropic/v1/messages',
    ])
    expect(serving('azure', 'claude-opus-5', env).auth).toEqual({ scheme: 'header', header: 'api-key', secret: 'k' })
  })

  test('need missing variables to be set', () => {
    expect(serving('azure', 'm').missing).toEqual(['AZURE_RESOURCE_NAME', 'AZURE_API_KEY'])
    expect(serving('cloudflare', 'm').missing).toEqual(['CLOUDFLARE_ACCOUNT_ID', 'CLOUDFLARE_API_TOKEN'])
    expect(serving('vertex', 'm').missing).toEqual(['GOOGLE_VERTEX_PROJECT', 'GOOGLE_APPLICATION_CREDENTIALS'])
  })
})

describe('a body that is edited', () => {
  const edited = (slug: string, body: JsonObject) => {
    const model = String(body.model ?? 'm')
    const provider = serving(slug, model)
    const whole = { model, messages: [{ role: 'user', content: 'Hi' }], ...body }
    return patchRequest(provider, whole, targetFacts(provider, { model }))
  }
  const call = { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: {} }] }
  const result = { role: 'tool', tool_call_id: 'call_1', content: 'sunny' }

  test('of mistral has the ids that a written one has, and leaves alone those that fit', async () => {
    const { messages } = await edited('mistral', { messages: [{ role: 'user', content: 'Hi' }, call, result] })
    const requested: Message[] = [
      { role: 'user', parts: [{ type: 'text', text: 'Hi' }] },
      { role: 'assistant', parts: [{ type: 'tool_call', id: 'call_1', name: 'f', arguments: '{}' }] },
      { role: 'user', parts: [{ type: 'tool_result', id: 'call_1', parts: [{ type: 'text', text: 'sunny' }] }] },
    ]
    const request = { model: 'm', messages: requested, origin: { api: 'messages' as const, body: {} } }
    const { body } = await writeRequest(serving('mistral', 'm'), request, { model: 'm' })
    const idsIn = (list: unknown) =>
      (list as JsonObject[]).flatMap(({ tool_calls, tool_call_id }) => [
        ...[tool_calls ?? []].flat().map((each) => (each as JsonObject).id),
        ...(tool_call_id === undefined ? [] : [tool_call_id]),
      ])
    expect(idsIn(messages)).toEqual(idsIn(body.messages))
    const fitting = { ...call, tool_calls: [{ id: 'abc123XYZ' }] }
    expect(idsIn((await edited('mistral', { messages: [fitting] })).messages)).toEqual(['abc123XYZ'])
  })

  test.each([
    ['groq', 'm'],
    ['mistral', 'm'],
    ['cloudflare', 'm'],
    ['perplexity', 'm'],
    ['azure', 'gpt-oss-120b'],
    ['vertex', 'openai/gpt-oss-120b-maas'],
  ])('of %s keeps refusals as text', async (slug, model) => {
    const answers = [
      { content: null, refusal: 'No.' },
      { content: 'Well: ', refusal: 'No.' },
      { content: [{ type: 'refusal', refusal: 'No.' }] },
      { content: [{ type: 'text', text: 'Well: ' }], refusal: 'No.' },
      { content: 'Yes.', refusal: null },
    ]
    const hi = { role: 'user', content: 'Hi' }
    const messages = [...answers.flatMap((answer) => [hi, { role: 'assistant', ...answer }]), hi]
    const { body } = await sentTo(`${slug}/${model}`, chatApi, { messages })
    const answered = (body.messages as JsonObject[]).filter(({ role }) => role === 'assistant')
    const textOf = (content: unknown) =>
      typeof content === 'string' ? content : (content as JsonObject[]).map(({ text }) => text).join('')
    const separator = slug === 'cloudflare' ? '\n' : ''
    expect(answered.map(({ content }) => textOf(content))).toEqual([
      'No.',
      'Well: No.',
      'No.',
      `Well: ${separator}No.`,
      'Yes.',
    ])
    expect(JSON.stringify(answered)).not.toContain('refusal')
  })

  test('of mistral has no empty assistant message', async () => {
    const silent = { role: 'assistant', content: '' }
    const { messages } = await edited('mistral', { messages: [{ role: 'user', content: 'Hi' }, silent, call] })
    expect(messages).toMatchObject([{ role: 'user' }, { role: 'assistant', tool_calls: [{}] }])
  })

  test('of perplexity has roles that take turns, and nothing of tools', async () => {
    const messages = [{ role: 'developer', content: 'Be brief.' }, { role: 'user', content: 'Hi' }, call, result]
    const body = await edited('perplexity', {
      messages: [
        ...messages,
        { role: 'user', content: 'So?' },
        { role: 'user', content: [{ type: 'text', text: '!' }] },
      ],
      tools: [{}],
      tool_choice: 'auto',
      max_completion_tokens: 5,
      search_recency_filter: 'week',
    })
    expect(body).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: '' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'So?' },
            { type: 'text', text: '!' },
          ],
        },
      ],
      max_tokens: 5,
      search_recency_filter: 'week',
    })
  })

  test('of cloudflare has content that is a plain string', async () => {
    const content = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ]
    const { messages } = await edited('cloudflare', { messages: [{ role: 'user', content }, call, result] })
    expect((messages as JsonObject[]).map((message) => message.content)).toEqual(['a\nb', '', 'sunny'])
  })

  test('of azure has the limit by the name that the kind of model knows', async () => {
    expect(await edited('azure', { model: 'my-deployment', max_tokens: 5 })).toMatchObject({ max_completion_tokens: 5 })
    expect(await edited('azure', { model: 'gpt-oss-120b', max_completion_tokens: 5 })).toMatchObject({ max_tokens: 5 })
  })
})

test('the fields that azure drops depend on the model', async () => {
  const losses = async (model: string) => {
    const requested = {
      temperature: 0,
      top_k: 3,
      web_search: {},
      verbosity: 'low',
      reasoning: { effort: 'low' as const },
    }
    const request = { model, messages: [], origin: { api: 'messages' as const, body: {} }, ...requested }
    return (await unsupportedInRequest(serving('azure', model), request, { model })).toSorted()
  }
  expect(await losses('gpt-4.1')).toEqual(['reasoning', 'top_k', 'verbosity', 'web_search'])
  expect(await losses('gpt-5.2')).toEqual(['temperature', 'top_k', 'web_search'])
  expect(await losses('o3')).toEqual(['temperature', 'top_k', 'verbosity', 'web_search'])
  expect(await losses('gpt-5.1-codex')).not.toContain('web_search')
})

function factsOf({ id, model, parts, finish, finish_raw, usage }: Reply) {
  const of = <T extends Part['type']>(type: T) =>
    parts.filter((part): part is Extract<Part, { type: T }> => part.type === type)
  const textOf = (texts: { text?: string }[]) => texts.map(({ text = '' }) => text).join('')
  return {
    id,
    model,
    text: textOf(of('text')),
    reasoning: textOf(of('reasoning')),
    calls: of('tool_call').map(({ id, name, arguments: args }) => ({ id, name, arguments: args })),
    citations: of('text').flatMap(({ citations = [] }) =>
      citations.map(({ url = '', title = '', start = 0, end = 0 }) => ({ url, title, start, end })),
    ),
    finish,
    raw: finish_raw,
    usage: chat.nonZero(usage),
  }
}
