import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readMapping } from '../../src/mapping/mapping.ts'
import { limit, processorTime } from '../helpers/time.ts'

/** The value of a mapping, compiled and by the library. */
async function values(text: string, input: unknown = {}): Promise<unknown[]> {
  const compiled = readMapping(text)
  // `$eval` is left to the library.
  const interpreted = readMapping(`($eval("1"); ${text})`)
  expect([compiled.compiled, interpreted.compiled]).toEqual([true, false])
  return [compiled.run(input), await interpreted.run(input)]
}

async function expectValue(text: string, input: unknown, value: unknown): Promise<void> {
  expect(await values(text, input)).toEqual([value, value])
}

const source = readFileSync(join(import.meta.dirname, '../../src/mapping/functions.ts'), 'utf8')
const examples = [...source.matchAll(/`(\$[^`]+)` is `([^`]+)`/g)].map(([, text, value]) => [text, value] as const)

test.each(examples)('%s is %s, as its comment says', async (text, value) => {
  await expectValue(text as string, {}, readMapping(value as string).run({}))
})

test('every function has an example', () => {
  expect(examples.length).toBeGreaterThan(15)
})

describe('$jsonArguments', () => {
  test.each([
    ['{"a":1}', { a: 1 }],
    ['', {}],
    ['  ', {}],
    ['null', {}],
    ['[1]', { input: '[1]' }],
    ['7', { input: '7' }],
    ['{"a":', { input: '{"a":' }],
    [{ a: 1 }, { a: 1 }],
  ])('%j as an object', async (given, value) => {
    await expectValue('$jsonArguments(a)', { a: given }, value)
  })

  test('nothing is no arguments', async () => {
    await expectValue('$jsonArguments(missing)', {}, {})
  })
})

describe('$partEvent', () => {
  test.each([
    [
      { type: 'text', text: 'Hi', signature: 's', citations: [{ url: 'u' }] },
      { text: 'Hi', signature: 's' },
    ],
    [{ type: 'refusal', text: 'No.' }, { refusal: 'No.' }],
    [{ type: 'reasoning', summary: 'S', by: 'maker' }, { reasoning: { summary: 'S' } }],
    [{ type: 'tool_call', id: 'a', name: 'f', arguments: '{}' }, { tool: { id: 'a', name: 'f', arguments: '{}' } }],
    [{ type: 'search', id: 's', query: 'q' }, { search: { id: 's', query: 'q' } }],
    [{ type: 'opaque', body: [{ a: 1 }] }, { opaque: { body: [{ a: 1 }] } }],
    [{ type: 'image', url: 'u' }, { media: { type: 'image', url: 'u' } }],
  ])('of %j is %j', async (part, event) => {
    await expectValue('$partEvent(p)', { p: part }, event)
    await expectValue('[p.$partEvent($)]', { p: [part, part] }, [event, event])
  })

  test('of nothing is missing', async () => {
    await expectValue('$partEvent(missing)', {}, undefined)
  })
})

describe('$plainText', () => {
  const text = { type: 'text', text: 'Hi' }

  test('is the text of a single block that holds nothing else', async () => {
    await expectValue('$plainText(b)', { b: [text] }, 'Hi')
    await expectValue('{ "content": $plainText(b) }', { b: [{ type: 'input_text', text: '' }] }, { content: '' })
  })

  test.each([[[text, text]], [[{ ...text, cache: {} }]], [[{ type: 'image', url: 'u' }]], [[]], ['Hi']])(
    '%j stays as it is',
    async (blocks) => {
      await expectValue('{ "content": $plainText(b) }', { b: blocks }, { content: blocks })
    },
  )

  test('of nothing is missing', async () => {
    await expectValue('$plainText(missing)', {}, undefined)
  })
})

describe('$joinTexts', () => {
  test.each([
    [['a', 'b'], ['ab']],
    [
      ['a', { b: 1 }, 'c', '', 'd'],
      ['a', { b: 1 }, 'cd'],
    ],
    [
      [{ b: 1 }, { b: 2 }],
      [{ b: 1 }, { b: 2 }],
    ],
    [[], []],
  ])('of %j is %j', async (list, joined) => {
    await expectValue('{ "list": $joinTexts(l) }', { l: list }, { list: joined })
  })

  test('of nothing is missing', async () => {
    await expectValue('$joinTexts(missing)', {}, undefined)
  })
})

describe('$dataUrl', () => {
  test('returns the media type of the part, else the given one', async () => {
    await expectValue('$dataUrl(p)', { p: { data: 'aGk=' } }, 'data:application/octet-stream;base64,aGk=')
    await expectValue('$dataUrl(p, "image/png")', { p: { data: 'aGk=' } }, 'data:image/png;base64,aGk=')
    await expectValue('$dataUrl(p)', { p: { data: 'aGk=', filename: 'a.txt' } }, 'data:text/plain;base64,aGk=')
  })

  test('of a part without data is its address, or missing', async () => {
    await expectValue('[p.$dataUrl($)]', { p: [{ url: 'https://x.example/a' }, { file_id: 'f' }] }, [
      'https://x.example/a',
    ])
  })
})

describe('$mediaType and $mediaFormat', () => {
  test.each([
    [{ media_type: 'Audio/X-WAV; rate=8000' }, 'audio/wav', 'wav'],
    [{ media_type: 'application/octet-stream', filename: 'table.csv' }, 'text/csv', 'csv'],
    [{ media_type: 'application/octet-stream' }, 'application/octet-stream', undefined],
    [{ media_type: 'text/x-python', filename: 'a.txt' }, 'text/x-python', undefined],
    [{ url: 'https://x.example/a.JPG?size=2' }, 'image/jpeg', 'jpeg'],
    [{ url: 'data:image/gif;base64,R0lGODlh' }, 'image/gif', 'gif'],
    [{ file_id: 's3://bucket/film.mov' }, 'video/quicktime', 'mov'],
    [{ data: 'iVBORw0KGgoAAAANSUhEUg==' }, 'image/png', 'png'],
    [{ data: 'UklGRiQAAABXRUJQVlA4IA==' }, 'image/webp', 'webp'],
    [{ data: 'UklGRiQAAABXQVZFZm10IA==' }, 'audio/wav', 'wav'],
    [{ data: 'aGVsbG8gdGhlcmU=' }, undefined, undefined],
    [{ media_type: 'audio/mp4' }, 'audio/mp4', 'mp4'],
    ['report.final.docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'docx'],
    ['data:text/markdown,x', undefined, undefined],
    [7, undefined, undefined],
  ])('%j', async (part, type, format) => {
    await expectValue('$mediaType(p)', { p: part }, type)
    await expectValue('$mediaFormat(p)', { p: part }, format)
  })

  test('of a long hostile name takes no time', async () => {
    const name = `${'.'.repeat(1_000_000)}?${'#'.repeat(1_000_000)}`
    const { ms } = await processorTime(() => expectValue('$mediaType(p)', { p: name }, undefined))
    expect(ms).toBeLessThan(limit(1_000))
  })
})

describe('$narrowSchema', () => {
  test('writes unsupported rules into descriptions at every depth, and closes objects', async () => {
    const schema = {
      type: 'object',
      properties: {
        minimum: { type: 'integer', minimum: 0, description: 'At least.' },
        list: { type: 'array', items: { type: 'string', format: 'phone' }, minItems: 2 },
        when: { oneOf: [{ type: 'string', format: 'date' }, { $ref: '#/$defs/span' }] },
        fixed: { enum: [{ minimum: 1 }] },
        any: true,
      },
      required: ['minimum'],
      $defs: { span: { allOf: [{ properties: { days: { type: 'number', maximum: 9 } } }] } },
    }
    await expectValue(
      '$narrowSchema(schema)',
      { schema },
      {
        schema: {
          type: 'object',
          properties: {
            minimum: { type: 'integer', description: 'At least. (minimum: 0)' },
            list: {
              type: 'array',
              items: { type: 'string', description: '(format: "phone")' },
              description: '(minItems: 2)',
            },
            when: { anyOf: [{ type: 'string', format: 'date' }, { $ref: '#/$defs/span' }] },
            fixed: { enum: [{ minimum: 1 }] },
            any: true,
          },
          required: ['minimum'],
          $defs: {
            span: {
              allOf: [
                { properties: { days: { type: 'number', description: '(maximum: 9)' } }, additionalProperties: false },
              ],
            },
          },
          additionalProperties: false,
        },
        narrowed: true,
        open: false,
      },
    )
  })

  test('keeps the members in their order', () => {
    const text = '$toJson($narrowSchema({"description": "d", "minLength": 1, "type": "string"}).schema)'
    expect(readMapping(text).run({})).toBe('{"description":"d (minLength: 1)","type":"string"}')
  })

  test.each([
    [{ type: 'object' }, false, false],
    [{ properties: { pattern: { type: 'string' }, not: {} } }, false, false],
    [{ const: { additionalProperties: true, minimum: 1 } }, false, false],
    [{ type: 'array', minItems: 1 }, false, false],
    [{ type: 'array', minItems: 10 }, true, false],
    [{ not: { type: 'null' } }, true, false],
    [{ items: { type: 'object', additionalProperties: { type: 'string' } } }, false, true],
    [{ anyOf: [{ additionalProperties: true }] }, false, true],
    [{ properties: { a: { patternProperties: { '^x': {} } } } }, false, true],
    [{ $defs: { a: { oneOf: [{ additionalProperties: {} }] } } }, false, true],
    [{}, false, false],
  ])('of %j says whether it is narrowed or open', async (schema, narrowed, open) => {
    await expectValue('$narrowSchema(schema).[narrowed, open]', { schema }, [narrowed, open])
  })

  test('leaves open objects open', () => {
    const schema = { type: 'object', additionalProperties: true }
    expect(readMapping('$narrowSchema(schema).schema').run({ schema })).toEqual(schema)
  })

  test('separates both kinds of alternatives', () => {
    const schema = { anyOf: [{ type: 'string' }], oneOf: [{ minLength: 1 }] }
    expect(readMapping('$narrowSchema(schema).schema').run({ schema })).toEqual({
      anyOf: [{ type: 'string' }],
      allOf: [{ anyOf: [{ description: '(minLength: 1)' }] }],
    })
  })

  test('takes the list of unsupported rules', async () => {
    const options = { refused: ['pattern'], formats: ['phone'], min_items: 2 }
    const schema = { pattern: 'x', minimum: 1, format: 'phone', minItems: 2 }
    await expectValue(
      '$narrowSchema(schema, options)',
      { schema, options },
      {
        schema: { minimum: 1, format: 'phone', minItems: 2, description: '(pattern: "x")' },
        narrowed: true,
        open: false,
      },
    )
  })

  test('of no schema is missing, and a schema nested without end an error', () => {
    expect(readMapping('$narrowSchema(missing)').run({})).toBeUndefined()
    let schema: object = {}
    for (let depth = 0; depth < 100_000; depth++) schema = { items: schema }
    expect(() => readMapping('$narrowSchema(schema)').run({ schema })).toThrow(/D1011|stack|deep/i)
  })
})

describe('$reasoningEffort and $nearestEffort', () => {
  test.each([
    [{ effort: 'high', budget: 1 }, 'high'],
    [{ budget: 0 }, 'none'],
    [{ budget: -1 }, undefined],
    [{ budget: 1024 }, 'low'],
    [{ budget: 8192 }, 'medium'],
    [{ budget: 8193 }, 'high'],
    [{ summary: 'auto' }, undefined],
    [undefined, undefined],
  ])('the effort of %j', async (reasoning, effort) => {
    await expectValue('$reasoningEffort(reasoning)', { reasoning }, effort)
  })

  test.each([
    ['low', ['low', 'high'], 'low'],
    ['medium', ['low', 'high'], 'high'],
    ['minimal', ['none', 'low'], 'low'],
    ['none', ['medium', 'high'], 'medium'],
    ['max', ['low', 'xhigh', 'high'], 'xhigh'],
    ['xhigh', ['low', 'high', 'max'], 'high'],
    ['xhigh', ['max'], 'max'],
    ['high', ['low'], 'low'],
    ['high', [], 'high'],
    ['low', ['none', 'default'], 'default'],
    ['none', ['none', 'default'], 'none'],
    ['low', ['none', 'default', 'low'], 'low'],
    ['turbo', ['low'], 'turbo'],
    [undefined, ['low'], undefined],
  ])('nearest to %j of %j', async (effort, levels, nearest) => {
    await expectValue('$nearestEffort(effort, levels)', { effort, levels }, nearest)
  })
})

describe('$reasoningBudget', () => {
  test.each([
    [{ budget: 300, effort: 'max' }, 300],
    [{ budget: -1, effort: 'low' }, 200],
    [{ effort: 'xhigh' }, 950],
    [{ summary: 'auto' }, 500],
    [undefined, undefined],
  ])('%j of 1001 tokens is %j', async (reasoning, tokens) => {
    await expectValue('$reasoningBudget(r, 1001)', reasoning ? { r: reasoning } : {}, tokens)
  })
})

describe('$jsonInstruction', () => {
  test('shows the schema as it is', async () => {
    const schema = { type: 'number', maximum: 1e21 }
    const [text] = await values('$jsonInstruction(schema)', { schema })
    expect(text).toMatch(/^Answer with one JSON value .*\nIt must be valid against this JSON schema:\n/)
    expect(String(text).split('\n').at(-1)).toBe(JSON.stringify(schema))
  })
})

describe('$joinTurns', () => {
  const turn = (role: string, ...content: unknown[]) => ({ role, content })

  test('joins neighbors of one role and leaves the others', async () => {
    const turns = [turn('user', 1), turn('user'), turn('user', 2), turn('assistant', 3), turn('user', 4)]
    const joined = [turn('user', 1, 2), turn('assistant', 3), turn('user', 4)]
    await expectValue('$joinTurns(turns)', { turns }, joined)
    expect(turns[0]).toEqual(turn('user', 1))
  })

  test('of one turn, or of none, is a list', async () => {
    await expectValue('{ "turns": $joinTurns([turns]) }', { turns: [turn('user', 1)] }, { turns: [turn('user', 1)] })
    await expectValue('{ "turns": $joinTurns([turns]) }', {}, { turns: [] })
  })
})

describe('$distinctNames', () => {
  test('numbers repeated names in the order in which they come, at the given paths alone', async () => {
    const given = [
      { file: { name: 'A' }, input: { file: { name: 'A' } } },
      { result: [{ file: { name: 'a' } }, { file: { name: 'b' } }, { file: {} }] },
      { file: { name: 'A', size: 3 } },
    ]
    const named = [
      { file: { name: 'A' }, input: { file: { name: 'A' } } },
      { result: [{ file: { name: 'a [2]' } }, { file: { name: 'b' } }, { file: {} }] },
      { file: { name: 'A [3]', size: 3 } },
    ]
    await expectValue('$distinctNames(list, ["file.name", "result.file.name"])', { list: given }, named)
    await expectValue('$distinctNames(missing, ["file.name"])', {}, undefined)
  })
})

describe('$toolSchema', () => {
  /** Under its name, and under the former one. */
  const both = (dropped: string) => ({ dropped, lost: dropped })
  const closed = { type: 'object', properties: { n: { type: 'integer' } }, additionalProperties: false }

  test.each([
    [{ parameters: { description: 'd' } }, true, { schema: { properties: {}, description: 'd', type: 'object' } }],
    [{ strict: false, parameters: closed }, true, { schema: closed }],
    [{ strict: true, parameters: closed }, true, { schema: closed, strict: true }],
    [{ strict: true, parameters: closed }, undefined, { schema: closed, ...both('tools.strict') }],
    [
      { strict: true, parameters: { additionalProperties: true } },
      true,
      { schema: { properties: {}, additionalProperties: true, type: 'object' }, ...both('tools.strict') },
    ],
    [
      { strict: true, parameters: { minProperties: 1 } },
      true,
      {
        schema: { properties: {}, type: 'object', description: '(minProperties: 1)', additionalProperties: false },
        strict: true,
        ...both('tools.parameters'),
      },
    ],
  ])('of %j where schemas bind: %j', async (tool, takesStrict, made) => {
    await expectValue('$toolSchema(tool, takes)', { tool, ...(takesStrict && { takes: takesStrict }) }, made)
  })
})
