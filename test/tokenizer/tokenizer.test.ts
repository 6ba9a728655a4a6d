import { afterAll, describe, expect, test } from 'vitest'
import type { NeutralRequest } from '../../src/core/request.ts'
import { promptTexts } from '../../src/money/estimate-tokens.ts'
import { openTokenizer } from '../../src/tokenizer/tokenizer.ts'
import { eventually, limit } from '../helpers/time.ts'

const tokenizer = openTokenizer()
afterAll(() => tokenizer.close())

describe('a tokenizer', () => {
  test('counts as the models of OpenAI do', async () => {
    expect(await tokenizer.count(['Hello, world!'])).toBe(4)
    expect(await tokenizer.count(['Hello, world!', 'Hello, world!'])).toBe(8)
    expect(await tokenizer.count([])).toBe(0)
    expect(await tokenizer.count(['<|endoftext|>'])).toBeGreaterThan(0)
  })

  test('counts long texts and hostile ones without holding up the process, several at once', async () => {
    const started = performance.now()
    let turns = 0
    const timer = setInterval(() => turns++, 5)
    const counts = await Promise.all([
      tokenizer.count(['a'.repeat(200_000)]),
      tokenizer.count(['x y '.repeat(50_000)]),
      tokenizer.count(['\u{1F642}'.repeat(20_000)]),
    ])
    clearInterval(timer)
    for (const count of counts) expect(count).toBeGreaterThan(1_000)
    if (performance.now() - started > 100) expect(turns).toBeGreaterThan(2)
  })

  test('does not count what is too long', async () => {
    expect(await tokenizer.count(['x'.repeat(4_000_001)])).toBeUndefined()
  })

  test('takes less than a second for any text: what there is no time for counts as its bytes, which are more', async () => {
    const text = 'żółć gęślą jaźń '.repeat(200_000)
    const before = process.cpuUsage()
    const count = await tokenizer.count([text])
    const { user } = process.cpuUsage(before)
    expect(count).toBeGreaterThan(1_000_000)
    expect(count).toBeLessThanOrEqual(Buffer.byteLength(text))
    expect(user / 1_000).toBeLessThan(limit(1_500))
  })

  test('lets no more wait than it can count in time, and counts again afterwards', async () => {
    const texts = ['x y '.repeat(900_000)]
    const counts = await Promise.all(Array.from({ length: 8 }, () => tokenizer.count(texts)))
    expect(counts.filter((count) => count === undefined).length).toBeGreaterThanOrEqual(5)
    await eventually(async () => expect(await tokenizer.count(['Hello, world!'])).toBe(4))
  })
})

test('the texts of a prompt are all that it says, JSON as one text', () => {
  const parameters = { type: 'object', properties: { city: { type: 'string' } } }
  const request = {
    model: 'm',
    system: [{ type: 'text', text: 'Be brief.' }],
    messages: [
      { role: 'user', parts: [{ type: 'text', text: 'Hi' }] },
      { role: 'assistant', parts: [{ type: 'tool_call', id: 'a', name: 'look', arguments: '{}' }] },
      { role: 'user', parts: [{ type: 'tool_result', id: 'a', parts: [{ type: 'text', text: 'seen' }] }] },
    ],
    tools: [{ kind: 'function', name: 'look', parameters }],
    extensions: { a: 1 },
    origin: { api: 'chat', body: {} },
  } as NeutralRequest
  const json = [JSON.stringify(parameters), '{"a":1}']
  expect(promptTexts(request)).toEqual(['Be brief.', 'Hi', 'look', '{}', 'seen', 'look', ...json])
})
