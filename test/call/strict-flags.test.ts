import { beforeAll, describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import { attemptOf } from '../../src/call/attempt/attempt.ts'
import { callProvider } from '../../src/call/attempt/provider-call.ts'
import type { PreparedCall } from '../../src/call/attempt/types.ts'
import type { AdmittedCall, Services } from '../../src/call/types.ts'
import { isObject, type JsonObject } from '../../src/core/json.ts'
import { abilities } from '../../src/core/models/model.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { servedBy, type Target, targetFacts } from '../../src/manifest/target.ts'
import { defaultAnswerBounds } from '../../src/upstream/answer-body.ts'
import type { HttpClient } from '../../src/upstream/http/types.ts'
import { shippedFiles } from '../helpers/shipped.ts'
import { slow } from '../helpers/slow.ts'

const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const url = `data:image/png;base64,${data}`
const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
const hello = [{ role: 'user', content: 'Hello' }]
const chatting = { messages: hello }
const responding = { input: 'Hello', store: false }
const messaging = { messages: hello, max_tokens: 5_000 }

type Flag = (typeof abilities)[number]

/**
 * What clients send for the flags of an entry, API by API. Two flags ask for nothing that a request could lose: prompts are cached
 * without a mark, or not, and whoever knows no developer is told by the system.
 */
const asked: [ClientApi, { [flag in Flag]?: JsonObject }][] = [
  [
    chat,
    {
      supports_caching: { ...chatting, prompt_cache_key: 'k' },
      supports_vision: { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] },
      supports_reasoning: { ...chatting, reasoning_effort: 'high' },
      supports_image_generation: { ...chatting, modalities: ['text', 'image'] },
      supports_tool_calling: {
        ...chatting,
        tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
      },
      supports_role_developer: { messages: [{ role: 'developer', content: 'Be brief.' }, ...hello] },
      supports_web_search: { ...chatting, tools: [{ type: 'web_search' }] },
      supports_output_json_object: {
        messages: [{ role: 'user', content: 'JSON, please.' }],
        response_format: { type: 'json_object' },
      },
      supports_output_json_schema: {
        ...chatting,
        response_format: { type: 'json_schema', json_schema: { name: 'n', schema } },
      },
    },
  ],
  [
    responses,
    {
      supports_caching: { ...responding, prompt_cache_key: 'k' },
      supports_vision: { ...responding, input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] },
      supports_computer_use: {
        ...responding,
        tools: [{ type: 'computer_use_preview', display_width: 800, display_height: 600, environment: 'browser' }],
      },
      supports_reasoning: { ...responding, reasoning: { effort: 'high' } },
      supports_tool_calling: {
        ...responding,
        tools: [{ type: 'function', name: 'f', parameters: schema, strict: false }],
      },
      supports_role_developer: { ...responding, input: [{ role: 'developer', content: 'Be brief.' }, ...hello] },
      supports_web_search: { ...responding, tools: [{ type: 'web_search' }] },
      supports_output_json_object: { ...responding, input: 'JSON, please.', text: { format: { type: 'json_object' } } },
      supports_output_json_schema: { ...responding, text: { format: { type: 'json_schema', name: 'n', schema } } },
    },
  ],
  [
    messages,
    {
      supports_vision: {
        ...messaging,
        messages: [
          { role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }] },
        ],
      },
      supports_computer_use: {
        ...messaging,
        tools: [{ type: 'computer_20250124', name: 'computer', display_width_px: 800, display_height_px: 600 }],
      },
      supports_reasoning: { ...messaging, thinking: { type: 'enabled', budget_tokens: 2_000 } },
      supports_tool_calling: { ...messaging, tools: [{ name: 'f', input_schema: schema }] },
      supports_web_search: { ...messaging, tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
      supports_output_json_schema: { ...messaging, output_config: { format: { type: 'json_schema', schema } } },
    },
  ],
]
const harmless: readonly Flag[] = ['supports_caching', 'supports_role_developer']

type Model = { id: string; served: Target }
let models: Model[] = []
beforeAll(async () => {
  const { providers, catalog } = await shippedFiles()
  const bySlug = new Map(providers.map(({ provider }) => [provider.slug, provider]))
  models = catalog.list().flatMap(({ provider: slug, model, entry }) => {
    const provider = bySlug.get(slug)
    return entry.api === 'chat' && provider ? [{ id: `${slug}/${model}`, served: { provider, model, entry } }] : []
  })
})

const keyless = new WeakMap<Provider, Provider>()

/** Credentials are read from files, and tokens asked for. */
function withoutKey(provider: Provider): Provider {
  const known = keyless.get(provider) ?? { ...provider, auth: { scheme: 'none' } }
  keyless.set(provider, known)
  return known
}

/** A body with an effort that the model takes: some know a single one. */
function atTakenEffort(body: JsonObject, { provider, model }: Model['served']): JsonObject {
  const { efforts } = targetFacts(servedBy(provider, model), { model }).traits
  const effort = Array.isArray(efforts) ? efforts.at(-1) : undefined
  if (typeof effort !== 'string' || ['none', 'default'].includes(effort) || (efforts as string[]).includes('high'))
    return body
  if (body.reasoning_effort !== undefined) return { ...body, reasoning_effort: effort }
  return isObject(body.reasoning) ? { ...body, reasoning: { ...body.reasoning, effort } } : body
}

/** What becomes of a strict call: whether it is refused for what it would lose, or sent. */
async function isRefused({ id, served }: Model, clientApi: ClientApi, given: JsonObject): Promise<boolean> {
  const { model, entry } = served
  const body = atTakenEffort({ model, ...given }, served)
  const request = clientApi.read(body)
  const target = { ...served, provider: withoutKey(servedBy(served.provider, model, { request, entry })) }
  let tried = false
  const httpClient: HttpClient = {
    async send() {
      tried = true
      throw new Error('nothing is sent here')
    },
    async close() {},
  }
  const prepared = {
    call: { clientApi, id: 'c', strict: true, signal: new AbortController().signal },
    request,
    turn: { bodyFor: () => body, mustResend: () => false },
    media: {},
    holds() {},
    admission: { lengthAt() {}, cover() {}, overtimeAt() {}, choices: 1 },
  } as unknown as PreparedCall
  const admitted = {
    call: prepared.call,
    route: {},
    strict: true,
    admission: prepared.admission,
    nextClient: () => httpClient,
  }
  const attempt = attemptOf(
    admitted as unknown as AdmittedCall,
    {
      ask: (asked, context) => callProvider(asked, prepared, context),
      measure: () => ({ usage: {}, estimated: false }),
      reportedModel: () => undefined,
    },
    { answerBounds: defaultAnswerBounds } as Services,
  )
  const { error } = await attempt(target, {})
  const refused = error?.code === 'loss_refused'
  expect([id, tried || error?.message]).toEqual([id, refused ? error.message : true])
  return refused
}

describe.each(asked)('$api in strict mode', (clientApi, byFlag) => {
  const flags = (Object.keys(byFlag) as Flag[]).filter((flag) => flag !== 'supports_computer_use')
  async function expectAsListed(flag: Flag, step: number): Promise<void> {
    const wrong: string[] = []
    const stated = new Set<boolean>()
    const flagOf = ({ served }: Model) => served.entry?.[flag]
    const stating = models.filter((model) => flagOf(model) || (flagOf(model) === false && !harmless.includes(flag)))
    // The first one has the flag.
    const ordered = stating.toSorted((one, other) => Number(flagOf(other)) - Number(flagOf(one)))
    for (const model of ordered.filter((_, index) => index % step === 0)) {
      const value = flagOf(model) === true
      stated.add(value)
      if ((await isRefused(model, clientApi, byFlag[flag] ?? {})) === value) wrong.push(`${model.id}: ${value}`)
    }
    expect(wrong).toEqual([])
    expect(stated).toContain(true)
  }

  test.each(flags)('a model that is listed with %s is sent what asks for it, and one without is not', (flag) =>
    expectAsListed(flag, 20),
  )
  test.each(flags)('every model that is listed with %s is, and every one without is not', slow, (flag) =>
    expectAsListed(flag, 1),
  )
})

test('a model that is listed as a user of computers is one by the API that has the tool', async () => {
  const wrong: string[] = []
  const flag = 'supports_computer_use'
  for (const model of models.filter(({ served }) => served.entry?.[flag] !== undefined)) {
    const refused: boolean[] = []
    for (const [clientApi, byFlag] of asked) {
      if (byFlag[flag]) refused.push(await isRefused(model, clientApi, byFlag[flag]))
    }
    if (refused.every(Boolean) === model.served.entry?.[flag]) wrong.push(model.id)
  }
  expect(wrong).toEqual([])
})

test('every flag is asked for by some API', () => {
  const known = new Set(asked.flatMap(([, byFlag]) => Object.keys(byFlag)))
  expect(abilities.filter((flag) => !known.has(flag))).toEqual([])
})
