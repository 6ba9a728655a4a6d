import { describe, expect, test } from 'vitest'
import { newSecret } from '../../src/access/secrets.ts'
import { RouterError } from '../../src/core/errors.ts'
import { defaultHealth } from '../../src/core/routing/rules.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import type { Target } from '../../src/manifest/target.ts'
import { Explanation } from '../../src/routing/explanation.ts'
import { ConcurrencyLimiters } from '../../src/routing/health/concurrency-limiter.ts'
import { passOver, skipClosed, skipDegraded } from '../../src/routing/health/failures.ts'
import { type AttemptHandle, Health, type TargetOutage } from '../../src/routing/health/health.ts'

const named = (slug: string): Target => ({
  provider: { slug, baseUrl: `https://${slug}.example`, auth: { scheme: 'none' } } as Provider,
  model: 'm',
})
const [a, b] = [named('a'), named('b')]
const broken = new RouterError('provider_cut', 'It broke off.', { provider: 'a', providerCode: 'gone_away' })

/** An explanation of a call that began at 100, by a clock that is moved by hand. */
function begun() {
  const clock = { at: 100 }
  const explanation = new Explanation({ now: () => clock.at })
  explanation.begin(100)
  return { clock, explanation }
}

/** A passage that notes what it hears. */
function noting() {
  const heard: string[] = []
  const passage: AttemptHandle = {
    succeeded: () => heard.push('succeeded'),
    produced: (tokens) => heard.push(`produced ${tokens}`),
    failed: ({ code }) => heard.push(code),
    ended: () => heard.push('ended'),
  }
  return { heard, passage }
}

describe('times', () => {
  test('are those of attempts and of the waits between them', () => {
    const { clock, explanation } = begun()
    explanation.failed(a, { began: 103, ended: 110 }, broken)
    clock.at = 150
    const { heard, passage } = noting()
    const following = explanation.answered(a, { began: 130 }, passage)
    following.produced?.(3)
    clock.at = 190
    following.ended()
    expect(heard).toEqual(['produced 3', 'ended'])
    const failure = { status: 502, code: 'gone_away', class: 'failed' }
    expect(explanation.told()).toEqual({
      skipped: [],
      attempts: [
        { model: 'a/m', started_ms: 3, waited_ms: 0, duration_ms: 7, ...failure, followed_by: 'again' },
        { model: 'a/m', started_ms: 30, waited_ms: 20, first_content_ms: 20, duration_ms: 60, status: 200 },
      ],
      timings: { before_ms: 3, first_content_ms: 50, total_ms: 90 },
    })
  })

  test('of an answer that breaks off end there, and the next target waits for nothing', () => {
    const { clock, explanation } = begun()
    const { heard, passage } = noting()
    clock.at = 120
    const following = explanation.answered(a, { began: 100 }, passage)
    clock.at = 140
    following.failed(broken)
    expect(heard).toEqual(['provider_cut'])
    explanation.answered(b, { began: 140 }, passage)
    clock.at = 200
    expect(explanation.told()).toMatchObject({
      attempts: [
        { model: 'a/m', first_content_ms: 20, duration_ms: 40, class: 'failed', followed_by: 'next' },
        { model: 'b/m', waited_ms: 0, duration_ms: 60, status: 200 },
      ],
      timings: { first_content_ms: 20 },
    })
  })
})

describe('what is skipped', () => {
  test('is told once for each step, with the later reason, and what was found before another look does not count', () => {
    const { explanation } = begun()
    explanation.skip(a, 'health', 'first')
    explanation.skip(a, 'health', 'second')
    explanation.skip('a/m', 'able', 'third')
    expect(explanation.plan()).toEqual({
      skipped: [
        { model: 'a/m', step: 'health', reason: 'second' },
        { model: 'a/m', step: 'able', reason: 'third' },
      ],
    })
    explanation.exclude('name', [{ id: 'c/m', message: 'No.' }])
    explanation.ordered([a, b], { rules: { sort: 'order', sticky: 'none' }, costOf: () => undefined })
    expect(explanation.plan()).toMatchObject({ sort: 'order', not_allowed: 1 })
    explanation.begin(101)
    expect(explanation.plan()).toEqual({ skipped: [] })
  })

  test('may be named by who owns the name, else is counted', () => {
    const explanation = new Explanation({ ownName: 'own' })
    explanation.begin(0)
    explanation.exclude('own', [{ id: 'c/m', message: 'Not approved.' }])
    const others = ['d/m', 'e/m'].map((id) => ({ id, message: 'Not approved.' }))
    explanation.exclude('other', others)
    explanation.exclude('yet another', others.slice(1))
    expect(explanation.plan()).toEqual({
      skipped: [{ model: 'c/m', step: 'allowed', reason: 'Not approved.' }],
      not_allowed: 3,
    })
  })

  test('has bounds, and no secrets', () => {
    const { explanation } = begun()
    for (let index = 0; index < 200; index++) explanation.skip(`m${index}`, 'able', 'x'.repeat(1_000))
    const { skipped } = explanation.plan() as { skipped: { reason: string }[] }
    expect([skipped.length, skipped[0]?.reason.length]).toEqual([100, 300])
    const secret = newSecret()
    explanation.begin(100)
    explanation.skip(`a/${secret}`, 'able', `${secret} is no model`)
    expect(JSON.stringify(explanation.plan())).not.toContain(secret)
  })
})

test('an error has the explanation once targets were looked for, and keeps the one that it has', () => {
  const explanation = new Explanation()
  expect(explanation.addedTo(broken).router).toBeUndefined()
  explanation.begin(0)
  const told = explanation.addedTo(broken)
  expect(told).toMatchObject({ code: 'provider_cut', router: { attempts: 0, explain: { attempts: [] } } })
  expect(explanation.addedTo(told)).toBe(told)
})

describe('a target that takes no calls', () => {
  const state = () => ({ limiters: new ConcurrencyLimiters(), health: new Health({ settings: () => defaultHealth }) })
  const reasons = ({ explanation }: { explanation: Explanation }) =>
    (explanation.plan() as { skipped: { model: string; reason: string }[] }).skipped.map(({ model, reason }) => [
      model,
      reason,
    ])

  test('is told with the time that is left, by its own words or after failures', () => {
    const call = begun()
    const known = state()
    expect(skipClosed(call.explanation, a, known)).toBe(false)
    const busy = new RouterError('rate_limited', 'Busy.', { provider: 'a', retryAfterMs: 7_000 })
    known.health.enter(a, 'o')?.failed(busy)
    expect(skipClosed(call.explanation, a, { ...known, organization: 'o' })).toBe(true)
    passOver(call.explanation, b, known)
    expect(reasons(call)).toEqual([
      ['a/m', 'takes no calls for 7 s, because it reported that it is busy'],
      ['b/m', 'failed recently, and takes only some calls until more of them have succeeded'],
    ])
  })

  test('is known from the reports of all event loops, but not from those about another organization', () => {
    const until = Date.now() + 4_500
    const troubled: TargetOutage[] = [
      { scope: 'target', name: 'a/other', state: 'open', until },
      { scope: 'target', name: 'a/m', state: 'open', until, organization: 'theirs' },
      { scope: 'credential', name: 'b', state: 'half_open' },
    ]
    const call = begun()
    for (const target of [a, b]) skipDegraded(call.explanation, target, { organization: 'ours', troubled })
    expect(reasons(call)).toEqual([
      ['b/m', 'failed recently, and takes only some calls until more of them have succeeded'],
    ])
    skipDegraded(call.explanation, a, { organization: 'theirs', troubled })
    expect(reasons(call)[1]).toEqual(['a/m', 'takes no calls for 5 s, after failures'])
  })
})
