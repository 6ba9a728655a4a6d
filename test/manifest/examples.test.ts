import { describe, expect, test } from 'vitest'
import { difference, partialDifference } from '../../src/manifest/check/difference.ts'
import { proveExamples } from '../../src/manifest/check/examples.ts'
import { bareProvider } from '../../src/manifest/read/dialect.ts'
import { acme, formatted, loadAcme, loadedDialect, plainDialect } from './files.ts'

async function prove(examples: string): Promise<string[]> {
  const { loaded, problems } = loadAcme(`${acme}examples:\n${examples}`)
  if (!loaded) return formatted(problems)
  return formatted(await proveExamples(loaded.provider, loaded.layers))
}

const whole = `  - name: all sides
    request: { model: m, messages: [{ role: user, parts: [{ type: text, text: hi }] }], max_output_tokens: 3 }
    sends: { limit: 3, lines: [hi], model: m }
    answers: { id: r, said: yes sir, in: 2, out: 1 }
    events: [{ kind: ping }, { kind: piece, said: yes sir }, { kind: end, out: 1 }, END]
    means: { parts: [{ type: text, text: yes sir }], finish: stop }
`

test('an example that passes reports nothing; the order of members does not matter', async () => {
  expect(await prove(whole)).toEqual([])
})

describe('an example that fails is reported at the position of its expectation', () => {
  test.each([
    ['a sent value', 'limit: 3,', 'limit: 4,', "4:21 example 'all sides': sends differs at limit: expected 4, got 3"],
    ['a sent member too many', 'limit: 3, ', '', "4:12 example 'all sides': sends differs: unexpected `limit`: 3"],
    [
      'a list',
      'lines: [hi]',
      'lines: [hi, ho]',
      '4:31 example \'all sides\': sends differs at lines: expected 2 items, got 1: ["hi"]',
    ],
    [
      'a meaning',
      'text: yes sir }], finish',
      'text: no }], finish',
      /^7:42 .*means \(from answers\) differs at parts\[0\]\.text: expected "no", got "yes sir"$/,
    ],
    [
      'a usage that is not whole',
      'finish: stop }',
      'usage: { output: 1 } }',
      /means \(from answers\) differs at usage: unexpected `input`: 2$/,
    ],
    [
      'an unfinished stream',
      ', { kind: end, out: 1 }, END',
      '',
      /means \(from events\) differs: the events never say that the reply is finished$/,
    ],
  ])('%s', async (_, before, after, expected) => {
    const [first] = await prove(whole.replace('acme', '').replace(before, after))
    if (typeof expected === 'string')
      expect(`${Number(first?.split(':')[0]) - 5}:${first?.split(':').slice(1).join(':')}`).toBe(expected)
    else expect(first?.replace(/^\d+/, (line) => String(Number(line) - 5))).toMatch(expected)
  })

  test('a mapping that fails is reported at its position', async () => {
    const dialect = loadedDialect(
      `${plainDialect.replace('"text": said }\'', '"text": said + 1 }\'')}examples:\n  - name: broken\n    events: [{ kind: piece, said: x }]\n    means: {}\n`,
    )
    const [problem] = await proveExamples(bareProvider(dialect), [dialect.layer])
    expect(problem).toMatchObject({
      file: 'providers/dialects/plain.yaml',
      message: expect.stringContaining('the mapping `events.piece` failed'),
    })
    expect(plainDialect.split('\n')[(problem?.line ?? 0) - 1]).toContain('piece:')
  })
})

test('an example that proves nothing, or has unknown fields, is reported', async () => {
  expect(await prove('  - { name: a, request: { messages: [] } }\n')).toEqual([
    "7:5 example 'a': `request` and `sends` belong together",
  ])
  expect(await prove('  - { name: a, means: {} }\n')).toEqual([
    expect.stringContaining('`means` and `answers`, `events` or `fails` belong together'),
  ])
  expect(await prove('  - { name: a, request: { messages: [], temprature: 1 }, sends: {} }\n')).toEqual([
    "7:53 example 'a': `temprature` is not a field of the neutral request; did you mean `temperature`?",
  ])
})

test('what a request loses is compared by name, at its own line', async () => {
  const asks = 'request: { messages: [], seed: 1, top_p: 1 }, sends: { lines: [], model: model }'
  expect(await prove(`  - { name: a, ${asks}, dropped: [seed, top_p] }\n`)).toEqual([])
  expect(await prove(`  - { name: a, ${asks}, dropped: [seed] }\n`)).toEqual([
    expect.stringMatching(/^7:\d+ example 'a': dropped differs: `top_p` is dropped too$/),
  ])
  expect(await prove(`  - { name: a, ${asks}, dropped: [seed, top_p, stop] }\n`)).toEqual([
    expect.stringMatching(/example 'a': dropped differs at \[2\]: `stop` is not dropped$/),
  ])
})

test('a request of an example that is none says what it needs', async () => {
  const wrong = (request: string) => prove(`  - { name: a, request: { ${request} }, sends: {} }\n`)
  expect(await wrong('messages: [{ role: user, content: Hi }]')).toEqual([
    expect.stringContaining('each of `messages` needs a `role` and a list of `parts` with a `type`'),
  ])
  expect(await wrong('messages: [{ role: user, parts: Hi }]')).toHaveLength(1)
  expect(await wrong('messages: [], tools: x')).toEqual([expect.stringContaining('`tools` must be a list of objects')])
})

test('an error body is read by the mapping for failures', async () => {
  const example = `  - { name: a, fails: { fault: { id: busy, text: Later. } }, means: { error: { code: busy, message: Later. } } }\n`
  const load = (more: string) => loadAcme(`${acme}${more}examples:\n${example}`)
  const run = async (more: string) => {
    const { loaded, problems } = load(more)
    return loaded ? formatted(await proveExamples(loaded.provider, loaded.layers)) : formatted(problems)
  }
  expect(await run(`failure: '{ "code": fault.id, "message": fault.text }'\n`)).toEqual([])
  expect(await run('')).toEqual([expect.stringContaining('means (from fails) differs at error')])
})

test('data that are bare texts must be declared, and then be texts', async () => {
  const run = async (data: string, stream: string) => {
    const text = `${acme}endpoints: { chat: { stream: { ${stream} }, events: { out: '{ "text": $ }' } } }
examples: [{ name: a, events: [{ event: out, data: ${data} }], means: { parts: [{ type: text, text: Hel }] } }]\n`
    const { loaded, problems } = loadAcme(text.replace('dialect: plain', 'dialect: plain'))
    return loaded ? formatted(await proveExamples(loaded.provider, loaded.layers)) : formatted(problems)
  }
  expect(await run('Hel', 'data: text')).toEqual([])
  expect(await run('42', 'data: text')).toEqual([expect.stringContaining('the data of an event is text: write "42"')])
  expect(await run('Hel', 'data: json')).toEqual([
    expect.stringContaining('the data of the event `out` is not JSON: plain text needs `stream.data: text`'),
  ])
})

test('a finish reason that the table does not list says so', async () => {
  const text = `${acme}finish: { done: stop }
endpoints: { chat: { events: { end: '{ "finish": "over" }' } } }
examples: [{ name: a, events: [{ kind: piece, said: x }, { kind: end }], means: { finish: stop } }]\n`
  const { loaded } = loadAcme(text)
  expect(loaded && formatted(await proveExamples(loaded.provider, loaded.layers))).toEqual([
    expect.stringContaining('expected "stop", got "error"; the table `finish` does not list `over`'),
  ])
})

test('an example may define its target', async () => {
  const text = `endpoints:
  chat:
    request: { t: '{ "t": target, "all": [messages, system, max_output_tokens] }' }
traits: [{ match: ., facts: { a: 1, b: 1 } }]
examples:
  - name: facts
    target: { signer: other, max_output_tokens: 7, traits: { b: 2 } }
    request: { messages: [] }
    sends: { t: { signer: other, maker: other, max_output_tokens: 7, traits: { a: 1, b: 2 } }, all: [] }
`
  const { loaded, problems } = loadAcme(acme + text)
  expect(formatted(problems)).toEqual([])
  expect(loaded && formatted(await proveExamples(loaded.provider, loaded.layers))).toEqual([])
})

test('values are compared by content', () => {
  expect(difference({ a: 1, b: { c: [1] } }, { b: { c: [1] }, a: 1, d: undefined })).toBeUndefined()
  expect(difference({ a: null }, {})).toMatchObject({ path: ['a'], message: 'expected null, got nothing' })
  expect(partialDifference({ a: [{ b: 1 }] }, { a: [{ b: 1, c: 2 }], d: 1 })).toBeUndefined()
  expect(partialDifference({ a: [] }, { a: [1] })?.path).toEqual(['a'])
  expect(partialDifference({ usage: { input: 1 } }, { usage: { input: 1, output: 0 } })?.path).toEqual(['usage'])
})
