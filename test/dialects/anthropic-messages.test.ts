import { describe, expect, test } from 'vitest'
import type { ErrorCode } from '../../src/core/errors.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { refusal } from '../../src/upstream/failure.ts'
import { type Recording, recordedEvents, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { benchDialect, type Frame } from './replay.ts'

const bench = benchDialect('anthropic-messages')
// biome-ignore lint/suspicious/noExplicitAny: the reader walks over recorded JSON of whatever shape.
type Loose = any

const answered = recordings('anthropic-messages').filter(({ response }) => response.status === 200)

describe.skipIf(recordingsMissing)('recorded answers', () => {
  test.each(answered.map((recording) => [recording.case, recording] as const))('%s', async (_, recording) => {
    const message = assembled(recording)
    const expected = readMessage(message)
    const streamed = recording.response.sse !== undefined
    const frames = streamed ? recordedEvents(recording) : framesOf(message)
    const fromStream = await bench.stream(frames)
    const fromWhole = await bench.reply(message)
    expect(fromStream.complete).toBe(true)
    expect(viewOf(fromWhole.reply)).toEqual(expected)
    expect(viewOf(fromStream.reply)).toEqual(expected)
    expect(kindsOf(fromStream.reply)).toEqual(kindsOf(fromWhole.reply))
  })
})

describe('streams', () => {
  const begun = {
    type: 'message_start',
    message: { id: 'm', model: 'c', usage: { input_tokens: 5, output_tokens: 1 } },
  }
  const said = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a' } }
  const stream = (...frames: JsonObject[]) => bench.stream([begun, ...frames].map((data) => ({ data })))

  test('that report an error tell its type, its status and its text', async () => {
    const { error, complete } = await stream(said, {
      type: 'error',
      error: { type: 'overloaded_error', message: 'Overloaded' },
    })
    expect(error).toEqual({ status: 529, code: 'overloaded_error', message: 'Overloaded' })
    expect(complete).toBe(false)
  })

  test('that end without a reason are cut', async () => {
    expect((await stream(said, { type: 'message_stop' })).complete).toBe(false)
  })

  test('pass over pings and what nobody here knows', async () => {
    const { reply } = await stream(
      { type: 'ping' },
      { type: 'something_new', index: 3 },
      { type: 'content_block_delta', index: 0, delta: { type: 'something_newer', text: 'x' } },
      said,
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: {} },
    )
    expect(reply).toMatchObject({ parts: [{ type: 'text', text: 'a' }], finish: 'stop' })
  })

  test('keep the earlier count where the last one is null', async () => {
    const usage = { input_tokens: null, output_tokens: 9, output_tokens_details: null, server_tool_use: null }
    const { reply } = await stream(said, { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage })
    expect(reply.usage).toEqual({ input: 5, output: 9 })
  })

  test('and whole replies name every reason to stop, and take a new one for an ordinary stop', async () => {
    const reasons = ['end_turn', 'max_tokens', 'model_context_window_exceeded', 'pause_turn', 'refusal', 'novelty']
    for (const [index, finish] of ['stop', 'length', 'length', 'pause', 'refusal', 'stop'].entries()) {
      const stop_reason = reasons[index] as string
      const { reply } = await stream({ type: 'message_delta', delta: { stop_reason }, usage: {} })
      expect(reply).toMatchObject({ finish, finish_raw: stop_reason })
      const whole = await bench.reply({ id: 'm', content: [], stop_reason, usage: {} })
      expect(whole.reply).toMatchObject({ finish, finish_raw: stop_reason })
    }
  })
})

test('cache writes that the last event only sums up keep the lifetimes that the first one told', async () => {
  const cache_creation = { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 500 }
  const { reply } = await bench.stream([
    { data: { type: 'message_start', message: { id: 'm', usage: { input_tokens: 1, cache_creation } } } },
    {
      data: { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { cache_creation_input_tokens: 650 } },
    },
  ])
  expect(reply.usage).toEqual({ input: 1, cache_write_5m: 150, cache_write_1h: 500 })
})

test('a search that failed says so and keeps the error', async () => {
  const results = { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' }
  const content = [
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
    { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: results },
  ]
  const { reply } = await bench.reply({ id: 'm', content, stop_reason: 'end_turn', usage: {} })
  expect(reply.parts).toEqual([
    { type: 'search', by: 'maker', id: 'srvtoolu_1', query: 'q', status: 'failed', results },
  ])
})

describe.skipIf(recordingsMissing)('recorded errors', () => {
  const refused = recordings('anthropic-messages').filter(({ response }) => response.status !== 200)
  const meanings: Record<string, ErrorCode> = {
    'prompt is too long': 'context_length',
    'does not support effort level': 'invalid_request',
    'does not match the expected shape': 'invalid_request',
    'invalid x-api-key': 'provider_refused',
    'model: claude-sonet-4-5': 'invalid_request',
  }

  test.each(refused.map((recording) => [recording.case, recording.response] as const))('%s', (_, { status, body }) => {
    const provider = { slug: 'p', auth: { scheme: 'none' }, errors: bench.errors } as unknown as Provider
    const error = refusal(provider, { status, headers: {}, text: JSON.stringify(body) })
    const expected = Object.entries(meanings).find(([piece]) => error.message.includes(piece))
    expect([error.code, error.providerCode]).toEqual([expected?.[1], body.error.type])
  })
})

/** What a reply says, without the form in which the neutral reply says it. */
function viewOf({ parts, usage, ...facts }: Reply) {
  const of = <T extends Part['type']>(type: T) => parts.filter((part): part is Part & { type: T } => part.type === type)
  return {
    id: facts.id,
    model: facts.model,
    finish: facts.finish,
    raw: facts.finish_raw,
    stop: facts.stop_sequence,
    text: of('text').map(({ text, citations = [] }) => ({ text, citations })),
    calls: of('tool_call').map((call) => ({ id: call.id, name: call.name, input: JSON.parse(call.arguments) })),
    reasoning: of('reasoning').map(({ text, signature, encrypted }) => ({ text, signature, encrypted })),
    searches: of('search').map(({ id, query, status, results }) => ({ id, query, status, results })),
    opaque: of('opaque').map(({ body }) => body),
    refusal: of('refusal').map(({ text }) => text),
    usage: Object.fromEntries(Object.entries(usage).filter(([, count]) => count !== 0)),
  }
}

function kindsOf({ parts }: Reply): string[] {
  return parts.map(({ type }) => type)
}

/** The same facts read straight from the provider's message, without any mapping. */
function readMessage(message: Loose): ReturnType<typeof viewOf> {
  const blocks: Loose[] = message.content
  const of = (...types: string[]) => blocks.filter(({ type }) => types.includes(type))
  const finishes: Record<string, Reply['finish']> = {
    end_turn: 'stop',
    stop_sequence: 'stop',
    tool_use: 'tool_calls',
    max_tokens: 'length',
    refusal: 'refusal',
    pause_turn: 'pause',
  }
  const results = new Map(of('web_search_tool_result').map((block) => [block.tool_use_id, block.content]))
  const searching = (block: Loose) => block.type === 'server_tool_use' && block.name === 'web_search'
  return {
    id: message.id,
    model: message.model,
    finish: finishes[message.stop_reason] as Reply['finish'],
    raw: message.stop_reason,
    stop: message.stop_sequence ?? undefined,
    text: of('text')
      .filter(({ text }) => text !== '')
      .map(({ text, citations }) => ({ text, citations: (citations ?? []).map(readCitation) })),
    calls: of('tool_use').map(({ id, name, input }) => ({ id, name, input })),
    reasoning: of('thinking', 'redacted_thinking').map((block) => ({
      text: block.thinking || undefined,
      signature: block.signature,
      encrypted: block.data,
    })),
    searches: blocks.filter(searching).map(({ id, input }) => ({
      id,
      query: input.query,
      status: results.has(id) ? 'completed' : undefined,
      results: results.get(id),
    })),
    opaque: blocks.filter(
      (block) =>
        !searching(block) &&
        !['text', 'tool_use', 'thinking', 'redacted_thinking', 'web_search_tool_result'].includes(block.type),
    ),
    refusal: message.stop_details?.explanation ? [message.stop_details.explanation] : [],
    usage: readUsage(message.usage),
  }
}

function readCitation(citation: Loose) {
  const { url = citation.source, title, document_title, cited_text } = citation
  return { ...(url && { url }), ...((title ?? document_title) && { title: title ?? document_title }), cited_text }
}

function readUsage(usage: Loose) {
  const beside = (usage.iterations ?? []).filter(({ type }: Loose) => type === 'compaction')
  const all = (name: string) => beside.reduce((sum: number, pass: Loose) => sum + pass[name], usage[name] ?? 0)
  const thinking = usage.output_tokens_details?.thinking_tokens ?? 0
  const written1h = usage.cache_creation?.ephemeral_1h_input_tokens ?? 0
  const counts = {
    input: all('input_tokens'),
    cache_read: all('cache_read_input_tokens'),
    cache_write_5m: all('cache_creation_input_tokens') - written1h,
    cache_write_1h: written1h,
    output: all('output_tokens') - thinking,
    reasoning: thinking,
    searches: usage.server_tool_use?.web_search_requests ?? 0,
  }
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0))
}

/** The whole message: as it came, or put together from its stream as the provider documents it. */
function assembled(recording: Recording): Loose {
  if (recording.response.body) return recording.response.body
  let message: Loose
  const inputs = new Map<number, string>()
  for (const { data } of recordedEvents(recording)) {
    if (data === '[DONE]') continue
    const event = JSON.parse(data)
    if (event.type === 'message_start') message = structuredClone(event.message)
    else if (event.type === 'content_block_start') message.content[event.index] = structuredClone(event.content_block)
    else if (event.type === 'content_block_delta') grow(message.content[event.index], event, inputs)
    else if (event.type === 'message_delta') {
      Object.assign(message, event.delta)
      addUsage(message.usage, event.usage)
    }
  }
  for (const [index, text] of inputs) message.content[index].input = JSON.parse(text || '{}')
  return message
}

/** Later counts replace earlier ones; a sum of cache writes that grew without saying for how long grew at 5 minutes. */
function addUsage(usage: Loose, later: Loose): void {
  for (const [name, count] of Object.entries(later)) if (count !== null) usage[name] = count
  const { cache_creation_input_tokens: sum, cache_creation: written } = usage
  if (written && !later.cache_creation) written.ephemeral_5m_input_tokens = sum - written.ephemeral_1h_input_tokens
}

function grow(block: Loose, { index, delta }: Loose, inputs: Map<number, string>): void {
  if (delta.type === 'text_delta') block.text += delta.text
  else if (delta.type === 'thinking_delta') block.thinking += delta.thinking
  else if (delta.type === 'signature_delta') block.signature = delta.signature
  else if (delta.type === 'citations_delta') block.citations = [...(block.citations ?? []), delta.citation]
  else if (delta.type === 'compaction_delta') block.content = delta.content
  else if (delta.type === 'input_json_delta') inputs.set(index, (inputs.get(index) ?? '') + delta.partial_json)
  else throw new Error(`the test's reader does not know ${delta.type}`)
}

/** A stream as the provider would have sent this message. */
function framesOf(message: Loose): Frame[] {
  const { usage, stop_reason, stop_sequence, stop_details, ...head } = message
  const { output_tokens, ...counted } = usage
  const frames: Loose[] = [
    { type: 'message_start', message: { ...head, content: [], usage: { ...counted, output_tokens: 1 } } },
  ]
  message.content.forEach((block: Loose, index: number) => {
    frames.push({ type: 'content_block_start', index, content_block: { ...block, ...emptied(block) } })
    for (const delta of deltasOf(block)) frames.push({ type: 'content_block_delta', index, delta })
    frames.push({ type: 'content_block_stop', index })
  })
  const { cache_creation, ...told } = usage
  frames.push({ type: 'message_delta', delta: { stop_reason, stop_sequence, stop_details }, usage: told })
  frames.push({ type: 'message_stop' })
  return frames.map((data) => ({ event: data.type, data }))
}

function emptied(block: Loose): Loose {
  if (block.type === 'text') return { text: '', ...(block.citations && { citations: [] }) }
  if (block.type === 'thinking') return { thinking: '', signature: '' }
  if (block.type === 'compaction') return { content: null }
  return block.input ? { input: {} } : {}
}

function deltasOf(block: Loose): Loose[] {
  if (block.type === 'text')
    return [
      ...(block.citations ?? []).map((citation: Loose) => ({ type: 'citations_delta', citation })),
      { type: 'text_delta', text: block.text.slice(0, 3) },
      { type: 'text_delta', text: block.text.slice(3) },
    ]
  if (block.type === 'thinking')
    return [
      { type: 'thinking_delta', thinking: block.thinking },
      { type: 'signature_delta', signature: block.signature },
    ]
  if (block.type === 'compaction') return [{ type: 'compaction_delta', content: block.content }]
  if (!block.input) return []
  const input = JSON.stringify(block.input)
  return ['', ...(input === '{}' ? [] : [input.slice(0, 5), input.slice(5)])].map((partial_json) => ({
    type: 'input_json_delta',
    partial_json,
  }))
}
