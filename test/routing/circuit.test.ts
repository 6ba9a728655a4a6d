import { beforeEach, describe, expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import { defaultHealth } from '../../src/core/routing/rules.ts'
import type { Target } from '../../src/manifest/target.ts'
import { Health } from '../../src/routing/health/health.ts'

// What the calls of one organization meet does not close a target to the calls of others.

const provider = { slug: 'maker', baseUrl: 'http://127.0.0.1', auth: { scheme: 'none' } }
const target = { provider, model: 'm1' } as unknown as Target
let at = 0
let health: Health

beforeEach(() => {
  at = 0
  health = new Health({ settings: () => defaultHealth, now: () => at, random: () => 0.5 })
})

const errors = {
  fails: new RouterError('provider_failed', 'No.', { provider: 'maker' }),
  times_out: new RouterError('provider_timeout', 'No.', { provider: 'maker' }),
  refuses: new RouterError('provider_refused', 'No.', { provider: 'maker' }),
  forbids: new RouterError('provider_refused', 'No.', { provider: 'maker', concernsModel: true }),
  has_no_quota: new RouterError('quota_exhausted', 'No.', { provider: 'maker' }),
  is_gone: new RouterError('model_not_found', 'No.', { provider: 'maker' }),
  is_busy: new RouterError('rate_limited', 'No.', { provider: 'maker', retryAfterMs: 10_000 }),
}
type How = keyof typeof errors
const all = Object.keys(errors) as How[]

function meets(organization: string, how: How, times = 5): void {
  for (let time = 0; time < times; time++) {
    const passage = health.enter(target, organization)
    passage?.failed(errors[how])
    passage?.ended()
  }
}

function succeeds(organization: string): void {
  const passage = health.enter(target, organization)
  passage?.succeeded()
  passage?.ended()
}

const isOpen = (organization: string) =>
  health.isOpen(target, true, organization) && health.closedFor(target, organization) === undefined

describe.each(all)('a target that %s', (how) => {
  test('is closed to the organization that has met it, and to no other', () => {
    meets('one', how)
    expect([isOpen('one'), isOpen('other')]).toEqual([false, true])
    expect(health.degraded()).toMatchObject([{ organization: 'one' }])
    // Any number of calls of the others go through at once.
    const passages = [health.enter(target, 'other'), health.enter(target, 'other')]
    expect(passages).not.toContain(undefined)
    for (const passage of passages) passage?.ended()
  })

  test('is closed to all when another organization meets the same', () => {
    meets('one', how)
    meets('other', how, 1)
    expect([isOpen('one'), isOpen('other'), isOpen('third')]).toEqual([false, false, false])
    expect(health.degraded()[0]).not.toHaveProperty('organization')
  })

  test('is not closed to all when calls of others go well in between', () => {
    meets('one', how)
    succeeds('third')
    meets('other', how, 1)
    expect(isOpen('third')).toBe(true)
  })

  test('comes back for the organization alone that it was closed to', () => {
    meets('one', how)
    at += 400_000
    succeeds('one')
    succeeds('one')
    // Of the others not even a share is held back.
    const open = Array.from({ length: 100 }, () => isOpen('other'))
    expect(open).not.toContain(false)
    at += 60_000
    expect(isOpen('one')).toBe(true)
    expect(health.degraded()).toEqual([])
  })
})

test.each(all.filter((how) => how !== 'fails' && how !== 'times_out'))(
  'a target that %s again is closed to all when another organization meets it, though calls went well before',
  (how) => {
    for (let round = 0; round < 2; round++) {
      meets('one', how, 1)
      succeeds('third')
    }
    meets('one', how, 1)
    meets('other', how, 1)
    expect([isOpen('one'), isOpen('other'), isOpen('third')]).toEqual([false, false, false])
  },
)

test('one organization whose calls fail among those of others closes the target to itself alone', () => {
  for (let round = 0; round < 20; round++) {
    meets('one', 'fails', 3)
    succeeds('other')
    at += 100
  }
  expect([isOpen('one'), isOpen('other')]).toEqual([false, true])
})

test('a refusal after the time of an earlier one closes the target to the organization that meets it now', () => {
  meets('one', 'is_busy', 1)
  at += 10_001
  meets('other', 'is_busy', 1)
  expect([isOpen('one'), isOpen('other')]).toEqual([true, false])
})

test('a target that was closed to all is closed to all again by one more refusal', () => {
  meets('one', 'is_busy', 1)
  meets('other', 'is_busy', 1)
  at += 10_001
  meets('one', 'is_busy', 1)
  expect([isOpen('one'), isOpen('third')]).toEqual([false, false])
})

test('failures of all organizations open it for all', () => {
  for (const organization of ['a', 'b', 'c', 'd', 'e']) meets(organization, 'fails', 1)
  expect(isOpen('z')).toBe(false)
})

test('names that a client invents do not pile up', () => {
  meets('one', 'fails', 1)
  for (let name = 0; name < 25_000; name++) {
    const passage = health.enter({ ...target, model: `invented-${name}` }, 'one')
    passage?.failed(errors.is_gone)
    passage?.ended()
  }
  expect(health.degraded().length).toBeLessThanOrEqual(10_000)
  expect(isOpen('other')).toBe(true)
})

describe('a circuit over a long time', () => {
  test('is not opened by failures that are older than its window', () => {
    // Half of the calls fail, but there are never enough of them within half a minute.
    for (let round = 0; round < 20; round++) {
      for (let pair = 0; pair < 4; pair++) {
        meets('one', 'fails', 1)
        succeeds('one')
      }
      meets('one', 'fails', 1)
      expect(isOpen('one')).toBe(true)
      succeeds('other')
      at += 2 * defaultHealth.windowMs
    }
  })

  test('counts failures in a row from the last success on', () => {
    for (let round = 0; round < 20; round++) {
      meets('one', 'fails', 4)
      expect(isOpen('one')).toBe(true)
      succeeds('one')
      at += 2 * defaultHealth.windowMs
    }
    meets('one', 'fails', 5)
    expect(isOpen('one')).toBe(false)
  })

  test('is open for longer each time a trial fails, but never for more than `open_most`', () => {
    for (const organization of ['a', 'b', 'c', 'd', 'e']) meets(organization, 'fails', 1)
    const times: number[] = []
    for (let trial = 0; trial < 200; trial++) {
      const ms = health.closedFor(target)?.ms ?? 0
      times.push(Math.round(ms))
      at += ms
      expect(health.closedFor(target)).toBeUndefined()
      meets('a', 'fails', 1)
    }
    expect(times.slice(0, 3)).toEqual([5_000, 6_500, 8_450])
    expect(times).toEqual(times.toSorted((one, other) => one - other))
    expect(times.at(-1)).toBe(defaultHealth.maxOpenMs)
  })

  test('begins anew once it has closed: old failures do not count, and the first open time is the shortest', () => {
    for (let round = 0; round < 5; round++) {
      for (const organization of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']) meets(organization, 'fails', 1)
      expect(health.closedFor(target)).toEqual({ ms: defaultHealth.openMs, isBusy: false })
      for (let trial = 0; trial < 3; trial++) {
        at += health.closedFor(target)?.ms ?? 0
        meets('a', 'fails', 1)
      }
      at += health.closedFor(target)?.ms ?? 0
      succeeds('a')
      succeeds('b')
      meets('a', 'fails', 4)
      expect(health.closedFor(target)).toBeUndefined()
      succeeds('a')
      at += defaultHealth.rampUpMs
      expect(health.degraded()).toEqual([])
    }
  })

  test('that has closed counts nothing of what was before, though it is still within its window', () => {
    for (let round = 0; round < 3; round++) {
      for (const organization of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']) meets(organization, 'fails', 1)
      at += defaultHealth.openMs
      succeeds('a')
      succeeds('b')
      meets('a', 'fails', 4)
      expect(health.degraded()).toMatchObject([{ state: 'recovering' }])
      succeeds('a')
      at += defaultHealth.rampUpMs
    }
  })

  test('needs two successes each time it has opened', () => {
    for (const organization of ['a', 'b', 'c', 'd', 'e']) meets(organization, 'fails', 1)
    for (let round = 0; round < 3; round++) {
      at += health.closedFor(target)?.ms ?? 0
      succeeds('a')
      expect(health.degraded()).toMatchObject([{ state: 'half_open' }])
      meets('b', 'fails', 1)
      expect(health.degraded()).toMatchObject([{ state: 'open' }])
    }
    at += health.closedFor(target)?.ms ?? 0
    succeeds('a')
    expect(health.degraded()).toMatchObject([{ state: 'half_open' }])
    succeeds('b')
    expect(health.degraded()).toEqual([
      { scope: 'target', name: 'maker/m1', state: 'recovering', since: expect.any(Number) },
    ])
  })

  test('of a credential reports a refusal once, and again only after the credential was accepted', () => {
    const reported: string[] = []
    const onRefused = (slug: string, error: RouterError) => void reported.push(`${slug} ${error.code}`)
    health = new Health({ settings: () => defaultHealth, now: () => at, random: () => 0.5, onRefused })
    for (let round = 1; round <= 3; round++) {
      meets('one', 'refuses')
      meets('other', 'has_no_quota', 2)
      expect(reported).toEqual(Array(round).fill('maker provider_refused'))
      at += 400_000
      succeeds('one')
      succeeds('other')
    }
    meets('one', 'fails')
    expect(reported).toHaveLength(3)
  })

  test('takes a growing share of calls while it recovers, and all of them from then on', () => {
    let random = 0
    health = new Health({ settings: () => defaultHealth, now: () => at, random: () => random })
    for (const organization of ['a', 'b', 'c', 'd', 'e']) meets(organization, 'fails', 1)
    at += 60_000
    succeeds('a')
    succeeds('b')
    const began = at
    const takes = (share: number) => {
      random = share
      return health.isOpen(target, true)
    }
    for (const [passed, share] of [
      [0, 0.1],
      [defaultHealth.rampUpMs / 3, 0.4],
      [(defaultHealth.rampUpMs * 2) / 3, 0.7],
    ] as const) {
      at = began + passed
      expect([takes(share - 0.01), takes(share + 0.01)]).toEqual([true, false])
      // A call without another target is not held back.
      expect(health.isOpen(target, false)).toBe(true)
    }
    at = began + defaultHealth.rampUpMs
    expect(takes(0.999)).toBe(true)
  })

  test('lets one trial at a time through, however often earlier ones have ended', () => {
    for (const organization of ['a', 'b', 'c', 'd', 'e']) meets(organization, 'fails', 1)
    for (let trial = 0; trial < 20; trial++) {
      at += health.closedFor(target)?.ms ?? 0
      const passage = health.enter(target, 'a')
      expect([health.isOpen(target, true), health.enter(target, 'b')]).toEqual([false, undefined])
      passage?.failed(errors.fails)
      passage?.ended()
      passage?.ended()
    }
  })
})

describe('a target without an alternative', () => {
  /** Calls at a steady rate. The times, in seconds, of those that were turned away. */
  function turnedAway({
    perSecond,
    answerMs,
    wellAt,
    until,
  }: Record<'perSecond' | 'answerMs' | 'wellAt' | 'until', number>) {
    const ends: { at: number; end: () => void }[] = []
    const refused: number[] = []
    for (at = 0; at < until; at += 1_000 / perSecond) {
      for (const [place, one] of [...ends.entries()].reverse()) {
        if (one.at > at) continue
        one.end()
        ends.splice(place, 1)
      }
      const passage = health.enterAsLastResort(target, 'one')
      if (!passage) refused.push(at)
      else if (at < wellAt) passage.failed(errors.fails)
      else ends.push({ at: at + answerMs, end: () => passage.succeeded() })
    }
    return refused
  }

  test('has all its calls again soon after it is well, although none of its answers is finished', () => {
    const wellAt = 20_000
    const refused = turnedAway({ perSecond: 5, answerMs: 8_000, wellAt, until: 60_000 })
    expect(refused.filter((one) => one < wellAt).length).toBeGreaterThan(30)
    expect(refused.filter((one) => one >= wellAt + 1_500)).toEqual([])
    expect(refused.filter((one) => one >= wellAt).length).toBeLessThanOrEqual(4)
  })

  test('takes all calls from the first content on that one of them gets', () => {
    meets('one', 'fails', 30)
    while (health.enterAsLastResort(target, 'one'));
    at += 1_000
    const passage = health.enterAsLastResort(target, 'one')
    passage?.succeeded()
    const more = Array.from({ length: 50 }, () => health.enterAsLastResort(target, 'one'))
    expect(more).not.toContain(undefined)
  })

  test('takes all calls while some of them succeed, although its circuit is open', () => {
    for (let round = 0; round < 50; round++) {
      meets('one', 'fails', 3)
      succeeds('one')
      expect(health.enterAsLastResort(target, 'one')).toBeDefined()
    }
  })

  test.each(['refuses', 'has_no_quota', 'is_gone', 'is_busy'] as const)(
    'that %s tells everybody why, one after the other',
    (how) => {
      for (let call = 0; call < 20; call++) {
        const passage = health.enterAsLastResort(target, 'one')
        passage?.failed(errors[how])
        passage?.ended()
        expect(passage).toBeDefined()
      }
    },
  )

  test.each(['refuses', 'has_no_quota', 'is_gone', 'is_busy'] as const)('that %s is asked now and then', (how) => {
    meets('one', how)
    let asked = 0
    while (health.enterAsLastResort(target, 'one')) asked++
    expect(asked).toBe(6)
    expect(health.lastResortMs(target, 'one')).toBe(how === 'is_busy' ? 10_000 : 300_000)
    at += 1_000
    expect(health.enterAsLastResort(target, 'one')).toBeDefined()
    // Others have met nothing.
    expect(health.lastResortMs(target, 'other')).toBe(0)
  })
})
