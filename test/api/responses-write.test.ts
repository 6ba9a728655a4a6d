import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { responses } from '../../src/api/responses/api.ts'
import type { ProviderEvent } from '../../src/core/events.ts'
import { Fold, type FoldFacts } from '../../src/core/fold.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Reply } from '../../src/core/reply.ts'
import { testInRuns } from '../helpers/slow.ts'
import { choicesOf, schemaMissing, violations } from './chatSchema.ts'
import { eventsIn, follow } from './responses-order.ts'

const model = 'maker/model'
const id = '0198f7a2-0000-7000-8000-000000000001'
const foldFacts: FoldFacts = { signer: 'maker', newId: () => '0b1c', now: () => 1_795_219_200 }
const schemaOf = schemaMissing ? undefined : choicesOf('ResponseStreamEvent')

// biome-ignore lint/suspicious/noExplicitAny: written JSON of all shapes.
type Loose = any

/** A reply of these provider events: whole, streamed, and every event of the stream, each checked in its place. */
function answer(
  inputEvents: ProviderEvent[],
  requested: JsonObject = {},
): { whole: Loose; last: Loose; events: Loose[] } {
  const request = responses.read({ model, input: 'Hello', ...requested })
  const writer = responses.openStream(request, { model, id })
  const fold = new Fold(foldFacts)
  let text = inputEvents.map((event) => writer.events(fold.take(event))).join('')
  text += writer.events(fold.end())
  const reply: Reply = fold.reply()
  const facts = { model, usage: reply.usage, costUsd: 0.25, request, id }
  const events = eventsIn(text + writer.end(facts))
  const last = follow(events)
  for (const event of events) expect([event.type, ...wrongIn(event)]).toEqual([event.type])
  const whole = JSON.parse(JSON.stringify(responses.writeReply(reply, facts)))
  return { whole: comparable(whole), last: comparable(last), events }
}

function wrongIn(event: Loose): string[] {
  return schemaOf ? violations(schemaOf.get(event.type) ?? `unknown event ${event.type}`, event) : []
}

/** Clocks go on. */
function comparable({ completed_at: _at, ...response }: Loose): Loose {
  return response
}

const stop: ProviderEvent = { finish: 'stop' }
const namesOf = (events: Loose[]): string[] => events.map(({ type }) => type.replace(/^response\./, ''))

describe('a reply as a response', () => {
  it('has the settings of the request, and the cost', () => {
    const requested = {
      instructions: 'Be brief.',
      max_output_tokens: 100,
      temperature: 0.5,
      top_p: 0.9,
      text: { verbosity: 'low', format: { type: 'json_object' } },
      reasoning: { effort: 'low', context: 'auto' },
      tools: [{ type: 'function', name: 'f' }],
      tool_choice: 'required',
      parallel_tool_calls: false,
      service_tier: 'flex',
      metadata: { team: 'one' },
      store: false,
      truncation: 'auto',
      user: 'me',
      safety_identifier: 'you',
      prompt_cache_key: 'k',
      top_logprobs: 2,
      max_tool_calls: 3,
      previous_response_id: 'resp_1',
    }
    const usage = { input: 10, cache_read: 5, cache_write_5m: 2, output: 3, reasoning: 4 }
    const { whole, last } = answer([{ text: 'Hi' }, { usage }, stop], requested)
    expect(whole).toEqual({
      ...requested,
      id: 'resp_0198f7a2000070008000000000000001',
      object: 'response',
      created_at: 1_795_219_200,
      status: 'completed',
      background: false,
      error: null,
      incomplete_details: null,
      model,
      tools: [{ type: 'function', name: 'f', description: null, parameters: null, strict: null }],
      presence_penalty: 0,
      frequency_penalty: 0,
      reasoning: { effort: 'low', summary: null, context: 'auto' },
      output: [
        {
          id: 'msg_0198f7a20000700080000000000000010000',
          type: 'message',
          status: 'completed',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'Hi', annotations: [], logprobs: [] }],
        },
      ],
      usage: {
        input_tokens: 17,
        input_tokens_details: { cached_tokens: 5, cache_write_tokens: 2 },
        output_tokens: 7,
        output_tokens_details: { reasoning_tokens: 4 },
        total_tokens: 24,
        cost: 0.25,
      },
    })
    expect(last).toEqual(whole)
  })

  it('has the defaults of this API for absent fields', () => {
    expect(answer([{ text: 'Hi' }, stop]).whole).toMatchObject({
      instructions: null,
      tools: [],
      tool_choice: 'auto',
      parallel_tool_calls: true,
      store: true,
      temperature: 1,
      top_p: 1,
      truncation: 'disabled',
      text: { format: { type: 'text' } },
      service_tier: 'auto',
      metadata: {},
    })
  })

  it('names the tier that served', () => {
    const reply: Reply = { id: 'r', created: 1, parts: [], finish: 'stop', usage: {} }
    const tierOf = (service_tier: string) =>
      responses.writeReply({ ...reply, extensions: { service_tier } }, { model, usage: {} }).service_tier
    expect([tierOf('priority'), tierOf('standard')]).toEqual(['priority', 'auto'])
  })

  it('has its events in this order', () => {
    const inputEvents: ProviderEvent[] = [
      { reasoning: { text: 'Th' } },
      { reasoning: { text: 'ink', signature: 's' } },
      { search: { id: 's1', query: 'news', status: 'completed' } },
      { text: 'It ' },
      { text: 'rains', citation: { url: 'https://a.at', title: 'A', start: 0, end: 2 } },
      { tool: { id: 'c1', name: 'f', arguments: '{"a":' } },
      { tool: { arguments: '1}' } },
      stop,
    ]
    const { events, whole, last } = answer(inputEvents)
    expect(namesOf(events)).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
      'output_item.added',
      'web_search_call.in_progress',
      'web_search_call.searching',
      'web_search_call.completed',
      'output_item.done',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.annotation.added',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'output_item.added',
      'function_call_arguments.delta',
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
      'completed',
    ])
    expect(last).toEqual(whole)
  })

  it('separates interleaved calls', () => {
    const call = (at: number, more: JsonObject): ProviderEvent => ({ at, tool: more }) as ProviderEvent
    const { whole, last } = answer([
      call(0, { id: 'a', name: 'f' }),
      call(1, { id: 'b', name: 'g' }),
      call(2, { id: 'c', name: 'h', kind: 'custom' }),
      call(0, { arguments: '{"x"' }),
      call(1, { arguments: '{}' }),
      call(2, { arguments: 'free ' }),
      call(0, { arguments: ':1}' }),
      call(2, { arguments: 'text' }),
      stop,
    ])
    expect(last).toEqual(whole)
    expect(whole.output.map((item: Loose) => [item.call_id, item.arguments ?? item.input])).toEqual([
      ['a', '{"x":1}'],
      ['b', '{}'],
      ['c', 'free text'],
    ])
  })

  it('is incomplete when it was cut, and so is the item that was', () => {
    const text = answer([{ text: 'It r' }, { finish: 'length' }])
    expect(text.last).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
    expect(text.last.output[0].status).toBe('incomplete')
    expect(text.last).toEqual(text.whole)
    const filtered = answer([{ text: 'It r' }, { finish: 'content_filter' }]).last
    expect(filtered).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'content_filter' } })
    const call = answer([{ text: 'So:' }, { tool: { id: 'a', name: 'f', arguments: '{"x' } }, { finish: 'length' }])
    expect(call.last.output.map(({ status }: Loose) => status)).toEqual(['completed', 'incomplete'])
    expect(call.last).toEqual(call.whole)
    expect(answer([{ reasoning: { text: 'Hm' } }, { finish: 'length' }]).last.output).toHaveLength(1)
  })

  it('3.9: may be a refusal, an image, or nothing', () => {
    const refusal = answer([{ refusal: 'I ' }, { refusal: 'cannot.' }, { finish: 'refusal' }])
    expect(refusal.last.output[0].content).toEqual([{ type: 'refusal', refusal: 'I cannot.' }])
    expect(refusal.last).toEqual(refusal.whole)
    expect(refusal.last).toMatchObject({ status: 'completed', output: [{ status: 'completed' }] })
    // What a provider refuses without words, or in the middle of them, is cut off.
    for (const inputEvents of [[], [{ text: 'First, ' }]]) {
      const cut = answer([...inputEvents, { finish: 'refusal' }])
      expect(cut.last).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'content_filter' } })
      expect(cut.last).toEqual(cut.whole)
    }
    const image = answer([{ media: { type: 'image', data: 'AAAA', media_type: 'image/png' } }, stop])
    expect(image.last.output[0]).toMatchObject({ type: 'image_generation_call', result: 'AAAA', output_format: 'png' })
    expect(image.last).toEqual(image.whole)
    const nothing = answer([stop])
    expect(nothing.last).toMatchObject({ status: 'completed', output: [] })
  })

  it('writes citations with a position at once, and others at the end of the text', () => {
    const cite = (title: string, place = {}): ProviderEvent => ({ citation: { url: 'https://a.at', title, ...place } })
    const { events, whole, last } = answer([
      { text: 'It 🌧' },
      cite('A', { start: 0, end: 2 }),
      cite('B'),
      cite('C', { start: 3, end: 4 }),
      { text: ' today' },
      stop,
    ])
    const inputEvents = events.filter(({ type }) => type.endsWith('annotation.added'))
    expect(
      inputEvents.map(({ annotation_index, annotation: { title, end_index } }) => [annotation_index, title, end_index]),
    ).toEqual([
      [0, 'A', 2],
      [1, 'B', 10],
      [2, 'C', 4],
    ])
    expect(last).toEqual(whole)
  })

  it('has sources that come after their text in its last event', () => {
    const inputEvents: ProviderEvent[] = [
      { text: 'Rain.' },
      { tool: { id: 'a', name: 'f', arguments: '{}' } },
      { citation: { url: 'https://a.at', title: 'A', start: 0, end: 4 } },
      stop,
    ]
    const request = responses.read({ model, input: 'Hello' })
    const writer = responses.openStream(request, { model, id })
    const fold = new Fold(foldFacts)
    for (const event of inputEvents) writer.events(fold.take(event))
    writer.events(fold.end())
    const [last] = eventsIn(writer.end({ model, usage: {} }))
    expect(last.response.output[0].content[0].annotations).toMatchObject([{ url: 'https://a.at', end_index: 4 }])
  })

  it('loses no text that comes after its part was done', () => {
    const inputEvents: ProviderEvent[] = [
      { at: 't', text: 'One' },
      { at: 'r', reasoning: { text: 'think' } },
      { at: 't', text: ' two' },
      { at: 'r', reasoning: { text: ' on' } },
      { at: 'u', text: '!' },
      { at: 't', text: ' three' },
      stop,
    ]
    const { last } = answer(inputEvents)
    const written = last.output.map((item: Loose) => (item.content ?? item.summary).map(({ text }: Loose) => text))
    expect(written).toEqual([['One'], ['think on'], [' two', '!', ' three']])
  })

  it('distinguishes summaries from reasoning text', () => {
    const inputEvents: ProviderEvent[] = [{ reasoning: { text: 'Long.' } }, { reasoning: { summary: 'Short.' } }, stop]
    const { whole, last } = answer(inputEvents)
    expect(last.output[0].summary.map(({ text }: Loose) => text)).toEqual(['Long.', 'Short.'])
    expect(last).toEqual(whole)
    const other = answer([inputEvents[1] as ProviderEvent, inputEvents[0] as ProviderEvent, stop]).last
    expect(other.output[0].summary.map(({ text }: Loose) => text)).toEqual(['Short.', 'Long.'])
  })

  it('writes log probabilities with their text', () => {
    const token = (text: string) => ({
      token: text,
      logprob: -0.5,
      bytes: null,
      top_logprobs: [{ token: 'x', logprob: -1 }],
    })
    const says = (text: string): ProviderEvent => ({ text, logprobs: { content: [token(text)] } })
    const { events, whole, last } = answer([says('It'), says(' rains'), stop])
    const deltas = events.filter(({ type }) => type.endsWith('text.delta'))
    expect(deltas.map(({ logprobs }) => logprobs.map((one: Loose) => one.token))).toEqual([['It'], [' rains']])
    expect(deltas[0].logprobs[0]).toEqual({
      token: 'It',
      logprob: -0.5,
      bytes: [73, 116],
      top_logprobs: [{ token: 'x', logprob: -1, bytes: [120] }],
    })
    expect(last).toEqual(whole)
    const late = answer([{ text: 'Rain' }, { logprobs: { content: [token('Rain')] } }, stop])
    expect(late.last).toEqual(late.whole)
    expect(late.last.output[0].content[0].logprobs).toHaveLength(1)
    const apart = answer([{ at: 1, ...says('One') }, { at: 2, ...says('Two') }, stop])
    expect(apart.last).toEqual(apart.whole)
  })

  it('has the URLs that a search found when they are requested', () => {
    const results = [{ url: 'https://a.at', signed: 'x' }]
    const inputEvents: ProviderEvent[] = [
      { search: { id: 's', query: 'q', status: 'completed', results } },
      { text: 'a' },
      stop,
    ]
    const action = { type: 'search', query: 'q' }
    expect(answer(inputEvents).last.output[0].action).toEqual(action)
    const include = ['web_search_call.action.sources']
    const { whole, last } = answer(inputEvents, { include })
    expect(last.output[0].action).toEqual({ ...action, sources: [{ type: 'url', url: 'https://a.at' }] })
    expect(last).toEqual(whole)
    const page = { type: 'open_page', url: 'https://a.at' }
    const opened = answer([{ search: { id: 's', status: 'failed', results: page } }, stop]).last
    expect(opened.output[0]).toMatchObject({ status: 'failed', action: page })
    expect(opened.output).toHaveLength(1)
  })

  testInRuns('is valid and the same streamed, for any provider events', { fast: 30, slow: 150 }, (numRuns) => {
    const words = fc.string({ minLength: 1, maxLength: 5, unit: 'grapheme' })
    const event = fc.oneof(
      words.map((text): ProviderEvent => ({ text })),
      words.map((refusal): ProviderEvent => ({ refusal })),
      words.map((text): ProviderEvent => ({ reasoning: { text } })),
      words.map((signature): ProviderEvent => ({ reasoning: { signature } })),
      fc.constant<ProviderEvent>({ opaque: { body: { a: 1 } } }),
      words.map((query): ProviderEvent => ({ search: { id: query, query, status: 'completed' } })),
      words.map((name): ProviderEvent => ({ tool: { name, id: name, arguments: '{"a":1}', signature: 's' } })),
      words.map((name): ProviderEvent => ({ tool: { name, kind: 'custom', arguments: name } })),
      words.map((data): ProviderEvent => ({ media: { type: 'image', data } })),
    )
    const finish = fc.constantFrom('stop', 'length', 'content_filter', 'refusal' as const)
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), finish, (inputEvents, why) => {
        const { whole, last } = answer([...inputEvents, { finish: why as 'stop' }])
        expect(last.status).toBe(whole.status)
        expect(contentsOf(last)).toEqual(contentsOf(whole))
      }),
      { numRuns },
    )
  })
})

/** Items by content, without positions: free text is done at the end, with its signature. */
function contentsOf({ output }: Loose): string[] {
  return output.map(({ id: _id, ...item }: Loose) => JSON.stringify(item)).toSorted()
}
