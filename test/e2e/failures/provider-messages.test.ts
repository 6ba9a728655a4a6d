import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { help, run } from '../../../src/cli/ledger/ledger.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { openStore } from '../../../src/store/open.ts'
import { ran } from '../../cli/running.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { administration } from '../../management/administration.ts'

// What a provider writes about a failed attempt, wherever the operator can read it.

const secret = 'sk-of-the-operator-zyxwvutsrq'
const prompt = 'the treasure is under the oak'
const pricing = '[{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }]'
const manifest = (url: string) => `slug: acme
name: Acme
base_url: ${url}
auth: { scheme: bearer, secret: "\${ACME_KEY}" }
dialect: openai-chat
models: { m1: { api: chat, pricing: ${pricing} }, m2: { api: chat, data_retention: false, pricing: ${pricing} } }
`
const recorder = `import { definePlugin } from 'inference-router/plugin'
export default definePlugin({
  setup: (_, { log }) => ({ record: ({ id, providerMessage }) => log.warn({ recorded: id, providerMessage }, 'record') }),
})
`

let words = ''
let provider: LoopbackProvider
beforeAll(async () => {
  provider = await loopbackProvider(({ body, headers }, response) => {
    if (words.startsWith('bad key')) return answerJson(response, { error: { message: words } }, 401)
    const error = { message: words.replace('KEY', String(headers.authorization)) }
    if (!body.stream) return answerJson(response, { error }, 500)
    beginStream(response)
    const choices = [{ index: 0, delta: { content: 'half' }, finish_reason: null }]
    response.write(`data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'm1', choices })}\n\n`)
    response.end(`data: ${JSON.stringify({ error })}\n\n`)
  })
})
afterAll(() => provider.close())

async function routerWith(errors: object) {
  const lines: JsonObject[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const router = await testRouter({
    files: { 'providers/acme.yaml': manifest(provider.url), 'plugins/recorder.ts': recorder },
    settings: { errors, plugins: [{ name: 'recorder' }] },
    env: { ACME_KEY: secret },
    log,
    threads: 1,
  })
  const ask = async (said: string, facts: object = {}) => {
    words = said
    const body = { model: 'acme/m1', messages: [{ role: 'user', content: prompt }], ...facts }
    const response = await router.call('/v1/chat/completions', body)
    await response.text()
    const id = String(response.headers.get('x-request-id'))
    await expect.poll(() => lines.find(({ recorded }) => recorded === id)).toBeDefined()
    const { body: detail, text } = await administration(router).get(`/calls/${id}`)
    const recorded = lines.find((line) => line.recorded === id)?.providerMessage
    const logged = lines.find((line) => line.id === id)?.provider_message
    return { id, detail, text, recorded, logged }
  }
  return { router, lines, ask }
}

describe('the message of a provider', () => {
  let router: TestRouter
  let made: Awaited<ReturnType<typeof routerWith>>
  beforeAll(async () => {
    made = await routerWith({})
    router = made.router
  })
  afterAll(() => router.end())

  test('is in the detail of its call, in the log at debug and in the record for plugins', async () => {
    const message = 'CUDA out of memory on node 7'
    const { detail, recorded, logged } = await made.ask(message)
    expect([detail.error, recorded, logged]).toEqual([
      { code: 'provider_failed', provider_message: message },
      message,
      message,
    ])
  })

  test('has neither the credential of the router nor the prompt', async () => {
    const { text, detail, recorded, logged } = await made.ask(
      `KEY cannot be used for '${prompt}', see req_0123456789abcdef0123`,
    )
    const message = "Bearer [secret] cannot be used for '[content]', see req_0123456789abcdef0123"
    expect([(detail.error as JsonObject).provider_message, recorded, logged]).toEqual([message, message, message])
    for (const hidden of [secret, 'treasure']) expect(text + JSON.stringify(made.lines)).not.toContain(hidden)
  })

  test('has at most 500 characters, and no half of one', async () => {
    const { detail } = await made.ask('ab 😀'.repeat(400))
    const message = String((detail.error as JsonObject).provider_message)
    expect([message.length <= 500, message.length > 490, message.isWellFormed()]).toEqual([true, true, true])
  })

  test('of a stream that it breaks off is stored as well', async () => {
    const { detail } = await made.ask('the worker was evicted', { stream: true })
    expect(detail).toMatchObject({ outcome: 'partial', error: { provider_message: 'the worker was evicted' } })
  })

  test('is printed by `ledger show` without its control characters, also while a file has a mistake', async () => {
    const { id } = await made.ask('no \u001b[31mGPU\u001b[0m\nis left')
    router.put('providers/broken.yaml', 'slug: [')
    const { code, stdout } = await ran(run, 'show', `chatcmpl-${id}`, '--config', `${router.folder}/config.yaml`)
    expect([code, stdout.includes('no \\u001b[31mGPU\\u001b[0m\\u000ais left')]).toEqual([0, true])
    const asJson = await ran(run, 'show', id, '--json', '--config', `${router.folder}/config.yaml`)
    expect(JSON.parse(asJson.stdout)).toMatchObject({
      id,
      rows: [{ provider_message: 'no \u001b[31mGPU\u001b[0m\nis left' }],
    })
    expect(await ran(run, 'show', 'nothing', '--config', `${router.folder}/config.yaml`)).toMatchObject({ code: 1 })
    expect(await ran(run, 'show', '--config', `${router.folder}/config.yaml`)).toMatchObject({ code: 2 })
    expect(help).toContain('ledger show ID')
  })

  test('about the credential of the router is for operators alone, where there are several organizations', async () => {
    const { id, detail } = await made.ask('bad key of account 4711')
    expect(detail.error).toMatchObject({ code: 'provider_refused', provider_message: 'bad key of account 4711' })
    const store = await openStore(`sqlite:${router.folder}/data/router.sqlite`)
    await store.organizations.create('another')
    await store.close()
    const manage = administration(router)
    const { secret: tenant } = await manage.newKey({ permissions: { manage: 'read' } })
    expect((await manage.get(`/calls/${id}`, tenant)).text).not.toContain('4711')
    expect((await manage.get(`/calls/${id}`)).text).toContain('4711')
    const other = await made.ask('no GPU is left')
    expect((await manage.get(`/calls/${other.id}`, tenant)).text).toContain('no GPU is left')
  })

  test('is neither stored nor logged nor shown to plugins where the organization forbids to retain data', async () => {
    const manage = administration(router)
    expect((await manage.put('/org/rules', { data_retention: false })).status).toBe(200)
    const found = await made.ask('a word that nobody may keep', { model: 'acme/m2' })
    expect(found.text + JSON.stringify(made.lines)).not.toContain('nobody may keep')
    expect(found.detail.error).toEqual({ code: 'provider_failed' })
  })
})

test.each([{ keep: 0 }, { keep: 'off' }, { keep: '0s' }])(
  'the message of a provider is nowhere with errors: %j',
  async (errors) => {
    const { router, lines, ask } = await routerWith(errors)
    try {
      const { detail } = await ask('a word that is not kept')
      expect(detail.error).toEqual({ code: 'provider_failed' })
      expect(JSON.stringify(lines)).not.toContain('not kept')
    } finally {
      await router.end()
    }
  },
)
