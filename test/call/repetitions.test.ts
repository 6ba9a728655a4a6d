import fc from 'fast-check'
import { expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { translationOf } from '../../src/call/attempt/choose-translation.ts'
import type { TargetedCall } from '../../src/call/attempt/types.ts'
import type { RouterError } from '../../src/core/errors.ts'
import { Fold } from '../../src/core/fold.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { ChatEndpoint, Provider } from '../../src/manifest/provider.ts'
import { requestAnswer } from '../../src/upstream/provider-answer.ts'
import { benchDialect, foldFacts } from '../dialects/replay.ts'
import { testEach } from '../helpers/slow.ts'

type Event = JsonObject & { type?: string }

/** A provider of a dialect that counts how often its events are mapped; it repeats texts, or maps every event. */
function providerOf(dialect: string, repeats: boolean): { provider: Provider; mapped(): number } {
  const { provider, chat: endpoint } = benchDialect(dialect)
  let count = 0
  const events: ChatEndpoint['events'] = new Map(
    [...endpoint.events].map(([name, mapping]) => {
      const run: typeof mapping.run = (...args) => {
        count++
        return mapping.run(...args)
      }
      return [name, { ...mapping, run }]
    }),
  )
  const { text, ...stream } = endpoint.stream
  if (!text) throw new Error(`${dialect} does not say where texts stand`)
  const chatEndpoint = { ...endpoint, events, stream: repeats ? endpoint.stream : stream }
  const made = { ...provider, slug: 'maker', baseUrl: 'http://maker', auth: { scheme: 'none' as const }, headers: {} }
  return { provider: { ...made, chat: chatEndpoint }, mapped: () => count }
}

/** What a client reads of a stream of these events, and its reply; `cuts` are the pieces in which they arrive. */
async function answered(clientApi: ClientApi, provider: Provider, events: readonly Event[], perPiece: number) {
  const frames = events.map(
    (event) => `${event.type ? `event: ${event.type}\n` : ''}data: ${JSON.stringify(event)}\n\n`,
  )
  async function* bytes() {
    for (let at = 0; at < frames.length; at += perPiece) yield Buffer.from(frames.slice(at, at + perPiece).join(''))
  }
  const target = { provider, model: 'm' }
  const { signal } = new AbortController()
  const response = { status: 200, headers: {}, bytes: bytes(), progressed() {}, discard() {} }
  const client = { send: async () => response, close: async () => {} }
  const sent = { body: {}, stream: true, signal, forwardedHeaders: [] }
  const answer = await requestAnswer(target, sent, client).catch((thrown: RouterError) => thrown.code)
  // Streams without any content are no answer.
  if (typeof answer === 'string') return { written: [], reply: answer }
  if (answer.kind !== 'stream') throw new Error('expected a stream')
  const body = { model: 'maker/m', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }], stream: true }
  const request = clientApi.read(body)
  const call = { id: 'c', clientApi }
  const turn = { withPrevious: (payload: JsonObject) => payload }
  const targeted = { call, request, turn, holds() {} } as unknown as TargetedCall
  const writer = translationOf(target, targeted).stream('maker/m')
  const fold = new Fold(foldFacts)
  const written: string[] = []
  for await (const batch of answer.batches) for (const frame of batch) written.push(writer.translate(frame, fold))
  return { written, reply: fold.reply() }
}

const text = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom('The', ' quick', ' brown', 'fox', ' ', ',', ':', 'content', 'm', '0', 'maker/m'),
  },
  fc.string({ unit: 'grapheme', maxLength: 6 }),
  fc.constantFrom('', '"', '\\', 'a"b', '\n', '\u0000', '\u2028', 'żółć', '🐧', '","x":"'),
)

const head = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm' }
const choice = (delta: JsonObject, more: JsonObject = {}) => ({ index: 0, delta, finish_reason: null, ...more })
const chunks: fc.Arbitrary<Event> = fc.oneof(
  { weight: 6, arbitrary: text.map((content) => ({ ...head, choices: [choice({ content })] })) },
  text.map((content) => ({ ...head, choices: [choice({ content }, { logprobs: null })], usage: null })),
  text.map((content) => ({ ...head, choices: [choice({ role: 'assistant', content })] })),
  text.map((content) => ({ ...head, choices: [{ index: 0, delta: { content } }] })),
  text.map((content) => ({ ...head, choices: [choice({ content }, { index: 1 })] })),
  text.map((content) => ({ ...head, choices: [choice({ content })], obfuscation: content })),
  text.map((content) => ({ ...head, choices: [choice({ content, reasoning_content: 'Hm' })] })),
  text.map((content) => ({ ...head, choices: [choice({ content }, { logprobs: { content: [{ token: content }] } })] })),
  fc.constant<Event>({ ...head, choices: [choice({}, { finish_reason: 'stop' })] }),
)

const index = fc.constantFrom(0, 1)
const begun = { type: 'message_start', message: { id: 'msg_1', model: 'm', role: 'assistant', content: [], usage: {} } }
const blockEvents: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(index, text)
      .map(([at, said]) => ({ type: 'content_block_delta', index: at, delta: { type: 'text_delta', text: said } })),
  },
  text.map((thinking) => ({ type: 'content_block_delta', index: 2, delta: { type: 'thinking_delta', thinking } })),
  text.map((said) => ({ type: 'content_block_delta', index: 0, delta: { text: said, type: 'text_delta' } })),
  fc.constant({ type: 'ping' }),
)

const streams: [name: string, dialect: string, clientApi: ClientApi, stream: fc.Arbitrary<Event[]>][] = [
  ['chat, edited', 'openai-chat', chat, fc.array(chunks, { minLength: 1 })],
  ['chat, for a client of another API', 'openai-chat', messages, fc.array(chunks, { minLength: 1 })],
  ['messages, edited', 'anthropic-messages', messages, fc.array(blockEvents).map((events) => [begun, ...events])],
  [
    'messages, for a client of another API',
    'anthropic-messages',
    chat,
    fc.array(blockEvents).map((all) => [begun, ...all]),
  ],
]

testEach(streams, { slowIf: (_, index) => index % 2 !== 0 })(
  '%s: a stream whose texts repeat is read and written as one whose events are all mapped',
  async (_, dialect, clientApi, stream) => {
    const [repeating, mapping] = [providerOf(dialect, true), providerOf(dialect, false)]
    const property = fc.asyncProperty(stream, fc.integer({ min: 1, max: 9 }), async (events, perPiece) => {
      const expected = await answered(clientApi, mapping.provider, events, perPiece)
      expect(await answered(clientApi, repeating.provider, events, perPiece)).toEqual(expected)
    })
    await fc.assert(property)
  },
)

test('events that differ in their text alone are mapped once', async () => {
  const { provider, mapped } = providerOf('openai-chat', true)
  const events = Array.from({ length: 100 }, (_, at) => ({ ...head, choices: [choice({ content: `word ${at}` })] }))
  const { reply } = await answered(chat, provider, events, 10)
  expect(mapped()).toBe(1)
  const text = events.map((_, at) => `word ${at}`).join('')
  expect(reply).toMatchObject({ parts: [{ type: 'text', text }] })
})

test('a stream of many texts is read so from its first to its last', async () => {
  const { provider, mapped } = providerOf('anthropic-messages', true)
  const blocks = Array.from({ length: 50 }, (_, index) =>
    Array.from({ length: 20 }, (_, word) => ({
      type: 'content_block_delta',
      index,
      delta: { type: 'text_delta', text: `word ${word} ` },
    })),
  )
  const { reply } = await answered(messages, provider, [begun, ...blocks.flat()], 7)
  // The beginning, and the first piece of each text.
  expect(mapped()).toBe(1 + blocks.length)
  expect(reply).toMatchObject({ parts: Array(blocks.length).fill({ type: 'text' }) })
})

test('events that never repeat are not looked at for long', async () => {
  const { provider, mapped } = providerOf('openai-chat', true)
  const events = Array.from({ length: 100 }, (_, at) => ({
    ...head,
    created: at,
    choices: [choice({ content: 'word' })],
  }))
  await answered(chat, provider, [...events, ...events, ...events.slice(-1), ...events.slice(-1)], 10)
  expect(mapped()).toBe(202)
})
