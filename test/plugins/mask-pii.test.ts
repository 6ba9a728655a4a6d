import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mapRequest } from '../../plugins/lib/texts.ts'
import maskPii from '../../plugins/mask-pii/index.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { PluginRequest, StreamedEvent } from '../../src/plugin/contract.ts'
import { openPlugin } from '../../src/plugin/test-kit.ts'

type Chat = Extract<PluginRequest, { chat: unknown }>['chat']
const said = 'Write to ann@corp.example and bob@corp.example, or call +49 30 1234567.'
const user = (text: string): Chat['messages'][number] => ({ role: 'user', parts: [{ type: 'text', text }] })
const chatOf = (chat: Partial<Chat>): PluginRequest => ({
  operation: 'chat',
  chat: { model: 'acme/model', messages: [user(said)], ...chat },
})

describe('a request', () => {
  test('has placeholders in all its texts, the same for the same value', async () => {
    await using tested = await openPlugin(maskPii)
    const request = chatOf({
      system: [{ type: 'text', text: 'The boss is ann@corp.example.' }],
      messages: [
        user(said),
        {
          role: 'assistant',
          parts: [
            { type: 'reasoning', text: 'bob@corp.example?' },
            {
              type: 'tool_call',
              id: '1',
              name: 'pay',
              arguments: '{"to": "bob@corp.example", "card": 4111111111111111}',
            },
          ],
        },
        {
          role: 'user',
          parts: [{ type: 'tool_result', id: '1', parts: [{ type: 'text', text: 'paid ann@corp.example' }] }],
        },
      ],
    })
    const { forwarded } = await tested.call({ request })
    const text = JSON.stringify(forwarded)
    expect(text).not.toMatch(/corp\.example|1234567|4111/)
    if (!forwarded || !('chat' in forwarded)) throw new Error('no conversation')
    const { system, messages } = forwarded.chat
    expect(system).toEqual([{ type: 'text', text: 'The boss is <EMAIL_1>.' }])
    const call = messages[1]?.parts[1]
    expect(call).toMatchObject({ arguments: '{"to":"<EMAIL_2>","card":"<CARD_1>"}' })
    expect(new Set(text.match(/<EMAIL_\d>/g))).toEqual(new Set(['<EMAIL_1>', '<EMAIL_2>']))
  })

  const secretive = 'ann@corp.example has DB_PASSWORD=hunter22x'
  const encoded = Buffer.from(secretive).toString('base64')
  const item = (body: JsonObject) => ({ type: 'opaque' as const, body })
  test.each<[string, Chat['messages'][number]['parts'][number]]>([
    ['shell_call', item({ type: 'shell_call', id: 'sh_1', call_id: 'c1', action: { commands: [secretive] } })],
    [
      'shell_call_output',
      item({ type: 'shell_call_output', call_id: 'c1', output: [{ stdout: secretive, stderr: '' }] }),
    ],
    [
      'mcp_call',
      item({ type: 'mcp_call', id: 'm', name: 'f', arguments: JSON.stringify({ to: secretive }), output: secretive }),
    ],
    [
      'code_interpreter_call',
      item({
        type: 'code_interpreter_call',
        id: 'ci',
        container_id: 'c',
        code: secretive,
        outputs: [{ type: 'logs', logs: secretive }],
      }),
    ],
    ['a text document', { type: 'file', data: encoded, media_type: 'text/plain', filename: 'ann@corp.example.txt' }],
    [
      'a block of a text document',
      item({ type: 'document', source: { type: 'text', media_type: 'text/plain', data: secretive } }),
    ],
    ['a data URL', item({ type: 'input_file', file_data: `data:text/csv;base64,${encoded}` })],
    [
      'results of a search',
      { type: 'search', query: secretive, results: [{ title: secretive, encrypted_content: 'x' }] },
    ],
    ['a transcript', { type: 'audio', data: 'AAAA', media_type: 'audio/wav', transcript: secretive }],
  ])('has placeholders in %s, alone and in the result of a tool', async (_, part) => {
    await using tested = await openPlugin(maskPii)
    for (const parts of [[part], [{ type: 'tool_result' as const, id: '1', parts: [part] }]]) {
      const { forwarded } = await tested.call({ request: chatOf({ messages: [{ role: 'user', parts }] }) })
      const text = JSON.stringify(forwarded)
      expect(text).not.toMatch(/corp\.example|hunter22x/)
      expect(text).not.toContain(encoded)
      const decoded = text.replace(/[A-Za-z0-9+/=]{24,}/g, (data) => Buffer.from(data, 'base64').toString())
      expect(decoded).toMatch(/<EMAIL_1>/)
      expect(decoded).toMatch(/<KEY_1>/)
      // What the protocol needs stays.
      for (const mark of text.match(/"(?:id|call_id|type|name|container_id)":"[^"]*"/g) ?? [])
        expect(mark).not.toContain('<')
    }
  })

  test('has placeholders in parts that are not known', () => {
    const parts = [{ type: 'hologram', words: [secretive], id: 'ann@corp.example' } as never]
    const mapped = mapRequest(
      chatOf({ messages: [{ role: 'user', parts }] }),
      (text, origin) => `${origin}: ${text.length}`,
    )
    const words = [`block: ${secretive.length}`]
    expect(mapped).toMatchObject({
      chat: { messages: [{ parts: [{ type: 'hologram', words, id: 'ann@corp.example' }] }] },
    })
  })

  test('keeps files that are no texts', async () => {
    await using tested = await openPlugin(maskPii)
    const binary = Buffer.from([0xff, 0xfe, 0x00, 0xd8]).toString('base64')
    const parts = [
      { type: 'file' as const, data: binary, media_type: 'text/plain' },
      { type: 'file' as const, data: encoded, media_type: 'application/pdf' },
      { type: 'image' as const, data: encoded, media_type: 'image/png' },
    ]
    const request = chatOf({ messages: [{ role: 'user', parts }] })
    expect((await tested.call({ request })).forwarded).toBe(request)
    const unread = ['a text that is not UTF-8', 'application/pdf', 'image/png']
    expect(tested.logged).toMatchObject([{ level: 'info', facts: { unread } }])
    await using strict = await openPlugin(maskPii, { options: { unreadable: 'refuse' } })
    const { refusal } = await strict.call({ request })
    expect(refusal).toMatchObject({
      status: 400,
      param: 'messages',
      message: expect.stringContaining('application/pdf'),
    })
    expect((await strict.call({ request: chatOf({}) })).refusal).toBeUndefined()
  })

  test('for decisions has them in its input and questions, and keeps the names', async () => {
    await using tested = await openPlugin(maskPii)
    const input = [{ role: 'user', content: [{ type: 'input_text', text: 'ann@corp.example' }] }]
    const questions = [{ name: 'mail_to', instructions: 'Is bob@corp.example right?' }]
    const request = { operation: 'decide' as const, model: 'acme/d', fields: { input, questions } }
    const { forwarded } = await tested.call({ request, answer: { json: {} } })
    expect(forwarded).toMatchObject({
      fields: {
        input: [{ role: 'user', content: [{ type: 'input_text', text: '<EMAIL_1>' }] }],
        questions: [{ name: 'mail_to', instructions: 'Is <EMAIL_2> right?' }],
      },
    })
  })

  test('without such data stays the one it was', async () => {
    await using tested = await openPlugin(maskPii)
    const request = chatOf({ messages: [user('Order 4711, version 1.2.3')] })
    expect((await tested.call({ request })).forwarded).toBe(request)
  })

  test('keeps placeholders that the client wrote itself', async () => {
    await using tested = await openPlugin(maskPii)
    const request = chatOf({ messages: [user('What is <EMAIL_1>? Mail ann@corp.example.')] })
    const { forwarded, text } = await tested.call({ request, answer: '<EMAIL_1> is a name, <EMAIL_2> an address' })
    expect(JSON.stringify(forwarded)).toContain('Mail <EMAIL_2>.')
    expect(text).toBe('<EMAIL_1> is a name, ann@corp.example an address')
  })

  test('for embeddings has them too', async () => {
    await using tested = await openPlugin(maskPii)
    const request = {
      operation: 'embed' as const,
      model: 'acme/e',
      fields: { input: ['ann@corp.example', 'plum'], n: 1 },
    }
    const { forwarded } = await tested.call({ request, answer: { json: { data: [] } } })
    expect(forwarded).toMatchObject({ fields: { input: ['<EMAIL_1>', 'plum'], n: 1 } })
  })
})

describe('an answer', () => {
  test('gets the values back, escaped where it is JSON', async () => {
    await using tested = await openPlugin(maskPii, { options: { patterns: [{ name: 'OWN', pattern: '"x"' }] } })
    const parts = [
      {
        type: 'text' as const,
        text: '<EMAIL_1>, <EMAIL_9>',
        citations: [{ start: 0, end: 9, cited_text: '<EMAIL_1>' }],
      },
      { type: 'reasoning' as const, text: '<PHONE_1>' },
      { type: 'refusal' as const, text: '<EMAIL_2>' },
      { type: 'tool_call' as const, id: '1', name: 'f', arguments: '{"a":"\\u003cEMAIL_1\\u003e <OWN_1>"}' },
    ]
    const { reply } = await tested.call({ request: chatOf({ messages: [user(`${said} "x"`)] }), answer: { parts } })
    if (!reply || !('chat' in reply)) throw new Error('no conversation')
    expect(reply.chat.parts).toEqual([
      { type: 'text', text: 'ann@corp.example, <EMAIL_9>', citations: [{ cited_text: 'ann@corp.example' }] },
      { type: 'reasoning', text: '+49 30 1234567' },
      { type: 'refusal', text: 'bob@corp.example' },
      { type: 'tool_call', id: '1', name: 'f', arguments: '{"a":"ann@corp.example \\"x\\""}' },
    ])
  })

  test.each([false, true])('gets them back in blocks of the provider: stream %s', async (stream) => {
    await using tested = await openPlugin(maskPii)
    const body = { type: 'mcp_call', id: 'm', arguments: '{"to":"<EMAIL_1>"}', output: 'Sent to <EMAIL_2>' }
    const parts = [{ type: 'opaque' as const, by: 'openai', body }]
    const { reply } = await tested.call({ request: chatOf({}), answer: { parts }, stream })
    if (!reply || !('chat' in reply)) throw new Error('no conversation')
    const restored = { arguments: '{"to":"ann@corp.example"}', output: 'Sent to bob@corp.example' }
    expect(reply.chat.parts).toMatchObject([{ type: 'opaque', body: { ...body, ...restored } }])
  })

  test.each([false, true])('keeps its placeholders where data goes one way: stream %s', async (stream) => {
    await using tested = await openPlugin(maskPii, { options: { one_way: true } })
    expect((await tested.call({ request: chatOf({}), answer: 'Hi <EMAIL_1>', stream })).text).toBe('Hi <EMAIL_1>')
  })
})

/** The events with each text cut at random places. */
function cutAt(events: readonly StreamedEvent[], cuts: readonly number[]): StreamedEvent[] {
  let next = 0
  const pieces = (text: string) => {
    const made: string[] = []
    for (let at = 0; at < text.length; ) {
      const length = cuts[next++ % cuts.length] ?? 1
      made.push(text.slice(at, at + length))
      at += length
    }
    return made
  }
  return events.flatMap((event): StreamedEvent[] => {
    if ('json' in event) return [event]
    const { at = 0, text, refusal, reasoning, tool } = event
    if (text) return pieces(text).map((piece) => ({ at, text: piece }))
    if (refusal) return pieces(refusal).map((piece) => ({ at, refusal: piece }))
    if (reasoning?.text) return pieces(reasoning.text).map((piece) => ({ at, reasoning: { text: piece } }))
    if (typeof tool?.arguments !== 'string') return [event]
    const { arguments: given, ...head } = tool
    return [{ at, tool: head }, ...pieces(given).map((piece) => ({ at, tool: { arguments: piece } }))]
  })
}

const bit = fc.constantFrom(
  '<EMAIL_1>',
  '<EMAIL_2>',
  '<PHONE_1>',
  '<EMAIL_',
  '<',
  '<<EMAIL_1>>',
  '<EMAIL_12>',
  'b',
  ' ',
  '\\u003cEMAIL_1\\u003e',
  '<b>',
  '<EMAIL_1',
)
const words = fc.array(bit, { minLength: 1, maxLength: 8 }).map((bits) => bits.join(''))
const piece = fc.oneof(
  words.map((text) => ({ type: 'text' as const, text })),
  words.map((text) => ({ type: 'reasoning' as const, text })),
  words.map((text) => ({ type: 'refusal' as const, text })),
  words.map((text) => ({ type: 'tool_call' as const, id: 'c', name: 'f', arguments: `{"a":"${text}"}` })),
)

test('a stream says the same as the whole answer, wherever it is cut', async () => {
  await using tested = await openPlugin(maskPii)
  const lengths = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 5 }), lengths, async (parts, cuts) => {
      const { reply: whole } = await tested.call({ request: chatOf({}), answer: { parts } })
      const events = parts.map((part, at): StreamedEvent => {
        if (part.type === 'text') return { at, text: part.text }
        if (part.type === 'refusal') return { at, refusal: part.text }
        if (part.type === 'reasoning') return { at, reasoning: { text: part.text } }
        return { at, tool: { id: `c${at}`, name: 'f', arguments: part.arguments } }
      })
      const { reply } = await tested.call({ request: chatOf({}), events: [...cutAt(events, cuts), { finish: 'stop' }] })
      if (!whole || !reply || !('chat' in whole) || !('chat' in reply)) throw new Error('no conversation')
      const texts = (chat: typeof whole.chat) =>
        chat.parts.map((part) => [part.type, 'arguments' in part ? part.arguments : 'text' in part && part.text])
      expect(texts(reply.chat)).toEqual(texts(whole.chat))
    }),
    { numRuns: 300 },
  )
})

test('holds back only what may be the beginning of a placeholder', async () => {
  await using tested = await openPlugin(maskPii)
  const events = ['a < b <EM', 'PTY> <EMAIL', '_1> <PHONE_1', ' end <'].map((text) => ({ text }))
  const { events: shown } = await tested.call({ request: chatOf({}), events })
  expect(shown.map((event) => 'text' in event && event.text)).toEqual([
    'a < b ',
    '<EMPTY> ',
    'ann@corp.example ',
    '<PHONE_1 end ',
    '<',
  ])
})

test('calls whose arguments come interleaved get theirs', async () => {
  await using tested = await openPlugin(maskPii)
  const events: StreamedEvent[] = [
    { at: 0, tool: { id: 'a', name: 'f', arguments: '{"a":"<EMA' } },
    { at: 1, tool: { id: 'b', name: 'f', arguments: '{"a":"<EMAIL' } },
    { at: 0, tool: { arguments: 'IL_1>"}' } },
    { at: 1, tool: { arguments: '_2>"}' } },
  ]
  const { reply } = await tested.call({ request: chatOf({}), events })
  expect(JSON.stringify(reply)).toContain('ann@corp.example')
  expect(JSON.stringify(reply)).toContain('bob@corp.example')
})

test('a part that the provider repeats whole comes once', async () => {
  await using tested = await openPlugin(maskPii)
  const events: StreamedEvent[] = [
    { at: 0, text: 'Hi <EM' },
    { at: 0, whole: { type: 'text', text: 'Hi <EMAIL_1>!' } },
  ]
  const { reply } = await tested.call({ request: chatOf({}), events })
  expect(reply).toMatchObject({ chat: { parts: [{ text: 'Hi ann@corp.example!' }] } })
})
