import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ProviderEvent, StreamEvent } from '../../src/core/events.ts'
import { Fold, type FoldFacts, fold } from '../../src/core/fold.ts'
import type { Citation, Part } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import { eventsOf } from '../../src/core/reply-events.ts'

const facts: FoldFacts = { signer: 'acme', newId: () => 'new-id-0123456789', now: () => 1_700_000_000 }

function foldEvents(events: ProviderEvent[]): StreamEvent[] {
  const folding = new Fold(facts)
  return [...events.flatMap((event) => folding.take(event)), ...folding.end()]
}

describe('a search', () => {
  const kinds = (events: ProviderEvent[]) =>
    foldEvents(events).flatMap((event) => ('index' in event ? `${event.type} ${event.index}` : []))

  test('that runs stays open while its answer is written, and is not begun again', () => {
    const events: ProviderEvent[] = [
      { at: 's', search: { status: 'in_progress' } },
      { text: 'It ' },
      { at: 's', search: { query: 'rain', status: 'completed' } },
      { at: 's', search: { status: 'searching' } },
      { text: 'rains' },
      { finish: 'stop' },
    ]
    expect(kinds(events)).toEqual(['open 0', 'open 1', 'delta 1', 'close 0', 'delta 1', 'close 1'])
    expect(fold(events, facts).parts).toMatchObject([
      { type: 'search', query: 'rain', status: 'completed' },
      { type: 'text', text: 'It rains' },
    ])
  })

  test('that never ends is closed with the reply', () => {
    const events: ProviderEvent[] = [{ at: 's', search: { status: 'searching' } }, { text: 'a' }, { finish: 'stop' }]
    expect(kinds(events)).toEqual(['open 0', 'open 1', 'delta 1', 'close 0', 'close 1'])
  })

  test('ends the text before it when it begins, and not when it is told only afterwards', () => {
    const text = (at: 'before' | 'after'): ProviderEvent => ({ text: at })
    const begun: ProviderEvent[] = [text('before'), { search: { id: 's', query: 'rain' } }, text('after')]
    expect(fold(begun, facts).parts.map(({ type }) => type)).toEqual(['text', 'search', 'text'])
    const told: ProviderEvent[] = [
      text('before'),
      { search: { id: 's', query: 'rain', status: 'completed' } },
      text('after'),
    ]
    expect(fold(told, facts).parts).toMatchObject([{ type: 'text', text: 'beforeafter' }, { type: 'search' }])
  })
})

describe('a part that is repeated whole', () => {
  const citations = [{ url: 'https://a.at', title: 'A' }]
  const wholes: { at: string; whole: Part }[] = [
    { at: '0', whole: { type: 'reasoning', id: 'rs', text: 'Hm', summary: 'So', encrypted: 'sealed' } },
    { at: '1', whole: { type: 'text', text: 'It rains', citations, signature: 'final' } },
    { at: '2', whole: { type: 'refusal', text: 'No more.' } },
    { at: '3', whole: { type: 'tool_call', id: 'a', name: 'f', arguments: '{"x":1}' } },
    { at: '4', whole: { type: 'search', id: 'ws', query: 'rain', status: 'completed' } },
    { at: '5', whole: { type: 'image', data: 'AAAA', media_type: 'image/png' } },
    { at: '6', whole: { type: 'opaque', body: { odd: 1 } } },
  ]
  const pieces: ProviderEvent[] = [
    { at: '0', reasoning: { id: 'rs', text: 'H' } },
    { at: '0', reasoning: { text: 'm', summary: 'So', encrypted: 'sealed' } },
    { at: '1', text: 'It ' },
    { at: '1', text: 'rains' },
    { at: '1', citation: citations[0] as Citation },
    { at: '1', signature: 'final' },
    { at: '2', refusal: 'No ' },
    { at: '2', refusal: 'more.' },
    { at: '3', tool: { id: 'a', name: 'f', arguments: '{"x"' } },
    { at: '3', tool: { arguments: ':1}' } },
    { at: '4', search: { id: 'ws', status: 'searching' } },
    { at: '4', search: { id: 'ws', query: 'rain', status: 'completed' } },
    wholes[5] as ProviderEvent,
    wholes[6] as ProviderEvent,
  ]
  const finish: ProviderEvent = { finish: 'stop' }
  const expected = fold([...pieces, finish], facts).parts

  test('counts as far as it has not come yet', () => {
    expect(expected).toMatchObject(wholes.map(({ whole }) => whole))
    // After all of its pieces, after some of them, and after none.
    for (let come = 0; come <= pieces.length; come++) {
      const events = [...pieces.slice(0, come), ...wholes, ...wholes, finish]
      expect(fold(events, facts).parts, `after ${come} pieces`).toEqual(expected)
      const texts = foldEvents(events).flatMap((event) => (event.type === 'delta' ? (event.text ?? '') : []))
      expect(texts.join('')).toBe('HmIt rainsNo more.')
    }
  })

  test('changes nothing that was said otherwise, and is no part when it is empty', () => {
    const events: ProviderEvent[] = [{ at: '1', text: 'It pours' }, ...wholes.slice(1, 2), finish]
    expect(fold(events, facts).parts).toMatchObject([{ type: 'text', text: 'It pours' }])
    const hollow: ProviderEvent[] = [
      { at: '0', whole: { type: 'text', text: '' } },
      { at: '1', whole: { type: 'reasoning' } },
      { at: '2', whole: { type: 'refusal', text: '' } },
    ]
    expect(fold([...hollow, finish], facts).parts).toEqual([])
  })
})

describe('a reply put together from events', () => {
  test('text without a key grows the open text and opens a new one after a tool call', () => {
    const reply = fold(
      [{ text: 'a' }, { text: 'b' }, { tool: { id: 'x', name: 'f' }, at: 0 }, { text: 'c' }, { finish: 'stop' }],
      facts,
    )
    expect(reply.parts).toEqual([
      { type: 'text', text: 'ab' },
      { type: 'tool_call', id: 'x', name: 'f', arguments: '{}' },
      { type: 'text', text: 'c' },
    ])
  })

  test('tool calls interleave by key, and an empty id or name never overwrites', () => {
    const reply = fold(
      [
        { tool: { id: 'a', name: 'f', arguments: '{"x"' }, at: 0 },
        { tool: { id: 'b', name: 'g', arguments: '{}' }, at: 1 },
        { tool: { id: '', name: '', arguments: ':1}' }, at: 0 },
        { finish: 'tool_calls' },
      ],
      facts,
    )
    expect(reply.parts).toEqual([
      { type: 'tool_call', id: 'a', name: 'f', arguments: '{"x":1}' },
      { type: 'tool_call', id: 'b', name: 'g', arguments: '{}' },
    ])
  })

  test('tool calls that share a key but have different ids are two calls', () => {
    const reply = fold(
      [
        { at: 0, tool: { id: 'a', name: 'f', arguments: '{"a":' } },
        { at: 0, tool: { arguments: '1}' } },
        { at: 0, tool: { id: 'b', name: 'g', arguments: '{"b":' } },
        // Some servers repeat the id and the name of a call, or give each of its pieces another id.
        { at: 0, tool: { id: 'b', name: 'g', arguments: '2' } },
        { at: 0, tool: { id: 'other', arguments: '}' } },
        { at: 1, tool: { name: 'h' } },
        { at: 1, tool: { id: 'c', name: 'h', arguments: '{}' } },
        { finish: 'tool_calls' },
      ],
      { ...facts, newId: () => 'made' },
    )
    expect(reply.parts).toMatchObject([
      { id: 'a', name: 'f', arguments: '{"a":1}' },
      { id: 'b', name: 'g', arguments: '{"b":2}' },
      { id: 'call_made', name: 'h', arguments: '{}' },
    ])
  })

  test('two whole calls of the same tool without ids stay two calls', () => {
    let count = 0
    const counted = { ...facts, newId: () => `id${++count}` }
    const reply = fold(
      [{ tool: { name: 'f', arguments: { n: 1 } } }, { tool: { name: 'f', arguments: { n: 2 } } }, { finish: 'stop' }],
      counted,
    )
    expect(reply.parts.map((part) => part.type === 'tool_call' && part.arguments)).toEqual(['{"n":1}', '{"n":2}'])
    expect(new Set(reply.parts.map((part) => part.type === 'tool_call' && part.id)).size).toBe(2)
  })

  test('a call without arguments has an empty object before it closes; a custom tool keeps its empty text', () => {
    const events = foldEvents([{ tool: { id: 'a', name: 'f' }, at: 0 }, { finish: 'tool_calls' }])
    expect(events.slice(1, 4)).toMatchObject([
      { type: 'open', index: 0 },
      { type: 'delta', index: 0, arguments: '{}' },
      { type: 'close', index: 0, part: { arguments: '{}' } },
    ])
    const custom = fold([{ tool: { id: 'a', name: 'f', kind: 'custom' }, at: 0 }, { finish: 'stop' }], facts)
    expect(custom.parts).toMatchObject([{ arguments: '' }])
  })

  test('the input of a tool that the provider runs goes to its search or its block, and is no call', () => {
    const reply = fold(
      [
        { search: { id: 's' }, at: 0 },
        { tool: { arguments: '{"query":' }, at: 0 },
        { tool: { arguments: '"q"}' }, at: 0 },
        { search: { id: 's', status: 'completed', results: [] }, at: 1 },
        { opaque: { body: { type: 'server_tool_use', input: {} } }, at: 2 },
        { tool: { arguments: '{"code":1}' }, at: 2 },
        { finish: 'stop' },
      ],
      facts,
    )
    expect(reply.finish).toBe('stop')
    expect(reply.parts).toEqual([
      { type: 'search', by: 'acme', id: 's', query: 'q', status: 'completed', results: [] },
      { type: 'opaque', by: 'acme', body: { type: 'server_tool_use', input: { code: 1 } } },
    ])
  })

  test('a call whose name comes late opens late, with what came before in its first delta', () => {
    const events = foldEvents([
      { tool: { id: 'a', arguments: '{' }, at: 0 },
      { tool: { name: 'f', arguments: '}' }, at: 0 },
      { finish: 'tool_calls' },
    ])
    expect(events.map(({ type }) => type)).toEqual(['start', 'open', 'delta', 'close', 'finish', 'usage'])
    expect(events[2]).toMatchObject({ arguments: '{}' })
  })

  test('a reply that stopped after calling tools ended with tool_calls', () => {
    expect(fold([{ tool: { name: 'f' } }, { finish: 'stop', raw: 'STOP' }], facts)).toMatchObject({
      finish: 'tool_calls',
      finish_raw: 'STOP',
    })
  })

  test('a stream without a finish is not complete', () => {
    const folding = new Fold(facts)
    folding.take({ text: 'half' })
    expect(folding.complete).toBe(false)
    folding.take({ finish: 'length' })
    expect(folding.complete).toBe(true)
  })

  test.each<[ProviderEvent[], Reply['finish']]>([
    [[{ text: 'a' }, { done: true }], 'stop'],
    [[{ text: 'a', done: true }], 'stop'],
    [[{ tool: { id: 'a', name: 'f' } }, { done: true }], 'tool_calls'],
    [[{ text: 'a' }, { finish: 'length' }, { done: true }], 'length'],
    [[{ text: 'a' }, { done: true }, { finish: 'length' }], 'length'],
  ])('an end marker after content ends the reply: %j', (events, finish) => {
    const folding = new Fold(facts)
    for (const event of events) folding.take(event)
    expect(folding.complete).toBe(true)
    expect(folding.end()).toContainEqual({ type: 'finish', finish })
    expect(folding.reply().finish).toBe(finish)
  })

  test.each<ProviderEvent[][]>([[[{ done: true }]], [[{ id: 'x', usage: { input: 3 } }, { done: true }]]])(
    'an end marker without any content ends nothing: %j',
    (events) => {
      const folding = new Fold(facts)
      for (const event of events) folding.take(event)
      expect(folding.complete).toBe(false)
    },
  )

  test('later counts replace earlier ones class by class', () => {
    const { usage } = fold([{ usage: { input: 5, output: 1 } }, { usage: { output: 9, reasoning: 2 } }], facts)
    expect(usage).toEqual({ input: 5, output: 9, reasoning: 2 })
  })

  test('a citation before its text waits in the same part', () => {
    const { parts } = fold([{ citation: { url: 'u' }, at: 3 }, { text: 'said', at: 3 }, { finish: 'stop' }], facts)
    expect(parts).toEqual([{ type: 'text', text: 'said', citations: [{ url: 'u' }] }])
  })

  test('signatures of reasoning are replaced, its text is extended', () => {
    const { parts } = fold(
      [
        { reasoning: { text: 'a' } },
        { reasoning: { text: 'b' } },
        { reasoning: { signature: 's' } },
        { finish: 'stop' },
      ],
      facts,
    )
    expect(parts).toEqual([{ type: 'reasoning', by: 'acme', text: 'ab', signature: 's' }])
  })

  test('every part that opens closes, in order, before the finish', () => {
    const events = foldEvents([
      { reasoning: { text: 'r' } },
      { text: 't' },
      { tool: { name: 'f' }, at: 0 },
      { finish: 'stop' },
    ])
    expect(
      events
        .filter(({ type }) => type === 'open' || type === 'close')
        .map((event) => `${event.type} ${'index' in event && event.index}`),
    ).toEqual(['open 0', 'close 0', 'open 1', 'close 1', 'open 2', 'close 2'])
  })
})

const word = fc.string({ minLength: 1, maxLength: 8 })
const optional = (names: Record<string, fc.Arbitrary<unknown>>) => fc.record(names, { requiredKeys: [] })
const citation = fc.record({ url: word, title: word })
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ type: fc.constant('text' as const), text: word }),
  fc.record({
    type: fc.constant('text' as const),
    text: word,
    citations: fc.array(citation, { minLength: 1, maxLength: 3 }),
  }),
  fc.record({ type: fc.constant('refusal' as const), text: word }),
  fc
    .tuple(word, optional({ summary: word, signature: word, encrypted: word, id: word }))
    .map(([text, more]) => ({ type: 'reasoning' as const, by: 'acme', text, ...more }) as Part),
  fc.record({ type: fc.constant('tool_call' as const), id: word, name: word, arguments: fc.json() }),
  fc.record({ type: fc.constant('opaque' as const), by: fc.constant('acme'), body: fc.constant({ kind: 'block' }) }),
)
const reply: fc.Arbitrary<Reply> = fc
  .record({
    id: word,
    model: word,
    created: fc.integer({ min: 1, max: 2_000_000_000 }),
    parts: fc.array(part, { maxLength: 8 }),
    finish: fc.constantFrom('stop', 'length', 'content_filter') as fc.Arbitrary<Reply['finish']>,
    usage: fc.record({ input: fc.nat(), output: fc.nat() }),
  })
  .map((made) => ({
    ...made,
    finish: made.finish === 'stop' && made.parts.some(({ type }) => type === 'tool_call') ? 'tool_calls' : made.finish,
  }))

test('fold(eventsOf(reply)) equals reply', () => {
  fc.assert(
    fc.property(reply, (whole) => {
      expect(fold(eventsOf(whole), facts)).toEqual(whole)
    }),
  )
})

test('a copy made anywhere goes on by itself', () => {
  fc.assert(
    fc.property(reply, reply, fc.nat(), (whole, other, at) => {
      const events = eventsOf(whole)
      const begun = new Fold(facts)
      for (const event of events.slice(0, at % events.length)) begun.take(event)
      const copy = begun.copy()
      expect(copy.size).toBe(begun.size)
      for (const event of eventsOf(other)) copy.take(event)
      copy.end()
      for (const event of events.slice(at % events.length)) begun.take(event)
      begun.end()
      expect(begun.reply()).toEqual(whole)
      const both = [...events.slice(0, at % events.length), ...eventsOf(other)]
      const folding = new Fold(facts)
      for (const event of both) folding.take(event)
      expect(copy.reply()).toEqual(fold(both, facts))
      expect(copy.size).toBe(folding.size)
    }),
  )
})

test('the size of a reply is that of all its parts and texts, however many pieces they came in', () => {
  const folding = new Fold(facts)
  const sizes = [folding.size]
  for (let piece = 0; piece < 1_000; piece++) {
    folding.take({ text: 'four' })
    sizes.push(folding.size)
  }
  const ofPart = (sizes[1] ?? 0) - 4
  expect(sizes.slice(1)).toEqual(Array.from({ length: 1_000 }, (_, at) => ofPart + 4 * (at + 1)))
  folding.take({ tool: { id: 'a', name: 'f', arguments: '{}' } })
  folding.take({ tool: { arguments: 'x'.repeat(500) } })
  expect(folding.size).toBeGreaterThan(2 * ofPart + 4_000 + 500)
  expect(folding.size).toBeLessThan(2 * ofPart + 4_000 + 700)
})

test('a text cut into deltas anywhere folds to the same reply', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 10 }), (pieces) => {
      const streamed = fold([...pieces.map((text) => ({ text })), { finish: 'stop' }], facts)
      expect(streamed.parts).toEqual([{ type: 'text', text: pieces.join('') }])
    }),
  )
})

test('a citation after the text gets the position of its quote, in code points', () => {
  const { parts } = fold(
    [
      { text: '🐧 live here.' },
      { tool: { name: 'f' } },
      { citation: { url: 'u', cited_text: 'live' } },
      { finish: 'stop' },
    ],
    facts,
  )
  expect(parts).toMatchObject([{ citations: [{ url: 'u', start: 2, end: 6 }] }, { type: 'tool_call' }])
})
