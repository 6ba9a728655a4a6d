import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import { isProviderTool, type Message, type NeutralRequest } from '../../src/core/request.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { bareProvider } from '../../src/manifest/read/dialect.ts'
import { type ProviderRequest, unsupportedInRequest, writeRequest } from '../../src/manifest/run/translate.ts'
import { familyRules, type ModelTarget, servedBy, targetFacts } from '../../src/manifest/target.ts'
import { schemaMissing, violations } from '../api/chatSchema.ts'
import { shippedFiles } from '../helpers/shipped.ts'
import { testInRuns } from '../helpers/slow.ts'
import { pairingFaults, type ReadCall, readers, roleFaults } from './conversation-readers.ts'
import { type Conversation, conversations, foreignReasoning, type ProviderProfile } from './conversations.ts'
import { violations as converseViolations, serviceModelMissing } from './converse-model.ts'
import { generateSchemaMissing, generateViolations } from './generate-schema.ts'
import { messagesSchemaMissing, messagesViolations } from './messages-schema.ts'
import { responsesSchemaMissing, responsesViolations } from './responses-schema.ts'

/** The properties of a dialect, independent of its file. */
type Profile = Omit<ProviderProfile, 'name'> & {
  /** Arguments of calls are JSON text, not values. */
  textArguments?: boolean
  /** The free text of a custom tool is in an object. */
  wrapsText?: boolean
  rules?: { alternate?: boolean; first_user?: boolean }
  violations?: (body: JsonObject) => string[]
  /** Providers whose bodies the published schema describes. */
  published?: string[]
}

const profiles: { [dialect: string]: Profile } = {
  'openai-chat': {
    signatures: [],
    textArguments: true,
    published: ['openai'],
    ...(!schemaMissing && { violations: (body) => violations('CreateChatCompletionRequest', body) }),
  },
  'anthropic-messages': {
    signatures: ['signature', 'encrypted'],
    replaysSearches: true,
    rules: { alternate: true, first_user: true },
    opaque: (mark) => ({ type: 'container_upload', file_id: mark }),
    published: ['anthropic'],
    ...(!messagesSchemaMissing && { violations: messagesViolations }),
  },
  gemini: {
    signatures: ['signature', 'call', 'text'],
    rules: { alternate: true, first_user: true },
    opaque: (mark) => ({ executableCode: { language: 'PYTHON', code: mark } }),
    published: ['google'],
    ...(!generateSchemaMissing && { violations: generateViolations }),
  },
  'bedrock-converse': {
    signatures: ['signature', 'encrypted'],
    rules: { alternate: true, first_user: true },
    published: ['bedrock'],
    ...(!serviceModelMissing && {
      violations: (body) => converseViolations({ modelId: 'm', ...body }, 'ConverseRequest'),
    }),
  },
  'cohere-v2': { signatures: [], textArguments: true, wrapsText: true },
  ollama: { signatures: [] },
  'openai-responses': {
    signatures: ['encrypted'],
    textArguments: true,
    published: ['openai-responses'],
    ...(!responsesSchemaMissing && { violations: responsesViolations }),
  },
}

const files = await shippedFiles()

const runs = { fast: 15, slow: Number(process.env.RUNS ?? 120) }

/** The dialects that conversations have. */
const spoken = files.dialects.filter(({ layer }) => layer.chat)

describe.each(spoken.map(({ name }) => name))('any conversation in %s', (name) => {
  const profile = profiles[name]
  const targets = targetsOf(name)

  testInRuns(
    'reaches every provider whole: unsent parts are reported, and the rules of the format are met',
    runs,
    async (numRuns) => {
      if (!profile) throw new Error(`the table of this test does not know the dialect ${name}`)
      const arbitrary = fc.constantFrom(...targets).chain((target) => {
        const { signer } = target.provider
        const { reasoning_replay } = targetFacts(target.provider, target.target).traits
        const signatures =
          reasoning_replay === 'reasoning_details' ? (['signature', 'encrypted'] as const) : profile.signatures
        const samples = conversations({ ...profile, signatures: [...signatures], name: signer })
        return fc.tuple(fc.constant(target), samples, fc.nat())
      })
      await fc.assert(
        fc.asyncProperty(arbitrary, async ([{ provider, target }, talk, choice]) => {
          const written = await writeRequest(provider, talk.request, target)
          const faults = [
            ...(await restless(provider, target, talk.request, written)),
            ...lostMarks(talk, written, exceptions(provider, target)),
            ...turnFaults(name, profile, talk, {
              written,
              declared: await unsupportedInRequest(provider, talk.request, target),
            }),
            ...(await idleField(provider, target, talk, written, choice)),
            ...(profile.published?.includes(provider.slug) ? (profile.violations?.(written.body) ?? []) : []),
          ]
          const others = faults.filter((fault) => !free.test(fault))
          expect(others, JSON.stringify(written.body)).toEqual([])
        }),
        { numRuns, endOnFailure: true },
      )
    },
  )
})

/** What the router records itself, and a hint that nothing depends on, need no report. */
const free = /^(metadata|cache|cache\.key) /

describe('once found', () => {
  const write = async (slug: string, model: string, messages: Message[], more: Partial<NeutralRequest> = {}) => {
    const provider = files.providers.find((one) => one.provider.slug === slug)?.provider as Provider
    const request: NeutralRequest = { model, messages, ...more, origin: { api: 'chat', body: {} } }
    return await writeRequest(servedBy(provider, model), request, { model })
  }
  const message = (role: Message['role'], ...parts: Message['parts']): Message => ({ role, parts })
  const hi = message('user', { type: 'text', text: 'Hi' })

  test('a turn without any supported part keeps its position', async () => {
    const video = message('user', { type: 'video', url: 'https://files.example/a.mp4' })
    const { body, dropped } = await write('anthropic', 'claude-haiku-4-5', [video])
    expect(body.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: '(unsupported content omitted)' }] },
    ])
    expect(dropped).toContain('parts.video')
    const thought = message('assistant', { type: 'reasoning', text: 'Hm.', by: 'somebody-else' })
    const { body: google } = await write('google', 'gemini-3.5-flash', [hi, thought, hi])
    expect(google.contents).toEqual([
      { role: 'user', parts: [{ text: 'Hi' }] },
      { role: 'model', parts: [{ text: '(no answer)' }] },
      { role: 'user', parts: [{ text: 'Hi' }] },
    ])
  })

  const media: { [name: string]: Part } = {
    'an uploaded image': { type: 'image', file_id: 'file-1' },
    'an uploaded file': { type: 'file', file_id: 'file-1' },
    'an image by address': { type: 'image', url: 'https://files.example/a.png' },
    'a file that nobody reads': { type: 'file', data: 'UEsDBA==', media_type: 'application/zip' },
    sound: { type: 'audio', data: 'UklGRg==', media_type: 'audio/wav' },
    'sound by address': { type: 'audio', url: 'https://files.example/a.mp3' },
    'a video by address': { type: 'video', url: 'https://files.example/a.mp4' },
    "a block of another's": { type: 'opaque', by: 'somebody-else', body: {} },
  }

  test.each(Object.entries(media))('a turn of the user with %s alone keeps its position', async (_, part) => {
    for (const { provider, target } of everyTarget()) {
      const said = message('assistant', { type: 'text', text: 'Hi.' })
      for (const messages of [[message('user', part)], [hi, said, message('user', part)]]) {
        const request = { model: target.model, messages, origin: { api: 'chat' as const, body: {} } }
        const { body } = await writeRequest(provider, request, target)
        const turns = (body.messages ?? body.contents ?? body.input) as JsonObject[]
        expect([provider.slug, turns.map(({ role }) => role)]).toEqual([
          provider.slug,
          messages.map(({ role }) => (role === 'assistant' && body.contents ? 'model' : role)),
        ])
        // Either the medium itself, or that it is left out.
        expect(JSON.stringify(turns.at(-1)), provider.slug).toMatch(
          /file-1|files\.example|UEsDBA|UklGRg|\(unsupported content omitted\)/,
        )
      }
    }
  })

  test('a result of which only its upload was an image has no block without it', async () => {
    const call = message('assistant', { type: 'tool_call', id: 'c', name: 'f', arguments: '{}' })
    const image: Part = { type: 'image', file_id: 'file-1' }
    const result = message('user', { type: 'tool_result', id: 'c', parts: [{ type: 'text', text: 'Done.' }, image] })
    const written = await Promise.all(
      ['azure', 'vertex'].map((slug) => write(slug, 'claude-haiku-4-5', [hi, call, result])),
    )
    for (const { body, dropped } of written) {
      expect((body.messages as JsonObject[]).at(-1)?.content).toEqual([
        { type: 'tool_result', tool_use_id: 'c', content: [{ type: 'text', text: 'Done.' }] },
      ])
      expect(dropped).toEqual(['parts.file_id'])
    }
  })

  test('files of the assistant are reported where there is no place for them', async () => {
    const shown = message(
      'assistant',
      { type: 'text', text: 'See.' },
      { type: 'file', data: 'aGk=', filename: 'a.pdf' },
    )
    expect((await write('openai-responses', 'gpt-5.1', [hi, shown, hi])).dropped).toEqual(['parts.file'])
  })

  test('thoughts and searches of others are reported, and one of two names of the user', async () => {
    const other = message(
      'assistant',
      { type: 'reasoning', text: 'Hm.', signature: 's', by: 'somebody-else' },
      { type: 'search', query: 'q', results: [], by: 'somebody-else' },
      { type: 'text', text: 'So.' },
    )
    const two = { user: 'u', safety_identifier: 's' }
    expect((await write('anthropic', 'claude-haiku-4-5', [hi, other, hi], two)).dropped.sort()).toEqual([
      'parts.reasoning',
      'parts.search',
      'safety_identifier',
    ])
    expect((await write('google', 'gemini-3.5-flash', [hi, other, hi])).dropped.sort()).toEqual([
      'parts.reasoning',
      'parts.search',
    ])
    const same = { user: 'u', safety_identifier: 'u' }
    expect((await write('anthropic', 'claude-haiku-4-5', [hi], same)).dropped).toEqual([])
  })

  test('a loss is judged by the repaired history: results and the text after them are one turn', async () => {
    const call = message('assistant', { type: 'tool_call', id: 'a', name: 'f', arguments: '{}' })
    const result = message('user', { type: 'tool_result', id: 'a', parts: [{ type: 'text', text: 'done' }] })
    const { body, dropped } = await write('anthropic', 'claude-haiku-4-5', [hi, call, result, hi], {
      reasoning: { effort: 'high' },
    })
    expect(body.thinking).toBeUndefined()
    expect(dropped).toEqual(['reasoning'])
  })

  test('instructions for Bedrock are one flat list', async () => {
    const system: Part[] = ['One.', 'Two.'].map((text) => ({ type: 'text', text, cache: {} }))
    const { body } = await write('bedrock', 'us.amazon.nova-pro-v1:0', [hi], { system })
    const cachePoint = { type: 'default' }
    expect(body.system).toEqual([{ text: 'One.' }, { cachePoint }, { text: 'Two.' }, { cachePoint }])
  })

  test('a file in a tool result that cannot be read is reported as well', async () => {
    const call = message('assistant', { type: 'tool_call', id: 'a', name: 'f', arguments: '{}' })
    const zip = { type: 'file', data: 'UEs=', media_type: 'application/zip' } as const
    const result = message('user', { type: 'tool_result', id: 'a', parts: [zip] })
    expect((await write('anthropic', 'claude-haiku-4-5', [hi, call, result])).dropped).toEqual(['parts.file'])
  })
})

/** The target of a request; a counterexample prints its name only. */
type Target = { provider: Provider; target: ModelTarget; [fc.toStringMethod]: () => string }

/** Every provider, its variants among them. */
function everyTarget(): Omit<Target, typeof fc.toStringMethod>[] {
  const ofDialects = spoken.flatMap(({ name }) => targetsOf(name))
  const variants = files.providers.flatMap(
    ({ provider }) => provider.variants?.filter((one) => one.provider.chat) ?? [],
  )
  return [...ofDialects, ...variants.map(({ provider }) => ({ provider, target: { model: 'unknown-model' } }))]
}

/** The bare dialect, and every shipped provider that speaks it with some of its models. */
function targetsOf(dialect: string): Target[] {
  const bare = files.dialects.filter(({ name }) => name === dialect).map(bareProvider)
  const shipped = files.providers.flatMap(({ provider }) => (provider.dialect === dialect ? provider : []))
  return [...bare, ...shipped].flatMap((provider) => {
    const listed = files.catalog.list().filter((one) => one.provider === provider.slug && one.entry.api === 'chat')
    const some = listed.filter((_, index) => index % Math.ceil(listed.length / 12) === 0)
    const known: ModelTarget[] = some.map(({ model, entry }) => ({ model, entry }))
    return [{ model: 'unknown-model' }, ...known].map((target) => ({
      provider,
      target,
      [fc.toStringMethod]: () => `${provider.slug}/${target.model}`,
    }))
  })
}

/** Writing changes nothing, and gives the same again: provider caches depend on it. */
async function restless(provider: Provider, target: ModelTarget, request: NeutralRequest, written: ProviderRequest) {
  const before = structuredClone(request)
  const second = await writeRequest(provider, request, target)
  return [
    ...(isDeepStrictEqual(request, before) ? [] : ['the request was changed']),
    ...(JSON.stringify(written) === JSON.stringify(second) ? [] : ['the same request became two bodies']),
  ]
}

/**
 * Parts that may be dropped without a report. A reported loss takes all parts of that type out of a body that is edited, so it
 * must not be reported for some of them: reasoning without a signature where signed reasoning goes back as `reasoning_details`, and
 * pictures by assistants, which two patches leave out beside those of users that are taken.
 */
function exceptions(provider: Provider, target: ModelTarget): string[] {
  const { reasoning_replay } = targetFacts(provider, target).traits
  return [
    ...(reasoning_replay === 'reasoning_details' ? [foreignReasoning] : []),
    // A digest takes their place.
    ...(familyRules(provider, target).limits.user?.pattern ? ['user'] : []),
    ...(['mistral', 'perplexity'].includes(provider.slug) ? ['assistant image/png data'] : []),
  ]
}

/** Texts that neither reached the body nor are excused by a reported loss, and texts that must not be there. */
function lostMarks(
  { marks, forbidden }: Conversation,
  { body, dropped }: ProviderRequest,
  excepted: string[],
): string[] {
  const texts = textsIn(body).join('\n')
  const lost = marks.filter(({ text, where, fields }) => {
    const excused = dropped.some((name) => fields.some((field) => field === name || field.startsWith(`${name}.`)))
    return !excused && !excepted.includes(where) && !texts.includes(text)
  })
  const leaked = forbidden.filter((text) => texts.includes(text))
  return [
    ...lost.map(({ where, text }) => `${where} (${text}) is lost; reported: ${dropped}`),
    ...leaked.map((text) => `${text} must not be sent`),
  ]
}

/** Every text of a body, member names too; base64 both as it is and decoded. */
function textsIn(value: Json | undefined): string[] {
  if (typeof value === 'string')
    return [value, Buffer.from(value.replace(/^data:.*;base64,/, ''), 'base64').toString('utf8')]
  if (Array.isArray(value)) return value.flatMap(textsIn)
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member)])
}

function turnFaults(
  dialect: string,
  profile: Profile,
  talk: Conversation,
  { written: { body, dropped }, declared }: { written: ProviderRequest; declared: readonly string[] },
): string[] {
  const read = readers[dialect]
  if (!read) return [`no reader for ${dialect}`]
  const turns = read(body)
  const calls = turns.flatMap((turn) => turn.calls)
  const requested = talk.request.messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'tool_call'))
  // A provider without custom tools gets their calls as those of functions, whatever its format has.
  const form = [...declared, ...dropped].includes('tools.custom') ? { ...profile, wrapsText: true as const } : profile
  const expected = requested.map((call) => ({ name: call.name, input: inputOf(call.arguments, call.kind, form) }))
  const reported = calls.map(({ name, input }: ReadCall) => ({ name, input }))
  return [
    ...pairingFaults(turns),
    ...roleFaults(turns, profile.rules ?? {}),
    ...(dropped.includes('parts.tool_call') || isDeepStrictEqual(reported, expected)
      ? []
      : [`calls became ${JSON.stringify(reported)} from ${JSON.stringify(requested)}`]),
  ]
}

/** The arguments as the format has them: text stays as it is; a value is what the text means, wrapped when no object. */
function inputOf(text: string, kind: string | undefined, { textArguments, wrapsText }: Profile): unknown {
  if (textArguments) return kind && wrapsText ? JSON.stringify({ input: text }) : text || '{}'
  if (kind) return { input: text }
  return text ? JSON.parse(text) : {}
}

/** Fields whose value here is the default. */
const idle: { [field: string]: (value: Json, request: NeutralRequest) => boolean } = {
  n: (value) => value === 1,
  store: (value) => value === false,
  temperature: (value) => value === 1,
  top_p: (value) => value === 1,
  service_tier: (value) => value === 'auto' || value === 'default',
  modalities: () => true,
  response_format: (value) => isObject(value) && value.type === 'text',
  reasoning: (value) => isObject(value) && (value.effort === 'none' || value.budget === 0),
  tools: (_, { tool_choice }) => tool_choice === 'none',
  tool_choice: (value, request) => value === 'auto' || !offersFunctions(request),
  parallel_tool_calls: (value, request) =>
    value === true || request.tool_choice === 'none' || !offersFunctions(request),
  max_output_tokens: (_, { max_output_tokens = 0 }) => max_output_tokens > 4_000,
  stream: () => true,
  model: () => true,
  messages: () => true,
  origin: () => true,
  system: () => true,
}

/** Tools of free text are lost in most formats, and a choice among nothing else goes with them. */
function offersFunctions({ tools = [], tool_choice }: NeutralRequest): boolean {
  const chosen = typeof tool_choice === 'object' && !('definition' in tool_choice) && tool_choice
  const names = chosen && ('allowed' in chosen ? chosen.allowed : [chosen.name])
  return tools.some((tool) => {
    return !isProviderTool(tool) && tool.kind === 'function' && (!names || names.includes(tool.name))
  })
}

/** One field of the request, taken out: the body must become another one, or the loss be reported. */
async function idleField(
  provider: Provider,
  target: ModelTarget,
  { request }: Conversation,
  { body, dropped }: ProviderRequest,
  choice: number,
): Promise<string[]> {
  const fields = Object.entries(request).filter(([name, value]) => !idle[name]?.(value as Json, request))
  const [name] = fields[choice % fields.length] ?? []
  if (name === undefined || dropped.some((field) => field === name || field.startsWith(`${name}.`))) return []
  const { [name as 'seed']: _, ...rest } = request
  const without = await writeRequest(provider, rest, target)
  if (!isDeepStrictEqual(without.body, body)) return []
  if (name === 'extensions' && dropped.includes('extensions.strange_field')) return []
  // A model without tools calls none of them.
  const toolless = targetFacts(provider, target).lacks?.includes('tools.function')
  if (name === 'tool_choice' && request.tool_choice === 'none' && toolless) return []
  return [`${name} does nothing and is not reported`]
}
