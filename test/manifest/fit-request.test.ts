import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import type { Message, NeutralRequest } from '../../src/core/request.ts'
import type { FamilyRules, Limits } from '../../src/manifest/limits.ts'
import { shortName } from '../../src/manifest/run/fit-names.ts'
import { excessOf, fitRequest } from '../../src/manifest/run/fit-request.ts'
import { canBeStrict, fitSchema } from '../../src/manifest/run/fit-schema.ts'
import type { HistoryRules } from '../../src/manifest/run/repair-history.ts'

const hi: Message = { role: 'user', parts: [{ type: 'text', text: 'Hi' }] }

function request(members: Partial<NeutralRequest>): NeutralRequest {
  return { model: 'm', messages: [hi], origin: { api: 'chat', body: {} }, ...members }
}

function fitted(
  members: Partial<NeutralRequest>,
  {
    limits = {},
    history = {},
    edited = true,
    traits = {},
  }: Partial<FamilyRules> & { edited?: boolean; traits?: JsonObject } = {},
) {
  const rules = { limits, history, editedHistory: history }
  return fitRequest(request(members), { rules, traits: traits as never, edited })
}

describe('a request within the limits', () => {
  test('is the same object, and nothing is lost', () => {
    const limits: Limits = { user: { max: 3 }, stop: { count: 2 }, temperature: { max: 1 }, tools: { count: 1 } }
    const given = request({
      user: 'abc',
      stop: ['a', 'b'],
      temperature: 1,
      tools: [{ kind: 'function', name: 'f', parameters: { type: 'object' } }],
    })
    const rules = { limits, history: {}, editedHistory: { pair_tools: true, results_first: true, no_empty_text: true } }
    const fitted = fitRequest(given, { rules, traits: {}, edited: true })
    expect(fitted.request).toBe(given)
    expect([[...fitted.changed], fitted.lost, fitted.names.size]).toEqual([[], [], 0])
  })
})

describe('a name over the limit', () => {
  const limit = { pattern: /^[a-zA-Z0-9_-]+$/, max: 20 }

  test('is shortened to one that fits, always the same, and differs from those of similar names', () => {
    const names = ['a'.repeat(21), 'a'.repeat(22), 'files.read', 'files read', 'dateien_öffnen', '…']
    const short = names.map((name) => shortName(name, limit))
    for (const name of short) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,20}$/)
    expect(new Set(short).size).toBe(names.length)
    expect(names.map((name) => shortName(name, limit))).toEqual(short)
  })

  test('begins with a letter where the provider wants one', () => {
    expect(shortName('1st', { pattern: /^[a-zA-Z_][a-zA-Z0-9_]*$/, max: 64 })).toMatch(/^t_1st/)
  })

  test('never is that of another tool', () => {
    const [long] = ['x'.repeat(30)]
    const made = shortName(long as string, limit)
    const { request: named, names } = fitted(
      {
        tools: [
          { kind: 'function', name: long as string },
          { kind: 'function', name: made },
        ],
      },
      { limits: { tool_name: limit } },
    )
    const sent = named.tools?.map((tool) => ('name' in tool ? tool.name : '')) ?? []
    expect(new Set(sent).size).toBe(2)
    expect(sent[1]).toBe(made)
    expect(names.get(sent[0] ?? '')).toBe(long)
  })

  test('is another one everywhere: tools, choice, calls and results', () => {
    const name = 'x'.repeat(30)
    const { request: made, names } = fitted(
      {
        tools: [{ kind: 'function', name }],
        tool_choice: { name },
        messages: [
          { role: 'assistant', parts: [{ type: 'tool_call', id: '1', name, arguments: '{}' }] },
          { role: 'user', parts: [{ type: 'tool_result', id: '1', name, parts: [] }] },
        ],
      },
      { limits: { tool_name: limit } },
    )
    expect(JSON.stringify(made.messages) + JSON.stringify([made.tools, made.tool_choice])).not.toContain(name)
    expect([...names.values()]).toEqual([name])
  })
})

describe('what is over a limit', () => {
  test.each<[Partial<NeutralRequest>, Limits, Partial<NeutralRequest>, string[]]>([
    [{ temperature: 1.5 }, { temperature: { max: 1 } }, { temperature: 1 }, ['temperature']],
    [{ seed: 2 ** 40 }, { seed: { max: 2 ** 31, drop: true } }, { seed: undefined as never }, ['seed']],
    [{ max_output_tokens: 1 }, { max_output_tokens: { min: 16 } }, { max_output_tokens: 16 }, ['max_output_tokens']],
    [{ stop: ['a', 'b', 'c'] }, { stop: { count: 2 } }, { stop: ['a', 'b'] }, ['stop']],
    [{ stop: ['aaa', 'b'] }, { stop: { max: 2 } }, { stop: ['b'] }, ['stop']],
    [{ metadata: { a: 'x', b: 'y' } }, { metadata: { count: 1 } }, { metadata: { a: 'x' } }, ['metadata']],
    [{ tool_choice: 'required' }, { tool_choice: ['auto', 'none'] }, { tool_choice: 'auto' }, ['tool_choice']],
    [{ user: 'a b' }, { user: { pattern: /^\w+$/, drop: true } }, { user: undefined as never }, ['user']],
    [
      { reasoning: { budget: 10 } },
      { reasoning_budget: { min: 1024 } },
      { reasoning: { budget: 1024 } },
      ['reasoning.budget'],
    ],
  ])('%j under %j becomes %j, named', (members, limits, expected, lost) => {
    const result = fitted(members, { limits })
    for (const [name, value] of Object.entries(expected)) expect(result.request[name as 'user']).toEqual(value)
    expect(result.lost).toEqual(lost)
    expect([...result.changed]).toEqual(Object.keys(expected))
  })

  test('a user becomes a digest of fixed length, unnamed, since nothing is lost by it', () => {
    const { request: made, lost } = fitted(
      { user: '{"device_id":"…"}' },
      { limits: { user: { pattern: /^[\w-]+$/, max: 64 } } },
    )
    expect(made.user).toMatch(/^[0-9a-f]{64}$/)
    expect(lost).toEqual([])
  })

  test('more tools or images than are taken are refused with the number', () => {
    const tools = ['a', 'b'].map((name) => ({ kind: 'function' as const, name }))
    expect(() => fitted({ tools }, { limits: { tools: { count: 1 } } })).toThrow('takes at most 1 tools, not 2')
    const images = request({ messages: [{ role: 'user', parts: [{ type: 'image', url: 'https://a/b.png' }] }] })
    expect(excessOf(images, { images: { count: 0 } })).toMatchObject({ field: 'parts.image' })
  })

  test('a description that is too long is cut, named, and not in the middle of a character', () => {
    const tools = [
      { kind: 'function' as const, name: 'f', description: '1234567\u{1f600}x' },
      { kind: 'function' as const, name: 'g', description: '123456789' },
    ]
    const { request: made, lost } = fitted({ tools }, { limits: { tool_description: { max: 9 } } })
    expect(made.tools).toEqual([{ ...tools[0], description: '1234567…' }, tools[1]])
    expect(lost).toEqual(['tools.description'])
  })

  test('the only tool is demanded by its name or in general', () => {
    const tools = [{ kind: 'function' as const, name: 'f' }]
    const { request: made, lost } = fitted(
      { tools, tool_choice: { name: 'f' } },
      { limits: { tool_choice: ['auto', 'required'] } },
    )
    expect([made.tool_choice, lost]).toEqual(['required', []])
  })
})

describe('an effort', () => {
  test('becomes the nearest one, named', () => {
    const { request: made, lost } = fitted(
      { reasoning: { effort: 'minimal' } },
      { traits: { efforts: ['low', 'high'] } },
    )
    expect([made.reasoning, lost]).toEqual([{ effort: 'low' }, ['reasoning.effort']])
  })

  test.each([
    [{ budget: 2000 }, { thinking: 'adaptive' }, true],
    [{ effort: 'high' }, { thinking: 'budget' }, true],
    [{ effort: 'high' }, { thinking: 'adaptive' }, false],
    [{ budget: 2000 }, { thinking: 'budget' }, false],
    [{ effort: 'none' }, { thinking: 'adaptive', thinking_off: 'never' }, true],
    [{ effort: 'none' }, { thinking: 'adaptive', thinking_off: 'disabled' }, false],
    [{ budget: 2000 }, {}, false],
  ] as const)('%j for %j is written anew in an edited body: %j', (reasoning, traits, expected) => {
    expect(fitted({ reasoning }, { traits }).changed.has('reasoning')).toBe(expected)
    expect(fitted({ reasoning }, { traits, edited: false }).changed.has('reasoning')).toBe(false)
  })
})

describe('a schema', () => {
  test('without alternatives at the top has the members of all, and states the rule', () => {
    const schema = {
      type: 'object',
      properties: { a: {} },
      anyOf: [{ required: ['a'] }, { properties: { b: {} }, required: ['a', 'b'] }],
    }
    const { schema: made, lost } = fitSchema(schema, { root_union: false })
    expect(made).toMatchObject({ type: 'object', properties: { a: {}, b: {} }, required: ['a'] })
    expect(made).not.toHaveProperty('anyOf')
    expect(made.description).toContain('anyOf')
    expect(lost).toBe(true)
  })

  test('has a definition in the place of a reference with siblings; one that contains itself stays a reference', () => {
    const defs = { point: { type: 'object', properties: { next: { $ref: '#/$defs/point', description: 'Again.' } } } }
    const schema = { type: 'object', properties: { at: { $ref: '#/$defs/point', description: 'Here.' } }, $defs: defs }
    const made = fitSchema(schema, { ref_siblings: false }).schema as JsonObject & typeof schema
    expect(made.properties.at).toEqual({
      type: 'object',
      description: 'Here.',
      properties: { next: { $ref: '#/$defs/point' } },
    })
    expect(JSON.stringify(made).match(/"\$ref":"[^"]*","/g)).toBeNull()
  })

  test('that refers to itself a thousand times over is fitted in bounded time', () => {
    const level = (index: number) => ({
      type: 'object',
      properties: Object.fromEntries(
        ['a', 'b', 'c'].map((name) => [name, { $ref: `#/$defs/l${index + 1}`, description: name }]),
      ),
    })
    const $defs = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`l${index}`, level(index)]))
    const begun = process.cpuUsage()
    fitSchema(
      { type: 'object', properties: { a: { $ref: '#/$defs/l0', description: 'x' } }, $defs },
      { ref_siblings: false },
    )
    const { user, system } = process.cpuUsage(begun)
    expect((user + system) / 1000).toBeLessThan(1_000)
  })

  test('is fitted in bounded time and size, whatever its names and references', () => {
    const names = Array.from({ length: 60_000 }, (_, index) => `n${index}`)
    const properties = Object.fromEntries(names.slice(0, 4_000).map((name) => [name, { type: 'string' }]))
    const definition = { type: 'string', description: 'x'.repeat(9_000) }
    const many = Object.fromEntries(names.slice(0, 500).map((name) => [name, { $ref: '#/$defs/a', title: name }]))
    const begun = process.cpuUsage()
    fitSchema({ anyOf: [{ required: names }, { required: names.toReversed() }] }, { root_union: false })
    canBeStrict({ type: 'object', properties, required: names.toReversed() }, { strict: { all_required: true } })
    fitSchema(
      { allOf: names.slice(0, 20_000).map((name) => ({ properties: { [name]: {} }, required: [name] })) },
      { all_of: false },
    )
    const { schema } = fitSchema(
      { type: 'object', $defs: { a: definition }, properties: many },
      { ref_siblings: false },
    )
    const { user, system } = process.cpuUsage(begun)
    expect((user + system) / 1_000).toBeLessThan(3_000)
    expect(JSON.stringify(schema).length).toBeLessThan(120_000)
  })

  test('with names of any kind keeps them', () => {
    const odd = JSON.parse(
      '{"type":"object","anyOf":[{"properties":{"__proto__":{"type":"string"},"constructor":{}}}]}',
    )
    const { properties } = fitSchema(odd, { root_union: false }).schema
    expect(Object.keys(properties as JsonObject).toSorted()).toEqual(['__proto__', 'constructor'])
    const ref = {
      type: 'object',
      $defs: { '100%': { type: 'string' } },
      properties: { a: { $ref: '#/$defs/100%', title: 'x' } },
    }
    expect(fitSchema(ref, { ref_siblings: false }).schema.properties).toEqual({ a: { type: 'string', title: 'x' } })
  })

  test('with a type everywhere has none beside alternatives', () => {
    const schema = {
      type: 'object',
      properties: { a: { description: 'x' }, b: { type: 'string', anyOf: [{}, { type: 'null' }] } },
    }
    expect(fitSchema(schema, { typed: true }).schema.properties).toEqual({
      a: { description: 'x', type: 'string' },
      b: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    })
  })

  test.each<[object, Parameters<typeof fitSchema>[1], object]>([
    [
      { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }] },
      { tuples: false },
      { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'number' }] } },
    ],
    [{ const: 'a' }, { consts: false }, { enum: ['a'] }],
    [{ type: 'array' }, { array_items: true }, { type: 'array', items: {} }],
    [{ enum: ['', 'a'] }, { enum_texts: true }, { enum: ['a'] }],
    [{ type: 'integer', enum: [1, 2] }, { enum_texts: true }, { type: 'integer', description: '(enum: [1,2])' }],
    [{ type: 'string', pattern: '^a' }, { refused: ['pattern'] }, { type: 'string', description: '(pattern: "^a")' }],
    [{ type: 'string', format: 'uri' }, { formats: ['date'] }, { type: 'string', description: '(format: "uri")' }],
  ])('%j under %j becomes %j', (schema, limit, expected) => {
    const outer = { type: 'object', properties: { a: schema as JsonObject } }
    expect(fitSchema(outer, limit).schema).toEqual({ type: 'object', properties: { a: expected } })
  })

  test('that is fine stays the same object', () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      additionalProperties: false,
    }
    const limit = {
      root_union: false,
      ref_siblings: false,
      typed: true,
      tuples: false,
      consts: false,
      array_items: true,
    } as const
    expect(fitSchema(schema, limit).schema).toBe(schema)
    expect(canBeStrict(schema, { strict: { all_required: true, closed: true } })).toBe(true)
  })

  test.each([
    [{ type: 'object', properties: { a: {} }, additionalProperties: false }, false],
    [{ type: 'object', properties: { a: {} }, required: ['a'] }, false],
    [{ type: 'object', properties: { a: { oneOf: [] } }, required: ['a'], additionalProperties: false }, false],
    [
      {
        type: 'object',
        properties: { a: { type: 'object', properties: { b: {} }, additionalProperties: false } },
        required: ['a'],
        additionalProperties: false,
      },
      false,
    ],
  ])('%j is strict: %j', (schema, expected) => {
    const strict = { all_required: true, closed: true, refused: ['oneOf'] } as const
    expect(canBeStrict(schema, { strict })).toBe(expected)
  })

  test('that cannot be strict is sent without, named', () => {
    const parameters = { type: 'object', properties: { a: {} } }
    const tools = [{ kind: 'function' as const, name: 'f', strict: true, parameters }]
    const { request: made, lost } = fitted({ tools }, { limits: { tool_schema: { strict: { all_required: true } } } })
    expect([made.tools, lost]).toEqual([[{ ...tools[0], strict: false }], ['tools.strict']])
  })
})

describe('a conversation', () => {
  const call: Message = { role: 'assistant', parts: [{ type: 'tool_call', id: 'c', name: 'f', arguments: '{}' }] }
  const result: Message = {
    role: 'user',
    parts: [{ type: 'tool_result', id: 'c', parts: [{ type: 'text', text: 'x' }] }],
  }
  const instruction: Message = { role: 'system', parts: [{ type: 'text', text: 'Be brief.' }] }
  const edit = (messages: Message[], history: HistoryRules, more: Partial<NeutralRequest> = {}) =>
    fitted({ messages, ...more }, { history })

  test('whose instructions stand in the middle has them at the head', () => {
    const { request: made, changed } = edit([hi, instruction, hi], { mid_system: 'head' })
    expect([made.system, made.messages]).toEqual([instruction.parts, [hi, hi]])
    expect([...changed].sort()).toEqual(['messages', 'system'])
  })

  test('has a word of the assistant between a result and the next question', () => {
    const { request: made } = edit([hi, call, result, hi], { user_after_tool: false })
    expect(made.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user'])
    expect(edit([hi, call, result], { user_after_tool: false }).changed.size).toBe(0)
  })

  test('gives what a tool returned as an image to the user after that word', () => {
    const image: Message = {
      role: 'user',
      parts: [{ type: 'tool_result', id: 'c', parts: [{ type: 'image', data: 'aGk=', media_type: 'image/png' }] }],
    }
    const { request: made } = edit([hi, call, image], { user_after_tool: false })
    expect(made.messages.at(-1)?.parts).toMatchObject([{ type: 'text' }, { type: 'image' }])
    expect(made.messages.at(-3)?.parts).toMatchObject([{ type: 'tool_result', parts: [{ type: 'text' }] }])
  })

  test('that is well paired is not written anew, however its results are spread over messages', () => {
    const two: Message = {
      role: 'assistant',
      parts: ['a', 'b'].map((id) => ({ type: 'tool_call' as const, id, name: 'f', arguments: '{}' })),
    }
    const results = ['a', 'b'].map((id): Message => ({ role: 'user', parts: [{ type: 'tool_result', id, parts: [] }] }))
    expect(edit([hi, two, ...results], { pair_tools: true, results_first: true }).changed.size).toBe(0)
    expect(edit([hi, two, results[0] as Message], { pair_tools: true }).changed.size).toBe(1)
  })

  test('that continues a stored one may have results without their calls', () => {
    const origin = { api: 'responses' as const, body: { previous_response_id: 'resp_1' } }
    expect(edit([result], { pair_tools: true }, { origin }).changed.size).toBe(0)
  })
})
