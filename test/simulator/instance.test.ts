import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { instanceOf } from '../../src/simulator/instance.ts'

const ajv = new Ajv2020({
  strict: false,
  formats: { email: /@/, 'date-time': /T/, date: /^\d{4}-\d\d-\d\d$/, uuid: /^[0-9a-f-]{36}$/ },
})

const schemas: [string, object, unknown][] = [
  [
    'required members only',
    { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } }, required: ['a'] },
    { a: 'a' },
  ],
  ['no members at all', { type: 'object' }, {}],
  ['members without a declared type', { properties: { a: { type: 'boolean' } }, required: ['a'] }, { a: true }],
  ['the first of an enumeration', { enum: ['red', 'blue'] }, 'red'],
  ['a constant', { const: 7 }, 7],
  [
    'a default, or an example',
    { type: 'object', properties: { a: { default: 1 }, b: { examples: ['x'] } }, required: ['a', 'b'] },
    { a: 1, b: 'x' },
  ],
  ['a list of one', { type: 'array', items: { type: 'integer' } }, [1]],
  [
    'as many items as must be',
    { type: 'array', items: { type: 'string' }, minItems: 3, uniqueItems: true },
    ['value', 'value 2', 'value 3'],
  ],
  ['a tuple', { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false }, ['value', 0.5]],
  ['numbers within bounds', { type: 'integer', minimum: 10, maximum: 12 }, 10],
  ['numbers beyond an open bound', { type: 'integer', exclusiveMinimum: 4 }, 5],
  ['numbers in steps', { type: 'number', minimum: 0.2, multipleOf: 0.25 }, 0.5],
  ['negative numbers', { type: 'number', maximum: -3 }, -3],
  ['text of a length', { type: 'string', minLength: 8, maxLength: 9 }, 'valuexxx'],
  ['text of a format', { type: 'string', format: 'date' }, '2026-01-02'],
  ['a type or null', { type: ['null', 'integer'] }, 1],
  ['any of several, rather than null', { anyOf: [{ type: 'null' }, { type: 'boolean' }] }, true],
  [
    'all of several',
    {
      allOf: [
        { type: 'object', properties: { a: { const: 1 } }, required: ['a'] },
        { properties: { b: { const: 2 } }, required: ['b'] },
      ],
    },
    { a: 1, b: 2 },
  ],
  [
    'a definition',
    { $defs: { x: { type: 'string' } }, type: 'object', properties: { a: { $ref: '#/$defs/x' } }, required: ['a'] },
    { a: 'a' },
  ],
]

test.each(schemas)('%s', (_, schema, expected) => {
  const instance = instanceOf(schema)
  expect(instance).toEqual(expected)
  ajv.validate(schema, instance)
  expect(ajv.errors ?? []).toEqual([])
})

test('a schema that contains itself comes to an end', () => {
  const tree = {
    $defs: {
      node: {
        type: 'object',
        properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
        required: ['name', 'children'],
      },
    },
    $ref: '#/$defs/node',
  }
  const instance = instanceOf(tree)
  expect(ajv.validate(tree, instance)).toBe(true)
  expect(JSON.stringify(instance).length).toBeLessThan(1_000)
})

test('an invalid schema yields an empty object', () => {
  expect(instanceOf(undefined)).toEqual({})
  expect(instanceOf('string')).toEqual({})
})
