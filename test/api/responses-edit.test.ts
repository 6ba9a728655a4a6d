import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { responses } from '../../src/api/responses/api.ts'
import { RouterError } from '../../src/core/errors.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { isStream, eventsIn as recordedIn } from '../dialects/openai-responses-reader.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { eventFaults, responseFaults } from './open-responses-schema.ts'
import { eventsIn, follow } from './responses-order.ts'

const model = 'maker/model'
const id = '0198'
const body: JsonObject = {
  model: 'maker/model',
  input: [{ role: 'user', content: 'Hello', phase: 'x' }],
  tools: [{ type: 'function', name: 'f' }, { type: 'web_search', brand_new: 1 }, { type: 'brand_new' }],
  text: { verbosity: 'low', format: { type: 'text' } },
  reasoning: { effort: 'low', summary: 'auto' },
  temperature: 1,
  brand_new: { a: 1 },
}
const request = responses.read(body)
const facts = { model, usage: { input: 1 }, costUsd: 0.25, request, id }
const edit = (dropped: string[], stream = false) => responses.editRequest(body, { model: 'gpt', stream, dropped })

describe('a body for a provider of this format', () => {
  it('is the client’s, known fields or not, with the provider’s model id', () => {
    const before = structuredClone(body)
    expect(edit([])).toEqual({ ...body, model: 'gpt' })
    expect(edit([], true)).toEqual({ ...body, model: 'gpt', stream: true })
    expect(body).toEqual(before)
  })

  it('drops unsupported fields and members', () => {
    const before = structuredClone(body)
    const dropped = ['temperature', 'verbosity', 'web_search', 'reasoning.summary', 'cache.options', 'parts.image']
    const { temperature: _gone, ...rest } = body
    expect(edit(dropped)).toEqual({
      ...rest,
      model: 'gpt',
      tools: [{ type: 'function', name: 'f' }, { type: 'brand_new' }],
      text: { format: { type: 'text' } },
      reasoning: { effort: 'low' },
    })
    expect(body).toEqual(before)
  })
})

/** A response with the members that its provider left out. */
function complete(given: JsonObject): JsonObject {
  const defaults = responses.editReply({ created_at: 0 }, { model, usage: {}, request })
  return { ...defaults, completed_at: given.status === 'completed' ? expect.any(Number) : null, ...given }
}

describe('a reply of a provider of this format', () => {
  it('goes on as it came, complete, with the model that served and the cost', () => {
    const output = [{ type: 'brand_new' }]
    const reply = { id: 'resp_1', created_at: 1, status: 'completed', output, usage: { input_tokens: 1, more: {} } }
    expect(responses.editReply({ ...reply, model: 'gpt' }, facts)).toEqual({
      ...complete(reply),
      model,
      usage: { input_tokens: 1, more: {}, cost: 0.25 },
    })
    const { costUsd: _none, ...unpriced } = facts
    expect(responses.editReply(reply, unpriced)).toEqual({ ...complete(reply), model })
  })

  it('has what the provider left out, from the request where that says it', () => {
    const asked = responses.read({ model, input: 'Hello', temperature: 0.5, tools: [{ type: 'function', name: 'f' }] })
    const bare = { id: 'resp_1', created_at: 1, status: 'completed', output: [] }
    const response = responses.editReply(bare, { ...facts, request: asked })
    expect(responseFaults(response)).toEqual([])
    expect(response).toMatchObject({
      ...bare,
      temperature: 0.5,
      tools: [{ name: 'f' }],
      presence_penalty: 0,
      usage: null,
    })
    expect(responses.editReply({ ...bare, presence_penalty: 0.5 }, facts).presence_penalty).toBe(0.5)
    const writer = responses.openStream(asked, { model, id })
    const begun = { id: 'resp_1', created_at: 1, status: 'in_progress', output: [] }
    const [created] = eventsIn(writer.edit({ type: 'response.created', response: begun }))
    expect(eventFaults(created)).toEqual([])
    expect(created.response).toMatchObject({ ...begun, temperature: 0.5, completed_at: null })
    expect(writer.reply?.({ ...facts, request: asked })).toMatchObject({
      temperature: 0.5,
      completed_at: expect.any(Number),
    })
  })

  const streamed = recordings('openai-responses').filter(
    (recording) => isStream(recording) && recording.response.status === 200 && !recording.case.includes('error-mid'),
  )

  it.skipIf(recordingsMissing).each(streamed)('$case: every event as it came, but for model and cost', (recording) => {
    const frames = recordedIn(recording) as JsonObject[]
    const writer = responses.openStream(request, { model, id })
    const events = eventsIn(frames.map((frame) => writer.edit(frame)).join('') + writer.end(facts))
    const expected = frames.map((recorded, index) => {
      // One of them has no numbers.
      const frame: JsonObject = { sequence_number: index, ...recorded }
      const response = frame.response as JsonObject | undefined
      if (!response) return frame
      const usage = response.usage as JsonObject | null
      const counted = index === frames.length - 1 && usage ? { usage: { ...usage, cost: 0.25 } } : {}
      return { ...frame, response: { ...complete(response), model, ...counted } }
    })
    expect(events).toEqual(expected)
    expect(writer.reply?.(facts)).toEqual(events.at(-1).response)
  })

  it('is stored as the last event says it, even if a second passes in between', () => {
    vi.useFakeTimers({ now: 5_000 })
    onTestFinished(() => void vi.useRealTimers())
    const writer = responses.openStream(request, { model, id })
    writer.edit({ type: 'response.created', response: { id: 'resp_1', status: 'in_progress', output: [] } })
    const stored = writer.reply?.(facts)
    vi.setSystemTime(7_000)
    expect(eventsIn(writer.end(facts)).at(-1).response).toEqual(stored)
    expect(stored).toMatchObject({ status: 'completed', completed_at: 5 })
  })

  it('is told in pieces where its provider has it in the last event only', () => {
    const text = { type: 'output_text', text: 'It rains.', logprobs: [] }
    const annotations = [{ type: 'url_citation', url: 'https://a.at', title: 'A', start_index: 0, end_index: 9 }]
    const output = [
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'rain' } },
      { type: 'reasoning', id: 'rs_1', summary: [] },
      {
        ...{ type: 'message', id: 'msg_1', status: 'completed', role: 'assistant' },
        content: [
          { ...text, annotations },
          { type: 'refusal', refusal: 'No more.' },
        ],
      },
      { type: 'function_call', id: 'fc_1', call_id: 'a', name: 'f', arguments: '{"x":1}', status: 'completed' },
      { type: 'custom_tool_call', id: 'ctc_1', call_id: 'b', name: 'g', input: 'ls', status: 'completed' },
    ]
    const begun = { id: 'resp_1', status: 'in_progress', created_at: 1, output: [], error: null }
    const ended = { ...begun, status: 'completed', output, usage: { input_tokens: 1 } }
    const frames: JsonObject[] = [
      { type: 'response.created', sequence_number: 0, response: begun },
      { type: 'response.in_progress', sequence_number: 1, response: begun },
      { type: 'response.completed', sequence_number: 2, response: ended },
    ]
    const writer = responses.openStream(request, { model, id })
    const events = eventsIn(frames.map((frame) => writer.edit(frame)).join('') + writer.end(facts))
    expect(follow(events)).toMatchObject({ id: 'resp_1', output })
    const deltas = events.filter(({ type }) => type.endsWith('.delta')).map(({ delta }) => delta)
    expect(deltas).toEqual(['It rains.', 'No more.', '{"x":1}', 'ls'])
  })

  it('is told step by step where the last event has thousands of items', () => {
    const output = Array.from({ length: 3_000 }, (_, index) => ({
      ...{ type: 'function_call', id: `fc_${index}`, call_id: `c${index}`, name: 'f' },
      ...{ arguments: '{}', status: 'completed' },
    }))
    const writer = responses.openStream(request, { model, id })
    const response = { id: 'resp_1', status: 'in_progress', created_at: 1, output: [], error: null }
    const texts = ['response.created', 'response.in_progress'].map((type) => writer.edit({ type, response }))
    texts.push(writer.edit({ type: 'response.completed', response: { ...response, status: 'completed', output } }))
    for (let more = writer.more?.(); more; more = writer.more?.()) texts.push(more)
    expect(texts.length).toBeGreaterThan(20)
    for (const text of texts) expect(text.length).toBeLessThan(70_000)
    const events = eventsIn(texts.join('') + writer.end(facts))
    expect(follow(events)).toMatchObject({ id: 'resp_1', output })
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual([...events.keys()])
  })

  it('that breaks off ends with `response.failed`, under its own id, with the next number', () => {
    const writer = responses.openStream(request, { model, id })
    const response = { id: 'resp_native', model: 'gpt', status: 'in_progress', output: [], created_at: 1 }
    const begun =
      writer.edit({ type: 'response.created', sequence_number: 0, response }) +
      writer.edit({ type: 'response.in_progress', sequence_number: 1, response }) +
      writer.edit({ type: 'response.brand_new', sequence_number: 2, what: 'ever' })
    const error = new RouterError('quota_exhausted', 'You have no credit left.', {
      provider: 'maker',
      providerCode: 'insufficient_quota',
    })
    const events = eventsIn(begun + writer.fail(error))
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual([0, 1, 2, 3])
    expect(events.at(-1)).toEqual({
      type: 'response.failed',
      sequence_number: 3,
      response: {
        ...complete(response),
        model,
        status: 'failed',
        error: {
          code: 'insufficient_quota',
          message: 'You have no credit left.',
          doc_url: '/docs/errors.html#quota_exhausted',
        },
      },
    })
  })

  it('gets numbers where the provider sends none', () => {
    const writer = responses.openStream(request, { model, id })
    const response = { id: 'resp_1', status: 'completed', output: [], usage: { input_tokens: 1 } }
    const text =
      writer.edit({ type: 'response.created', response }) +
      writer.edit({ type: 'response.output_text.delta', delta: 'a' }) +
      writer.edit({ type: 'response.completed', response }) +
      writer.end(facts)
    expect(eventsIn(text).map(({ sequence_number }) => sequence_number)).toEqual([0, 1, 2])
  })
})

describe('codes of failed responses', () => {
  it.each([
    ['rate_limited', undefined, 'rate_limit_exceeded'],
    ['context_length', undefined, 'context_length_exceeded'],
    ['content_blocked', undefined, 'invalid_prompt'],
    ['provider_cut', undefined, 'server_error'],
    ['provider_failed', 'overloaded_error', 'server_error'],
    ['invalid_request', 'invalid_image_url', 'invalid_image_url'],
  ] as const)('%s %s is %s', (code, providerCode, expected) => {
    const writer = responses.openStream(request, { model, id })
    const error = new RouterError(code, 'no', { ...(providerCode && { providerCode }) })
    const events = eventsIn(writer.fail(error))
    expect(events.map(({ type }) => type)).toEqual(['response.created', 'response.in_progress', 'response.failed'])
    expect(events.at(-1).response.error).toEqual({
      code: expected,
      message: 'no',
      doc_url: `/docs/errors.html#${code}`,
    })
  })
})
