import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'

type Components = { components: JsonObject }

/** Returns an example of a schema, of a field with this name: its own, else one that is made from its fields. Recursive schemas end after a few levels. */
export function exampleOf(document: Components, schema: Json | undefined, field = '', depth = 0): Json | undefined {
  if (!isObject(schema) || depth > maxDepth) return undefined
  if (typeof schema.$ref === 'string') {
    const name = schema.$ref.split('/').at(-1) ?? ''
    return exampleOf(document, (document.components.schemas as JsonObject)[name], field, depth + 1)
  }
  const given =
    schema.example ??
    (Array.isArray(schema.examples) ? schema.examples[0] : undefined) ??
    schema.const ??
    schema.default
  if (given !== undefined && given !== null) return given
  if (Array.isArray(schema.enum)) return schema.enum[0]
  if (schema.properties || schema.allOf) return objectOf(document, schema, depth)
  const [choice] = [schema.oneOf, schema.anyOf].flatMap((one) => (Array.isArray(one) ? one : []))
  if (choice !== undefined) return exampleOf(document, choice, field, depth + 1)
  return plain(document, schema, field, depth)
}

/** Maximum number of levels of an example. */
const maxDepth = 8

function objectOf(document: Components, schema: JsonObject, depth: number): JsonObject {
  const parts = [schema, ...(Array.isArray(schema.allOf) ? schema.allOf : [])].filter(isObject)
  const object: JsonObject = {}
  for (const part of parts) {
    if (typeof part.$ref === 'string') {
      const inner = exampleOf(document, part, '', depth + 1)
      if (isObject(inner)) Object.assign(object, inner)
      continue
    }
    const required = new Set(Array.isArray(part.required) ? part.required : [])
    for (const [name, member] of Object.entries((part.properties ?? {}) as JsonObject)) {
      // What is optional would make examples of deep objects endless.
      if (depth > 0 && !required.has(name)) continue
      const value = exampleOf(document, member, name, depth + 1)
      if (value !== undefined) object[name] = value
    }
  }
  return object
}

function plain(document: Components, schema: JsonObject, field: string, depth: number): Json | undefined {
  const type = [schema.type].flat().find((one) => one !== 'null')
  if (type === 'array') {
    const item = exampleOf(document, schema.items, field, depth + 1)
    return item === undefined ? [] : [item]
  }
  if (type === 'object') return {}
  if (type === 'boolean') return true
  if (type === 'integer' || type === 'number')
    return typeof schema.minimum === 'number' ? Math.max(schema.minimum, 1) : 1
  if (type === 'null') return null
  if (type === 'string') return formats[String(schema.format)] ?? byName[field.replace(/^.*\./, '')] ?? 'text'
  return isObject(schema.items) ? [] : undefined
}

/** Examples of texts by their format. */
const formats: { readonly [format: string]: string } = {
  uuid: '0199b0c4-6a7e-7d3e-9a57-6f3f2b0c7d10',
  'date-time': '2026-11-28T12:00:00Z',
  date: '2026-11-28',
  uri: 'https://example.com/',
}

/** Examples of texts without a format by the name of their field. */
const byName: { readonly [field: string]: string } = {
  alias: 'fast',
  content: 'Hello',
  currency: 'USD',
  id: '0199b0c4-6a7e-7d3e-9a57-6f3f2b0c7d10',
  input: 'Hello',
  key: 'ir-…',
  message: 'The provider could not be reached.',
  model: 'openai/gpt-5',
  name: 'search',
  prompt: 'Hello',
  provider: 'openai',
  secret: 'ir-…',
  slug: 'openai',
  text: 'Hello',
  'x-request-id': 'my-request-1',
}
