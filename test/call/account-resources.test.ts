import { afterAll, describe, expect, test } from 'vitest'
import { withLookups } from '../../src/access/lookups.ts'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { writeForeignSignature } from '../../src/api/foreign-signature.ts'
import { messages } from '../../src/api/messages/api.ts'
import { speech } from '../../src/api/operations/audio/speech.ts'
import { transcriptions } from '../../src/api/operations/audio/transcriptions.ts'
import { responses } from '../../src/api/responses/api.ts'
import { chatKind } from '../../src/call/kinds/chat.ts'
import { operationKind } from '../../src/call/kinds/operation.ts'
import { openAccountResources, type ResourceSettings } from '../../src/call/targets/account-resources.ts'
import { openHeldState } from '../../src/call/targets/held-state.ts'
import { restrictedTargets } from '../../src/call/targets/restricted-targets.ts'
import type { RestrictedBody } from '../../src/call/types.ts'
import { RouterError } from '../../src/core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { openStore } from '../../src/store/open.ts'
import { shippedFiles } from '../helpers/shipped.ts'
import { publishedSpec, specMissing } from '../helpers/specs.ts'

// What the operator's accounts at providers keep: of several organizations, each uses its own and what is listed for it.

const store = await openStore('sqlite::memory:')
afterAll(() => store.close())
const acme = (await store.organizations.create('acme')).id
const held = openHeldState(store.held, (thrown) => {
  throw thrown
})
const { providers } = await shippedFiles()

function providerOf(slug: string): Provider {
  const found = providers.find(({ provider }) => provider.slug === slug)?.provider
  if (!found) throw new Error(`there is no provider ${slug}`)
  return found
}

type Facts = {
  settings?: ResourceSettings
  organization?: string
  /** The organization is the only one. */
  alone?: boolean
  slug?: string
  model?: string
  voices?: string[]
  isCataloged?: boolean
}

/** The refusal of a body for a target; undefined where it may go on. */
async function refusalOf(body: RestrictedBody, facts: Facts = {}): Promise<RouterError | undefined> {
  const {
    settings,
    organization = acme,
    alone = false,
    slug = 'openai',
    model = 'm',
    voices,
    isCataloged = true,
  } = facts
  const account = openAccountResources(new Map(settings && [[organization, settings]]), {
    held,
    organizations: { areSeveral: async () => !alone },
  })
  const target = { provider: providerOf(slug), model, entry: { api: 'chat', ...(voices && { voices }) } }
  try {
    const call = { ...body, organization, held, account, isCataloged: () => isCataloged, at: 0 }
    await withLookups((lookups) => restrictedTargets([target], { ...call, lookups }))
    return undefined
  } catch (thrown) {
    if (thrown instanceof RouterError) return thrown
    throw thrown
  }
}

/** A conversation as its kind of call restricts it, unread. */
function conversation(clientApi: ClientApi, body: JsonObject): RestrictedBody {
  const request = { model: 'a/m', messages: [], origin: { api: clientApi.api, body } }
  return chatKind(clientApi).restricted({ request, turn: { mayStore: true } } as never)
}

/** The same, read as a call would be. */
function readConversation(clientApi: ClientApi, body: JsonObject): RestrictedBody {
  return chatKind(clientApi).restricted({ request: clientApi.read(body), turn: { mayStore: true } } as never)
}

function operation(api: typeof speech, fields: JsonObject, unread: JsonObject = {}): RestrictedBody {
  const request = { operation: api.operation, model: 'a/m', fields, unread }
  return operationKind(api).restricted({ request } as never)
}

const hi = { messages: [{ role: 'user', content: 'Hi' }] }
const searching = (id: string) => conversation(responses, { tools: [{ type: 'file_search', vector_store_ids: [id] }] })

describe('what the account keeps', () => {
  test('is used by an only organization without a setting', async () => {
    expect(await refusalOf(searching('vs_1'), { alone: true })).toBeUndefined()
  })

  test('is refused to one of several, with the field, the id and the setting', async () => {
    const refused = await refusalOf(searching('vs_1'))
    expect(refused).toMatchObject({ code: 'forbidden', param: 'tools.vector_store_ids' })
    for (const part of ["'tools.vector_store_ids'", "'vs_1'", `organizations.${acme}.resources`])
      expect(refused?.message).toContain(part)
  })

  test.each<[Facts['settings'], string, boolean]>([
    [{ resources: 'open' }, 'vs_1', true],
    [{ resources: ['vs_1'] }, 'vs_1', true],
    [{ resources: ['vs_1'] }, 'vs_12', false],
    [{ resources: ['vs_acme_*'] }, 'vs_acme_7', true],
    [{ resources: ['vs_acme_*'] }, 'vs_other_vs_acme_7', false],
    [{ resources: ['openai/vs_*'] }, 'vs_7', true],
    [{ resources: ['azure/vs_*'] }, 'vs_7', false],
    [{ resources: ['*_acme_*_x'] }, 'vs_acme_1_x', true],
    [{ resources: ['ab*ba'] }, 'aba', false],
    [{ resources: ['gs://acme/*'] }, 'gs://acme/../other/a.pdf', false],
    [{ resources: ['gs://acme/*'] }, 'gs://acme/%2e%2e/other/a.pdf', false],
    [{ resources: [] }, 'vs_1', false],
  ])('with %j the id %s is allowed: %s', async (settings, id, isAllowed) => {
    expect((await refusalOf(searching(id), { settings: settings as ResourceSettings })) === undefined).toBe(isAllowed)
  })

  test('is used by the organization whose call made it, and by no other', async () => {
    held.remember(acme, 'openai-responses', ['file-made'])
    const body = conversation(chat, {
      messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-made' } }] }],
    })
    expect(await refusalOf(body)).toBeUndefined()
    expect((await refusalOf(body, { organization: 'other' }))?.param).toBe('messages.content.file.file_id')
  })

  test('includes reasoning without its content, by whatever field its id comes', async () => {
    const signature = writeForeignSignature({ by: 'openai', id: 'rs_theirs', summary: 'x' }) ?? ''
    const detail = { type: 'reasoning.summary', summary: 'x', id: 'rs_theirs', format: 'openai', index: 0, after: {} }
    const histories: [ClientApi, JsonObject][] = [
      [chat, { role: 'assistant', content: 'Hi', reasoning_details: [detail] }],
      [messages, { role: 'assistant', content: [{ type: 'thinking', thinking: 'x', signature }] }],
    ]
    for (const [api, said] of histories) {
      const turns = [{ role: 'user', content: 'Hi' }, said, { role: 'user', content: 'Hi' }]
      const body = readConversation(api, { model: 'a/m', max_tokens: 9, messages: turns })
      expect([api.api, (await refusalOf(body, { slug: 'openai-responses' }))?.param]).toEqual([api.api, 'messages.id'])
      // Another format has no such ids, and reasoning of another signer is not sent.
      expect(await refusalOf(body, { slug: 'openai' })).toBeUndefined()
      expect(await refusalOf(body, { slug: 'xai-responses' })).toBeUndefined()
      expect(await refusalOf(body, { slug: 'openai-responses', alone: true })).toBeUndefined()
    }
    held.remember(acme, 'openai-responses', ['rs_own'])
    const own = { role: 'assistant', content: 'Hi', reasoning_details: [{ ...detail, id: 'rs_own' }] }
    const sealed = {
      role: 'assistant',
      content: 'Hi',
      reasoning_details: [{ ...detail, type: 'reasoning.encrypted', data: 'e' }],
    }
    for (const said of [own, sealed]) {
      const turns = [{ role: 'user', content: 'Hi' }, said, { role: 'user', content: 'Hi' }]
      const body = readConversation(chat, { model: 'a/m', messages: turns })
      expect(await refusalOf(body, { slug: 'openai-responses' })).toBeUndefined()
    }
  })

  test('is found under a name in another case, in a wrapper and in a form', async () => {
    for (const name of ['fileId', 'FILE_ID', 'File-Id', 'file_ids[]', 'options[file_id]'])
      expect(
        await refusalOf(conversation(chat, { ...hi, extra_body: { deeper: [{ [name]: 'file-1' }] } })),
        name,
      ).toBeDefined()
    expect((await refusalOf(operation(transcriptions, {}, { 'file_ids[]': 'file-1' })))?.param).toBe('file_ids[]')
  })

  test('is found by an address that is opened with the account', async () => {
    for (const url of [
      'gs://bucket/a.png',
      's3://bucket/a.png',
      'S3://bucket/a.png',
      'https://generativelanguage.googleapis.com/v1beta/files/abc',
      '//generativelanguage.googleapis.com/v1beta/files/abc',
    ]) {
      const body = { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] }
      expect((await refusalOf(conversation(chat, body)))?.message, url).toContain(url)
    }
    const text = { messages: [{ role: 'system', content: 'fileid://file-a,fileid://file-b' }] }
    expect(
      (await refusalOf(conversation(chat, text), { settings: { resources: ['fileid://file-a'] } }))?.message,
    ).toContain('file-b')
  })

  test('is found in blocks that only one provider reads', async () => {
    const body: JsonObject = { type: 'container_upload', file_id: 'file-sealed' }
    const part = { index: 0, part: { type: 'opaque', by: 'anthropic', body } }
    const history = [...hi.messages, { role: 'assistant', content: 'A', replay_parts: [part] }, ...hi.messages]
    expect((await refusalOf(readConversation(chat, { model: 'a/m', messages: history })))?.message).toContain(
      'file-sealed',
    )
    const sealed = { type: 'redacted_thinking', data: writeForeignSignature({ by: 'anthropic', body }) as string }
    const answer = { role: 'assistant', content: [sealed, { type: 'text', text: 'A' }] }
    const inMessages = { model: 'a/m', max_tokens: 5, messages: [...hi.messages, answer, ...hi.messages] }
    expect((await refusalOf(readConversation(messages, inMessages)))?.message).toContain('file-sealed')
  })

  test('is not what clients and models write', async () => {
    const schema = { type: 'object', properties: { file_id: { type: 'string' } }, examples: [{ file_id: 'file-1' }] }
    const bodies: [ClientApi, JsonObject][] = [
      [
        chat,
        {
          ...hi,
          tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
          metadata: { file_id: 'a' },
        },
      ],
      [
        responses,
        { input: 'gs://bucket/a is an address', tools: [{ type: 'function', name: 'f', parameters: schema }] },
      ],
      [
        messages,
        {
          messages: [
            { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: { file_id: 'x' } }] },
          ],
        },
      ],
      [messages, { container: { skills: [{ type: 'anthropic', skill_id: 'pdf' }] } }],
      [messages, { tools: [{ name: 'f', input_schema: schema }] }],
      [responses, { tools: [{ type: 'mcp', connector_id: 'connector_gmail', authorization: 'mine' }] }],
    ]
    for (const [clientApi, body] of bodies)
      expect(await refusalOf(conversation(clientApi, body)), JSON.stringify(body)).toBeUndefined()
  })

  test('is bounded in number, and each id is looked up once', async () => {
    const parts = (id: (n: number) => string) =>
      conversation(chat, {
        messages: [{ role: 'user', content: Array.from({ length: 3_000 }, (_, n) => ({ file_id: id(n) })) }],
      })
    const settings = { resources: ['file-*'] }
    expect(
      await refusalOf(
        parts(() => 'file-1'),
        { settings },
      ),
    ).toBeUndefined()
    expect(
      (
        await refusalOf(
          parts((n) => `file-${n}`),
          { settings },
        )
      )?.code,
    ).toBe('invalid_request')
  })
})

describe('a voice', () => {
  const speaking = (voice: Json) => operation(speech, { input: 'Hi', voice })

  test('of the account is refused to one of several organizations, by its name or its id', async () => {
    for (const slug of ['elevenlabs', 'minimax', 'mistral'])
      for (const voice of ['clone-1', { id: 'clone-1' }]) {
        expect((await refusalOf(speaking(voice), { slug }))?.message, slug).toContain("'clone-1'")
        expect(
          await refusalOf(speaking(voice), { slug, settings: { resources: [`${slug}/clone-1`] } }),
          slug,
        ).toBeUndefined()
      }
    expect((await refusalOf(speaking({ id: 'voice_1' })))?.param).toBe('voice.id')
    expect(
      await refusalOf(conversation(chat, { ...hi, audio: { voice: { id: 'voice_1' }, format: 'mp3' } })),
    ).toBeDefined()
  })

  test('that everybody has is for everybody', async () => {
    expect(await refusalOf(speaking('alloy'))).toBeUndefined()
    expect(await refusalOf(speaking({ id: 'Kore' }), { slug: 'google', voices: ['Kore'] })).toBeUndefined()
    expect(await refusalOf(speaking('JBFqnCBsd6RMkjVDRZzb'), { slug: 'elevenlabs' })).toBeUndefined()
  })
})

test('a model of the account that no catalog lists is refused to one of several organizations', async () => {
  for (const model of [
    'ft:gpt-4o:acme::1',
    'arn:aws:bedrock:us-east-1:1:prompt/P',
    '@preset/x',
    'gpt-4o:ft:acme',
    'tunedModels/a',
  ]) {
    expect((await refusalOf(conversation(chat, hi), { model, isCataloged: false }))?.param, model).toBe('model')
    expect(await refusalOf(conversation(chat, hi), { model }), model).toBeUndefined()
    expect(await refusalOf(conversation(chat, hi), { model, isCataloged: false, alone: true }), model).toBeUndefined()
  }
  expect(await refusalOf(conversation(chat, hi), { model: 'llama3', isCataloged: false })).toBeUndefined()
})

// --- Every id in the published schemas ---

/** Names of ids that name nothing an account keeps, and why. */
const harmless: { readonly [name: string]: string } = {
  approval_request_id: 'an item of the same conversation',
  call_id: 'a call of the same conversation',
  caller_id: 'a call of the same conversation',
  download_id: 'a download in the browser of the client',
  id: 'an item of the same body; `id` of what is kept is listed by its parent',
  previous_response_id: 'looked up among the responses of the organization, elsewhere refused',
  reference_ids: 'the numbers of sources in the same conversation',
  safety_identifier: 'the end user',
  session_id: 'the session of the client',
  source_call_id: 'a call of the same conversation',
  subagent_id: 'an agent of the same reply',
  tab_id: 'a tab in the browser of the client',
  token_id: 'a token',
  tool_call_id: 'a call of the same conversation',
  tool_id: 'a call of the same conversation',
  tool_use_id: 'a call of the same conversation',
  trace_id: 'a trace of the client',
  parent_span_id: 'a trace of the client',
  user_id: 'the end user',
  stop_token_ids: 'tokens',
}

/** Members whose `id` names what is kept. */
const holders = ['audio', 'voice', 'prompt', 'conversation', 'container']

const isId = /(?:^|_)(?:ids?|arns?|uris?|uuids?|identifier)$|[a-z](?:Ids?|Arns?|Uris?|Identifier)$/

/** The places in a schema whose names say that they are ids, each with a body that uses it. */
function idsIn(document: JsonObject, schema: Json): Map<string, JsonObject> {
  const found = new Map<string, JsonObject>()
  const resolve = (node: Json | undefined): JsonObject => {
    if (!isObject(node)) return {}
    if (typeof node.$ref !== 'string') return node
    const steps = node.$ref.replace('#/', '').split('/').map(decodeURIComponent)
    return resolve(steps.reduce<Json | undefined>((at, step) => (isObject(at) ? at[step] : undefined), document))
  }
  const visit = (
    given: Json | undefined,
    path: string[],
    open: ReadonlySet<JsonObject>,
    wrap: (inner: Json) => Json,
  ) => {
    const node = resolve(given)
    if (open.has(node) || path.length > 9) return
    const inside = new Set([...open, node])
    for (const list of [node.allOf, node.anyOf, node.oneOf])
      if (Array.isArray(list)) for (const one of list) visit(one, path, inside, wrap)
    if (node.items !== undefined) visit(node.items, path, inside, (inner) => wrap([inner]))
    if (!isObject(node.properties)) return
    const { type } = node.properties
    const kind = resolve(type)
    // Of several types the last: the skills of the vendor itself, which everybody has, come first.
    const constant = kind.const ?? (Array.isArray(kind.enum) ? kind.enum.at(-1) : undefined)
    for (const [name, member] of Object.entries(node.properties)) {
      const at = [...path, name]
      const place = (inner: Json) => wrap({ ...(constant !== undefined && { type: constant }), [name]: inner })
      const isHeld = name === 'id' && holders.includes(path.at(-1) ?? '')
      if (isHeld || (isId.test(name) && harmless[name] === undefined)) {
        const isList = JSON.stringify(resolve(member)).includes('"array"')
        found.set(at.join('.'), place(isList ? ['kept-by-somebody'] : 'kept-by-somebody') as JsonObject)
      }
      // Clients compare there what is cached, and describe themselves.
      if (path.length > 0 || !['diagnostics', 'client_metadata'].includes(name)) visit(member, at, inside, place)
    }
  }
  visit(schema, [], new Set(), (inner) => inner)
  return found
}

type Published = { file: string; schema: string; restricted(body: JsonObject): RestrictedBody; slug: string }

const openai = 'openai.openapi.yaml'
const published: Published[] = [
  {
    file: openai,
    schema: 'CreateChatCompletionRequest',
    restricted: (body) => conversation(chat, body),
    slug: 'openai',
  },
  {
    file: openai,
    schema: 'CreateResponse',
    restricted: (body) => conversation(responses, body),
    slug: 'openai-responses',
  },
  { file: openai, schema: 'CreateSpeechRequest', restricted: (body) => operation(speech, body), slug: 'openai' },
  { file: openai, schema: 'EditImageBodyJsonParam', restricted: (body) => operation(speech, body), slug: 'openai' },
  {
    file: 'anthropic.messages.schema.json',
    schema: 'MessageCreateParamsNonStreaming',
    restricted: (body) => conversation(messages, body),
    slug: 'anthropic',
  },
  {
    file: 'mistral.openapi.yaml',
    schema: 'ChatCompletionRequest',
    restricted: (body) => conversation(chat, body),
    slug: 'mistral',
  },
  {
    file: 'mistral.openapi.yaml',
    schema: 'SpeechRequest',
    restricted: (body) => operation(speech, body),
    slug: 'mistral',
  },
  {
    file: 'mistral.openapi.yaml',
    schema: 'AudioTranscriptionRequest',
    restricted: (body) => operation(transcriptions, body),
    slug: 'mistral',
  },
  {
    file: 'openrouter.openapi.yaml',
    schema: 'ChatRequest',
    restricted: (body) => conversation(chat, body),
    slug: 'openrouter',
  },
  {
    file: 'openrouter.openapi.yaml',
    schema: 'ResponsesRequest',
    restricted: (body) => conversation(responses, body),
    slug: 'openrouter-responses',
  },
  {
    file: 'openrouter.openapi.yaml',
    schema: 'MessagesRequest',
    restricted: (body) => conversation(messages, body),
    slug: 'openrouter-messages',
  },
  {
    file: 'together.openapi.yaml',
    schema: 'ChatCompletionRequest',
    restricted: (body) => conversation(chat, body),
    slug: 'together',
  },
  {
    file: 'together.openapi.yaml',
    schema: 'AudioSpeechRequest',
    restricted: (body) => operation(speech, body),
    slug: 'together',
  },
]

describe.each(published)('$file, $schema', ({ file, schema, restricted, slug }) => {
  test.skipIf(specMissing(file) !== undefined)(
    'every id of something kept is refused to another organization',
    async () => {
      const document = publishedSpec(file) as JsonObject
      const { components, definitions } = document
      const schemas = (isObject(components) ? components.schemas : definitions) as JsonObject
      expect(schemas).toHaveProperty(schema)
      const passed: unknown[] = []
      for (const [path, body] of idsIn(document, schemas[schema] as Json))
        if (!(await refusalOf(restricted(body), { slug }))) passed.push(path)
      expect(passed).toEqual([])
    },
  )
})
