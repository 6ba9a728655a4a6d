import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CallRecord } from '../../../src/core/call.ts'
import { defaultRouting } from '../../../src/core/routing/rules.ts'
import { targetFacts } from '../../../src/manifest/target.ts'
import { resolve } from '../../../src/routing/names/resolve.ts'
import type { Store } from '../../../src/store/open.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { shippedFiles } from '../../helpers/shipped.ts'
import { errorIn, newKey, storeIn } from './budget-world.ts'

// What a call costs is known before it, or the call is refused: whatever id a provider takes for a model.

let provider: LoopbackProvider
let router: TestRouter
let store: Store
let groupId: string

beforeAll(async () => {
  provider = await loopbackProvider(({ body }, response) => {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
    answerJson(response, { id: 'c', object: 'chat.completion', created: 1, model: body.model, choices, usage })
  })
  router = await testRouter({
    providers: {
      azure: { base_url: provider.url, secret: 's', models: { 'my-deployment': { is: 'gpt-5' } } },
      ollama: { enabled: false },
      vllm: {
        base_url: provider.url,
        unknown_models: 'pass',
        models: { named: { api: 'chat' } },
      },
    },
    env: { AZURE_RESOURCE_NAME: 'r' },
  })
  store = await storeIn(router.folder)
  const organization = (await store.organizations.list())[0]?.id ?? ''
  groupId = (await store.groups.create({ organization, name: 'few', monthlyLimitNano: 1_000_000n })).id
})

afterAll(async () => {
  await store.close()
  await router.end()
  await provider.close()
})

async function ask(model: string, secret?: string): Promise<Response> {
  const body = { model, max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }] }
  const headers: Record<string, string> = secret ? { authorization: `Bearer ${secret}` } : {}
  return await router.call('/v1/chat/completions', body, headers)
}

async function lastRow(): Promise<CallRecord> {
  const [last] = (await Array.fromAsync(store.ledger.each({}))).toSorted(
    (one, other) => other.at - one.at || (one.id < other.id ? 1 : -1),
  )
  if (!last) throw new Error('There is no row.')
  return last
}

describe('azure', () => {
  test.each(['gpt-5', 'GPT-5', 'gpt-5 ', ' Gpt-5', 'my-deployment', 'MY-DEPLOYMENT'])('knows `%s`', async (model) => {
    const { status } = await ask(`azure/${model}`)
    expect(status).toBe(200)
    const { cost, model: recorded } = await lastRow()
    expect(cost.nanoUsd).toBeGreaterThan(0)
    const listed = model.trim().toLowerCase()
    expect([recorded, provider.received.at(-1)?.body.model]).toEqual([listed, listed])
    // As the family takes it, whatever the deployment is called.
    expect(provider.received.at(-1)?.body).toHaveProperty('max_completion_tokens', 10)
  })

  test.each(['gpt-5-mine', 'gpt 5', 'gpt-5/'])('refuses `%s`', async (model) => {
    const { length } = provider.received
    expect((await ask(`azure/${model}`)).status).toBe(404)
    expect(provider.received).toHaveLength(length)
  })
})

describe('a model without a price', () => {
  test('is refused where money is limited, and nothing is sent', async () => {
    const { length } = provider.received
    for (const limited of [await newKey(store, { monthlyLimitNano: 1n }), await newKey(store, { groupId })]) {
      const refused = await ask('vllm/named', limited.secret)
      expect(refused.status).toBe(402)
      expect(await errorIn(refused)).toMatchObject({ code: 'unpriced_model', type: 'billing_error', param: 'model' })
    }
    expect(provider.received).toHaveLength(length)
  })

  test('is called by a key without a limit, and its row is marked', async () => {
    expect((await ask('vllm/named')).status).toBe(200)
    expect((await lastRow()).cost).toMatchObject({ nanoUsd: 0, unpriced: true })
  })

  test('is left out of a policy, as long as another one has a price', async () => {
    const policy = { id: 'any', targets: ['vllm/named', 'azure/gpt-5'] }
    expect((await router.call('/v1/manage/policy', policy)).status).toBe(201)
    const limited = await newKey(store, { monthlyLimitNano: 1_000_000_000n })
    expect((await ask('any', limited.secret)).headers.get('x-router-model')).toBe('azure/gpt-5')
    expect((await ask('any')).headers.get('x-router-model')).toBe('vllm/named')
  })
})

test('a server of one’s own is known to cost nothing', async () => {
  const limited = await newKey(store, { monthlyLimitNano: 1n })
  expect((await ask('vllm/whatever', limited.secret)).status).toBe(200)
  expect((await lastRow()).cost).not.toHaveProperty('unpriced')
})

test('no shipped provider passes on models that it does not know', async () => {
  const { providers } = await shippedFiles()
  expect(providers.filter(({ provider }) => provider.unknownModels === 'pass')).toEqual([])
})

test('a list that names a model allows its other ids, and no deployment of it', async () => {
  const { snapshot } = router
  const { catalog, providers } = snapshot()
  const configured = new Map([...providers].map(([slug, one]) => [slug, { ...one, missing: [] as string[] }]))
  const directory = { providers: configured, identify: catalog.identify, managed: new Map(), routing: defaultRouting }
  const arn = 'bedrock/arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-opus-5'
  const rules = { approvedModels: null, dataRules: {}, aliases: new Map(), policies: new Map() }
  const allows = (list: string, id: string) => {
    try {
      return resolve(id, directory, { rules, accessList: [list] }).targets.length === 1
    } catch {
      return false
    }
  }
  const cases = [
    ['azure/gpt-5', 'azure/GPT-5 ', true],
    ['azure/GPT-5', 'azure/gpt-5', true],
    ['bedrock/anthropic.claude-opus-5', arn, true],
    [arn, 'bedrock/anthropic.claude-opus-5', true],
    ['azure/gpt-5', 'azure/my-deployment', false],
    ['azure/my-deployment', 'azure/gpt-5', false],
    ['vllm/one', 'vllm/other', false],
    ['vllm/one', 'vllm/one', true],
  ] as const
  for (const [list, id, allowed] of cases) expect(allows(list, id), `${id} with ${list}`).toBe(allowed)
})

test('bedrock knows a model by its resource name, and refuses names that say no model', async () => {
  const { providers, catalog } = await shippedFiles()
  const served = providers.map(({ provider }) => [provider.slug, { ...provider, missing: [] as string[] }] as const)
  const directory = {
    providers: new Map(served),
    identify: catalog.identify,
    managed: new Map(),
    routing: defaultRouting,
  }
  const target = (id: string) => resolve(`bedrock/${id}`, directory).targets[0]
  for (const id of ['us.amazon.nova-2-lite-v1:0', 'anthropic.claude-opus-5', 'us.anthropic.claude-sonnet-5']) {
    const plain = target(id)
    for (const kind of ['foundation-model', 'inference-profile']) {
      const arn = `arn:aws:bedrock:us-east-1:123456789012:${kind}/${id}`
      const named = target(arn)
      expect(named).toMatchObject({ model: arn, is: id })
      expect(named.entry).toBe(plain.entry)
      expect(targetFacts(named.provider, named)).toEqual(targetFacts(plain.provider, plain))
    }
  }
  const owned = 'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc'
  for (const id of [owned, 'anthropic.claude-opus-5 ', 'Anthropic.claude-opus-5', 'us.anthropic.claude-2'])
    expect(() => target(id), id).toThrow('no model')
})
