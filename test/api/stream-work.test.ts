import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { StreamWriter } from '../../src/api/client-api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import type { ProviderEvent } from '../../src/core/events.ts'
import { Fold } from '../../src/core/fold.ts'
import { slow, testEach } from '../helpers/slow.ts'
import { expectLinear } from '../helpers/time.ts'

/** The events of the step `i` of `n` of a stream, by what it has many of. */
const shapes: { [shape: string]: (i: number, n: number) => ProviderEvent[] } = {
  calls: (i) => [{ tool: { id: `c${i}`, name: 'f', arguments: '{}' }, at: i }],
  'calls without a key': (i) => [{ tool: { id: `c${i}`, name: 'f', arguments: '{}' } }],
  'calls that stay open': (i) => [{ tool: { id: `c${i}`, name: 'f', arguments: '{"a":' }, at: i }],
  'interleaved calls': (i, n) => {
    const at = i % (n >> 1)
    return [{ tool: { id: `c${at}`, name: 'f', arguments: i < n >> 1 ? '{"a":' : '1}' }, at }]
  },
  'fragments of two calls': (i) => [{ tool: { id: `c${i % 2}`, name: 'f', arguments: '}' }, at: i % 2 }],
  texts: (i) => [{ text: 'x', at: i }],
  'interleaved texts': (i) => [{ text: 'x', at: i % 50 }],
  refusals: (i) => [{ refusal: 'x', at: i }],
  reasoning: (i) => [{ reasoning: { text: 'x', summary: 'y', signature: `s${i}` }, at: i }],
  'fragments of reasoning': () => [{ reasoning: { text: 'x' } }],
  quotes: (i) => [{ text: 'word ' }, { citation: { url: `https://a.test/${i}`, cited_text: 'word' } }],
  'sources of the whole text': (i) => [{ text: 'word ' }, { citation: { url: `https://a.test/${i}` } }],
  'sources after calls': (i, n) =>
    i === 0
      ? [{ text: 'word' }]
      : i < n >> 1
        ? [{ tool: { id: `c${i}`, name: 'f', arguments: '{}' }, at: i }]
        : [{ citation: { url: `https://a.test/${i}` } }],
  logprobs: () => [{ text: 'w', logprobs: { content: [{ token: 'w', logprob: -1, bytes: null, top_logprobs: [] }] } }],
  searches: (i) => [{ search: { id: `s${i}`, query: 'q' }, at: i }],
  'opaque parts': (i) => [{ opaque: { body: { a: i } }, at: i }],
  images: () => [{ media: { type: 'image', data: 'aGk=', media_type: 'image/png' } }],
  extensions: (i) => [{ text: 'x', extensions: { [`e${i}`]: 1 } }],
  usage: (i) => [{ text: 'x', usage: { output: i } }],
}

const turns = [{ role: 'user', content: 'Hi' }]
const bodies = {
  chat: { api: chat, body: { messages: turns } },
  messages: { api: messages, body: { max_tokens: 9, messages: turns } },
  responses: { api: responses, body: { input: turns } },
}

/** Writes all texts of a stream of so many steps. */
function write(shape: string, writer: StreamWriter, steps: number): void {
  const fold = new Fold({ signer: 'm', newId: () => 'id', now: () => 1 })
  for (let i = 0; i < steps; i++) for (const event of shapes[shape]?.(i, steps) ?? []) writer.events(fold.take(event))
  fold.take({ finish: 'stop' })
  writer.events(fold.end())
  writer.end({ model: 'a/m', usage: fold.usage, id: 'x' })
  expect(fold.reply().finish).not.toBe('error')
}

describe.each(Object.entries(bodies))('a stream of %s', (_, { api, body }) => {
  const open = () => api.openStream(api.read({ model: 'a/m', stream: true, ...body }), { model: 'a/m', id: 'x' })

  // Eight times the events may not cost the square of it, 64 times as much.
  testEach(Object.keys(shapes), { slowIf: (shape) => shape !== 'interleaved calls' })(
    'costs the same for each event, however many %s it has',
    (shape) => {
      expectLinear((steps) => write(shape, open(), steps), { small: 1_000, large: 8_000, slack: 4, floorMs: 250 })
    },
  )

  test('of 50,000 calls is written whole', slow, () => {
    const writer = open()
    const fold = new Fold({ signer: 'm', newId: () => 'id', now: () => 1 })
    let text = ''
    const first: ProviderEvent = { tool: { id: 'first', name: 'f', arguments: '{"a":' }, at: -1 }
    text += writer.events(fold.take(first))
    for (let at = 0; at < 50_000; at++) {
      text += writer.events(fold.take({ tool: { id: `c${at}`, name: 'f', arguments: '{}' }, at }))
    }
    // All others have waited for the first one where only one may be written at a time.
    text += writer.events(fold.take({ tool: { arguments: '1}' }, at: -1 }))
    fold.take({ finish: 'tool_calls' })
    text += writer.events(fold.end())
    expect(text.match(/c49999"/g)?.length).toBeGreaterThan(0)
    expect(fold.reply().parts).toHaveLength(50_001)
  })
})
