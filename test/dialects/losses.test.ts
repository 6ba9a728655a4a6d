import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import type { NeutralRequest, Tool } from '../../src/core/request.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { writeRequest } from '../../src/manifest/run/translate.ts'
import { type ModelTarget, servedBy, targetFacts } from '../../src/manifest/target.ts'
import { shippedFiles } from '../helpers/shipped.ts'
import { testEach, testInRuns } from '../helpers/slow.ts'

/**
 * The law of losses, by difference: each field of a request reaches the provider's body, or is reported; and nothing is reported
 * that reached it. A field has reached the body when the body differs without it.
 */
type RequestCase = {
  /** Names under which its loss is reported: one of them, a member of it, or the field that it is in. */
  loss: readonly string[]
  /** The request with this field. */
  add(request: NeutralRequest): NeutralRequest
  /** The request without it, but with the fields that it depends on. */
  leave?(request: NeutralRequest): NeutralRequest
}

const field = (name: keyof NeutralRequest, value: unknown, loss: string = name): RequestCase => ({
  loss: [loss],
  add: (request) => {
    const known = request[name]
    const isObject = typeof value === 'object' && !Array.isArray(value) && typeof known === 'object'
    return { ...request, [name]: isObject ? { ...known, ...(value as object) } : value }
  },
})

/** A member of an object that is there anyway. */
const member = (name: keyof NeutralRequest, wanted: object, others: object = {}): RequestCase => ({
  loss: [`${name}.${Object.keys(wanted)[0]}`],
  add: field(name, { ...others, ...wanted }).add,
  leave: field(name, others).add,
})

const part = (made: Part, loss = `parts.${made.type}`, more: readonly string[] = []): RequestCase => ({
  loss: [loss, ...more],
  add: (request) => ({
    ...request,
    messages: request.messages.map((message, index) =>
      index === request.messages.length - 1 ? { ...message, parts: [...message.parts, made] } : message,
    ),
  }),
})

const tool = (made: Tool): RequestCase => ({
  loss: [`tools.${made.kind}`, 'tools'],
  add: (request) => ({ ...request, tools: [...(request.tools ?? []), made] }),
})

const mcp = (kind: string, by: 'chat' | 'responses' | 'messages' = 'responses'): RequestCase =>
  tool({ kind, by, definition: { type: kind, marker: 'z' } })

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const requestCases: { readonly [name: string]: RequestCase } = {
  max_output_tokens: field('max_output_tokens', 1_000),
  temperature: field('temperature', 0.3),
  top_p: field('top_p', 0.7),
  top_k: field('top_k', 7),
  seed: field('seed', 11),
  stop: field('stop', ['END']),
  frequency_penalty: field('frequency_penalty', 0.5),
  presence_penalty: field('presence_penalty', 0.4),
  logit_bias: field('logit_bias', { 17: 3 }),
  logprobs: field('logprobs', { top: 2 }),
  n: field('n', 2),
  json: field('response_format', { type: 'json' }),
  schema: field('response_format', {
    type: 'json_schema',
    name: 'answer',
    schema: {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      additionalProperties: false,
    },
  }),
  effort: field('reasoning', { effort: 'high' }),
  budget: field('reasoning', { budget: 3_000 }),
  summary: member('reasoning', { summary: 'detailed' }, { effort: 'high' }),
  prediction: field('prediction', { type: 'content', content: 'x' }),
  service_tier: field('service_tier', 'flex'),
  verbosity: field('verbosity', 'low'),
  cache_key: member('cache', { key: 'k' }),
  cache_retention: member('cache', { retention: '24h' }),
  user: field('user', 'u-1'),
  safety_identifier: field('safety_identifier', 's-1'),
  metadata: field('metadata', { a: 'b' }),
  store: field('store', true),
  moderation: field('moderation', { model: 'm' }),
  search: field('web_search', {}),
  search_uses: member('web_search', { max_uses: 3 }),
  search_allowed: member('web_search', { allowed_domains: ['a.example'] }),
  search_size: member('web_search', { context_size: 'high' }),
  search_place: member('web_search', { user_location: { city: 'Paris' } }),
  unknown: field('extensions', { frob: { nicate: 1 } }, 'extensions.frob'),
  system: field('system', [{ type: 'text', text: 'Be brief.' }]),
  function: tool({ kind: 'function', name: 'f', description: 'd', parameters: { type: 'object', properties: {} } }),
  strict: tool({
    kind: 'function',
    name: 'g',
    parameters: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false },
    strict: true,
  }),
  custom: tool({ kind: 'custom', name: 'c', description: 'd' }),
  ...Object.fromEntries(
    ['mcp', 'code_interpreter', 'file_search', 'image_generation', 'local_shell', 'namespace', 'browser_search'].map(
      (kind) => [kind, mcp(kind)],
    ),
  ),
  bash: mcp('bash_20250124', 'messages'),
  image_data: part({ type: 'image', data: pixel, media_type: 'image/png' }),
  image_url: part({ type: 'image', url: 'https://x.example/a.png' }, 'parts.image', ['parts.url']),
  image_file: part({ type: 'image', file_id: 'file-1' }, 'parts.image', ['parts.file_id']),
  audio: part({ type: 'audio', data: 'UklGRg==', media_type: 'audio/wav' }),
  video: part({ type: 'video', data: 'AAAA', media_type: 'video/mp4' }),
  pdf: part({ type: 'file', data: 'JVBERi0=', media_type: 'application/pdf', filename: 'a.pdf' }),
}

/** Fields without effect on their own, with those that they depend on. */
const withTools: { readonly [name: string]: RequestCase } = {
  required: field('tool_choice', 'required', 'tool_choice'),
  named: field('tool_choice', { name: 'f' }, 'tool_choice'),
  one_call: field('parallel_tool_calls', false),
}

const names = Object.keys(requestCases)

const base: NeutralRequest = {
  model: 'm',
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
  origin: { api: 'chat', body: {} },
}

type Case = { label: string; provider: Provider; target: ModelTarget }

/** Each provider that converses with a model of each set of facts, or with a name of no family at all. */
async function cases(): Promise<Case[]> {
  const found = new Map<string, Case>()
  const { providers, catalog } = await shippedFiles()
  for (const { provider } of providers) {
    if (!provider.chat) continue
    const listed = catalog.list().filter((one) => one.provider === provider.slug && one.entry.api === 'chat')
    for (const target of [{ model: 'some-model' }, ...listed]) {
      const served = servedBy(provider, target.model)
      const key = `${served.slug} ${served.dialect} ${JSON.stringify(targetFacts(served, target).traits)}`
      if (!found.has(key)) found.set(key, { label: `${served.slug}/${target.model}`, provider: served, target })
    }
  }
  return [...found.values()]
}

const write = ({ provider, target }: Case, requested: readonly RequestCase[], except?: RequestCase) => {
  const add = (request: NeutralRequest, requestCase: RequestCase) =>
    requestCase === except ? (requestCase.leave?.(request) ?? request) : requestCase.add(request)
  return writeRequest(provider, requested.reduce(add, base), target)
}

/** Whether a loss is named: by its own name, that of a member, or that of the field that it is a member of. */
function isNamed({ loss }: RequestCase, dropped: readonly string[]): boolean {
  return loss.some((name) =>
    dropped.some((one) => one === name || one.startsWith(`${name}.`) || name.startsWith(`${one}.`)),
  )
}

/** Rules that the law yields to. */
function isRuled({ loss: [name] }: RequestCase, changed: boolean): boolean {
  // Where a call cannot be required it is requested in the instructions, which is less, so the requirement is reported.
  if (name === 'tool_choice') return changed
  // The router records metadata itself, and a key of the cache is a hint.
  if (name === 'metadata' || name === 'cache.key') return true
  // Formats without this switch always return reasoning.
  return name === 'reasoning.summary' && !changed
}

/** The violation for one field among others; undefined when there is none. */
async function verdict(
  one: Case,
  requested: readonly RequestCase[],
  requestCase: RequestCase,
): Promise<string | undefined> {
  const whole = await write(one, requested)
  const without = await write(one, requested, requestCase)
  const changed = !isDeepStrictEqual(comparable(whole.body), comparable(without.body))
  if (isRuled(requestCase, changed)) return undefined
  if (!changed && !isNamed(requestCase, whole.dropped)) return `lost in silence (dropped: ${whole.dropped})`
  const entirely = requestCase.loss.some((name) => whole.dropped.includes(name))
  if (changed && entirely && requestCase.loss.length === 1) return `sent, and named as lost (dropped: ${whole.dropped})`
  return undefined
}

const comparable = (body: JsonObject): unknown => JSON.parse(JSON.stringify(body))

const all = await cases()

describe('a field reaches the provider or is reported, never both, never neither', () => {
  const few = new Set(all.filter((_, index) => index % 5 === 0))
  testEach(
    all.map((one) => [one.label, one] as const),
    { slowIf: ([, one]) => !few.has(one) },
  )('%s', async (_, one) => {
    const wrong: string[] = []
    for (const name of names) {
      const requestCase = requestCases[name] as RequestCase
      const found = await verdict(one, [requestCase], requestCase)
      if (found) wrong.push(`${name}: ${found}`)
    }
    for (const [name, requestCase] of Object.entries(withTools)) {
      const found = await verdict(one, [requestCases.function as RequestCase, requestCase], requestCase)
      if (found) wrong.push(`${name}: ${found}`)
    }
    expect(wrong).toEqual([])
  })
})

testInRuns('and so does each of several fields together', { fast: 80, slow: 400 }, async (numRuns) => {
  const several = fc.uniqueArray(fc.constantFrom(...names), { minLength: 2, maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...all), several, async (one, chosen) => {
      const requested = chosen.map((name) => requestCases[name] as RequestCase)
      const wrong: string[] = []
      for (const [index, requestCase] of requested.entries()) {
        // The same field twice: one of them is not there.
        if (
          requested.filter(({ loss: [name] }) => name?.split('.')[0] === requestCase.loss[0]?.split('.')[0]).length > 1
        )
          continue
        const found = await verdict(one, requested, requestCase)
        if (found) wrong.push(`${chosen[index]}: ${found}`)
      }
      expect({ [one.label]: wrong }).toEqual({ [one.label]: [] })
    }),
    { numRuns },
  )
})
