import { beforeEach, describe, expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import { defaultHealth } from '../../src/core/routing-rules.ts'
import type { Target } from '../../src/manifest/target.ts'
import { Health } from '../../src/routing/health.ts'

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
    expect(health.troubled()).toMatchObject([{ organization: 'one' }])
    // Any number of calls of the others go through at once.
    const passages = [health.enter(target, 'other'), health.enter(target, 'other')]
    expect(passages).not.toContain(undefined)
    for (const passage of passages) passage?.ended()
  })

  test('is closed to all when another organization meets the same', () => {
    meets('one', how)
    meets('other', how, 1)
    expect([isOpen('one'), isOpen('other'), isOpen('third')]).toEqual([false, false, false])
    expect(health.troubled()[0]).not.toHaveProperty('organization')
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
    expect(health.troubled()).toEqual([])
  })
})

test('one organization whose calls fail among those of others closes the target to itself alone', () => {
  for (let round = 0; round < 20; round++) {
    meets('one', 'fails', 3)
    succeeds('other')
    at += 100
  }
  expect([isOpen('one'), isOpen('other')]).toEqual([false, true])
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
  expect(health.troubled().length).toBeLessThanOrEqual(10_000)
  expect(isOpen('other')).toBe(true)
})
