import { describe, expect, test } from 'vitest'
import type { Part } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { Usage } from '../../src/core/usage.ts'
import { measuredUsage } from '../../src/money/meter.ts'

const promptTokens = 103

function replied(parts: Part[], usage: Usage = {}): Reply {
  return { id: 'r', created: 1, parts, finish: 'stop', usage }
}

const words = (tokens: number): Part => ({ type: 'text', text: 'x'.repeat(tokens * 4) })

describe('the usage of a call', () => {
  test('is the count of the provider', () => {
    const usage = { input: 7, output: 3 }
    expect(measuredUsage(replied([words(50)], usage), { promptTokens, complete: true })).toEqual({
      usage,
      estimated: false,
    })
    expect(measuredUsage(replied([], { input: 7 }), { promptTokens, complete: true })).toEqual({
      usage: { input: 7 },
      estimated: false,
    })
  })

  test('is estimated from the text when the provider does not count', () => {
    const reply = replied([{ type: 'reasoning', text: 'x'.repeat(40) }, words(25), { type: 'refusal', text: 'xxxx' }])
    const call: Part = { type: 'tool_call', id: 'a', name: 'name', arguments: '{"a":"b"}   ' }
    expect(measuredUsage(reply, { promptTokens, complete: true })).toEqual({
      usage: { input: 103, output: 36 },
      estimated: true,
    })
    expect(measuredUsage(replied([call]), { promptTokens, complete: true }).usage.output).toBe(4)
  })

  test('is estimated where a provider counted the prompt but not the output', () => {
    expect(measuredUsage(replied([words(25)], { input: 7 }), { promptTokens, complete: true })).toEqual({
      usage: { input: 7, output: 25 },
      estimated: true,
    })
    expect(measuredUsage(replied([words(25)], { input: 7, output: 0 }), { promptTokens, complete: true })).toEqual({
      usage: { input: 7, output: 25 },
      estimated: true,
    })
  })

  test('of a stream that broke is at least the estimate of the output so far, and at least the provider’s count', () => {
    const early = { input: 9, output: 1 }
    const broken = (tokens: number, usage: Usage) =>
      measuredUsage(replied([words(tokens)], usage), { promptTokens, complete: false })
    expect(broken(20, early)).toEqual({ usage: { input: 9, output: 20 }, estimated: true })
    expect(broken(20, { input: 9, output: 30 })).toEqual({ usage: { input: 9, output: 30 }, estimated: false })
    expect(broken(20, { input: 9, reasoning: 5 })).toEqual({
      usage: { input: 9, reasoning: 5, output: 15 },
      estimated: true,
    })
  })

  test('counts other writing by its characters', () => {
    const reply = replied([{ type: 'text', text: '漢字'.repeat(50) }])
    expect(measuredUsage(reply, { promptTokens, complete: false }).usage.output).toBe(100)
  })

  test('counts no result of a search as output', () => {
    const results = [{ type: 'web_search_result', encrypted_content: 'x'.repeat(40_000) }]
    const parts: Part[] = [{ type: 'search', query: 'q', results }, { type: 'opaque', body: results }, words(10)]
    expect(measuredUsage(replied(parts, { input: 5 }), { promptTokens, complete: false }).usage.output).toBe(10)
  })

  test('includes the modes in which the call was served', () => {
    const usage = { input: 1, output: 1, modes: ['priority'] }
    expect(measuredUsage(replied([words(9)], usage), { promptTokens, complete: false }).usage.modes).toEqual([
      'priority',
    ])
  })
})
