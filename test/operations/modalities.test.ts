import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { operations } from '../../src/core/operation.ts'
import { callRoutes } from '../../src/http/endpoints.ts'
import type { Store } from '../../src/store/open.ts'
import { storeIn } from '../e2e/money/budget-world.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { testEach } from '../helpers/slow.ts'
import { png } from './image-world.ts'

// Every endpoint with a model of every other kind, by every kind of name.

/** Where models are called, by their API. */
const homes: { readonly [api: string]: string } = {
  chat: '/v1/chat/completions',
  completion: '/v1/completions',
  decision: '/v1/decisions',
  embedding: '/v1/embeddings',
  image: '/v1/images/generations',
  moderation: '/v1/moderations',
  rerank: '/v1/rerank',
  speech: '/v1/audio/speech',
  transcription: '/v1/audio/transcriptions',
}

const apis = Object.keys(homes)

/** A model of each kind; the provider of them has every endpoint. */
const manifest = (url: string) => `slug: multi
name: Multi
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
endpoints: { ${Object.keys(operations)
  .map((name) => `${name}: { path: /${name} }`)
  .join(', ')} }
models: { ${apis.map((api) => `${api}: { api: ${api} }, other-${api}: { api: ${api} }`).join(', ')} }
`

/** Bodies beside the model: what each path needs, and what others may need. */
const messages = [{ role: 'user', content: 'Hello' }]
const bodies: { readonly [path: string]: object } = {
  '/v1/chat/completions': { messages },
  '/v1/messages': { messages, max_tokens: 10 },
  '/v1/messages/count_tokens': { messages },
  '/v1/responses': { input: 'Hello' },
  '/v1/responses/input_tokens': { input: 'Hello' },
  '/v1/responses/compact': { input: 'Hello' },
  '/v1/decisions': { input: 'Hello', questions: [{ type: 'predicate', instructions: 'Polite?' }] },
  '/v1/images/edits': { prompt: 'Hello', image: `data:image/png;base64,${png().toString('base64')}` },
  '/v1/audio/speech': { input: 'Hello', voice: 'alloy' },
}
const otherBody = { input: 'Hello', prompt: 'Hello', query: 'Hello', documents: ['Hello'] }

let provider: LoopbackProvider
let router: TestRouter
let store: Store

beforeAll(async () => {
  provider = await loopbackProvider((_, response) => answerJson(response, {}))
  router = await testRouter({
    files: { 'providers/multi.yaml': manifest(provider.url) },
    settings: {
      policies: Object.fromEntries(
        apis.flatMap((api) => [
          [`managed-${api}`, { targets: [`multi/${api}`] }],
          [`tried-${api}`, { targets: [`multi/${api}`, `multi/other-${api}`] }],
        ]),
      ),
    },
  })
  store = await storeIn(router.folder)
  for (const api of apis) {
    const made = [
      await router.call('/v1/manage/policy', { id: `own-${api}`, targets: [`multi/${api}`] }),
      await router.call('/v1/manage/alias', { name: `alias-${api}`, target: `multi/${api}` }),
      await router.call('/v1/manage/alias', { name: `far-${api}`, target: `managed-${api}` }),
    ]
    expect(made.map(({ status }) => status)).toEqual([201, 201, 201])
  }
})

afterAll(async () => {
  await store?.close()
  await router?.end()
  await provider?.close()
})

beforeEach(() => {
  provider.received.length = 0
})

/** The kinds of models that an endpoint is for. */
function kindsOf(route: (typeof callRoutes)[number]): readonly string[] {
  const { operation } = route.kind
  return operation in operations ? operations[operation as keyof typeof operations].models : ['chat']
}

async function call(route: (typeof callRoutes)[number], model: string): Promise<Response> {
  const { path, kind } = route
  const isForm = kind.form !== undefined && kind.json === false
  if (!isForm) return await router.call(path, { model, ...(bodies[path] ?? otherBody) })
  const form = new FormData()
  form.set('model', model)
  form.set('file', new Blob([Buffer.from('RIFF....WAVE')]), 'a.wav')
  const headers = { authorization: `Bearer ${testKey}` }
  return await fetch(router.url + path, { method: 'POST', headers, body: form })
}

const pairs = callRoutes.flatMap((route) =>
  apis.filter((api) => !kindsOf(route).includes(api)).map((api) => [route.path, api, route] as const),
)

describe('a model of another modality (15.17)', () => {
  const few = new Set(pairs.filter((_, index) => index % 4 === 0))
  testEach(pairs, { slowIf: (pair) => !few.has(pair) })(
    '%s refuses models of the kind %s, whatever they are called, and sends nothing',
    async (_, api, route) => {
      const names = [`multi/${api}`, `alias-${api}`, `far-${api}`, `own-${api}`, `managed-${api}`, `tried-${api}`]
      for (const name of [...names, `policy/own-${api}`]) {
        const reply = await call(route, name)
        const { error } = (await reply.json()) as { error: { param: string; message: string; code: string } }
        expect([name, reply.status, error.param, error.code]).toEqual([name, 400, 'model', 'invalid_request'])
        expect(error.message).toContain(`POST ${homes[api]}`)
      }
      expect(provider.received).toEqual([])
      expect(await Array.fromAsync(store.ledger.each({}))).toEqual([])
    },
  )

  test('every endpoint is for some kind, and every kind is named', () => {
    const kinds = new Set(callRoutes.flatMap(kindsOf))
    expect([...kinds].filter((kind) => !apis.includes(kind))).toEqual([])
    expect(pairs.length).toBeGreaterThan(50)
  })
})
