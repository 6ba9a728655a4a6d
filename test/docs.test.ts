import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { ChatCompletionChunk } from 'openai/resources/chat/completions'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseDocument } from 'yaml'
import { run as check } from '../src/cli/check.ts'
import { functions } from '../src/mapping/functions.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider, type Received } from './helpers/provider.ts'
import { type TestRouter, testRouter } from './helpers/router.ts'
import { folderOf } from './manifest/files.ts'

const root = join(import.meta.dirname, '..')

/** One YAML block of a page: its text, and the slug when it is a whole manifest. */
type Block = { page: string; line: number; text: string; slug?: string }

const blocks = ['README.md', 'docs/add-a-provider.md', 'docs/mapping.md'].flatMap(yamlIn)
const manifests = blocks.filter(({ slug }) => slug !== undefined)
const murmur = manifests.find(({ slug }) => slug === 'murmur')?.text ?? ''

describe('YAML in the documentation', () => {
  test.each(blocks.map((block) => [`${block.page}:${block.line}`, block] as const))('%s is YAML', (_, { text }) => {
    expect(parseDocument(text).errors).toEqual([])
  })

  test('has whole manifests: on a dialect, and one of another shape', () => {
    expect(manifests.map(({ page, slug }) => `${page} ${slug}`).sort()).toEqual([
      'README.md dropin',
      'docs/add-a-provider.md hush',
      'docs/add-a-provider.md murmur',
      'docs/add-a-provider.md quiet',
    ])
  })

  test.each(manifests.map((block) => [block.slug, block] as const))(
    '%s is accepted, examples and all',
    async (slug, { text }) => {
      const folder = folderOf({ [`providers/${slug}.yaml`]: text, 'config.yaml': '{}' })
      const printed = { out: '', error: '' }
      const code = await check([join(folder, `providers/${slug}.yaml`), '--config', join(folder, 'config.yaml')], {
        stdout: (words) => {
          printed.out += words
        },
        stderr: (words) => {
          printed.error += words
        },
      })
      expect([code, printed.out, printed.error]).toEqual([0, expect.stringContaining(': no problems'), ''])
    },
  )

  test('adds a provider of another shape in at most 45 lines, with examples of both kinds of answer', () => {
    expect(murmur.trimEnd().split('\n').length).toBeLessThanOrEqual(45)
    expect(murmur).not.toContain('dialect:')
    expect(murmur).toMatch(/\n {4}answers:.*\n/)
    expect(murmur).toMatch(/\n {4}events:.*\n/)
  })
})

test('mappings have a row for each function', () => {
  const page = readFileSync(join(root, 'docs/mapping.md'), 'utf8')
  expect(Object.keys(functions).filter((name) => !page.includes(`\`$${name}(`))).toEqual([])
})

describe('the provider of the tutorial', () => {
  let provider: LoopbackProvider
  let router: TestRouter
  beforeAll(async () => {
    provider = await loopbackProvider(serveMurmur)
    router = await testRouter({
      files: { 'providers/murmur.yaml': murmur },
      providers: { murmur: { base_url: provider.url } },
      env: { MURMUR_API_KEY: 'murmur-secret' },
    })
  })
  afterAll(async () => {
    await router.end()
    await provider.close()
  })

  const messages = [
    { role: 'system', content: 'Be kind.' },
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'Hello.' },
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Bye' },
  ]

  test('serves a whole call with its cost, and reports dropped fields', async () => {
    const body = { model: 'murmur/murmur-2', messages, temperature: 0.5, seed: 3 }
    const response = await router.call('/v1/chat/completions', body)
    expect(response.status).toBe(200)
    expect(response.headers.get('x-router-dropped')).toBe('seed')
    expect(await response.json()).toMatchObject({
      model: 'murmur/murmur-2',
      choices: [{ message: { role: 'assistant', content: 'You said: Bye' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 9, completion_tokens: 2, cost: 9 * 5e-7 + 2 * 1.5e-6 },
    })
    const received = provider.received.at(-1)
    expect(received).toMatchObject({ path: '/utter', headers: { 'x-murmur-key': 'murmur-secret' } })
    expect(received?.body).toEqual({
      engine: 'murmur-2',
      persona: 'Be kind.',
      turns: [
        { who: 'person', said: 'Hi' },
        { who: 'machine', said: 'Hello.' },
        { who: 'person', said: '<system_note>\nBe brief.\n</system_note>\nBye' },
      ],
      cap: 4096,
      heat: 0.5,
    })
  })

  test('streams a call with its cost', async () => {
    const { data: stream, response } = await router
      .openai()
      .chat.completions.create({
        model: 'murmur/murmur-2',
        messages: [{ role: 'user', content: 'a b c' }],
        temperature: 2,
        stream: true,
        stream_options: { include_usage: true },
      })
      .withResponse()
    expect(response.headers.get('x-router-dropped')).toBe('temperature')
    const chunks: ChatCompletionChunk[] = []
    for await (const chunk of stream) chunks.push(chunk)
    const words = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').filter(Boolean)
    expect(words).toEqual(['You ', 'said: ', 'a ', 'b ', 'c'])
    expect(chunks.map(({ choices }) => choices[0]?.finish_reason).filter(Boolean)).toEqual(['stop'])
    expect(chunks.at(-1)?.usage).toMatchObject({ prompt_tokens: 9, completion_tokens: 2 })
    expect(provider.received.at(-1)).toMatchObject({ path: '/utter/live', body: { heat: 1 } })
  })

  test('rejects losses in strict mode, and calls no provider', async () => {
    const before = provider.received.length
    const body = { model: 'murmur/murmur-2', messages, seed: 3 }
    const response = await router.call('/v1/chat/completions', body, { 'x-router-strict': 'true' })
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('seed')
    expect(provider.received.length).toBe(before)
  })

  test('fails by its table of errors, before and inside a stream', async () => {
    const ask = (content: string, stream: boolean) =>
      router.call('/v1/chat/completions', { model: 'murmur/murmur-2', stream, messages: [{ role: 'user', content }] })
    const refused = await ask('too much', false)
    expect(refused.status).toBe(400)
    const message = 'Your input exceeds the context window of this model: My memory is full.'
    expect(await refused.json()).toMatchObject({
      error: { provider: 'murmur', code: 'context_length_exceeded', message },
    })
    const broken = await (await ask('trouble', true)).text()
    expect(broken).toContain('I lost my voice.')
    expect(broken).not.toContain('[DONE]')
  })
})

/** A server of the invented format. */
function serveMurmur(request: Received, response: ServerResponse): void {
  const said: string = request.body.turns.at(-1).said.split('\n').at(-1)
  const words = `You said: ${said}`
  const meter = { heard: 9, spoken: 2 }
  if (said === 'too much') answerJson(response, { kind: 'full', message: 'My memory is full.' }, 422)
  else if (request.path === '/utter') answerJson(response, { utterance: { words, why: 'done' }, meter })
  else streamMurmur(response, words, meter)
}

function streamMurmur(response: ServerResponse, words: string, meter: object): void {
  const event = (name: string, payload: object) =>
    response.write(`event: ${name}\ndata: ${JSON.stringify(payload)}\n\n`)
  beginStream(response)
  for (const w of words.match(/\S+\s*/g) ?? []) event('word', { w })
  if (words.endsWith('trouble')) event('trouble', { kind: 'voice', note: 'I lost my voice.' })
  else event('stop', { why: 'done', meter })
  response.end()
}

function yamlIn(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^```ya?ml\n([\s\S]*?)^```$/gm)].map((match) => {
    const [, block = ''] = match
    const line = text.slice(0, match.index).split('\n').length + 1
    const value = parseDocument(block).toJS()
    const whole = typeof value?.slug === 'string' && value.base_url !== undefined
    return { page, line, text: block, ...(whole && { slug: value.slug as string }) }
  })
}
