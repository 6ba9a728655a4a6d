import { Session } from 'node:inspector/promises'
import { expect, test } from 'vitest'
import { MappingError, narrowMapping, readMapping } from '../../src/mapping/mapping.ts'
import { whole } from '../../src/mapping/mentions.ts'

const url = 'mapping://providers/acme.yaml/reply'
const named = (text: string, name = url) => readMapping(text, { url: () => name })

/** The stack of the error below a MappingError. */
function stackOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof MappingError) return String((error.cause as Error).stack)
    throw error
  }
  throw new Error('it did not fail')
}

test('the stack trace of a failing mapping names it, and the line of its code', () => {
  const mapping = named('( $late := function($x) { $x + 1 };\n [list.$late($)] )')
  const stack = stackOf(() => mapping.run({ list: ['text'] }))
  const [, line] = /\((mapping:[^\s)]+):(\d+):\d+\)/.exec(stack)?.slice(1) ?? []
  expect(stack).toContain(`(${url}:`)
  // Two lines of V8's own and "use strict" come before the code.
  expect(mapping.explain().split('\n')[Number(line) - 4]).toContain('$.')
  expect(stackOf(() => named('($f := function($n) { 1 + $f($n) }; $f(1))').run({}))).toContain(url)
})

test('a mapping without a URL fails as well', () => {
  expect(stackOf(() => readMapping('"a" + 1').run({}))).not.toContain('mapping:')
})

test('a mapping that is read in part has a URL of its own', () => {
  const narrow = narrowMapping(named('{"a": "x" + b, "c": 1}'), new Map([['a', whole]]))
  expect(narrow.url).toBe(`${url}#narrowed`)
  expect(stackOf(() => narrow.run({ b: 1 }))).toContain(`${url}#narrowed:`)
})

test('no URL ends the comment that it stands in', () => {
  for (const name of ['\n', '\r', '\u2028', '\u2029', '\r\n', ' ', '"', "'", '`', '\u{1f600}', '\ud800', '*/']) {
    const hostile = `mapping://a${name}throw new Error("broken out")/x`
    const mapping = named('b + 1', hostile)
    expect(mapping.run({ b: 1 })).toBe(2)
    expect(stackOf(() => mapping.run({ b: 'text' }))).toMatch(/\(mapping:\/\/a[!-~]+\/x:\d+:\d+\)/)
  }
})

test('no text of a mapping is taken for its URL', () => {
  const mapping = named('{"//# sourceURL=x": "\\n//# sourceURL=x\\n", "c": b + 1}')
  expect(mapping.run({ b: 1 })).toEqual({ '//# sourceURL=x': '\n//# sourceURL=x\n', c: 2 })
  expect(stackOf(() => mapping.run({ b: 'text' }))).toContain(`(${url}:`)
})

test('V8 knows the code by the URL, as profiles show it', async () => {
  const session = new Session()
  session.connect()
  try {
    await session.post('Profiler.enable')
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    const name = 'mapping://providers/acme.yaml/endpoints.chat.events.piece'
    expect(named('{"text": said}', name).run({ said: 'a' })).toEqual({ text: 'a' })
    const { result } = await session.post('Profiler.takePreciseCoverage')
    expect(result.filter((script) => script.url === name)).toHaveLength(1)
  } finally {
    session.disconnect()
  }
})
