import { describe, expect, test } from 'vitest'
import { textWriter } from '../../src/observe/text-lines.ts'

const at = new Date(2026, 10, 28, 16, 2, 21)
const call = {
  level: 30,
  time: at.toISOString(),
  component: 'call',
  room: 'call',
  id: '0199b0c4-6a7e-7d3e-9a57-6f3f2b0c7d10',
  key: 'k1',
  key_name: 'web-production',
  requested: 'best',
  provider: 'openai',
  model: 'gpt-5',
  outcome: 'complete',
  status: 200,
  ms: 300,
  input_tokens: 861,
  output_tokens: 279,
  usd: 0.0067,
  msg: 'call',
}
const failed = {
  ...call,
  level: 40,
  outcome: 'failed',
  status: 502,
  error: 'provider_timeout',
  usd: 0,
  output_tokens: 0,
  input_tokens: 0,
}

/** The lines that are written of entries, without the date. */
function written(...entries: object[]): string[] {
  const write = textWriter(false)
  const text = entries.map((entry) => write(JSON.stringify(entry))).join('')
  expect(text.endsWith('\n')).toBe(true)
  return text.slice(0, -1).split('\n').slice(1)
}

describe('a call', () => {
  test.each([
    [{}, '16:02:21 200 openai/gpt-5 861+279 tokens $0.0067 0.30 s key web-production'],
    [{ usd: 12.5, ms: 61_234 }, '16:02:21 200 openai/gpt-5 861+279 tokens $12.50 61.23 s key web-production'],
    [{ usd: 0.000000123 }, '16:02:21 200 openai/gpt-5 861+279 tokens $0.00000012 0.30 s key web-production'],
    [{ usd: 0 }, '16:02:21 200 openai/gpt-5 861+279 tokens $0 0.30 s key web-production'],
    [{ unpriced: true, key_name: undefined }, '16:02:21 200 openai/gpt-5 861+279 tokens unpriced 0.30 s key k1'],
    [{ input_tokens: 0, output_tokens: 0 }, '16:02:21 200 openai/gpt-5 $0.0067 0.30 s key web-production'],
  ])('is one short line: %j', (changes, line) => {
    expect(written({ ...call, ...changes })).toEqual([line])
  })

  test('that failed has its code and its id, and the reason where the log has one', () => {
    const id = 'call 0199b0c4-6a7e-7d3e-9a57-6f3f2b0c7d10'
    expect(written(failed, { ...failed, detail: 'ETIMEDOUT 10.0.0.1:443' })).toEqual([
      `16:02:21 502 openai/gpt-5 provider_timeout $0 0.30 s key web-production ${id}`,
      `16:02:21 502 openai/gpt-5 provider_timeout $0 0.30 s key web-production ${id}: ETIMEDOUT 10.0.0.1:443`,
    ])
    const attempt = { ...failed, msg: 'attempt', attempt_of: 'c1', provider_message: 'no GPU' }
    expect(written(attempt)).toEqual([
      '16:02:21 502 openai/gpt-5 provider_timeout (attempt) $0 0.30 s key web-production call c1: no GPU',
    ])
  })

  test.each([
    ['model', 'x\n16:02:22 200 openai/gpt-5 1+1 tokens $0 0.10 s key admin'],
    ['model', 'x\u2028y\u001b[2K\r200'],
    ['key_name', 'x\n\u202e16:02:22 200'],
    ['key_name', 'a" 16:02:22 200 "b'],
    ['provider_message', 'x\n16:02:22 200 openai/gpt-5'],
    ['detail', 'x\r\n\u001b]0;title\u0007'],
    ['id', '\u009b31m\n'],
  ])('is one line without control characters, whatever its %s is: %j', (name, value) => {
    const lines = written({ ...failed, [name]: value })
    expect(lines).toHaveLength(1)
    expect(lines[0]).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    expect(lines[0]).toMatch(/^16:02:21 502 \S/)
    if (name === 'key_name' || name === 'model') expect(lines[0]).toMatch(/ "?[^ ]*x?\\(n|u)|key "a\\"/)
  })

  test('with a long name has a short line', () => {
    const [line = ''] = written({ ...call, model: 'm'.repeat(10_000), key_name: 'k'.repeat(10_000) })
    expect(line.length).toBeLessThan(300)
  })
})

describe('other lines', () => {
  const event = {
    level: 40,
    time: at.toISOString(),
    component: 'files',
    room: 'files',
    msg: 'the files have a warning',
  }

  test('have their level unless nothing is wrong, and their facts', () => {
    const facts = { problem: 'a.yaml:1:2: wrong', url: 'http://x/v1', list: ['a', 1] }
    expect(written({ ...event, ...facts }, { ...event, level: 30 }, { ...event, level: 20 })).toEqual([
      '16:02:21 WARN the files have a warning problem="a.yaml:1:2: wrong" url=http://x/v1 list=["a",1]',
      '16:02:21 the files have a warning',
      '16:02:21 DEBUG the files have a warning',
    ])
  })

  test('of errors have the frames of their stacks, indented, and nothing else on lines of their own', () => {
    const stack = 'TypeError: x\n16:02:22 200 forged\n    at f (file.ts:1:2)\n    at g (file.ts:3:4)'
    const err = { type: 'TypeError', message: 'x\n16:02:22 200 forged', stack }
    expect(written({ ...event, level: 50, err })).toEqual([
      '16:02:21 ERROR the files have a warning err="TypeError: x\\n16:02:22 200 forged"',
      '    at f (file.ts:1:2)',
      '    at g (file.ts:3:4)',
    ])
  })

  test('of a plugin that logs a message of several lines are one line', () => {
    expect(written({ ...event, component: 'plugin', msg: 'call\n16:02:22 200' })).toEqual([
      '16:02:21 WARN call\\u000a16:02:22 200',
    ])
  })
})

test('the date is written once a day', () => {
  const write = textWriter(false)
  const next = new Date(2026, 10, 29, 0, 0, 1).toISOString()
  const lines = [call, call, { ...call, time: next }].map((entry) => write(JSON.stringify(entry)))
  expect(lines.map((line) => line.split('\n')[0])).toEqual([
    '--- 2026-11-28 ---',
    expect.stringMatching(/^16:02:21 200/),
    '--- 2026-11-29 ---',
  ])
})

test('a line that is not JSON stays one line', () => {
  expect(textWriter(false)('half of {\u001b')).toBe('half of {\\u001b\n')
})
