import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { readSchema } from '../../src/manifest/check/schema.ts'
import { described, type Field, manifestPage, sections } from './manifest-page.ts'

test('the page is made of the schemas of today', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/manifest.md'), 'utf8')
  expect(page, 'npm run docs:manifest').toBe(manifestPage())
})

const ajv = new Ajv2020({ strict: false, verbose: true })
for (const name of ['catalog', 'provider', 'dialect'] as const) ajv.addSchema(readSchema(name))
const fields = sections.flatMap((section) =>
  section.fields.map((field): [string, Field] => [`${section.title}: ${field.name}`, field]),
)

describe('each field', () => {
  test('has a meaning', () => {
    expect(fields.length).toBeGreaterThan(150)
    expect(fields.filter(([, field]) => !described(field).description).map(([name]) => name)).toEqual([])
  })

  test.each(fields)('%s has valid examples', (_, field) => {
    const { examples = [] } = described(field)
    expect(examples.length).toBeGreaterThan(0)
    const accepts = ajv.compile({ $ref: field.pointer })
    for (const example of examples)
      expect(accepts(example) ? [] : accepts.errors?.map(({ message }) => message)).toEqual([])
  })
})
