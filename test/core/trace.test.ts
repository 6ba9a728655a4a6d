import { describe, expect, test } from 'vitest'
import { attemptSpan, traceHeaders, traceOf } from '../../src/core/trace.ts'

const id = '0198f3a2-7c11-7abc-8def-0123456789ab'
const all = { share: 1, followsParent: true }
const none = { share: 0, followsParent: true }
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const parentId = '00f067aa0ba902b7'

describe('the trace of a call', () => {
  test('is that of the client, with a span of its own', () => {
    const trace = traceOf({ traceparent: `00-${traceId}-${parentId}-01`, tracestate: 'a=b' }, id, none)
    expect(trace).toEqual({ traceId, parentId, spanId: '8def012345678900', isSampled: true, state: 'a=b' })
    expect(traceHeaders(trace, 3)).toEqual({ traceparent: `00-${traceId}-8def012345678903-01`, tracestate: 'a=b' })
  })

  test('is a new one with the id of the call where there is none', () => {
    const trace = traceOf({ baggage: 'team=blue' }, id, all)
    expect(trace).toMatchObject({ traceId: '0198f3a27c117abc8def0123456789ab', isSampled: true, baggage: 'team=blue' })
    expect(trace.parentId).toBeUndefined()
  })

  test.each([
    '',
    'garbage',
    `00-${traceId}-${parentId}`,
    `ff-${traceId}-${parentId}-01`,
    `00-${traceId.toUpperCase()}-${parentId}-01`,
    `00-${'0'.repeat(32)}-${parentId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId}-${parentId}-01\r\nx: y`,
  ])('is a new one for the header %j', (traceparent) => {
    expect(traceOf({ traceparent, tracestate: 'a=b' }, id, all)).toEqual(traceOf({}, id, all))
  })

  test('of a later version is taken as far as it is known', () => {
    expect(traceOf({ traceparent: `01-${traceId}-${parentId}-01-what` }, id, none)).toMatchObject({ traceId, parentId })
  })

  test('is recorded as the client or the share says', () => {
    const header = (flags: string) => ({ traceparent: `00-${traceId}-${parentId}-${flags}` })
    expect(traceOf(header('00'), id, all).isSampled).toBe(false)
    expect(traceOf(header('00'), id, { share: 1, followsParent: false }).isSampled).toBe(true)
    expect(traceOf({}, id, none).isSampled).toBe(false)
    const ids = Array.from({ length: 400 }, () => crypto.randomUUID())
    const taken = ids.filter((one) => traceOf({}, one, { share: 0.25, followsParent: true }).isSampled).length
    expect(taken).toBeGreaterThan(50)
    expect(taken).toBeLessThan(150)
  })

  test('does not carry more than the standard asks for', () => {
    expect(traceOf({ baggage: `a=${'b'.repeat(9_000)}` }, id, all).baggage).toBeUndefined()
    expect(attemptSpan({ spanId: '8def012345678900' }, 1_000)).toBe('8def0123456789ff')
  })
})
