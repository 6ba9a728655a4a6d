import { expect, test } from 'vitest'
import { type Limited, remainingHeaders } from '../../src/access/limits.ts'
import { RouterError } from '../../src/core/errors.ts'
import type { RateLimits } from '../../src/store/keys.ts'
import { localLimits, running } from '../accounts/local.ts'
import { expectLinear } from '../helpers/time.ts'

const none: RateLimits = { requestsPerMinute: null, tokensPerMinute: null, concurrentCalls: null }
const few = { prompt: 10, output: 20, hasOutputLimit: true }

function limited(limits: Partial<RateLimits>, scope: Limited['scope'] = 'key'): Limited {
  return { id: scope, organization: 'o', scope, limits: { ...none, ...limits } }
}

/** Limits under a clock that the test moves. */
function underClock(mostIdle?: number) {
  const clock = { ms: 5_000 }
  const limits = localLimits({ now: () => clock.ms, ...(mostIdle !== undefined && { mostIdle }) })
  return { clock, ...limits }
}

function refusal(run: () => unknown): RouterError {
  try {
    run()
  } catch (thrown) {
    if (thrown instanceof RouterError && thrown.code === 'rate_limited') return thrown
    throw thrown
  }
  throw new Error('it was not refused')
}

test('accounts exist only for limits', () => {
  const { take, accounts } = underClock()
  expect(take([limited({})], few).headers).toEqual({})
  expect(accounts.totals().accounts).toBe(0)
})

test('in no minute are there more requests than the limit, and after Retry-After the same call passes', () => {
  const { take, clock } = underClock()
  const who = [limited({ requestsPerMinute: 3 })]
  const begun: number[] = []
  for (let n = 0; n < 400; n++) {
    clock.ms += (n * 7_919) % 1_300
    try {
      take(who, few).settle(0)
      begun.push(clock.ms)
    } catch (thrown) {
      const { retryAfterMs = 0 } = thrown as RouterError
      clock.ms += retryAfterMs
      take(who, few).settle(0)
      begun.push(clock.ms)
    }
  }
  for (const [index, at] of begun.entries()) {
    const inMinute = begun.filter((other) => other >= at && other < at + 60_000).length
    expect(inMinute, `from call ${index}`).toBeLessThanOrEqual(3)
  }
})

test('a rejection has the limit and the delay', () => {
  const { take, clock } = underClock()
  const who = [limited({ requestsPerMinute: 1 }, 'organization')]
  take(who, few)
  clock.ms += 20_000
  const error = refusal(() => take(who, few))
  expect(error.message).toBe(
    'The limit of the organization is 1 requests per minute, and it has been reached. Try again in 41 s.',
  )
  expect(error.retryAfterMs).toBe(40_100)
  expect(error.headers).toEqual({
    'x-ratelimit-limit-requests': '1',
    'x-ratelimit-remaining-requests': '0',
    'x-ratelimit-reset-requests': '41s',
  })
})

test('calls at once are limited until one ends', () => {
  const { take } = underClock()
  const who = [limited({ concurrentCalls: 2 })]
  const first = take(who, few)
  take(who, few)
  expect(refusal(() => take(who, few)).message).toContain('2 concurrent calls')
  first.settle(0)
  first.settle(0)
  first.undo()
  take(who, few)
  expect(refusal(() => take(who, few)).retryAfterMs).toBe(1_000)
})

test('a refused call takes nothing from anybody', () => {
  const { take } = underClock()
  const key = limited({ requestsPerMinute: 5, tokensPerMinute: 100, concurrentCalls: 5 })
  const organization = limited({ requestsPerMinute: 1 }, 'organization')
  take([key, organization], few)
  for (let n = 0; n < 9; n++) refusal(() => take([key, organization], few))
  expect(take([key], few).headers).toMatchObject({
    'x-ratelimit-remaining-requests': '3',
    'x-ratelimit-remaining-tokens': '40',
  })
})

test('a call that was refused elsewhere is as if it had not been', () => {
  const { take, accounts } = underClock()
  const who = [limited({ requestsPerMinute: 1, tokensPerMinute: 30, concurrentCalls: 1 })]
  take(who, few).undo()
  take(who, few)
  expect(running(accounts)).toBe(1)
})

test('tokens are corrected to the actual usage, down for a failed call and up beyond the limit', () => {
  const { take, clock } = underClock()
  const who = [limited({ tokensPerMinute: 100 })]
  take(who, { prompt: 50, output: 50, hasOutputLimit: true }).settle(0)
  take(who, { prompt: 50, output: 40, hasOutputLimit: true }).settle(170)
  const error = refusal(() => take(who, few))
  expect(error.message).toBe(
    'The limit of this API key is 100 tokens per minute: 0 remain and this call may need 30. Try again in 61 s.',
  )
  clock.ms += error.retryAfterMs ?? 0
  take(who, few)
})

test('a call without an output limit reserves the rest and is rejected only where its prompt does not fit', () => {
  const { take } = underClock()
  const who = [limited({ tokensPerMinute: 100 })]
  const unstated = { prompt: 30, output: 4_096, hasOutputLimit: false }
  const all = take(who, unstated)
  expect(all.headers['x-ratelimit-remaining-tokens']).toBe('0')
  refusal(() => take(who, unstated))
  all.settle(60)
  const rest = take(who, unstated)
  expect(rest.headers['x-ratelimit-remaining-tokens']).toBe('0')
  rest.settle(20)
  refusal(() => take(who, unstated))
})

test('a call that alone is more than the limit passes when nothing else was used', () => {
  const { take, clock } = underClock()
  const who = [limited({ tokensPerMinute: 100 })]
  const large = { prompt: 300, output: 300, hasOutputLimit: true }
  const first = take(who, large)
  clock.ms += 10_000
  const { retryAfterMs = 0 } = refusal(() => take(who, large))
  first.settle(40)
  take(who, few).settle(30)
  refusal(() => take(who, large))
  clock.ms += retryAfterMs + 10_000
  take(who, large)
})

test('of several limits the headers report the tightest', () => {
  const { take, clock } = underClock()
  const key = limited({ requestsPerMinute: 10, tokensPerMinute: 1_000 })
  const organization = limited({ requestsPerMinute: 100, tokensPerMinute: 500 }, 'organization')
  clock.ms = 60_000
  expect(take([key, organization], few).headers).toEqual({
    'x-ratelimit-limit-requests': '10',
    'x-ratelimit-remaining-requests': '9',
    'x-ratelimit-reset-requests': '61s',
    'x-ratelimit-limit-tokens': '500',
    'x-ratelimit-remaining-tokens': '470',
    'x-ratelimit-reset-tokens': '61s',
  })
})

test.each([
  [0, '0ms'],
  [349.5, '350ms'],
  [999, '999ms'],
  [1_000, '1s'],
  [1_001, '2s'],
])('a limit that is free again in %d ms says so: %s', (resetMs, text) => {
  const headers = remainingHeaders([{ what: 'requests', limit: 5, left: 2, resetMs }])
  expect(headers['x-ratelimit-reset-requests']).toBe(text)
})

test('a call without a prompt needs one token where its output has no limit', () => {
  const { take } = underClock()
  const who = [limited({ tokensPerMinute: 100 })]
  const empty = { prompt: 0, output: 4_096, hasOutputLimit: false }
  take(who, few).settle(99)
  take(who, empty).settle(1)
  expect(refusal(() => take(who, empty)).message).toContain('0 remain and this call may need 1.')
})

test('where several limits refuse, the wait is that of the last to be free', () => {
  const { take, clock } = underClock()
  take([limited({ requestsPerMinute: 1 })], few)
  clock.ms += 30_000
  const both = limited({ requestsPerMinute: 1, concurrentCalls: 1 })
  const error = refusal(() => take([both], few))
  expect(error.message).toContain('requests per minute')
  expect(error.retryAfterMs).toBe(30_100)
})

test('a call that ends after its minute changes no window', () => {
  const { take, clock } = underClock()
  const who = [limited({ tokensPerMinute: 100 })]
  const long = take(who, few)
  clock.ms += 90_000
  take(who, few)
  long.settle(5_000)
  expect(take(who, few).headers['x-ratelimit-remaining-tokens']).toBe('40')
})

test('windows in which nothing happened for a minute do not gather', () => {
  const { take, accounts, clock } = underClock(100)
  const one = (n: number): Limited => ({ ...limited({ requestsPerMinute: 1 }), id: `k${n}` })
  const lasting = take([{ ...one(-1), limits: { ...none, concurrentCalls: 1 } }], few)
  for (let n = 0; n < 2_000; n++) {
    clock.ms += 2_000
    take([one(n)], few).settle(1)
  }
  expect(running(accounts)).toBe(1)
  expect(accounts.totals().accounts).toBeLessThan(250)
  lasting.settle(1)
})

test('many windows that are in use are not looked through for each call', () => {
  const one = (n: number): Limited => ({ ...limited({ requestsPerMinute: 9 }), id: `k${n}` })
  const work = (size: number) => {
    const { take } = underClock(10)
    for (let n = 0; n < size; n++) take([one(n)], few)
  }
  expectLinear(work, { small: 1_000, large: 20_000, slack: 5, floorMs: 150 })
})
