import { type Limits, openLimits } from '../../src/access/limits.ts'
import { accountName } from '../../src/accounts/account.ts'
import { Accounts, type AccountsOptions } from '../../src/accounts/accounts.ts'
import { allocateAccounts } from '../../src/accounts/memory.ts'
import type { Payment } from '../../src/accounts/table.ts'
import { type Budget, openBudget } from '../../src/money/budget.ts'
import { type SpendTables, spendReader } from '../../src/money/payments.ts'

/** A result that is there at once. */
export function atOnce<Value>(value: Value | Promise<Value>): Value {
  if (value instanceof Promise) throw new Error('it is not there at once')
  return value
}

/** Few accounts in little memory. */
export function smallAccounts(options: AccountsOptions, sizes: Parameters<typeof allocateAccounts>[0] = {}): Accounts {
  return new Accounts({ memory: allocateAccounts({ rows: 32_768, slots: 65_536, ...sizes }), ...options })
}

type AtOnce<Function> = Function extends (...given: infer Given) => infer Result
  ? (...given: Given) => Exclude<Result, Promise<unknown>>
  : never

/** The budget of a process with one thread: everything is there at once. */
export type LocalBudget = { [Name in keyof Budget]: AtOnce<Budget[Name]> } & {
  totals: Accounts['totals']
  /** Rows of the key `k`, the group `g` and the organization `o` in November 2026 are on disk. */
  written(cost: bigint, accounts?: Payment['accounts']): void
}

const usualPayers = ['key k 2026-11', 'group g 2026-11', 'organization']

export function localBudget(tables: SpendTables, { mostIdle = 10_000 } = {}): LocalBudget {
  const accounts = smallAccounts({ readSpent: spendReader(tables) }, { maxIdle: mostIdle })
  const budget = openBudget(accounts)
  return {
    left: (payers) => atOnce(budget.left(payers)),
    reserve: (request) => atOnce(budget.reserve(request)),
    totals: () => accounts.totals(),
    written: (cost, payers = usualPayers) =>
      accounts.written([{ accounts: payers.map((name) => accountName('o', name)), cost }]),
  }
}

/** The limits of a process with one thread. */
export type LocalLimits = { take: AtOnce<Limits['take']>; accounts: Accounts }

export function localLimits({ now, mostIdle = 10_000 }: { now?(): number; mostIdle?: number } = {}): LocalLimits {
  const readSpent = () => {
    throw new Error('limits read nothing')
  }
  const accounts = smallAccounts({ readSpent, ...(now && { now }) }, { maxIdle: mostIdle })
  const limits = openLimits(accounts)
  return { take: (...given) => atOnce(limits.take(...given)), accounts }
}

/** The calls that run under limits of calls at once. */
export function running({ table }: Accounts): number {
  let sum = 0
  for (const account of table.rows.all()) if (table.rows.kind(account) === 'running') sum += Number(table.held(account))
  return sum
}
