import { afterAll, beforeAll, expect, test } from 'vitest'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import { type Operation, operations, resolved, validator } from '../helpers/openapi.ts'
import { type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { testEach } from '../helpers/slow.ts'

let router: TestRouter
beforeAll(async () => {
  router = await testRouter({ files: {} })
})
afterAll(() => router.end())

/** A body that an operation takes: its schema as published, and its example. */
type Taken = { operation: Operation; schema: Json; example: JsonObject }

const taking: Taken[] = operations
  // A request that is only explained or tried is one of a client API.
  .filter(({ path, body }) => path.startsWith('/v1/manage') && !/\/(?:explain|try)$/.test(path) && body.requestBody)
  .map((operation) => {
    const { content } = operation.body.requestBody as { content: { 'application/json': JsonObject } }
    const { schema, example = {} } = content['application/json']
    return { operation, schema: schema as Json, example: example as JsonObject }
  })

/** Values of every type, at and beyond the bounds that a field may have. */
const values: readonly Json[] = [
  ...[null, true, false, 0, 1, -1, 1.5, 0.000_000_001, 1e-10, 9_000_000, 9_000_001, -9_000_001, 1e12, 1e13],
  ...[
    '',
    ' ',
    'x',
    'two words',
    'two\nlines',
    'ü',
    'x'.repeat(200),
    'x'.repeat(201),
    'x'.repeat(257),
    'x'.repeat(1_001),
  ],
  ...['weighted', 'session', 'hold', 'next', '10s', '0s', '25h', 1_000_001],
  ...[[{ target: 'demo/echo', weight: 2 }], [{ target: 'demo/echo', weight: -1 }], [{ target: 'demo/echo', share: 1 }]],
  ...[[{ weight: 1 }], [{ target: 'demo/echo', weight: '1' }], [{ target: 'demo/echo', weight: 0 }]],
  ...['demo/echo', 'demo/*', 'policy/x', '-x', 'x-', 'read', '2030-01-31T00:00:00Z', '2030-01-31', '01:00'],
  ...[
    [],
    [''],
    ['x'],
    [1],
    ['demo/echo', 'demo/echo'],
    [null],
    Array(101).fill('demo/echo'),
    Array(10_001).fill('demo/echo'),
  ],
  ...[{}, { strange: 1 }, { manage: 'write' }, { manage: 'all' }, { manage: null }, { completions: 'read', x: 'read' }],
  ...[{ team: 'search' }, { team: 1 }, { '': 'x' }, { team: '' }, { team: 'x'.repeat(1_001) }, { 'two\nlines': 'x' }],
  Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`label${at}`, 'x'])),
  { ['x'.repeat(201)]: 'x' },
]

/** Refusals that depend on what there is, or on the time: no description can say them. */
const byCircumstances =
  /names an unknown|names a region|is the alias itself|There is no (?:model|policy|group)|is in use|There is already|has passed|but the path names|at most 24h|All weights/

async function ask({ method, path }: Operation, body: JsonObject): Promise<{ status: number; message: string }> {
  const response = await fetch(router.url + path, {
    method,
    headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, message: text === '' ? '' : (JSON.parse(text).error?.message ?? '') }
}

/** Every so many-th of the bodies is enough for the fast suite. */
const cases = [10, 1].flatMap((step) =>
  taking.map((taken) => [`${taken.operation.method} ${taken.operation.path}`, step, taken] as const),
)

testEach(cases, { slowIf: ([, step]) => step === 1 })(
  '%s takes exactly the bodies that the description allows (step %d)',
  async (_, step, { operation, schema, example }) => {
    const id = await subject(operation.path)
    const at = { ...operation, path: operation.path.replace('{id}', id) }
    const accepts = validator(schema)
    const { properties = {}, required = [] } = resolved(schema) as { properties: JsonObject; required: string[] }
    const bodies: JsonObject[] = [
      { ...example, strange: 1 },
      ...required.map((name) => Object.fromEntries(Object.entries(example).filter(([other]) => other !== name))),
      ...Object.keys(properties).flatMap((name) => values.map((value) => ({ ...example, [name]: value }))),
    ]
    const disagreements: string[] = []
    for (const body of bodies.filter((_, index) => index % step === 0)) {
      const { status, message } = await ask(at, fresh(body, example))
      const shown = JSON.stringify(body).slice(0, 100)
      const allowed = accepts(body)
      if (allowed && status >= 400 && !byCircumstances.test(message))
        disagreements.push(`${shown} → ${status} ${message}`)
      if (!allowed && status < 400)
        disagreements.push(`${shown} → ${status}, although ${JSON.stringify(accepts.errors?.[0])}`)
    }
    expect(disagreements).toEqual([])
  },
)

/** The example's names are used once: the description says nothing of names that are in use. */
let count = 0
function fresh(body: JsonObject, example: JsonObject): JsonObject {
  const renamed = ['name', 'id'].filter((name) => body[name] !== undefined && body[name] === example[name])
  return { ...body, ...Object.fromEntries(renamed.map((name) => [name, `fresh-${count++}`])) }
}

/** A new key, group or policy to change. */
async function subject(path: string): Promise<string> {
  const name = `subject-${count++}`
  const [, , , kind = ''] = path.split('/')
  if (!path.includes('{id}')) return ''
  const body = kind === 'policy' ? { id: name, targets: ['demo/echo'] } : { name }
  const made = (await (await router.call(`/v1/manage/${kind}`, body)).json()) as JsonObject
  return String(made.api_key_id ?? made.group_id ?? made.id)
}

test('every object that a body may have says that it has no other members', () => {
  const open = taking.flatMap(({ operation, schema }) => openObjects(schema, `${operation.method} ${operation.path}`))
  expect(open).toEqual([])
})

function openObjects(schema: Json | undefined, path: string): string[] {
  const found = resolved(schema)
  if (!isObject(found)) return []
  const { properties, additionalProperties } = found
  const below = Object.entries(isObject(properties) ? properties : {}).flatMap(([name, member]) =>
    openObjects(member, `${path}.${name}`),
  )
  return isObject(properties) && additionalProperties === undefined ? [path, ...below] : below
}
