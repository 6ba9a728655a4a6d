import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { catalogue } from '../../src/core/errors.ts'
import { isObject } from '../../src/core/json.ts'
import { checkSchema, readSchema } from '../../src/manifest/check/schema.ts'
import { readSource } from '../../src/manifest/read/source.ts'
import { acme, formatted } from './files.ts'

const kinds = ['catalog', 'provider', 'dialect', 'config'] as const

test('the published schemas are JSON schemas', () => {
  const ajv = new Ajv2020({ allowUnionTypes: true, strict: true })
  ajv.addVocabulary(['patternErrorMessage', 'x-restart', 'x-secret'])
  for (const kind of kinds) ajv.addSchema(readSchema(kind))
  for (const kind of kinds) expect(ajv.getSchema(`${kind}.schema.json`)).toBeTypeOf('function')
})

test('every error that a manifest may name is in the catalogue', () => {
  const { $defs } = readSchema('provider') as { $defs: { errorCode: { enum: string[] } } }
  expect(Object.keys(catalogue)).toEqual(expect.arrayContaining($defs.errorCode.enum))
})

test('every object of a schema refuses unknown members, so that a typo never passes', () => {
  const open: string[] = []
  const closed = (others: unknown) => others === false || isObject(others)
  const visit = (node: unknown, path: string): void => {
    if (Array.isArray(node)) for (const [index, item] of node.entries()) visit(item, `${path}/${index}`)
    if (!isObject(node)) return
    if (isObject(node.properties) && !closed(node.additionalProperties)) open.push(path)
    for (const [name, member] of Object.entries(node)) visit(member, `${path}/${name}`)
  }
  for (const kind of kinds) visit(readSchema(kind), kind)
  expect(open).toEqual([])
})

describe('a manifest with mistakes', () => {
  const changing = (change: string) => `${acme}models:\n  m:\n    price_changes: [{ ${change} }]\n`
  const problems = (text: string) => formatted(checkSchema(readSource('acme.yaml', text), 'provider'))

  test('possible secrets are not repeated: problems go to logs', () => {
    for (const secret of ['sk-live-123', '123']) {
      const found = problems(acme.replace(/auth: .*/, `auth: { scheme: bearer, secret: ${secret} }`))
      expect(found).toEqual([expect.stringMatching(/secrets do not stand in files$/)])
      expect(found.join()).not.toContain(secret)
    }
  })

  test.each([
    ['an unknown field', `${acme}endpoint: {}\n`, '6:1 unknown field `endpoint`; did you mean `endpoints`?'],
    [
      'a field that nothing resembles',
      `${acme}frobnicate: 1\n`,
      '6:1 unknown field `frobnicate`; known here: slug, name',
    ],
    [
      'a nested unknown field',
      `${acme}timeouts: { conect: 5s }\n`,
      '6:13 unknown field `conect`; did you mean `connect`?',
    ],
    ['a missing field', acme.replace('name: Acme\n', ''), '1:1 the file needs `name`'],
    ['a wrong type', acme.replace('Acme', '[]'), '2:7 `name` must be a string, not a list'],
    [
      'a wrong choice',
      `${acme}unknown_models: refsue\n`,
      '`unknown_models` must not be "refsue"; did you mean `refuse`?',
    ],
    [
      'a duration without a unit',
      `${acme}timeouts: { total: 5 }\n`,
      '6:20 `timeouts.total` must be a duration: a number and its unit',
    ],
    [
      'an unknown error',
      `${acme}errors: { 429: rate_limitd }\n`,
      '6:16 `errors[429]` must not be "rate_limitd"; did you mean `rate_limited`?',
    ],
    [
      'a negative price',
      `${acme}models:\n  m:\n    pricing: [{ prompt_tokens_threshold: 0, input_price: -1, output_price: 0 }]\n`,
      '8:58 `models.m.pricing[0].input_price` must be at least 0, not -1',
    ],
    [
      'a date without a clock',
      changing('from: 2026-12-01, pricing: []'),
      '8:29 `models.m.price_changes[0].from` must be a moment such as 2026-12-01T00:00:00Z, not "2026-12-01"',
    ],
    [
      'hours of no clock',
      changing('weekly: { hours: ["9-12"] }'),
      '8:41 `models.m.price_changes[0].weekly.hours[0]` must be hours such as "09:00-12:00", not "9-12"',
    ],
    [
      'an unknown day',
      changing('weekly: { hours: ["09:00-12:00"], days: [monday] }'),
      '8:64 `models.m.price_changes[0].weekly.days[0]` must be one of mon, tue, wed, thu, fri, sat, sun, not "monday"',
    ],
    [
      'a clock by its name',
      changing('weekly: { hours: ["09:00-12:00"], utc_offset: CST }'),
      '8:69 `models.m.price_changes[0].weekly.utc_offset` must be an offset such as "+08:00", not "CST"',
    ],
    [
      'hours that are none',
      changing('weekly: { hours: [] }'),
      '8:40 `models.m.price_changes[0].weekly.hours` must not be empty',
    ],
    ['a slug with capitals', acme.replace('slug: acme', 'slug: Acme'), '1:7 `slug` must be a slug: small letters'],
  ])('%s is told with its place and the fix', (_, text, expected) => {
    expect(problems(text)).toEqual([expect.stringContaining(expected)])
  })

  test('a literal secret is refused and not repeated elsewhere', () => {
    expect(problems(acme.replace('none', 'bearer, secret: sk-123'))).toEqual([
      expect.stringMatching(/^4:33 `auth.secret` must be a reference to the environment, "\$\{NAME\}"/),
    ])
  })

  test('all problems are reported at once', () => {
    expect(problems('slug: acme\nnam: x\nbase_url: 3\n')).toHaveLength(4)
  })
})
