import { isDeepStrictEqual } from 'node:util'
import { describe, expect } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import { undemanding } from '../../src/manifest/fields.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { patchRequest, unsupportedInRequest, writeRequest } from '../../src/manifest/run/translate.ts'
import { servedBy, targetFacts } from '../../src/manifest/target.ts'
import { type Recording, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { shippedFiles } from '../helpers/shipped.ts'
import { testEach } from '../helpers/slow.ts'

/** A model of each format, and of each way of thinking. */
const targets = [
  'openai/gpt-4o-mini',
  'openai/gpt-5.4',
  'openai-responses/gpt-5.4',
  'anthropic/claude-sonnet-4-5',
  'anthropic/claude-opus-5-5',
  'google/gemini-3.5-flash',
  'bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0',
  'bedrock/us.amazon.nova-pro-v1:0',
  'cohere/command-a-03-2025',
  'ollama/qwen3',
  'mistral/mistral-large-latest',
  'groq/openai/gpt-oss-120b',
]

const clients: { readonly [folder: string]: ClientApi } = {
  'openai-chat': chat,
  'openai-responses': responses,
  'anthropic-messages': messages,
}

/** Something in a request, under the name of its loss, and the request without it. */
type Piece = { name: string; without: NeutralRequest }

const objects = ['web_search', 'reasoning', 'response_format', 'cache', 'logprobs', 'extensions'] as const
const apart: ReadonlySet<string> = new Set(['model', 'messages', 'stream', 'origin', 'extensions', 'unread', 'tools'])

function piecesOf(request: NeutralRequest): Piece[] {
  const fields = Object.keys(request).filter((name) => !apart.has(name))
  const types = new Set(request.messages.flatMap(({ parts }) => parts.map(({ type }) => type)))
  types.delete('text')
  const kinds = new Set(request.tools?.map(({ kind }) => kind))
  return [
    ...fields.map((name) => ({ name, without: { ...request, [name]: undefined } })),
    ...objects.flatMap((name) => {
      const { [name]: object = {} } = request
      return Object.keys(object)
        .filter((member) => !(name === 'response_format' && member === 'type'))
        .map((member) => ({
          name: `${name}.${member}`,
          without: { ...request, [name]: { ...object, [member]: undefined } },
        }))
    }),
    ...[...types].map((type) => ({ name: `parts.${type}`, without: withoutParts(request, type) })),
    ...[...kinds].map((kind) => ({
      name: `tools.${kind}`,
      without: withoutTools(request, kind),
    })),
  ] as Piece[]
}

function withoutParts(request: NeutralRequest, type: Part['type']): NeutralRequest {
  const remaining = request.messages.map((message) => ({
    ...message,
    parts: message.parts.filter((part) => part.type !== type),
  }))
  return { ...request, messages: remaining.filter(({ parts }) => parts.length > 0) }
}

function withoutTools(request: NeutralRequest, kind: string): NeutralRequest {
  const left = request.tools?.filter((tool) => tool.kind !== kind) ?? []
  if (left.length > 0) return { ...request, tools: left }
  const { tools: _tools, tool_choice: _choice, parallel_tool_calls: _parallel, ...rest } = request
  return rest
}

/** Fields without effect, or with the default as their value, need no report: by name, with the reason. */
const rules: readonly { name: RegExp; when?: (request: NeutralRequest) => boolean; reason: string }[] = [
  { name: /^tool_choice$|^parallel_tool_calls$/, when: ({ tools = [] }) => tools.length === 0, reason: 'no tools' },
  { name: /^temperature$/, when: ({ temperature }) => temperature === 1, reason: 'the usual value' },
  { name: /^top_p$/, when: ({ top_p }) => top_p === 1, reason: 'the usual value' },
  { name: /^response_format\.name$/, reason: 'a label' },
  { name: /^cache\.key$/, reason: 'a hint' },
  {
    name: /^max_output_tokens$/,
    when: ({ max_output_tokens = 16 }) => max_output_tokens < 16,
    reason: 'raised, and named',
  },
  { name: /^response_format\.strict$/, reason: 'formats without this switch enforce every schema that they take' },
  { name: /^reasoning\.summary$/, reason: 'formats without this switch always show what was thought' },
  {
    name: /^reasoning\.effort$/,
    when: ({ max_output_tokens = 2_048 }) => max_output_tokens < 2_048,
    reason: 'so short a reply leaves the least budget whatever the effort',
  },
  {
    name: /^reasoning\.effort$/,
    when: ({ reasoning }) => reasoning?.effort === 'medium',
    reason: 'a budget of which nothing is said is that of a medium effort',
  },
]

const isRuled = (name: string, request: NeutralRequest): boolean =>
  undemanding[name]?.(request[name as keyof NeutralRequest]) === true ||
  rules.some((rule) => rule.name.test(name) && (rule.when?.(request) ?? true))

describe.skipIf(recordingsMissing)('all of every recorded request reaches the provider or is named, not both', () => {
  for (const [folder, client] of Object.entries(clients)) {
    const requested = recordings(folder).filter(({ request, response }) => request?.body && response.status === 200)
    testEach(targets, { slowIf: (_, index) => index % 4 !== 0 })(`${folder} → %s`, async (id) => {
      const { providers, catalog } = await shippedFiles()
      const slug = id.slice(0, id.indexOf('/'))
      const model = id.slice(slug.length + 1)
      const loaded = providers.find(({ provider }) => provider.slug === slug)
      if (!loaded) throw new Error(`there is no provider ${slug}`)
      const provider = servedBy(loaded.provider, model)
      if (provider.sameAs === client.api) return await checkEdited(provider, { model, client, requested })
      const entry = catalog.find(slug, model)
      const target = { model, ...(entry && { entry }) }
      const wrong = new Map<string, string>()
      for (const { request: recorded, case: name } of requested) {
        const request = client.read({ model, ...recorded?.body })
        const whole = await writeRequest(provider, request, target)
        for (const piece of piecesOf(request)) {
          if (isRuled(piece.name, request)) continue
          const { body } = await writeRequest(provider, piece.without, target)
          const changed = !isDeepStrictEqual(plain(body), plain(whole.body))
          const what = verdict(piece.name, changed, whole.dropped)
          if (what) wrong.set(`${piece.name} ${what}`, `${name} (dropped: ${whole.dropped})`)
        }
      }
      expect([...wrong].map(([what, name]) => `${what}: ${name}`)).toEqual([])
    })
  }
})

function verdict(name: string, changed: boolean, dropped: readonly string[]): string | undefined {
  const ofMedia = /^parts\.(image|file|audio|video)$/.test(name) ? ['parts.url', 'parts.file_id'] : []
  const named = dropped.some(
    (one) => one === name || one.startsWith(`${name}.`) || name.startsWith(`${one}.`) || ofMedia.includes(one),
  )
  if (!changed && !named) return 'lost in silence'
  // A message without other content is reported.
  return changed && dropped.includes(name) && !name.startsWith('parts.') ? 'sent, and named as lost' : undefined
}

/** The same of bodies that are edited, field by field: the client's names are the provider's. */
async function checkEdited(
  provider: Provider,
  { model, client, requested }: { model: string; client: ClientApi; requested: readonly Recording[] },
): Promise<void> {
  const edit = async (given: JsonObject) => {
    const request = client.read(given)
    const dropped = await unsupportedInRequest(provider, request, { model })
    const edited = client.editRequest(given, { model, stream: request.stream === true, dropped })
    return { body: await patchRequest(provider, edited, targetFacts(provider, { model })), dropped }
  }
  const wrong = new Map<string, string>()
  for (const { request, case: name } of requested) {
    const given: JsonObject = { model, ...request?.body }
    const whole = await edit(given)
    const named = new Set(whole.dropped.flatMap((field) => client.wireNames(field)))
    for (const field of Object.keys(given)) {
      const answered = [
        'model',
        'messages',
        'input',
        'max_tokens',
        'stream',
        'stream_options',
        'metadata',
        'prompt_cache_key',
      ]
      if (answered.includes(field)) continue
      const { [field]: _, ...rest } = given
      const changed = !isDeepStrictEqual(plain((await edit(rest)).body), plain(whole.body))
      if (!changed && !named.has(field)) wrong.set(`${field} lost in silence`, name)
      if (changed && named.has(field)) wrong.set(`${field} sent, and named as lost`, name)
    }
  }
  expect([...wrong].map(([what, name]) => `${what}: ${name}`)).toEqual([])
}

const plain = (body: unknown): unknown => JSON.parse(JSON.stringify(body))
