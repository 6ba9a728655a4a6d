import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { bench, lost, lostOf, modelFacts, sent } from './openai-responses-fields.ts'
import { publishedFields, responsesSchemaMissing, responsesViolations } from './responses-schema.ts'

describe('tools', () => {
  const tools: NeutralRequest['tools'] = [
    { kind: 'function', name: 'f', description: 'F', parameters: { type: 'object' }, strict: true },
    { kind: 'function', name: 'g' },
    { kind: 'custom', name: 'c', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'd' } } },
  ]

  test('are flat, and always have `strict`', async () => {
    expect((await sent({ tools })).tools).toEqual([
      { type: 'function', name: 'f', description: 'F', parameters: { type: 'object' }, strict: true },
      {
        type: 'function',
        name: 'g',
        parameters: { type: 'object', properties: {}, additionalProperties: false },
        strict: false,
      },
      { type: 'custom', name: 'c', format: { type: 'grammar', syntax: 'lark', definition: 'd' } },
    ])
    const format = { type: 'grammar', syntax: 'regex', definition: 'd' }
    expect((await sent({ tools: [{ kind: 'custom', name: 'c', format }] })).tools).toMatchObject([{ format }])
  })

  test('have a form for every choice', async () => {
    const choice = async (tool_choice: NeutralRequest['tool_choice']) =>
      (await sent({ tools, ...(tool_choice && { tool_choice }) })).tool_choice
    expect(await choice('auto')).toBe('auto')
    expect(await choice('none')).toBe('none')
    expect(await choice('required')).toBe('required')
    expect(await choice({ name: 'f' })).toEqual({ type: 'function', name: 'f' })
    expect(await choice({ name: 'c' })).toEqual({ type: 'custom', name: 'c' })
    expect(await choice({ allowed: ['f', 'c'], mode: 'required' })).toEqual({
      type: 'allowed_tools',
      mode: 'required',
      tools: [
        { type: 'function', name: 'f' },
        { type: 'custom', name: 'c' },
      ],
    })
    expect(await choice(undefined)).toBeUndefined()
    const without = await sent({ tool_choice: 'required', parallel_tool_calls: false })
    expect([without.tool_choice, without.parallel_tool_calls]).toEqual([undefined, undefined])
  })

  test('of the provider pass as the client wrote them', async () => {
    const definition = { type: 'code_interpreter', container: { type: 'auto' } }
    const native = { kind: 'code_interpreter', by: 'responses', definition } as const
    const tool_choice = { ...native, definition: { type: 'code_interpreter' } }
    expect(await sent({ tools: [native], tool_choice })).toMatchObject({
      tools: [definition],
      tool_choice: { type: 'code_interpreter' },
    })
    expect(await lost({ tools: [native], tool_choice })).toEqual([])
  })

  test('of another client API mean nothing here', async () => {
    const computer = { type: 'computer_20250124', name: 'computer' }
    const foreign = { kind: 'computer_20250124', by: 'messages', definition: computer } as const
    expect((await sent({ tools: [foreign] })).tools).toBeUndefined()
    expect(await lost({ tools: [foreign] })).toEqual(['tools.computer_20250124'])
  })
})

test('a search has its own options here, and unsupported ones are reported', async () => {
  const search: Partial<NeutralRequest> = {
    web_search: {
      max_uses: 3,
      allowed_domains: ['https://example.com'],
      blocked_domains: ['example.org'],
      user_location: { city: 'Graz', country: 'AT' },
      context_size: 'low',
    },
  }
  expect(await sent(search)).toMatchObject({
    tools: [
      {
        type: 'web_search',
        search_context_size: 'low',
        user_location: { type: 'approximate', city: 'Graz', country: 'AT' },
        filters: { allowed_domains: ['example.com'] },
      },
    ],
    max_tool_calls: 3,
  })
  expect(await lost(search)).toEqual(['web_search.blocked_domains'])
  expect((await sent(search, 'gpt-4.1-nano')).tools).toBeUndefined()
  expect(await lost(search, 'gpt-4.1-nano')).toContain('web_search')
})

test('reasoning is requested at a level that the family supports', async () => {
  const level = async (model: string, reasoning: NonNullable<NeutralRequest['reasoning']>) =>
    (await sent({ reasoning }, model)).reasoning
  expect(await level('gpt-5', { effort: 'none' })).toEqual({ effort: 'minimal' })
  expect(await level('gpt-5', { effort: 'max' })).toEqual({ effort: 'high' })
  expect(await level('gpt-5.4', { effort: 'minimal' })).toEqual({ effort: 'low' })
  expect(await level('gpt-5.4', { effort: 'none' })).toEqual({ effort: 'none' })
  expect(await level('gpt-5.4', { budget: 20_000 })).toEqual({ effort: 'high' })
  expect(await level('gpt-5.4-pro', { effort: 'low' })).toEqual({ effort: 'medium' })
  expect(await level('gpt-6-sol', { effort: 'max', summary: 'detailed' })).toEqual({
    effort: 'max',
    summary: 'detailed',
  })
  expect(await level('o3', { budget: 0, summary: 'summarized' })).toEqual({ effort: 'low', summary: 'auto' })
  expect(await level('gpt-4.1', { effort: 'high' })).toBeUndefined()
  expect(await lost({ reasoning: { effort: 'high' } }, 'gpt-4.1')).toEqual(['reasoning'])
  expect(await lost({ reasoning: { effort: 'none' } }, 'gpt-4.1')).toEqual([])
})

describe('sampling', () => {
  const requestFields = { temperature: 0.5, top_p: 0.9, logprobs: { top: 2 } }
  const names = ['temperature', 'top_p', 'logprobs']

  test('is free where nothing is thought, and left out and reported elsewhere', async () => {
    const taken = {
      temperature: 0.5,
      top_p: 0.9,
      top_logprobs: 2,
      include: expect.arrayContaining(['message.output_text.logprobs']),
    }
    expect(await sent(requestFields, 'gpt-4.1')).toMatchObject(taken)
    expect(await sent({ ...requestFields, reasoning: { effort: 'none' } })).toMatchObject(taken)
    expect(await sent({ ...requestFields, reasoning: { budget: 0 } })).toMatchObject(taken)
    expect(await lost({ ...requestFields, reasoning: { effort: 'none' } })).toEqual([])
    expect(await sent(requestFields, 'gpt-5.4')).toMatchObject(taken)
    for (const model of ['o3', 'gpt-5', 'gpt-5.6']) {
      const body = await sent(requestFields, model)
      expect([body.temperature, body.top_p, body.top_logprobs]).toEqual([undefined, undefined, undefined])
      expect(body.include).toEqual(['reasoning.encrypted_content'])
      expect(await lost(requestFields, model)).toEqual(names)
    }
    expect(await lost({ temperature: 1, top_p: 1 }, 'o3')).toEqual([])
  })

  test('fields without effect are not reported', async () => {
    expect(await lost({ n: 1, frequency_penalty: 0, presence_penalty: 0, modalities: ['text'] })).toEqual([])
    const meant = { n: 2, frequency_penalty: 1, presence_penalty: 1, modalities: ['text', 'audio'] }
    expect(await lost(meant)).toEqual(Object.keys(meant))
  })

  test('the limit is not below the least that is taken', async () => {
    expect((await sent({ max_output_tokens: 1 })).max_output_tokens).toBe(16)
    expect((await sent({ max_output_tokens: 17 })).max_output_tokens).toBe(17)
    expect((await sent({})).max_output_tokens).toBeUndefined()
  })
})

test('the form of the answer is flat', async () => {
  const schema = { type: 'object' }
  const format = { type: 'json_schema', name: 'x', description: 'd', schema, strict: true } as const
  expect((await sent({ response_format: format, verbosity: 'low' })).text).toEqual({ format, verbosity: 'low' })
  expect((await sent({ response_format: { type: 'json' } })).text).toEqual({ format: { type: 'json_object' } })
  expect((await sent({ verbosity: 'low' }, 'gpt-4.1')).text).toBeUndefined()
  expect(await lost({ verbosity: 'low' }, 'gpt-4.1')).toEqual(['verbosity'])
})

test('fields of the native API reach it from clients of another', async () => {
  const extensions = {
    truncation: 'auto',
    include: ['web_search_call.action.sources'],
    reasoning: { mode: 'pro' },
    reasoning_effort: 'extreme',
  }
  expect(await sent({ extensions })).toMatchObject({
    truncation: 'auto',
    include: ['web_search_call.action.sources', 'reasoning.encrypted_content'],
    reasoning: { mode: 'pro', effort: 'extreme' },
  })
  expect(await lost({ extensions: { ...extensions, unheard: 1 } })).toEqual(['extensions.unheard'])
  expect((await lost({ extensions }, 'gpt-4.1')).toSorted()).toEqual([
    'extensions.reasoning',
    'extensions.reasoning_effort',
  ])
})

test('an identifier that is too long becomes its digest', async () => {
  expect((await sent({ safety_identifier: 'u'.repeat(64) })).safety_identifier).toBe('u'.repeat(64))
  expect((await sent({ safety_identifier: 'u'.repeat(65) })).safety_identifier).toMatch(/^[0-9a-f]{64}$/)
})

/** One value for each field of the neutral request, unlike its default. */
const samples = {
  model: 'other',
  system: [{ type: 'text', text: 's' }],
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'other' }] }],
  tools: [{ kind: 'function', name: 'f' }],
  tool_choice: 'required',
  parallel_tool_calls: false,
  web_search: {},
  max_output_tokens: 70,
  temperature: 0.5,
  top_p: 0.5,
  top_k: 5,
  seed: 1,
  stop: ['x'],
  frequency_penalty: 1,
  presence_penalty: 1,
  logit_bias: { a: 1 },
  logprobs: { top: 1 },
  n: 2,
  response_format: { type: 'json' },
  reasoning: { effort: 'high' },
  modalities: ['text', 'audio'],
  audio: { voice: 'a' },
  prediction: { type: 'content' },
  service_tier: 'flex',
  verbosity: 'low',
  cache: { key: 'k' },
  user: 'u',
  safety_identifier: 'u',
  metadata: { a: 'b' },
  store: true,
  moderation: { model: 'omni-moderation-latest' },
  stream: true,
  extensions: { unheard: 1 },
} satisfies { [field in Exclude<keyof NeutralRequest, 'origin' | 'unread'>]-?: NeutralRequest[field] }

describe.each(['gpt-4.1', 'gpt-5.4', 'o3'])('for %s', (model) => {
  test.each(Object.keys(samples) as (keyof typeof samples)[])('%s is sent or reported as lost', async (field) => {
    const tools = ['tool_choice', 'parallel_tool_calls'].includes(field) ? { tools: samples.tools } : {}
    const given = { ...tools, [field]: samples[field] }
    const changes = JSON.stringify(await sent(given, model)) !== JSON.stringify(await sent(tools, model))
    expect(changes).not.toBe((await lost(given, model)).includes(field === 'extensions' ? 'extensions.unheard' : field))
  })
})

/** Fields of the native API that no request of another API can mean, or may: what a provider keeps is not for everybody. */
const nativeOnly = ['background', 'prompt', 'stream_options', 'conversation', 'previous_response_id']

test.skipIf(responsesSchemaMissing)('every published field is written, or belongs to this API alone', () => {
  const written = (name: string) => new RegExp(`(^|[{,]) *"${name}": `, 'm').test(bench.chat.request.mapping.text)
  expect(publishedFields('CreateResponse').filter((name) => !written(name))).toEqual(expect.arrayContaining(nativeOnly))
  expect(publishedFields('CreateResponse').filter((name) => !written(name))).toHaveLength(nativeOnly.length)
})

describe.skipIf(responsesSchemaMissing)('the published schema takes', () => {
  test('a request with everything', async () => {
    const { extensions, ...fields } = samples
    for (const model of ['gpt-4.1', 'gpt-5.6', 'o3']) {
      expect(responsesViolations(await sent(fields, model))).toEqual([])
    }
  })

  test('no field it does not know', async () => {
    expect(responsesViolations({ ...(await sent({})), seed: 1 })).toEqual(['must NOT have unevaluated properties seed'])
    const input = [{ role: 'user', content: [{ type: 'input_text', text: 'a', cache: {} }] }]
    expect(responsesViolations({ ...(await sent({})), input })).not.toEqual([])
  })

  describe.skipIf(recordingsMissing)('requests of chat clients', () => {
    const requested = recordings('openai-chat').filter(
      ({ request, response }) => request?.body && response.status === 200,
    )

    test.each(requested.map((recording) => [recording.case, recording.request?.body] as const))(
      '%s',
      async (_, wire) => {
        for (const model of ['gpt-4.1', 'gpt-5.4', 'gpt-5.6', 'o3']) {
          const request = { ...chat.read(wire), model }
          expect(responsesViolations(await bench.body(request, modelFacts(model)))).toEqual([])
          const named = new Set(Object.keys(request))
          for (const field of await lostOf(request, model)) {
            const [first = ''] = field.replace('parts', 'messages').split('.')
            expect(named.has(first), field).toBe(true)
          }
        }
      },
    )
  })
})
