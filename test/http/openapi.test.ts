import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import { modalFacts } from '../../src/core/models/model.ts'
import { openapi, operations, resolved, schemaOf, validator } from '../helpers/openapi.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'

describe('the description', () => {
  test('is OpenAPI 3.1 of version 1.0.0', () => {
    expect(openapi.openapi).toMatch(/^3\.1\.\d+$/)
    expect(openapi.info).toMatchObject({ title: 'inference-router', version: '1.0.0' })
    expect(Object.keys(openapi).sort()).toEqual([
      'components',
      'info',
      'openapi',
      'paths',
      'security',
      'servers',
      'tags',
    ])
  })

  test('has no dangling reference, and no unused component', () => {
    const named = new Set(referencesIn(openapi))
    expect([...named].filter((ref) => resolved({ $ref: ref }) === undefined)).toEqual([])
    const { securitySchemes: _, ...components } = openapi.components as JsonObject
    const there = Object.entries(components).flatMap(([kind, all]) =>
      Object.keys(all as JsonObject).map((name) => `#/components/${kind}/${name}`),
    )
    expect(there.filter((ref) => !named.has(ref))).toEqual([])
  })

  test.each(Object.keys((openapi.components as JsonObject).schemas as JsonObject))('%s is a JSON schema', (name) => {
    expect(() => validator(schemaOf(name))).not.toThrow()
  })

  test('names every operation once, and with one of its tags', () => {
    const ids = operations.map(({ body }) => body.operationId)
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([])
    expect(ids.every((id) => /^[a-z][A-Za-z]+$/.test(String(id)))).toBe(true)
    const tags = new Set((openapi.tags as JsonObject[]).map(({ name }) => name))
    const used = operations.flatMap(({ body }) => body.tags as string[])
    expect(used.filter((tag) => !tags.has(tag))).toEqual([])
    expect([...tags].filter((tag) => !used.includes(String(tag)))).toEqual([])
    expect(operations.filter(({ body }) => !body.summary || (body.tags as string[]).length !== 1)).toEqual([])
  })

  test.each(operations.map((one) => [`${one.method} ${one.path}`, one] as const))('%s is whole', (_, operation) => {
    const { path, parameters, body } = operation
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const declared = parameters.filter((one) => one.in === 'path')
    expect(declared.map(({ name }) => name)).toEqual(inPath)
    expect(declared.every(({ required }) => required === true)).toBe(true)
    const names = parameters.map((one) => `${one.in} ${one.name}`)
    expect(new Set(names).size).toBe(names.length)
    expect(parameters.every((one) => ['path', 'query', 'header'].includes(String(one.in)) && one.schema)).toBe(true)
    const responses = Object.entries(body.responses as JsonObject)
    expect(responses.length).toBeGreaterThan(0)
    for (const [status, response] of responses) {
      const { description, content, ...rest } = resolved(response) as JsonObject
      expect([status, description]).toEqual([expect.stringMatching(/^[2-5]\d\d$/), expect.any(String)])
      expect(Object.keys(rest).filter((name) => name !== 'headers')).toEqual([])
      expect(content === undefined).toBe(['204', '304'].includes(status))
    }
    for (const { content } of [body.requestBody, ...responses.map(([, one]) => one)].map(membersOf)) {
      for (const media of Object.values((content ?? {}) as JsonObject)) {
        const { schema, example } = media as JsonObject
        const accepts = validator(schema as Json)
        if (example !== undefined) expect([accepts(example), accepts.errors]).toEqual([true, null])
      }
    }
  })
})

describe('requirements of the specification', () => {
  /** Statuses by operation: the specification's own. */
  const statuses: { readonly [operationId: string]: readonly number[] } = {
    createChatCompletion: [400, 401, 402, 403, 404, 429, 500, 502],
    createEmbedding: [400, 401, 402, 403, 404, 429, 500, 502],
    createSpeech: [200, 400, 401, 402, 403, 404, 429, 500, 502],
    createTranscription: [200, 400, 401, 402, 403, 404, 413, 429, 500, 502],
    createResponse: [400, 401, 403, 429, 500],
    listModels: [200, 403],
    listChatModels: [200, 403],
    listAllModels: [200, 403],
    listManagedPolicies: [200],
  }

  test.each(Object.entries(statuses))('%s has its statuses', (operationId, wanted) => {
    const operation = operations.find(({ body }) => body.operationId === operationId)
    const statuses = Object.keys((operation?.body.responses ?? {}) as JsonObject).map(Number)
    expect(wanted.filter((status) => !statuses.includes(status))).toEqual([])
  })

  test('who needs a key, who may have one, who needs none', () => {
    const bySecurity = Map.groupBy(operations, ({ body }) => {
      const security = (body.security ?? openapi.security) as JsonObject[]
      if (security.length === 0) return 'open'
      return security.some((one) => Object.keys(one).length === 0) ? 'optional' : 'required'
    })
    const paths = (kind: 'open' | 'optional') => bySecurity.get(kind)?.map(({ path }) => path)
    expect(paths('open')).toEqual(['/v1/models/managed', '/health', '/ready', '/openapi.json', '/docs/errors.html'])
    const lists = [
      'chat',
      'all',
      'decision',
      'embedding',
      'image',
      'transcription',
      'speech',
      'rerank',
      'moderation',
      'completion',
      '{id}',
    ]
    expect(paths('optional')).toEqual(['/v1/models', ...lists.map((name) => `/v1/models/${name}`)])
    const schemes = (openapi.components as JsonObject).securitySchemes
    expect(schemes).toMatchObject({
      bearer: { type: 'http', scheme: 'bearer' },
      apiKey: { in: 'header', name: 'x-api-key' },
    })
  })

  /** What model entries have beside them: what they take and give, their other prices, and how long they are served. */
  const ofOtherModels: string[] = [
    'modalities',
    'other_prices',
    'image_prices',
    ...modalFacts,
    'shutdown',
    'successor',
    'snapshot',
  ]

  /** The resources of the specification: their members, by type. */
  const resources: { readonly [name: string]: { readonly [type: string]: readonly string[] } } = {
    ModelEntry: {
      string: [
        ...['api', 'id', 'object', 'owned_by', 'description', 'privacy_comments', 'geolocation', 'model_lab'],
        'model_canonical_name',
      ],
      integer: ['created', 'updated', 'max_output_tokens', 'context_window', 'data_retention_days'],
      number: ['input_price', 'caching_price', 'cached_price', 'output_price'],
      boolean: [
        ...['supports_caching', 'supports_vision', 'supports_computer_use', 'supports_reasoning'],
        ...['supports_image_generation', 'supports_tool_calling', 'supports_role_developer', 'supports_web_search'],
        ...['supports_output_json_object', 'supports_output_json_schema'],
        ...['data_retention', 'data_used_for_training', 'open_weights'],
      ],
      'array|object': ['pricing'],
    },
    PricingTier: {
      integer: ['prompt_tokens_threshold'],
      number: ['input_price', 'caching_price', 'caching_5m_price', 'caching_1h_price', 'cached_price', 'output_price'],
    },
    DecisionPricing: { number: ['input', 'output'] },
    ModelList: { string: ['object'], array: ['data'] },
    Response: {
      string: ['id', 'object', 'model', 'status'],
      integer: ['created_at'],
      array: ['output'],
      'null|object': ['incomplete_details', 'error', 'usage'],
    },
    ResponseUsage: {
      integer: ['input_tokens', 'output_tokens', 'total_tokens'],
      object: ['input_tokens_details', 'output_tokens_details'],
      number: ['cost'],
    },
    ChatCompletionResponse: {
      string: ['id', 'object', 'model'],
      'null|string': ['service_tier'],
      integer: ['created'],
      array: ['choices'],
      object: ['usage'],
    },
    ChatChoice: { integer: ['index'], string: ['finish_reason'], object: ['message'], 'null|object': ['logprobs'] },
    Organization: { string: ['name'], number: ['balance'] },
    Usage: {
      integer: ['prompt_tokens', 'completion_tokens', 'total_tokens'],
      'null|object': ['prompt_tokens_details', 'completion_tokens_details'],
      number: ['cost'],
    },
  }

  /** What the service adds. */
  const others: { [name: string]: string[] } = {
    ModelEntry: ofOtherModels,
    Response: ['router'],
    ChatCompletionResponse: ['router'],
  }

  test.each(Object.entries(resources))('%s has its members, by name and type', (name, wanted) => {
    const described = schemaOf(name).properties as JsonObject
    const added = others[name] ?? []
    expect(Object.keys(described)).toEqual(expect.arrayContaining(added))
    const members = Object.entries(described)
      .filter(([member]) => !added.includes(member))
      .map(([member, schema]) => [typesOf(schema as Json).join('|'), member])
    const expected = Object.entries(wanted).flatMap(([type, names]) => names.map((member) => [type, member]))
    expect(members.map((pair) => pair.join(' ')).sort()).toEqual(expected.map((pair) => pair.join(' ')).sort())
  })

  test('a key has its members, and others that the service adds', () => {
    const { permissions, created_by, ...members } = schemaOf('ApiKey').properties as JsonObject
    expect(members).toMatchObject({
      id: { type: 'string', format: 'uuid' },
      name: { type: 'string' },
      monthly_limit: { type: 'number' },
      monthly_spend: { type: 'number' },
      labels: { $ref: '#/components/schemas/LabelMap' },
    })
    expect(Object.keys(membersOf(permissions).properties as JsonObject)).toEqual([
      'manage',
      'completions',
      'operate',
      'instance',
      'content',
    ])
    expect(created_by).toMatchObject({ properties: { id: { type: 'string' }, email: { type: 'string' } } })
  })

  test('an error has its origin and a message', () => {
    const { error } = schemaOf('Error').properties as { error: JsonObject }
    expect(error.properties).toMatchObject({ origin: { enum: ['router', 'provider'] }, message: { type: 'string' } })
    expect(error.required).toEqual(['origin', 'message', 'type', 'code', 'param'])
  })

  test('the model of a response is required, and has the id of a native Responses provider as its default', () => {
    const { required, properties } = schemaOf('ResponseRequest') as { required: string[]; properties: JsonObject }
    expect(required).toContain('model')
    expect((properties.model as JsonObject).default).toMatch(/^openai-responses\//)
  })
})

test('docs/api.md names every route', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/api.md'), 'utf8')
  const isNamed = (path: string) => {
    const endings = [...path.matchAll(/\//g)].map(({ index }) => `…${path.slice(index)}`)
    return [path, ...endings].some((name) =>
      [' ', '`'].some((before) => [' ', '`'].some((after) => page.includes(before + name + after))),
    )
  }
  expect(operations.filter(({ path }) => !isNamed(path)).map(({ path }) => path)).toEqual([])
})

describe('a running router', () => {
  let router: TestRouter
  beforeAll(async () => {
    router = await testRouter()
  })
  afterAll(() => router.end())

  test('serves the description without a key', async () => {
    const response = await fetch(`${router.url}/openapi.json`)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
    expect(await response.json()).toEqual(openapi)
  })

  test('accepts exactly the described bodies', () => {
    const taken = router.endpoints.map(({ method, path }) => `${method} ${path.replace(/[:*](\w+)/g, '{$1}')}`)
    expect(operations.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(taken.sort())
  })
})

function membersOf(value: Json | undefined): JsonObject {
  const found = resolved(value)
  return isObject(found) ? found : {}
}

/** The types that a schema allows, sorted. */
function typesOf(schema: Json): string[] {
  const { type, enum: words, const: word, oneOf } = membersOf(schema)
  if (Array.isArray(oneOf)) return [...new Set(oneOf.flatMap(typesOf))].sort()
  if (type !== undefined) return ([type].flat() as string[]).sort()
  const values = Array.isArray(words) ? words : [word]
  return [...new Set(values.map((value) => (value === null ? 'null' : typeof value)))].sort()
}

function referencesIn(value: Json | undefined): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn)
  if (!isObject(value)) return []
  const own = typeof value.$ref === 'string' ? [value.$ref] : []
  return [...own, ...Object.values(value).flatMap(referencesIn)]
}
