import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Part } from '../../src/core/parts.ts'
import type { Message, NeutralRequest } from '../../src/core/request.ts'
import { type HistoryRules, repairHistory } from '../../src/manifest/run/repair-history.ts'

const text = (words: string): Part => ({ type: 'text', text: words })
const call = (id: string, name = 'f'): Part => ({ type: 'tool_call', id, name, arguments: '{}' })
const result = (id: string, words = 'done'): Part => ({ type: 'tool_result', id, parts: [text(words)] })
const user = (...parts: Part[]): Message => ({ role: 'user', parts })
const assistant = (...parts: Part[]): Message => ({ role: 'assistant', parts })
const system = (...parts: Part[]): Message => ({ role: 'system', parts })

function request(messages: Message[], more: Partial<NeutralRequest> = {}): NeutralRequest {
  return { model: 'm', messages, origin: { api: 'chat', body: {} }, ...more }
}

function repaired(messages: Message[], rules: HistoryRules): Message[] {
  return repairHistory(request(messages), rules).messages
}

function idsOf(message: Message | undefined): string[] {
  return (message?.parts ?? []).map((part) => ('id' in part && part.id) || '')
}

describe('roles', () => {
  test('without rules nothing changes', () => {
    const messages = [assistant(text('a')), assistant(text('')), system(text('b'))]
    expect(repaired(messages, {})).toEqual(messages)
  })

  test('neighbours of the same role become one message; a name survives only when both share it', () => {
    const named = (name: string, words: string): Message => ({ role: 'user', name, parts: [text(words)] })
    expect(repaired([named('ann', '1'), named('ann', '2'), assistant(text('3'))], { alternate: true })).toEqual([
      { role: 'user', name: 'ann', parts: [text('1'), text('2')] },
      assistant(text('3')),
    ])
    expect(repaired([named('ann', '1'), named('bob', '2')], { alternate: true })).toEqual([user(text('1'), text('2'))])
  })

  test('a conversation that does not begin with the user gets an opening, also when it is empty', () => {
    const opened = repaired([assistant(text('hello'))], { first_user: true })
    expect(opened.map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(repaired([], { first_user: true })[0]?.parts[0]).toMatchObject({
      type: 'text',
      text: expect.stringMatching(/\S/),
    })
  })

  test('instructions in the middle become a marked note of the user, in their place', () => {
    const messages = [user(text('a')), assistant(text('b')), system(text('be brief')), user(text('c'))]
    expect(repaired(messages, { mid_system: 'user', alternate: true })).toEqual([
      user(text('a')),
      assistant(text('b')),
      user(text('<system_note>\nbe brief\n</system_note>'), text('c')),
    ])
    expect(repaired(messages, { mid_system: 'keep' })).toEqual(messages)
  })
})

describe('empty text', () => {
  test('is dropped, and so is a message with nothing else', () => {
    const messages = [user(text('a'), text(' \n')), assistant(text('')), user({ type: 'refusal', text: '' }, text('b'))]
    const { messages: left, system: written } = repairHistory(request(messages, { system: [text(''), text('s')] }), {
      no_empty_text: true,
    })
    expect(left).toEqual([user(text('a')), user(text('b'))])
    expect(written).toEqual([text('s')])
  })

  test('stays when it has a signature', () => {
    const signed = assistant({ type: 'text', text: '', signature: 'seal', by: 'maker' })
    expect(repaired([signed], { no_empty_text: true })).toEqual([signed])
  })

  test('leaves a tool result without content, and an empty note is no note', () => {
    expect(repaired([user(result('a', ''))], { no_empty_text: true })).toEqual([
      user({ type: 'tool_result', id: 'a', parts: [] }),
    ])
    expect(repaired([system(text(' '))], { no_empty_text: true, mid_system: 'user' })).toEqual([])
  })
})

describe('tools', () => {
  const rules: HistoryRules = { pair_tools: true, results_first: true, alternate: true }

  test('results come right after their calls, first and in call order, in one user message', () => {
    const messages = [
      user(text('go')),
      assistant(call('a'), call('b')),
      user(text('by the way'), result('b')),
      user(result('a')),
      user(text('and?')),
    ]
    expect(repaired(messages, rules)).toEqual([
      user(text('go')),
      assistant(call('a'), call('b')),
      user(result('a'), result('b'), text('by the way'), text('and?')),
    ])
  })

  test('a call without a result gets one that states that', () => {
    const missing: Part = {
      type: 'tool_result',
      id: 'a',
      name: 'f',
      parts: [text('no result was recorded')],
      is_error: true,
    }
    expect(repaired([assistant(call('a')), user(text('never mind'))], rules)).toEqual([
      assistant(call('a')),
      user(missing, text('never mind')),
    ])
    expect(repaired([assistant(call('a'))], rules)).toEqual([assistant(call('a')), user(missing)])
  })

  test('a result without a call becomes text, with its content', () => {
    const image: Part = { type: 'image', url: 'https://example.com/a.png' }
    const orphan: Part = { type: 'tool_result', id: 'x', name: 'look', parts: [text('a cat'), image] }
    expect(repaired([user(orphan)], rules)).toEqual([user(text('Result of look (call x):'), text('a cat'), image)])
  })

  test('a second result for the same call becomes text', () => {
    const [, answer] = repaired([assistant(call('a')), user(result('a', 'one'), result('a', 'two'))], rules)
    expect(answer).toEqual(user(result('a', 'one'), text('Result of a tool (call a):'), text('two')))
  })

  test('calls in neighbouring assistant messages are one turn', () => {
    const messages = [assistant(call('a')), assistant(call('b')), user(result('a')), user(result('b'))]
    expect(repaired(messages, { pair_tools: true })).toEqual([
      assistant(call('a'), call('b')),
      user(result('a'), result('b')),
    ])
  })

  test('an id that a later turn reuses is replaced, in the call and in its result', () => {
    const turn = (words: string) => [assistant(call('call_0')), user(result('call_0', words))]
    const messages = repaired([...turn('one'), ...turn('two'), ...turn('three')], rules)
    expect(messages).toEqual([
      ...turn('one'),
      assistant(call('call_0_2')),
      user(result('call_0_2', 'two')),
      assistant(call('call_0_3')),
      user(result('call_0_3', 'three')),
    ])
  })

  test('two calls of one turn with the same id get the results in the order in which they came', () => {
    const [requested, answer] = repaired(
      [assistant(call('a'), call('a')), user(result('a', '1'), result('a', '2'))],
      rules,
    )
    expect(requested).toEqual(assistant(call('a'), call('a_2')))
    expect(answer).toEqual(user(result('a', '1'), result('a_2', '2')))
  })

  test('results come first even where nothing is paired', () => {
    const messages = [assistant(call('a'), call('b')), user(text('hm'), result('b'), result('a'))]
    expect(repaired(messages, { results_first: true })[1]).toEqual(user(result('a'), result('b'), text('hm')))
  })
})

describe('tool ids', () => {
  test('that fit pass unchanged; others become a digest that is the same for call and result', () => {
    const rules: HistoryRules = { tool_id: { pattern: /^[a-zA-Z0-9_-]+$/, max_length: 40 } }
    const messages = [assistant(call('toolu_01'), call('a.b:c|d')), user(result('toolu_01'), result('a.b:c|d'))]
    const [requested, answer] = repaired(messages, rules)
    const ids = idsOf(requested)
    expect(ids[0]).toBe('toolu_01')
    expect(ids[1]).toMatch(/^[a-f0-9]{24}$/)
    expect(idsOf(answer)).toEqual(ids)
    expect(repaired(messages, rules)).toEqual(repaired(structuredClone(messages), rules))
  })

  test('are brought to a fixed or greatest length', () => {
    const long = assistant(call(`call_${'x'.repeat(60)}`))
    const idUnder = (rule: NonNullable<HistoryRules['tool_id']>) => idsOf(repaired([long], { tool_id: rule })[0])[0]
    expect(idUnder({ pattern: /^[a-zA-Z0-9]{9}$/, length: 9 })).toMatch(/^[a-zA-Z0-9]{9}$/)
    expect(idUnder({ pattern: /^.*$/, max_length: 16 })).toHaveLength(16)
  })
})

test('of too many cache hints the last ones stay, tools before system before messages', () => {
  const hinted = (words: string): Part => ({ type: 'text', text: words, cache: {} })
  const inside: Part = { type: 'tool_result', id: 'a', parts: [hinted('deep')], cache: { ttl: '1h' } }
  const { tools, system, messages } = repairHistory(
    request([user(hinted('1'), inside)], {
      system: [hinted('s1'), hinted('s2')],
      tools: [{ kind: 'function', name: 'f', cache: {} }],
    }),
    { max_cache_hints: 4 },
  )
  expect(messages).toEqual([user(hinted('1'), inside)])
  expect(system).toEqual([text('s1'), hinted('s2')])
  expect(tools).toEqual([{ kind: 'function', name: 'f' }])
})

describe('for any history and any rules', () => {
  const words = fc.constantFrom('', ' ', 'a', 'b')
  const id = fc.constantFrom('a', 'b', 'c', 'a.b', '')
  const leaf: fc.Arbitrary<Part> = fc.oneof(
    words.map(text),
    words.map((word): Part => ({ type: 'text', text: word, cache: {} })),
    words.map((word): Part => ({ type: 'refusal', text: word })),
    fc.constant<Part>({ type: 'reasoning', signature: 's', by: 'm' }),
  )
  const userPart = fc.oneof(
    leaf,
    fc.record({ type: fc.constant('tool_result' as const), id, parts: fc.array(leaf, { maxLength: 2 }) }),
  )
  const assistantPart = fc.oneof(
    leaf,
    id.map((key) => call(key)),
  )
  const message: fc.Arbitrary<Message> = fc.oneof(
    fc.record({ role: fc.constant('user' as const), parts: fc.array(userPart, { maxLength: 4 }) }),
    fc.record({ role: fc.constant('assistant' as const), parts: fc.array(assistantPart, { maxLength: 4 }) }),
    fc.record({ role: fc.constant('system' as const), parts: fc.array(leaf, { maxLength: 2 }) }),
  )
  const rules: fc.Arbitrary<HistoryRules> = fc.record(
    {
      alternate: fc.boolean(),
      first_user: fc.boolean(),
      mid_system: fc.constantFrom('keep' as const, 'user' as const),
      pair_tools: fc.boolean(),
      results_first: fc.boolean(),
      no_empty_text: fc.boolean(),
      max_cache_hints: fc.nat(3),
      tool_id: fc.constantFrom({ pattern: /^[a-z0-9]+$/, length: 9 }, { pattern: /^[a-f0-9_]+$/, max_length: 30 }),
    },
    { requiredKeys: [] },
  )
  const cases = [fc.array(message, { maxLength: 6 }), rules] as const

  test('a second repair changes nothing', () => {
    fc.assert(
      fc.property(...cases, (messages, chosen) => {
        const once = repairHistory(request(messages), chosen)
        expect(repairHistory(once, chosen)).toEqual(once)
      }),
      { numRuns: 500 },
    )
  })

  test('the input stays as it was', () => {
    fc.assert(
      fc.property(...cases, (messages, chosen) => {
        const before = structuredClone(messages)
        repairHistory(request(messages), chosen)
        expect(messages).toEqual(before)
      }),
    )
  })

  test('paired tools: every call has exactly one result, in the next message, and every result its call', () => {
    fc.assert(
      fc.property(cases[0], (messages) => {
        const all = repaired(messages, { pair_tools: true, results_first: true, alternate: true })
        all.forEach(({ parts }, index) => {
          const calls = parts.flatMap((one) => (one.type === 'tool_call' ? [one.id] : []))
          const results = all[index + 1]?.parts.flatMap((one) => (one.type === 'tool_result' ? [one.id] : [])) ?? []
          expect(results).toEqual(calls)
        })
      }),
    )
  })
})

describe('turns with calls', () => {
  test('text between calls goes before them, also where it is a message of its own', () => {
    const rules = { calls_together: true }
    const thought: Part = { type: 'reasoning', text: 'Hm.' }
    const together = assistant(text('One.'), thought, text('Two.'), call('a'), call('b'), text('Three.'))
    const messages = [
      user(text('Go')),
      assistant(text('One.'), thought, call('a')),
      assistant(text('Two.'), call('b'), text('Three.')),
    ]
    expect(repaired(messages, rules)).toEqual([user(text('Go')), together])
    const plain = [user(text('Go')), assistant(text('One.'), call('a'), call('b')), user(result('a'), result('b'))]
    expect(repaired(plain, rules)).toBe(plain)
  })

  test('arguments that are no object become the input of one', () => {
    const args = (text: string): Message => assistant({ type: 'tool_call', id: 'a', name: 'f', arguments: text })
    const fixed = (text: string) => repaired([args(text)], { json_arguments: true })
    expect(fixed('ls -l')).toEqual([args('{"input":"ls -l"}')])
    expect(fixed('{"a":')).toEqual([args('{"input":"{\\"a\\":"}')])
    expect(fixed('[1]')).toEqual([args('{"input":"[1]"}')])
    expect(fixed('')).toEqual([args('{}')])
    const custom: Message[] = [assistant({ type: 'tool_call', id: 'a', name: 'f', kind: 'custom', arguments: 'free' })]
    expect(repaired(custom, { json_arguments: true })).toBe(custom)
    const whole = [args('{"a":1}')]
    expect(repaired(whole, { json_arguments: true })).toBe(whole)
  })

  test('media of results that are errors follow all results', () => {
    const image: Part = { type: 'image', data: 'aGk=', media_type: 'image/png' }
    const failed: Part = { type: 'tool_result', id: 'a', is_error: true, parts: [text('No.'), image] }
    const fine: Part = { type: 'tool_result', id: 'b', parts: [image] }
    const given = [user(failed, fine, text('Well?'))]
    expect(repaired(given, { media_in_errors: false })).toEqual([
      user(
        { type: 'tool_result', id: 'a', is_error: true, parts: [text('No.')] },
        fine,
        text('Returned by the tool call a:'),
        image,
        text('Well?'),
      ),
    ])
    const plain = [user(fine)]
    expect(repaired(plain, { media_in_errors: false })).toBe(plain)
  })
})
