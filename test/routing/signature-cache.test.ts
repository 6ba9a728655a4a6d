import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Part, ToolCallPart } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { Message, NeutralRequest } from '../../src/core/request.ts'
import { openSignatureCache } from '../../src/routing/signature-cache.ts'
import { canonicalArguments } from '../../src/routing/turn-keys.ts'

const thought: Part = { type: 'reasoning', text: 'Hm.', signature: 'seal', by: 'acme' }
const restored: Part = { ...thought, restored: true }
const call: ToolCallPart = { type: 'tool_call', id: 'a', name: 'f', arguments: '{}', signature: 'sig', by: 'acme' }
const other: ToolCallPart = { type: 'tool_call', id: 'b', name: 'g', arguments: '{}' }
const { signature: _signature, by: _by, ...bareCall } = call
const key = { id: 'key' }

const reply: Reply = {
  id: 'r',
  created: 1,
  parts: [thought, { type: 'text', text: 'Let me see.' }, call, other],
  finish: 'tool_calls',
  usage: {},
}
const user = (...texts: string[]): Message => ({ role: 'user', parts: texts.map((text) => ({ type: 'text', text })) })
const result: Message = {
  role: 'user',
  parts: [{ type: 'tool_result', id: 'a', parts: [{ type: 'text', text: 'r' }] }],
}
const conversation = (...messages: Message[]): NeutralRequest => ({
  model: 'm',
  messages,
  origin: { api: 'chat', body: {} },
})
const asked = conversation(user('x'))
const request = (parts: Part[], before: Message = user('x')) =>
  conversation(before, { role: 'assistant', parts }, result)

test('calls that come back without signatures get theirs back, unchanged', () => {
  const cache = openSignatureCache()
  cache.remember(key, asked, reply)
  const sent = request([bareCall, other])
  const { messages } = cache.restore(key, sent)
  expect(messages[1]?.parts).toEqual([restored, call, other])
  expect(sent.messages[1]?.parts[0]).toEqual(bareCall)
})

test('reasoning that came back without its signature is replaced, not duplicated', () => {
  const cache = openSignatureCache()
  cache.remember(key, asked, reply)
  const { messages } = cache.restore(key, request([{ type: 'reasoning', text: 'Hm.' }, bareCall, other]))
  expect(messages[1]?.parts).toEqual([thought, call, other])
})

test('other reasoning that the client sent stays beside what was restored', () => {
  const cache = openSignatureCache()
  cache.remember(key, asked, reply)
  const own: Part = { type: 'reasoning', text: 'Hm' }
  expect(cache.restore(key, request([own, bareCall, other])).messages[1]?.parts).toEqual([restored, own, call, other])
})

test('a client that returns its signatures, another key, and an unknown call are not changed', () => {
  const cache = openSignatureCache()
  cache.remember(key, asked, reply)
  for (const [id, sent] of [
    ['key', request([thought, call, other])],
    ['elsewhere', request([bareCall, other])],
    ['key', request([{ type: 'tool_call', id: 'z', name: 'f', arguments: '{}' }])],
  ] as const) {
    expect(cache.restore({ id }, sent).messages).toEqual(sent.messages)
  }
})

test('replies without signatures are not cached', () => {
  const cache = openSignatureCache()
  cache.remember(key, asked, { ...reply, parts: [other] })
  const sent = request([other])
  expect(cache.restore(key, sent)).toBe(sent)
})

test('what one cache remembers or forgets, another one adopts', () => {
  const [one, another] = [
    openSignatureCache((remembered) => another.merge(structuredClone(remembered))),
    openSignatureCache(),
  ]
  one.remember(key, asked, reply)
  one.remember(key, asked, reply)
  const sent = request([bareCall, other])
  expect(another.restore(key, sent).messages[1]?.parts).toEqual([restored, call, other])
  one.remember(key, asked, { ...reply, parts: [bareCall, other] })
  expect(another.restore(key, sent)).toBe(sent)
})

test('signatures in the form of another version are not adopted', () => {
  const cache = openSignatureCache()
  cache.merge({ key: 'organization a', entry: { reasoning: [thought], calls: new Map([['a', {}]]) } })
  const sent = request([bareCall])
  expect(cache.restore({ id: 'organization' }, sent)).toBe(sent)
})

test('calls that share an id have no signatures that could be told apart', () => {
  const cache = openSignatureCache()
  cache.remember(key, asked, { ...reply, parts: [thought, call, { ...other, id: 'a' }] })
  const sent = request([bareCall, { ...other, id: 'a' }])
  expect(cache.restore(key, sent)).toBe(sent)
})

describe('a turn', () => {
  const bash = (text: string, more: Partial<ToolCallPart> = {}): ToolCallPart => ({
    type: 'tool_call',
    id: 'functions.Bash:0',
    name: 'Bash',
    arguments: text,
    ...more,
  })
  const args = '{"command": "ls", "in": {"a": 1, "b": [1, 2]}}'
  const cache = openSignatureCache()
  cache.remember(key, conversation(user('earlier'), user('List', ' files')), { ...reply, parts: [thought, bash(args)] })
  const isRestored = (sent: NeutralRequest, id = 'key') =>
    JSON.stringify(cache.restore({ id }, sent).messages).includes('seal')

  test.each<[string, NeutralRequest]>([
    ['as it was', request([bash(args)], user('List files'))],
    [
      'with arguments written anew',
      request([bash('{"in":{"b":[1.0,2],"a":1},"command":"l\\u0073"}')], user('List files')),
    ],
    [
      'with a cache mark',
      request([bash(args, { cache: {} })], { role: 'user', parts: [{ type: 'text', text: 'List files', cache: {} }] }),
    ],
    [
      'with other instructions',
      { ...request([bash(args)], user('List files')), system: [{ type: 'text', text: 'now' }] },
    ],
    [
      'after other instructions in between',
      conversation(
        user('List files'),
        { role: 'system', parts: [{ type: 'text', text: 's' }] },
        { role: 'assistant', parts: [bash(args)] },
      ),
    ],
    [
      'after the result of another turn',
      conversation(user('List files'), { role: 'assistant', parts: [other] }, result, {
        role: 'assistant',
        parts: [bash(args)],
      }),
    ],
    ['with what the model said beside it', request([{ type: 'text', text: 'Ok.' }, bash(args)], user('List files'))],
  ])('%s has its signatures restored', (_, sent) => {
    expect(isRestored(sent)).toBe(true)
  })

  test.each<[string, NeutralRequest]>([
    ['of another text of the user', request([bash(args)], user('List  files'))],
    [
      'after another message of the user',
      conversation(user('List files'), user('Stop'), { role: 'assistant', parts: [bash(args)] }),
    ],
    [
      'after a picture',
      conversation(
        user('List files'),
        { role: 'user', parts: [{ type: 'image', url: 'https://a' }] },
        { role: 'assistant', parts: [bash(args)] },
      ),
    ],
    ['without a message of the user', conversation({ role: 'assistant', parts: [bash(args)] })],
    ['with other arguments', request([bash('{"command": "ls", "in": {"a": 1, "b": [2, 1]}}')], user('List files'))],
    ['with fewer arguments', request([bash('{"command": "ls"}')], user('List files'))],
    ['of another function', request([bash(args, { name: 'bash' })], user('List files'))],
    ['with another id', request([bash(args, { id: 'functions.Bash:1' })], user('List files'))],
    ['with one call more', request([bash(args), other], user('List files'))],
  ])('%s is another one', (_, sent) => {
    expect(isRestored(sent)).toBe(false)
  })

  test('of another key is another one', () => {
    const sent = request([bash(args)], user('List files'))
    expect([isRestored(sent), isRestored(sent, 'another')]).toEqual([true, false])
  })

  test('of several calls is the same in any order', () => {
    const own = openSignatureCache()
    own.remember(key, asked, reply)
    expect(own.restore(key, request([other, bareCall])).messages[1]?.parts).toEqual([restored, other, call])
    expect(own.restore(key, request([bareCall])).messages[1]?.parts).toEqual([bareCall])
    const swapped = [
      { ...bareCall, id: 'b' },
      { ...other, id: 'a' },
    ]
    expect(own.restore(key, request(swapped)).messages[1]?.parts).toEqual(swapped)
  })
})

test('no thought crosses keys, conversations, functions or arguments that differ', () => {
  const small = fc.record({
    id: fc.constantFrom('one', 'two'),
    text: fc.constantFrom('', 'a', 'b'),
    callId: fc.constantFrom('functions.Bash:0', 'functions.Bash:1'),
    name: fc.constantFrom('Bash', 'Read'),
    args: fc.constantFrom('{}', '{"a":1}', '{"a":2}', '[1]'),
  })
  fc.assert(
    fc.property(fc.array(small, { minLength: 1, maxLength: 12 }), small, (remembered, sent) => {
      const cache = openSignatureCache()
      for (const { id, text, callId, name, args } of remembered) {
        const parts: Part[] = [
          { ...thought, text: JSON.stringify({ id, text, callId, name, args }) },
          { type: 'tool_call', id: callId, name, arguments: args },
        ]
        cache.remember({ id }, conversation(user(text)), { ...reply, parts })
      }
      const { id, text, callId, name, args } = sent
      const bare: Part = { type: 'tool_call', id: callId, name, arguments: args }
      const { messages } = cache.restore({ id }, request([bare], user(text)))
      const thoughts = (messages[1]?.parts ?? []).flatMap((part) => (part.type === 'reasoning' ? part.text : []))
      const isKnown = remembered.some((one) => JSON.stringify(one) === JSON.stringify(sent))
      expect(thoughts).toEqual(isKnown ? [JSON.stringify(sent)] : [])
    }),
  )
})

test('of a conversation that is too long to compare the last turns are restored', () => {
  const cache = openSignatureCache()
  const long = `{"text":"${'x'.repeat(240_000)}"}`
  const turn = (index: number): Message => ({
    role: 'assistant',
    parts: [{ type: 'tool_call', id: `call_${index}`, name: 'f', arguments: long }],
  })
  const turns = Array.from({ length: 8 }, (_, index) => turn(index))
  for (const { parts } of turns) cache.remember(key, asked, { ...reply, parts: [thought, ...parts] })
  const { messages } = cache.restore(key, conversation(user('x'), ...turns))
  expect(messages.map(({ parts }) => parts.length)).toEqual([1, 1, 1, 1, 1, 2, 2, 2, 2])
  const larger: Part = { type: 'tool_call', id: 'call_0', name: 'f', arguments: `{"text":"${'x'.repeat(1_000_000)}"}` }
  cache.remember(key, asked, { ...reply, parts: [thought, larger] })
  const sent = request([larger])
  expect(cache.restore(key, sent).messages).toEqual(sent.messages)
})

test('arguments are the same however a client writes them', () => {
  const same = [
    ['{"b":1,"a":{"d":2,"c":[1,{"f":1,"e":2}]}}', ' { "a": {"c": [1.0, {"e": 2e0, "f": 1}], "d": 2},\n "b": 1 } '],
    ['', '{}', 'null', '  '],
    ['no JSON', '{"input":"no JSON"}'],
    ['[1]', '{"input": "[1]"}'],
    ['{"a":"\\u00e9"}', '{"a":"é"}'],
  ]
  for (const [first = '', ...others] of same) {
    for (const text of others) expect(canonicalArguments(text)).toBe(canonicalArguments(first))
  }
  const different = [
    '{"a":1}',
    '{"a":"1"}',
    '{"a":[1]}',
    '{"a":null}',
    '{"a":{}}',
    '{"A":1}',
    '[1]',
    '[2]',
    '{"__proto__":1}',
    'x',
    '{}',
  ]
  expect(new Set(different.map(canonicalArguments)).size).toBe(different.length)
  const deep = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  expect(canonicalArguments(deep)).toBe(canonicalArguments(JSON.stringify({ input: deep })))
})
