import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readRequest } from '../../src/api/chat/read.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Message, NeutralRequest } from '../../src/core/request.ts'
import { proveExamples } from '../../src/manifest/check/examples.ts'
import { bareProvider, type Dialect, type Dialects, loadDialect } from '../../src/manifest/read/dialect.ts'
import { type LoadedProvider, loadManifest } from '../../src/manifest/read/manifest.ts'
import { readSource } from '../../src/manifest/read/source.ts'
import { readReply } from '../../src/manifest/run/read-reply.ts'
import { patchRequest, readFrame, unsupportedInRequest, writeRequest } from '../../src/manifest/run/translate.ts'
import { targetFacts } from '../../src/manifest/target.ts'
import { recordedEvents, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { foldFacts } from './replay.ts'

const folder = join(import.meta.dirname, '../../providers')
const dialect = loadDialect(source('dialects/openai-chat.yaml')).dialect as Dialect
const dialects: Dialects = new Map(
  ['openai-chat', 'openai-responses', 'system-one'].map((name) => {
    return [name, loadDialect(source(`dialects/${name}.yaml`)).dialect as Dialect]
  }),
)
/** Manifests whose facts about models others share. */
const shared = new Map(['openai-responses', 'xai-responses'].map((slug) => [slug, source(`${slug}.yaml`)]))

const slugs = [
  'openai',
  'groq',
  'deepseek',
  'mistral',
  'openrouter',
  'xai',
  'together',
  'fireworks',
  'vllm',
  'perplexity',
  'cloudflare',
  'demo',
]
const manifests = new Map(slugs.map((slug) => [slug, load(slug)]))

function source(name: string) {
  return readSource(`providers/${name}`, readFileSync(join(folder, name), 'utf8'))
}

function load(slug: string) {
  return loadManifest(source(`${slug}.yaml`), { dialects, manifests: shared, env: {} })
}

function loaded(slug: string): LoadedProvider {
  const manifest = manifests.get(slug)?.loaded
  if (!manifest) throw new Error(`the manifest of ${slug} cannot be loaded`)
  return manifest
}

function provider(slug: string) {
  return loaded(slug).provider
}

describe.each(slugs)('%s', (slug) => {
  test('is a manifest without problems, whose examples pass', async () => {
    expect(manifests.get(slug)?.problems).toEqual([])
    const { layers } = loaded(slug)
    expect(layers.at(-1)?.examples.length).toBeGreaterThan(0)
    expect(await proveExamples(provider(slug), layers)).toEqual([])
  })
})

test('the examples of the dialect pass', async () => {
  expect(await proveExamples(bareProvider(dialect), [dialect.layer])).toEqual([])
})

test('servers of one’s own need no key and take any model; the others name the variable that is missing', () => {
  expect(provider('vllm')).toMatchObject({ unknownModels: 'refuse', missing: [], auth: { secret: '' } })
  expect(Object.keys(provider('vllm').models)).toEqual(['*'])
  expect(provider('demo').missing).toEqual([])
  expect(provider('mistral').missing).toEqual(['MISTRAL_API_KEY'])
  expect(provider('vllm').baseUrl).toBe('http://127.0.0.1:8000/v1')
})

function facts(slug: string) {
  return targetFacts(provider(slug), { model: 'm' })
}

const user: Message = { role: 'user', parts: [{ type: 'text', text: 'Hi' }] }

/** The edited body of a Chat client. */
async function edited(slug: string, body: JsonObject): Promise<JsonObject> {
  const model = String(body.model ?? 'm')
  const facts = targetFacts(provider(slug), { model })
  return await patchRequest(provider(slug), { model, messages: [{ role: 'user', content: 'Hi' }], ...body }, facts)
}

async function losses(slug: string, model: string, requested: Partial<NeutralRequest>): Promise<string[]> {
  const request = { model, messages: [user], origin: { api: 'chat' as const, body: {} }, ...requested }
  return (await unsupportedInRequest(provider(slug), request, { model })).toSorted()
}

describe('a body that is edited', () => {
  const instructions = { role: 'developer', content: 'Be brief.' }

  test.each(slugs.filter((slug) => !['openai', 'openrouter', 'demo'].includes(slug)))(
    '%s gets instructions by the role it knows',
    async (slug) => {
      const { messages } = await edited(slug, { messages: [instructions, { role: 'user', content: 'Hi' }] })
      expect(messages).toEqual([
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ])
    },
  )

  test.each(['deepseek', 'mistral', 'together', 'fireworks', 'perplexity', 'cloudflare'])(
    '%s gets the limit by its former name',
    async (slug) => {
      const { max_tokens, max_completion_tokens } = await edited(slug, { max_completion_tokens: 5 })
      expect([max_tokens, max_completion_tokens]).toEqual([5, undefined])
      expect(await edited(slug, { max_tokens: 6 })).toMatchObject({ max_tokens: 6 })
      expect(await edited(slug, {})).not.toHaveProperty('max_tokens')
    },
  )

  test('of openai gets the limit by its new name', async () => {
    const { max_tokens, ...body } = await edited('openai', { max_tokens: 5 })
    expect([max_tokens, body.max_completion_tokens]).toEqual([undefined, 5])
    expect(await edited('openai', { max_completion_tokens: 7 })).toMatchObject({ max_completion_tokens: 7 })
  })

  test('keeps unknown fields', async () => {
    const unknown = { vendor_switch: { deep: [1, null] }, top_a: 0.5 }
    for (const slug of slugs) expect(await edited(slug, unknown)).toMatchObject(unknown)
  })

  test('of deepseek has thoughts with every call, and none where a tool is forced', async () => {
    const call = { role: 'assistant', content: null, tool_calls: [{ id: 'a' }] }
    const messages = [{ role: 'user', content: 'Hi' }, call, { ...call, reasoning_content: 'Hm.' }]
    expect((await edited('deepseek', { messages })).messages).toMatchObject([
      {},
      { reasoning_content: '' },
      { reasoning_content: 'Hm.' },
    ])
    expect(await edited('deepseek', {})).not.toHaveProperty('thinking')
    expect(await edited('deepseek', { tool_choice: 'required' })).toMatchObject({ thinking: { type: 'disabled' } })
    expect(await edited('deepseek', { tool_choice: 'required', reasoning_effort: 'low' })).not.toHaveProperty(
      'thinking',
    )
    const { thinking, reasoning_effort } = await edited('deepseek', { reasoning_effort: 'none' })
    expect([thinking, reasoning_effort]).toEqual([{ type: 'disabled' }, undefined])
  })

  test('of mistral has its own names for files, audio and chance', async () => {
    const content = [
      { type: 'text', text: 'Read.' },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,aGk=' } },
      { type: 'file', file: { file_id: '1' } },
      { type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } },
    ]
    const message = { role: 'assistant', content: 'Yes.', reasoning_content: 'Hm.', refusal: null }
    const body = await edited('mistral', {
      messages: [{ role: 'user', content }, message],
      seed: 0,
      stream_options: {},
      reasoning_effort: 'high',
    })
    expect(body).toEqual({
      model: 'm',
      random_seed: 0,
      reasoning_effort: 'high',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Read.' },
            { type: 'document_url', document_url: 'data:application/pdf;base64,aGk=', document_name: 'a.pdf' },
            { type: 'file', file_id: '1' },
            { type: 'input_audio', input_audio: 'aGk=' },
          ],
        },
        {
          role: 'assistant',
          prefix: true,
          content: [
            { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] },
            { type: 'text', text: 'Yes.' },
          ],
        },
      ],
    })
  })

  test('of openrouter requests the cost, and searches by a plugin', async () => {
    expect(await edited('openrouter', {})).toMatchObject({ usage: { include: true } })
    expect(await edited('openrouter', {})).not.toHaveProperty('plugins')
    const place = { type: 'approximate', approximate: { city: 'Berlin' } }
    const { web_search_options, plugins } = await edited('openrouter', {
      web_search_options: { user_location: place },
    })
    expect(web_search_options).toBeUndefined()
    expect(plugins).toEqual([{ id: 'web', user_location: { type: 'approximate', city: 'Berlin' } }])
  })

  test('has an effort that the provider knows', async () => {
    const effort = async (slug: string, word: string, model = 'm') => {
      const messages: Message[] = [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }]
      const reasoning = { effort: word } as NonNullable<NeutralRequest['reasoning']>
      const request = { model, messages, reasoning, origin: { api: 'responses' as const, body: {} } }
      const { body } = await writeRequest(provider(slug), request, { model })
      return body.reasoning_effort ?? body.reasoning
    }
    expect(await effort('groq', 'xhigh', 'openai/gpt-oss-120b')).toBe('high')
    expect(await effort('groq', 'none', 'qwen/qwen3.8-27b')).toBe('none')
    expect(await effort('groq', 'low', 'qwen/qwen3.8-27b')).toBe('low')
    expect(await effort('groq', 'low', 'qwen/qwen3-32b')).toBe('default')
    expect(await effort('xai', 'minimal', 'grok-4.6')).toBe('low')
    expect(await effort('together', 'max')).toBe('high')
    expect(await effort('together', 'none')).toEqual({ enabled: false })
    expect(await effort('fireworks', 'medium')).toBe('medium')
  })
})

describe('the fields that a provider cannot take', () => {
  test('depends on the model of openai', async () => {
    const sampling = { temperature: 0, top_p: 0.5, stop: ['x'], logit_bias: {}, frequency_penalty: 1 }
    expect(await losses('openai', 'gpt-4.1', sampling)).toEqual([])
    expect(await losses('openai', 'o3', sampling)).toEqual([
      'frequency_penalty',
      'logit_bias',
      'stop',
      'temperature',
      'top_p',
    ])
    expect(await losses('openai', 'gpt-5', { temperature: 1, top_p: 1 })).toEqual([])
    expect(await losses('openai', 'gpt-5', { temperature: 0, reasoning: { effort: 'none' } })).toEqual(['temperature'])
    expect(await losses('openai', 'gpt-5.1', { temperature: 0, reasoning: { effort: 'none' } })).toEqual([])
    expect(await losses('openai', 'gpt-10', { temperature: 0 })).toEqual(['temperature'])
    expect(await losses('openai', 'gpt-5-chat-latest', { temperature: 0, verbosity: 'low' })).toEqual(['verbosity'])
    expect(await losses('openai', 'gpt-4o', { reasoning: { effort: 'low' }, top_k: 3, web_search: {} })).toEqual([
      'reasoning',
      'top_k',
      'web_search',
    ])
    expect(await losses('openai', 'gpt-4o-search-preview', { web_search: { max_uses: 1 }, temperature: 1 })).toEqual([
      'temperature',
      'web_search.max_uses',
    ])
  })

  test('is reasoning of earlier turns where it would be refused', async () => {
    const messages: Message[] = [user, { role: 'assistant', parts: [{ type: 'reasoning', text: 'Hm.' }] }, user]
    for (const slug of ['openai', 'groq', 'xai'])
      expect(await losses(slug, 'm', { messages })).toEqual(['parts.reasoning'])
    for (const slug of ['deepseek', 'mistral', 'openrouter', 'fireworks', 'together', 'vllm'])
      expect(await losses(slug, 'm', { messages })).toEqual([])
  })

  test('is an image where the model would make one up', async () => {
    const messages: Message[] = [{ role: 'user', parts: [{ type: 'image', url: 'https://example.com/a.png' }] }]
    expect(await losses('deepseek', 'deepseek-v4-pro', { messages })).toEqual(['parts.image'])
    expect(await losses('deepseek', 'deepseek-flash', { messages })).toEqual([])
  })

  test('include files uploaded to another provider, where there are no files', async () => {
    const text = { type: 'text', text: 'Look.' } as const
    const messages: Message[] = [{ role: 'user', parts: [text, { type: 'image', file_id: 'file-1' }] }]
    const request = { model: 'm', messages, origin: { api: 'responses' as const, body: {} } }
    for (const slug of ['groq', 'xai', 'vllm', 'fireworks']) {
      const { body, dropped } = await writeRequest(provider(slug), request, { model: 'm' })
      expect([body.messages, dropped], slug).toEqual([[{ role: 'user', content: 'Look.' }], ['parts.file_id']])
    }
  })

  test('is more than one answer, but not one', async () => {
    for (const slug of ['groq', 'deepseek', 'openrouter']) {
      expect(await losses(slug, 'm', { n: 2 })).toEqual(['n'])
      expect(await losses(slug, 'm', { n: 1 })).toEqual([])
    }
  })
})

describe.skipIf(recordingsMissing)('clients of this format get', () => {
  test('text as text and thoughts apart from mistral', async () => {
    const [thinking] = recordings('mistral').filter(({ case: name }) => name.includes('/reasoning__'))
    const { body } = await readReply(provider('mistral'), thinking?.response.body, foldFacts, facts('mistral'))
    const { message } = (body.choices as { message: JsonObject }[])[0] ?? {}
    expect(message?.content).toMatch(/^Crossing a river/)
    expect(message?.reasoning_content).toMatch(/^\*\*Analogizing/)
    const [streamed] = recordings('mistral').filter(({ case: name }) => name.includes('/reasoning-stream'))
    for (const { data } of recordedEvents(streamed as NonNullable<typeof streamed>)) {
      if (data === '[DONE]') continue
      const { payload } = await readFrame(provider('mistral'), undefined, JSON.parse(data), facts('mistral'))
      const { delta } = (payload.choices as { delta: JsonObject }[])[0] ?? {}
      expect(['string', 'undefined']).toContain(typeof delta?.content)
    }
  })

  test.each(recordings('xai').filter(({ response }) => response.body))(
    'whole completions in $case',
    async ({ response }) => {
      const { body } = await readReply(provider('xai'), response.body, foldFacts, facts('xai'))
      const { prompt_tokens, completion_tokens, total_tokens } = body.usage as { [name: string]: number }
      expect((prompt_tokens ?? 0) + (completion_tokens ?? 0)).toBe(total_tokens)
    },
  )
})

describe.skipIf(recordingsMissing)('every recorded request of this format can be written for every provider', () => {
  test.each(recordings('openai-chat').filter(({ request }) => request?.body))('$case', async ({ request }) => {
    for (const slug of slugs) {
      const { body } = await writeRequest(provider(slug), readRequest(request?.body), { model: 'm' })
      expect(body.model).toBe('m')
      expect(Array.isArray(body.messages)).toBe(true)
    }
  })
})
