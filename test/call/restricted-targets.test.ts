import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withLookups } from '../../src/access/lookups.ts'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { writeForeignSignature } from '../../src/api/foreign-signature.ts'
import { messages } from '../../src/api/messages/api.ts'
import { resourceUses } from '../../src/api/resource-uses.ts'
import { responses } from '../../src/api/responses/api.ts'
import { type RestrictedField, restrictedFields, restrictedSearch } from '../../src/api/restricted-fields.ts'
import { editedRequest } from '../../src/call/attempt/same-format.ts'
import { openHeldState } from '../../src/call/targets/held-state.ts'
import { type RestrictedCall, restrictedTargets } from '../../src/call/targets/restricted-targets.ts'
import { RouterError } from '../../src/core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { unsupportedInRequest, writeRequest } from '../../src/manifest/run/translate.ts'
import type { Target } from '../../src/manifest/target.ts'
import { openStore } from '../../src/store/open.ts'
import { shippedFiles } from '../helpers/shipped.ts'
import { describeEach } from '../helpers/slow.ts'

// Fields that change who serves, what it costs or what is kept: each is read, refused or bounded, at every provider.

const apis: readonly ClientApi[] = [chat, responses, messages]

/** The provider itself, and as it serves the models of its variants. */
let providers: Provider[]

beforeAll(async () => {
  const { providers: loaded } = await shippedFiles()
  const all = loaded.flatMap(({ provider }) => [provider, ...(provider.variants ?? []).map((one) => one.provider)])
  providers = all.filter(({ chat }) => chat)
  expect(providers.length).toBeGreaterThan(20)
})

const pricing = [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 2e-6 }]
const entry = { api: 'chat', pricing, multipliers: { flex: 0.5, priority: 2 }, max_output_tokens: 5_000 }

function targetOf(provider: Provider, facts: Partial<Target> = {}): Target {
  return { provider, model: 'm', entry, ...facts }
}

const bodies: { readonly [api in ClientApi['api']]: JsonObject } = {
  chat: { model: 'a/m', max_completion_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] },
  responses: { model: 'a/m', max_output_tokens: 20, input: 'Hi' },
  messages: { model: 'a/m', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] },
}

/** A value that nothing else in a body has. */
const mark = 'governed-mark'

/** Values that ask for something, by the name of the field. */
const values: { readonly [name: string]: Json } = {
  models: [mark],
  fallbacks: [{ model: mark }],
  provider: { order: [mark] },
  prompt: { id: mark },
  plugins: [{ id: mark }],
  transforms: [mark],
  thread: { type: 'continue', previous_message_id: mark },
  background: true,
  n: 7_077,
  best_of: 7_077,
  candidate_count: 7_077,
  deferred: true,
}

function demandFor({ name, except }: RestrictedField): Json {
  if (except) return [mark, `openrouter:${mark}`, `$${mark}`].find((value) => !except.test(value)) as string
  if (Object.hasOwn(values, name)) return values[name] as Json
  return /^(max|n_|num_)/.test(name) ? 7_077 : mark
}

/** A body that uses a field at its path. */
function using(api: ClientApi['api'], { name }: RestrictedField, value: Json): JsonObject {
  const [first = '', ...rest] = name.split('.')
  const inner = rest.reduceRight<Json>((made, step) => ({ [step]: made }), value)
  // Chat Completions have no tools of a provider.
  const type = api === 'chat' ? 'function' : 'code_interpreter'
  const container = { type, ...(isObject(inner) && inner) }
  return { ...bodies[api], [first]: first === 'tools' ? [container] : inner }
}

const nothingHeld = { holders: async () => [] }

type UnreadCall = Omit<RestrictedCall, 'lookups'>

const call = (api: ClientApi['api'], body: JsonObject, facts: Partial<UnreadCall> = {}): UnreadCall => {
  const resources = { body, uses: resourceUses(body) }
  const account = { isListed: () => true, isOwn: async () => true }
  return { api, body, organization: 'o', mayStore: true, held: nothingHeld, account, resources, at: 0, ...facts }
}

async function refusal(target: Target, governed: UnreadCall): Promise<RouterError | undefined> {
  try {
    await withLookups((lookups) => restrictedTargets([target], { ...governed, lookups }))
    return undefined
  } catch (thrown) {
    if (thrown instanceof RouterError) return thrown
    throw thrown
  }
}

/** What would be sent for a body, edited or translated. */
async function sent(clientApi: ClientApi, body: JsonObject, target: Target): Promise<JsonObject> {
  const { provider } = target
  const request = clientApi.read(body)
  if (provider.sameAs !== clientApi.api) return (await writeRequest(provider, request, target)).body
  const losses = await unsupportedInRequest(provider, request, target)
  return (await editedRequest(target, clientApi, { body, stream: false, losses })).body
}

describeEach(apis, { slowIf: ({ api }) => api !== 'chat' })('$api', (clientApi) => {
  const { api } = clientApi
  const own = restrictedFields.filter((field) => field.apis?.includes(api) ?? true)
  const acting = own.filter(({ rule }) => rule !== 'read')

  test('no provider is sent a governed field that the router does not read', async () => {
    for (const provider of providers) {
      for (const field of [...acting, ...(provider.restricted ?? [])]) {
        if (field.rule === 'inside' || field.rule === 'resource') continue
        const body = using(api, field, demandFor(field))
        const target = targetOf(provider)
        const refused = await refusal(target, call(api, body))
        const at = `${provider.slug} (${provider.dialect}): ${field.name}`
        if (refused) expect([400, 404], at).toContain(refused.status)
        // Where it is not refused it does not get there.
        else expect(JSON.stringify(await sent(clientApi, body, target)), at).not.toMatch(/governed-mark|7077/)
      }
    }
  })

  test('what is refused is refused everywhere, with its name and what to do; values that ask for nothing are not', async () => {
    for (const field of acting.filter(({ rule }) => rule === 'refuse')) {
      for (const provider of providers) {
        const refused = await refusal(targetOf(provider), call(api, using(api, field, demandFor(field))))
        expect(refused, field.name).toMatchObject({ code: 'invalid_request', param: field.name })
        expect(refused?.message).toContain(field.instead)
        for (const nothing of [null, false, '', [], {}])
          expect(await refusal(targetOf(provider), call(api, using(api, field, nothing))), field.name).toBeUndefined()
      }
    }
  })

  test('no governed field is passed on inside of another one', async () => {
    const wrappers = ['extra_body', 'extensions', 'provider_options', 'providerOptions']
    for (const provider of providers) {
      const inside = (provider.restricted ?? []).flatMap(({ name, rule }) => (rule === 'inside' ? [name] : []))
      for (const wrapper of [...wrappers, ...inside, provider.slug]) {
        for (const field of own.filter(({ name }) => !name.includes('.'))) {
          const body = { ...bodies[api], [wrapper]: { deeper: [{ [field.name]: demandFor(field) }], harmless: 1 } }
          const refused = await refusal(targetOf(provider), call(api, body))
          expect(refused?.param, `${provider.slug} ${wrapper} ${field.name}`).toBe(`${wrapper}.deeper.${field.name}`)
        }
        const harmless = { ...bodies[api], [wrapper]: { top_k: 5, model: null } }
        expect(await refusal(targetOf(provider), call(api, harmless))).toBeUndefined()
      }
    }
  })

  test('fields that are read are known to the reader', () => {
    const read = own.filter(({ rule, name }) => rule === 'read' && !['max_tool_calls'].includes(name))
    for (const field of read) {
      const body: JsonObject = { ...bodies[api], [field.name]: {} as Json }
      // A wrong value is refused, or has a place of its own in the neutral request.
      let kept: unknown
      try {
        kept = clientApi.read(body).extensions
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(RouterError)
      }
      expect(kept ?? {}, field.name).not.toHaveProperty(field.name)
    }
  })

  test('a tier without a known price is refused where it would reach the provider', async () => {
    const name = 'service_tier'
    for (const provider of providers) {
      for (const tier of ['auto', 'default', 'flex', 'standard_only', 'priority'])
        expect(await refusal(targetOf(provider), call(api, { ...bodies[api], [name]: tier })), tier).toBeUndefined()
      const body = { ...bodies[api], [name]: 'golden' }
      const refused = await refusal(targetOf(provider), call(api, body))
      if (refused) expect(refused.param).toBe(name)
      else if (provider.sameAs !== api)
        expect(await sent(clientApi, body, targetOf(provider))).not.toHaveProperty(name, 'golden')
      // Without a price at all there is none to exceed.
      expect(await refusal(targetOf(provider, { entry: { api: 'chat' } }), call(api, body))).toBeUndefined()
    }
    const openai = providers.find(({ slug }) => slug === 'openai') as Provider
    expect((await refusal(targetOf(openai), call(api, { ...bodies[api], [name]: 'golden' })))?.param).toBe(name)
  })
})

test('a tier without a known price goes to no endpoint besides chat whose bodies are edited', async () => {
  const tiered = { service_tier: 'golden' }
  const withEmbed = providers.filter(({ operations }) => operations?.embed)
  expect(withEmbed.length).toBeGreaterThan(5)
  for (const provider of withEmbed) {
    const refused = await refusal(targetOf(provider), call('chat', tiered, { operation: 'embed' }))
    const isEdited = provider.operations?.embed?.request === undefined
    expect([provider.slug, refused?.param]).toEqual([provider.slug, isEdited ? 'service_tier' : undefined])
  }
})

describe('what single providers bill', () => {
  const functionTool = { type: 'function', function: { name: 'f' } }
  const tools = (...given: object[]) => ({ tools: given as Json[] })
  const at = async (slug: string, api: ClientApi['api'], own: JsonObject) =>
    (
      await refusal(
        targetOf(providers.find((one) => one.slug === slug) as Provider),
        call(api, { ...bodies[api], ...own }),
      )
    )?.param

  const billed: [slug: string, api: ClientApi['api'], own: JsonObject, param: string][] = [
    ['alibaba', 'chat', { enable_search: true }, 'enable_search'],
    ['alibaba', 'chat', { search_options: { forced_search: true } }, 'search_options'],
    ['alibaba', 'chat', { extra_body: { enable_search: true } }, 'extra_body.enable_search'],
    ['alibaba-responses', 'responses', tools({ type: 'image_search' }), 'tools.type'],
    ['alibaba-messages', 'messages', { enable_search: true }, 'enable_search'],
    ['moonshot', 'chat', tools({ type: 'builtin_function', function: { name: '$web_search' } }), 'tools.type'],
    ['moonshot', 'chat', tools({ type: 'function', function: { name: '$web_search' } }), 'tools.function.name'],
    ['openrouter', 'chat', tools(functionTool, { type: 'openrouter:image_generation' }), 'tools.type'],
    ['openrouter', 'chat', tools({ type: 'openrouter:fusion' }), 'tools.type'],
    ['openrouter', 'chat', { plugins: [{ id: 'fusion' }] }, 'plugins'],
    ['openrouter', 'chat', { image_config: { font_inputs: [{ text: 'x' }] } }, 'image_config.font_inputs'],
    ['openrouter-responses', 'responses', tools({ type: 'openrouter:subagent' }), 'tools.type'],
    ['openrouter-messages', 'messages', tools({ type: 'openrouter:advisor' }), 'tools.type'],
    ['xiaomi', 'chat', { webSearchEnabled: true }, 'webSearchEnabled'],
    ['groq', 'chat', tools({ type: 'browser_search' }), 'tools.type'],
    ['friendli', 'chat', tools({ type: 'web:search' }), 'tools.type'],
    ['stepfun', 'chat', tools({ type: 'retrieval' }), 'tools.type'],
    ['zhipu', 'chat', tools({ type: 'drawing_tool' }), 'tools.type'],
  ]
  test.each(billed)('is refused where it is billed: %s %s %j', async (slug, api, own, param) => {
    expect(await at(slug, api, own)).toBe(param)
  })

  const known: [slug: string, api: ClientApi['api'], own: JsonObject][] = [
    ['alibaba', 'chat', { enable_search: false, enable_thinking: false }],
    ['alibaba', 'chat', tools({ type: 'web_search' })],
    ['moonshot', 'chat', tools(functionTool)],
    ['openrouter', 'chat', tools(functionTool, { type: 'openrouter:web_search' }, { type: 'openrouter:datetime' })],
    ['openrouter', 'chat', { image_config: { aspect_ratio: '1:1' } }],
    ['openrouter-responses', 'responses', tools({ type: 'openrouter:web_search' }, { type: 'function', name: 'f' })],
    ['openrouter-messages', 'messages', tools({ name: 'f', input_schema: {} })],
    ['openai', 'chat', tools({ type: 'custom', custom: { name: 'c' } }, { type: 'web_search_preview' })],
    // What the provider gets in words of its own has no such tools.
    ['anthropic', 'chat', tools({ type: 'browser_search' })],
  ]
  test.each(known)('goes on where it costs nothing, or what it costs is known: %s %s %j', async (slug, api, own) => {
    expect(await at(slug, api, own)).toBeUndefined()
  })
})

describe('state at a provider', async () => {
  const provider = (slug: string) => targetOf(providers.find((one) => one.slug === slug) as Provider)
  const store = await openStore('sqlite::memory:')
  afterAll(() => store.close())
  const held = openHeldState(store.held, () => {})
  held.remember('o', 'anthropic', ['c1', 'msg_1'])
  held.remember('o', 'openai-responses', ['cntr_1'])
  const ask = (slug: string, api: ClientApi['api'], own: JsonObject, facts: Partial<UnreadCall> = {}) =>
    refusal(provider(slug), call(api, { ...bodies[api], ...own }, { held, ...facts }))

  test('goes on where the organization made it through this router, and nowhere else', async () => {
    for (const container of ['c1', { id: 'c1', skills: [] }]) {
      expect(await ask('anthropic', 'messages', { container })).toBeUndefined()
      expect((await ask('anthropic', 'messages', { container }, { organization: 'other' }))?.param).toBe('container')
      expect(await ask('openai', 'messages', { container })).toMatchObject({ status: 400, param: 'container' })
    }
    expect((await ask('anthropic', 'messages', { container: 'c2' }))?.param).toBe('container')
    expect(
      await ask('openai', 'messages', { container: { skills: [{ type: 'anthropic', skill_id: 'pdf' }] } }),
    ).toBeUndefined()
    for (const tool of [
      { type: 'code_interpreter', container: 'cntr_1' },
      { type: 'shell', environment: { type: 'container_reference', container_id: 'cntr_1' } },
    ]) {
      for (const api of ['chat', 'responses'] as const) {
        expect(await ask('openai-responses', api, { tools: [tool] })).toBeUndefined()
        expect((await ask('openai-responses', api, { tools: [tool] }, { organization: 'other' }))?.param).toMatch(
          /^tools\./,
        )
        expect((await ask('xai', api, { tools: [tool] }))?.param).toMatch(/^tools\./)
      }
    }
    expect(
      await ask('openai-responses', 'responses', {
        tools: [{ type: 'code_interpreter', container: { type: 'auto' } }],
      }),
    ).toBeUndefined()
  })

  test('a thread begins where threads are, continues where it was made, and else the SDK is told to go on without', async () => {
    const continued = { thread: { type: 'continue', previous_message_id: 'msg_1' } }
    const unsupported = { status: 400, details: { error_code: 'thread_unsupported_request' } }
    expect(await ask('anthropic', 'messages', { thread: { type: 'create' } })).toBeUndefined()
    expect(await ask('anthropic', 'messages', continued)).toBeUndefined()
    expect(await ask('anthropic', 'messages', continued, { organization: 'other' })).toMatchObject({
      status: 404,
      details: { error_code: 'thread_not_found' },
    })
    for (const thread of [{ thread: { type: 'create' } }, continued]) {
      expect(await ask('openai', 'messages', thread)).toMatchObject(unsupported)
      expect(await ask('anthropic', 'messages', thread, { mayStore: false })).toMatchObject(unsupported)
    }
  })

  test('decides which targets of a policy may serve', async () => {
    const body = { ...bodies.messages, container: 'c1' }
    const targets = [provider('openai'), provider('anthropic')] as const
    const [first, ...others] = await withLookups((lookups) =>
      restrictedTargets([...targets], { ...call('messages', body, { held }), lookups }),
    )
    expect([first.provider.slug, others]).toEqual(['anthropic', []])
  })
})

test('no client can refer to an item that a provider holds by what it sends back of earlier replies', async () => {
  const target = targetOf(providers.find(({ slug }) => slug === 'openai-responses') as Provider)
  for (const body of [{ type: 'item_reference', id: mark }, { id: mark }]) {
    const sealed = writeForeignSignature({ by: 'openai', body }) as string
    const replay = [{ index: 0, part: { type: 'opaque', by: 'openai', body } }]
    const histories: [ClientApi, JsonObject][] = [
      [chat, { role: 'assistant', content: 'Hi', replay_parts: replay }],
      [
        messages,
        {
          role: 'assistant',
          content: [
            { type: 'redacted_thinking', data: sealed },
            { type: 'text', text: 'Hi' },
          ],
        },
      ],
    ]
    for (const [clientApi, earlier] of histories) {
      const asked = bodies[clientApi.api].messages as Json[]
      const history = { ...bodies[clientApi.api], messages: [...asked, earlier, ...asked] }
      expect(JSON.stringify(await sent(clientApi, history, target))).not.toContain(mark)
    }
  }
})

test('the manual has every field of the table', () => {
  const manual = readFileSync(join(import.meta.dirname, '../../docs/api.md'), 'utf8')
  for (const { name, rule } of restrictedFields)
    if (rule !== 'read') expect(manual, name).toMatch(new RegExp(`^\\|.*\`${name.replaceAll('.', '\\.')}\``, 'm'))
})

test('a search costs next to nothing', () => {
  const search = restrictedSearch('chat', 'openai', [])
  const tools = Array.from({ length: 20 }, (_, n) => ({ type: 'function', function: { name: `f${n}` } }))
  expect(search({ ...bodies.chat, tools })).toEqual([])
})
