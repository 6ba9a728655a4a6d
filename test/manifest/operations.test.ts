import { describe, expect, test } from 'vitest'
import { fieldNames } from '../../src/api/operations/field-names.ts'
import { routingFields } from '../../src/api/router-fields.ts'
import type { Operation } from '../../src/core/operation.ts'
import { proveExamples } from '../../src/manifest/check/examples.ts'
import { schemaOf } from '../helpers/openapi.ts'
import { acme, formatted, loadAcme } from './files.ts'

/** A manifest whose endpoint for embeddings has a form of its own. */
const manifest = `${acme}endpoints:
  embed:
    path: /vectors
    request:
      body: '{ "texts": [input], "name": model }'
      dropped: 'dimensions > 9 ? "dimensions"'
    query: '{ "v": 2 }'
    reply: '{ "data": [vectors.{ "embedding": $ }], "usage": used }'
    usage: '{ "input": n }'
examples:
  - name: a text
    operation: embed
    request: { model: m, input: hi, user: me }
    sends: { texts: [hi], name: m }
    query: { v: "2" }
    dropped: [user]
    answers: { vectors: [[1, 2]], used: { n: 3 } }
    means: { data: [{ embedding: [1, 2] }], usage: { input: 3 } }
`

async function prove(text: string): Promise<string[]> {
  const { loaded, problems } = loadAcme(text)
  if (!loaded) return formatted(problems)
  return formatted(await proveExamples(loaded.provider, loaded.layers))
}

describe('the usage of a manifest', () => {
  const embed = (more: string) => `${acme}usage: '{ "input": heard }'
endpoints:
  embed: { path: /vectors, reply: '{ "data": vectors, "usage": used }'${more} }
examples:
  - { name: a, operation: embed, answers: { vectors: [], used: { heard: 3, n: 4 } }, means: { usage: { input: `

  test('is read at an endpoint without its own', async () => {
    expect(await prove(`${embed('')}3 } } }\n`)).toEqual([])
  })

  test('is not read at one that has its own', async () => {
    expect(await prove(`${embed(`, usage: '{ "input": n }'`)}4 } } }\n`)).toEqual([])
  })
})

test('an example of an operation proves the failure of a manifest without conversations', async () => {
  const text = `${acme.replace('dialect: plain\n', '')}failure: '{ "code": fault, "message": words }'
endpoints: { embed: { path: /vectors } }
examples:
  - { name: a, operation: embed, fails: { fault: f1, words: No. }, means: { error: { code: f1, message: `
  expect(await prove(`${text}No. } } }\n`)).toEqual([])
  expect(await prove(`${text}Yes. } } }\n`)).toEqual([expect.stringContaining('means (from fails) differs')])
})

describe('an endpoint that cannot work', () => {
  test.each([
    ['bytes for JSON', 'embed: { path: /x, answer: bytes }', '`endpoints.embed` needs `reply`: its answers are bytes'],
    ['bytes of no file', 'speech: { path: /x, body: bytes }', '`endpoints.speech` needs `request`: its body is bytes'],
    [
      'a job without a place for its id',
      "embed: { path: /x, job: { id: id, poll: /jobs, done: 'true' } }",
      '`endpoints.embed` needs `{id}` in `job.poll`',
    ],
    [
      'a cancellation of no job',
      "embed: { path: /x, job: { id: id, poll: '/jobs/{id}', cancel: /stop, done: 'true' } }",
      '`endpoints.embed` needs `{id}` in `job.cancel`',
    ],
    [
      'hosts of no URL',
      "embed: { path: /x, job: { id: id, poll: '/jobs/{id}', hosts: [a.example], done: 'true' } }",
      '`endpoints.embed` has `job.hosts`, which matters only where `job.poll` is',
    ],
  ])('%s', (_, endpoint, problem) => {
    const [found, ...others] = formatted(loadAcme(`${acme}endpoints:\n  ${endpoint}\n`).problems)
    expect(found).toMatch(/^7:3 /)
    expect(found).toContain(problem)
    expect(others).toEqual([])
  })
})

describe('names in an endpoint that mean nothing', () => {
  test.each([
    ['a loss', 'embed: { path: /x, unsupported: [dimension] }', /no field `dimension`; did you mean `dimensions`/],
    [
      'a loss with a condition',
      "rerank: { path: /x, unsupported: [{ field: input_typ, when: 'true' }] }",
      /no field `input_typ`/,
    ],
    ['a field of another API', 'rerank: { path: /x, unsupported: [dimensions] }', /the API has no field `dimensions`/],
    ['a batch', 'embed: { path: /x, batch: { field: inputs, size: 3 } }', /no field `inputs`; did you mean `input`/],
    ['a path', 'speech: { path: "/x/{voices}/{model}" }', /`{voices}` is not a placeholder; did you mean `voice`/],
    ['a path of a stream', 'speech: { path: /x, stream: { path: "/{+modell}" } }', /`{\+modell}` is not a placeholder/],
    [
      'a question about a job',
      "embed: { path: /x, job: { id: id, poll: '/{id}/{input}', done: 'true' } }",
      /`{input}` is not a placeholder/,
    ],
  ])('%s', (_, endpoint, problem) => {
    const [found, ...others] = formatted(loadAcme(`${acme}endpoints:\n  ${endpoint}\n`).problems)
    expect(found).toMatch(problem)
    expect(found).toMatch(/^7:\d+ /)
    expect(others).toEqual([])
  })

  test('are none that clients may send', () => {
    for (const [operation, names] of Object.entries(fieldNames)) {
      const losses = JSON.stringify(names)
      const path = JSON.stringify(`/{model}/{+model}/${names.map((name) => `{${name}}`).join('/')}`)
      const { problems } = loadAcme(`${acme}endpoints:\n  ${operation}: { path: ${path}, unsupported: ${losses} }\n`)
      expect([operation, formatted(problems)]).toEqual([operation, []])
    }
  })

  const schemas: { [operation in Operation]: string[] } = {
    embed: ['EmbeddingRequest'],
    image: ['ImageGenerationRequest'],
    image_edit: ['ImageEditRequest', 'ImageEditMultipartRequest'],
    speech: ['SpeechRequest'],
    transcribe: ['TranscriptionRequest'],
    decide: ['DecisionRequest'],
    complete: ['CompletionRequest'],
    rerank: ['RerankRequest'],
    moderate: ['ModerationRequest'],
  }
  test.each(Object.entries(schemas))('the fields of %s are those that are described', (operation, names) => {
    const described = new Set(names.flatMap((name) => propertiesOf(schemaOf(name))))
    // The router alone reads these; pictures have one name of several; who speaks is told to nobody.
    for (const own of ['model', 'requesty', 'image', ...routingFields]) described.delete(own)
    if (operation === 'speech') described.delete('user')
    expect(fieldNames[operation as Operation].toSorted()).toEqual([...described].toSorted())
  })
})

/** The properties of a schema and of all that it joins. */
function propertiesOf({ properties = {}, allOf = [], $ref }: Loose): string[] {
  if ($ref !== undefined) return propertiesOf(schemaOf($ref.split('/').at(-1)))
  return [...Object.keys(properties), ...allOf.flatMap(propertiesOf)]
}

// biome-ignore lint/suspicious/noExplicitAny: schemas may have any shape.
type Loose = any

describe('an example of an endpoint besides chat', () => {
  test('that passes reports nothing', async () => {
    expect(await prove(manifest)).toEqual([])
  })

  test.each([
    ['the body', 'name: m }', 'name: n }', /sends differs at name: expected "n", got "m"/],
    ['the query', 'v: "2"', 'v: "3"', /sends differs at v: expected "3", got "2"/],
    ['what is lost', 'dropped: [user]', 'dropped: []', /dropped differs/],
    [
      'the reply',
      'embedding: [1, 2] }], usage',
      'embedding: [1] }], usage',
      /means \(from answers\) differs at data\[0\]/,
    ],
    ['the usage', 'usage: { input: 3 }', 'usage: { input: 4 }', /differs at usage/],
    ['an endpoint that is not there', 'operation: embed', 'operation: rerank', /there is no `endpoints.rerank`/],
  ])('reports a difference of %s', async (_, before, after, expected) => {
    expect((await prove(manifest.replace(before, after))).join('\n')).toMatch(expected)
  })
})

test('a path and the parts of a job that nothing says are reported', () => {
  const without = manifest.replace('    path: /vectors\n', '')
  expect(formatted(loadAcme(without).problems).join('\n')).toContain('`endpoints.embed` needs `path`')
  const job = manifest.replace('    query:', '    job: { poll: "/jobs/{id}" }\n    query:')
  expect(formatted(loadAcme(job).problems).join('\n')).toContain('`endpoints.embed` needs `job.id`')
})

test('a manifest may have less than its dialect describes', async () => {
  const described = `${acme}models: { m: { api: embedding } }\n`
  const endpoints = (said: string) => loadAcme(described + said).loaded?.provider.operations?.embed
  expect(endpoints('endpoints: { embed: { path: /e } }\n')).toMatchObject({ path: '/e', offered: true })
  expect(endpoints('endpoints: { embed: false }\n')).toBeUndefined()
})
