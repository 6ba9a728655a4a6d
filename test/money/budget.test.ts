import { expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import type { BudgetRequest } from '../../src/money/budget.ts'
import type { SpendTables } from '../../src/money/payments.ts'
import { type LocalBudget, localBudget } from '../accounts/local.ts'

const november = Date.UTC(2026, 10, 21)
const december = Date.UTC(2026, 11, 1)

/** Tables with these sums, and how often the key `k` was read. */
function tables(sums: { key?: bigint; group?: bigint; all?: bigint } = {}) {
  const reads = { count: 0 }
  const spend: SpendTables = {
    ofKey: (key, at) => {
      if (key !== 'k') return 0n
      reads.count++
      return at < december ? (sums.key ?? 0n) : 0n
    },
    ofGroup: (_, at) => (at < december ? (sums.group ?? 0n) : 0n),
    totalOfOrganization: () => sums.all ?? 0n,
  }
  return { spend, reads, sums }
}

function wanted(nanoUsd: bigint, more: Partial<BudgetRequest> = {}): BudgetRequest {
  return {
    at: november,
    key: { id: 'k', monthlyLimitNano: 100n },
    organization: { id: 'o', creditNano: 0n, enforcesBalance: false },
    nanoUsd,
    ...more,
  }
}

/** So many other keys that an idle one is evicted. */
function callOthers(budget: LocalBudget): void {
  for (let n = 0; n < 50; n++) {
    budget.reserve(wanted(1n, { key: { id: `other ${n}`, monthlyLimitNano: null } })).settle(0n)
  }
}

function refusal(run: () => unknown): string {
  try {
    run()
  } catch (thrown) {
    if (thrown instanceof RouterError && thrown.code === 'budget_exhausted') return thrown.message
    throw thrown
  }
  return ''
}

test('spend, reservations and the request together may reach the limit, not exceed it', () => {
  const budget = localBudget(tables({ key: 40n }).spend)
  budget.reserve(wanted(30n))
  budget.reserve(wanted(30n))
  expect(refusal(() => budget.reserve(wanted(1n)))).toBe(
    'The monthly limit of this API key is 0.0000001 USD: 0.00000004 USD spent, 0.00000006 USD reserved by running calls, ' +
      'and this call could cost up to 0.000000001 USD. It resets at 2026-12-01T00:00:00Z.',
  )
})

test('a call that ends cheaper than it could gives back the rest at once, before its row is on disk', () => {
  const budget = localBudget(tables().spend)
  const hold = budget.reserve(wanted(100n))
  hold.settle(1n)
  expect(refusal(() => budget.reserve(wanted(100n)))).not.toBe('')
  budget.reserve(wanted(99n))
})

test('a call that cost more than its maximum is charged in full', () => {
  const budget = localBudget(tables().spend)
  budget.reserve(wanted(10n)).settle(150n)
  expect(refusal(() => budget.reserve(wanted(1n)))).toContain('0.00000015 USD spent')
})

test('only the first settlement of a call counts', () => {
  const budget = localBudget(tables().spend)
  const hold = budget.reserve(wanted(50n))
  hold.settle(10n)
  hold.settle(90n)
  budget.written(10n)
  hold.settle(90n)
  expect(budget.totals().reservedNano).toBe(0n)
  budget.reserve(wanted(90n))
})

test('a call that costs nothing is admitted even when the limit is used up', () => {
  const budget = localBudget(tables({ key: 200n }).spend)
  budget.reserve(wanted(0n))
  expect(refusal(() => budget.reserve(wanted(1n)))).not.toBe('')
})

test('a rejected call reserves nothing on any account', () => {
  const budget = localBudget(tables().spend)
  const organization = { id: 'o', creditNano: 20n, enforcesBalance: true }
  const group = { id: 'g', name: 'lab', limitNano: 50n }
  expect(refusal(() => budget.reserve(wanted(60n, { group })))).toContain("The monthly limit of the group 'lab'")
  expect(refusal(() => budget.reserve(wanted(30n, { group, organization })))).toBe(
    'The balance of the organization is 0.00000002 USD of 0.00000002 USD credit: 0.00 USD spent, 0.00 USD reserved by ' +
      'running calls, and this call could cost up to 0.00000003 USD. It does not reset: add credit.',
  )
  expect(budget.totals().reservedNano).toBe(0n)
})

test('keys of a group share its limit, and all of an organization its balance', () => {
  const budget = localBudget(tables().spend)
  const group = { id: 'g', name: 'lab', limitNano: 50n }
  const organization = { id: 'o', creditNano: 60n, enforcesBalance: true }
  const key = (id: string) => ({ id, monthlyLimitNano: null })
  budget.reserve(wanted(50n, { key: key('a'), group, organization }))
  expect(refusal(() => budget.reserve(wanted(1n, { key: key('b'), group, organization })))).toContain('group')
  budget.reserve(wanted(10n, { key: key('c'), organization }))
  expect(refusal(() => budget.reserve(wanted(1n, { key: key('c'), organization })))).toContain('balance')
})

test('a new month begins with the whole limit, and the old one is still settled in its own', () => {
  const budget = localBudget(tables({ key: 90n }).spend)
  const old = budget.reserve(wanted(10n))
  budget.reserve(wanted(100n, { at: december })).settle(0n)
  old.settle(10n)
  budget.reserve(wanted(100n, { at: december }))
  expect(refusal(() => budget.reserve(wanted(1n, { at: december })))).toContain('It resets at 2027-01-01T00:00:00Z.')
})

test('an account is not reloaded before all its costs are in the tables', () => {
  const { spend, reads, sums } = tables({ key: 0n, all: 0n })
  const budget = localBudget(spend, { mostIdle: 0 })
  const hold = budget.reserve(wanted(60n))
  budget.reserve(wanted(0n)).settle(0n)
  hold.settle(60n)
  callOthers(budget)
  expect(refusal(() => budget.reserve(wanted(41n)))).toContain('0.00000006 USD spent')
  expect(reads.count).toBe(1)
  sums.key = 60n
  budget.written(60n)
  callOthers(budget)
  expect(refusal(() => budget.reserve(wanted(41n)))).toContain('0.00000006 USD spent')
  expect(reads.count).toBe(2)
})

test('a running call that reserves nothing keeps its account from being evicted', () => {
  const { spend } = tables({ key: 0n })
  const budget = localBudget(spend, { mostIdle: 0 })
  const free = budget.reserve(wanted(0n))
  callOthers(budget)
  free.settle(80n)
  expect(refusal(() => budget.reserve(wanted(21n)))).toContain('0.00000008 USD spent')
})

test('accounts that are idle do not gather', () => {
  const budget = localBudget(tables().spend, { mostIdle: 100 })
  for (let n = 0; n < 5_000; n++) {
    budget.reserve(wanted(1n, { key: { id: `k${n}`, monthlyLimitNano: 1n } })).settle(1n)
    budget.written(1n, [`key k${n} 2026-11`, 'organization'])
  }
  expect(budget.totals().accounts).toBeLessThan(400)
})

test('tables that cannot be read leave no reservation', () => {
  const { spend } = tables()
  let broken = true
  const budget = localBudget({
    ...spend,
    totalOfOrganization: () => {
      if (broken) throw new Error('disk')
      return 0n
    },
  })
  expect(() => budget.reserve(wanted(100n))).toThrow('disk')
  broken = false
  budget.reserve(wanted(100n))
})

test('what is left is the least of the accounts, never below 0, and nothing is read where there is no limit', () => {
  const { spend, reads } = tables({ key: 40n, group: 10n, all: 500n })
  const budget = localBudget(spend)
  const key = { id: 'k', monthlyLimitNano: null }
  expect(budget.left(wanted(0n, { key }))).toBeUndefined()
  expect(reads.count).toBe(0)
  const group = (limitNano: bigint | null) => ({ group: { id: 'g', limitNano } })
  expect(budget.left(wanted(0n))).toBe(60n)
  expect(budget.left(wanted(0n, group(30n)))).toBe(20n)
  budget.reserve(wanted(15n, group(30n)))
  expect(budget.left(wanted(0n, group(30n)))).toBe(5n)
  const organization = { id: 'o', creditNano: 100n, enforcesBalance: true }
  expect(budget.left(wanted(0n, { key, organization }))).toBe(0n)
})

test('a reservation is raised as far as there is room, and never lowered', () => {
  const budget = localBudget(tables().spend)
  const one = budget.reserve(wanted(30n))
  budget.reserve(wanted(20n))
  one.raise(80n)
  one.raise(10n)
  expect(refusal(() => one.raise(81n))).toContain(
    '0.00 USD spent, 0.00000002 USD reserved by running calls, and this call could cost up to 0.000000081 USD.',
  )
  expect(refusal(() => budget.reserve(wanted(1n)))).toContain('0.0000001 USD reserved')
  one.settle(5n)
  one.raise(100n)
  expect(budget.left(wanted(0n))).toBe(75n)
})

test('what an attempt cost is spent at once, and the call goes on with the rest of what it holds', () => {
  const budget = localBudget(tables().spend, { mostIdle: 2 })
  const one = budget.reserve(wanted(60n))
  one.charge(25n)
  expect(budget.left(wanted(0n))).toBe(40n)
  one.raise(60n)
  expect(budget.left(wanted(0n))).toBe(15n)
  one.charge(70n)
  expect(refusal(() => one.raise(60n))).not.toBe('')
  one.settle(0n)
  // It is remembered until it is on disk, even if the call itself costs nothing more.
  callOthers(budget)
  expect(budget.left(wanted(0n))).toBe(5n)
  expect(budget.totals().reservedNano).toBe(0n)
})
