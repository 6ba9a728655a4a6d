import { afterAll, beforeAll, expect, test } from 'vitest'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'

let usual: LoopbackProvider
let resident: LoopbackProvider
let router: TestRouter

const price = '[{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }]'
const text = { choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] }
const answers = { ...text, data: [{ embedding: [1], index: 0, url: 'https://a.example/1.png' }], usage: {} }

/** A manifest with models of several kinds. */
function manifest(slug: string, base_url: string, more = ''): string {
  return `slug: ${slug}
name: ${slug}
base_url: ${base_url}
auth: { scheme: bearer, secret: "\${ACME_KEY:-usual}" }
dialect: openai-chat
endpoints: { embed: true, image: true, transcribe: true }
models:
  m: { api: chat, pricing: ${price} }
  e: { api: embedding, pricing: ${price} }
  i: { api: image }
  t: { api: transcription }
${more}`
}

beforeAll(async () => {
  usual = await loopbackProvider((_, response) => answerJson(response, answers))
  resident = await loopbackProvider((_, response) => answerJson(response, answers))
  router = await testRouter({
    files: {
      'providers/acme.yaml': manifest('acme', `${usual.url}/v1`),
      'providers/acme-derived.yaml': manifest('acme-derived', '{ of: acme, path: /derived }', 'account_of: acme\n'),
      'providers/acme-own.yaml': manifest('acme-own', `${usual.url}/own`, 'account_of: acme\n'),
    },
    providers: { acme: { base_url: resident.url, secret: 'resident' } },
    settings: { policies: { managed: { targets: ['acme-own/m', 'acme-derived/m'] } } },
  })
})

afterAll(async () => {
  await router.end()
  await usual.close()
  await resident.close()
})

const messages = [{ role: 'user', content: 'the prompt of a resident' }]
const slugs = ['acme', 'acme-derived', 'acme-own']

function form(model: string): FormData {
  const sent = new FormData()
  sent.set('model', model)
  sent.set('file', new File(['the voice of a resident'], 'a.wav'))
  return sent
}

test('prompts reach only the address that is set for the account, whatever name and endpoint a client uses', async () => {
  await router.call('/v1/manage/alias', { name: 'fast', target: 'acme-own/m' })
  await router.call('/v1/manage/policy', { id: 'ours', targets: ['acme-derived/m', 'acme/m'] })
  const statuses: { [call: string]: number } = {}
  const call = async (path: string, body: { [member: string]: unknown }) => {
    const response = await router.call(path, body)
    await response.text()
    statuses[`${path} ${body.model}`] = response.status
  }
  for (const model of [...slugs.map((slug) => `${slug}/m`), 'fast', 'ours', 'managed']) {
    await call('/v1/chat/completions', { model, messages })
    await call('/v1/messages', { model, messages, max_tokens: 9 })
    await call('/v1/responses', { model, input: 'the prompt of a resident' })
  }
  await call('/v1/chat/completions', { model: 'acme-own/m', models: ['acme-own/m', 'acme-derived/m'], messages })
  for (const slug of slugs) {
    await call('/v1/embeddings', { model: `${slug}/e`, input: 'the prompt of a resident' })
    await call('/v1/images/generations', { model: `${slug}/i`, prompt: 'the prompt of a resident' })
    const sent = await fetch(`${router.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: 'Bearer ir-test-key-on-loopback' },
      body: form(`${slug}/t`),
    })
    await sent.text()
    statuses[`/v1/audio/transcriptions ${slug}/t`] = sent.status
  }
  expect(usual.received).toEqual([])
  const paths = new Set(resident.received.map(({ path }) => path))
  expect(paths).toEqual(new Set([...paths].filter((path) => !path.startsWith('/own'))))
  expect(paths).toContain('/derived/chat/completions')
  expect(new Set(resident.received.map(({ headers }) => headers.authorization))).toEqual(new Set(['Bearer resident']))
  for (const [name, status] of Object.entries(statuses)) {
    if (name.includes('acme-own/'))
      expect([name, status]).toEqual([name, name.includes('chat') ? expect.any(Number) : 404])
  }
  expect(statuses['/v1/chat/completions managed']).toBe(200)
  expect(statuses['/v1/chat/completions ours']).toBe(200)
  expect(statuses['/v1/embeddings acme-derived/e']).toBe(200)
})

test('the 404 names the setting that is missing', async () => {
  const response = await router.call('/v1/embeddings', { model: 'acme-own/e', input: 'a' })
  expect(response.status).toBe(404)
  const { error } = (await response.json()) as { error: { message: string } }
  expect(error.message).toContain('`providers.acme-own.base_url`')
})
