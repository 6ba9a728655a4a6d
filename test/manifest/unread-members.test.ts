import { describe, expect, test } from 'vitest'
import { acme, formatted, loadAcme } from './files.ts'

/** The shortest manifest without conversations. */
const silent = acme.replace('dialect: plain\n', '')

function warnings(text: string): string[] {
  const { loaded, problems } = loadAcme(text)
  expect(loaded).toBeDefined()
  return formatted(problems.filter(({ severity }) => severity === 'warning'))
}

describe('a member that nothing reads is a warning at its place', () => {
  test.each([
    [
      'finish',
      `${silent}finish: { a: stop }\nendpoints: { embed: { path: /e } }\n`,
      /^5:1 `finish` has no effect: it is for/,
    ],
    ['groups', `${silent}groups: { a: [seed] }\nendpoints: { embed: { path: /e } }\n`, /^5:1 `groups` has no effect/],
    [
      'limits of models without conversations',
      `${silent}traits:\n  - { match: x, limits: { seed: { max: 1 } } }\nendpoints: { embed: { path: /e } }\n`,
      /^6:17 `traits\[0\]\.limits` has no effect/,
    ],
    [
      'usage beside those of all endpoints',
      `${silent}usage: '{ "input": a }'\nendpoints: { embed: { path: /e, usage: '{ "input": b }' } }\n`,
      /^5:1 `usage` has no effect: each endpoint has a `usage` of its own/,
    ],
    [
      'takes',
      `${acme}endpoints:\n  speech: { path: /s, takes: [links] }\n`,
      /`endpoints\.speech\.takes` has no effect/,
    ],
    [
      'batch',
      `${acme}endpoints:\n  rerank: { path: /r, batch: { field: documents, size: 9 } }\n`,
      /`endpoints\.rerank\.batch` has no effect: answers of this endpoint cannot be joined/,
    ],
    ['stream', `${acme}endpoints:\n  embed: { path: /e, stream: {} }\n`, /`endpoints\.embed\.stream` has no effect/],
    [
      'names of events',
      `${acme}endpoints:\n  speech: { path: /s, stream: { event_field: type } }\n`,
      /`endpoints\.speech\.stream\.event_field` has no effect/,
    ],
    [
      'patch of events',
      `${acme}endpoints:\n  embed: { path: /e, patch: { event: '{}' } }\n`,
      /`endpoints\.embed\.patch\.event` has no effect: there is no `stream`/,
    ],
    [
      'job',
      `${acme}endpoints:\n  speech: { path: /s, answer: bytes, job: { id: id, poll: "/{id}", done: a } }\n`,
      /`endpoints\.speech\.job` has no effect: its answers are bytes/,
    ],
    [
      'endpoint of a variant for requests',
      `${acme}variants:\n  - { when: web_search, endpoints: { embed: { path: /e } } }\n`,
      /`endpoints\.embed` has no effect: only conversations are served by a variant with `when`/,
    ],
    [
      'events of a provider that does not stream',
      `${acme}endpoints:\n  chat: { stream: false, events: { piece: $ } }\n`,
      /`endpoints\.chat\.events` has no effect: the provider is not asked for a stream/,
    ],
    [
      'stream of a job',
      `${acme}endpoints:\n  chat: { stream: { format: ndjson }, job: { id: id, poll: "/{id}", done: a } }\n`,
      /`endpoints\.chat\.stream` has no effect/,
    ],
    [
      'place of the text in a stream that repeats it',
      `${acme}endpoints:\n  chat: { stream: { cumulative: true, text: said } }\n`,
      /`endpoints\.chat\.stream\.text` has no effect/,
    ],
    [
      'query of an example',
      `${acme}examples:\n  - { name: a, query: { a: b } }\n`,
      /`examples\[0\]\.query` has no effect/,
    ],
  ])('%s', (_, text, expected) => {
    const found = warnings(text)
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(expected)
  })
})

test('members that something reads are none', () => {
  const text = `${acme}finish: { a: stop }
usage: '{ "input": a }'
endpoints:
  speech: { path: /s, stream: { event_field: type, events: { "*": $ } }, patch: { event: $ } }
  image: { path: /i, batch: { field: n, size: 1 }, job: { id: id, poll: "/{id}", done: a } }
`
  expect(warnings(text)).toEqual([])
})

describe('a function in a result is an error at its place', () => {
  test.each([
    ['request', '    request: { body: \'{ "m": $uppercase }\' }'],
    ['let of a request', "    request: { let: '$f := function($x) {$x};', body: '{ \"m\": [$f] }' }"],
    ['reply', '    reply: \'{ "parts": $map }\''],
    ['event', '    events: { piece: \'{ "text": $sum }\' }'],
    ['patch', '    patch: { request: \'$merge([$, { "f": $sum }])\' }'],
    ['condition', "    unsupported: [{ field: seed, when: '$exists' }]"],
  ])('%s', (_, line) => {
    const { loaded, problems } = loadAcme(`${acme}endpoints:\n  chat:\n${line}\n`)
    expect(loaded).toBeUndefined()
    expect(formatted(problems)).toEqual([expect.stringMatching(/^8:\d+ `\$\w+` is a function, which cannot be part/)])
  })

  test.each([
    ['usage', `${acme}usage: '{ "input": $sum }'\n`],
    ['query', `${acme}endpoints: { embed: { path: /e, query: '{ "q": $sum }' } }\n`],
    ['reply of an operation', `${acme}endpoints: { embed: { path: /e, reply: '{ "q": $sum }' } }\n`],
    ['job', `${acme}endpoints: { image: { path: /e, job: { id: $string, poll: "/{id}", done: a } } }\n`],
  ])('%s', (_, text) => {
    expect(formatted(loadAcme(text).problems)).toContainEqual(
      expect.stringContaining('is a function, which cannot be part'),
    )
  })
})
