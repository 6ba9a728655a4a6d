import type { Named, Need, Reserved } from './account.ts'
import type { MainAccounts } from './instance-accounts.ts'
import { column, row } from './memory.ts'
import type { AccountTable, Payment } from './table.ts'

/** An account of a process that is being replaced: what its calls hold, and its uses of the last minute. All of it is absolute. */
export type HeldAccount = Named & { held: bigint; uses: readonly (readonly [endsAt: number, uses: bigint])[] }

type Options = { accounts: MainAccounts; thread: number; readSpent(account: string): bigint }

/**
 * A process that is being replaced, in the accounts of the one that replaces it: it has a column, as a thread has. It reports what it holds,
 * and what it needs beyond that is reserved here for it.
 */
export class ReplacedProcess {
  readonly #options: Options
  readonly #held = new Map<string, HeldAccount>()
  /** Uses that are counted here, by account and end. */
  readonly #uses = new Map<string, Map<number, bigint>>()
  /** Amounts that were reserved here, and that what it holds may not contain yet. */
  #unanswered: { id: number; need: Need; amount: bigint }[] = []

  constructor(options: Options) {
    this.#options = options
  }

  /**
   * Counts what it holds. `answered` is the last reservation that it knows. Each account is a step of its own, as a step has room for a
   * bounded number of changes; all of them come before what is asked later.
   */
  async held(accounts: readonly HeldAccount[], answered: number): Promise<void> {
    const own = this.#options.accounts
    const known = this.#unanswered.filter(({ id }) => id <= answered)
    this.#unanswered = this.#unanswered.filter(({ id }) => id > answered)
    for (const account of accounts) this.#held.set(account.account, account)
    const counted = accounts.map((account) =>
      own.inTable((table, at) => {
        this.#countUses(table, account, at)
        this.#count(table, account, at)
      }),
    )
    const recounted = known.map(({ need }) => own.inTable((table, at) => this.#count(table, need, at)))
    await Promise.all([...counted, ...recounted])
  }

  /** Reserves for one of its calls. Uses of a minute are held until it reports them. */
  reserve(id: number, needs: readonly Need[]): Promise<Reserved> {
    const { accounts, thread } = this.#options
    return accounts.inTable((table, at) => {
      for (const need of needs) table.windows.expire(this.#open(table, need, at), at)
      const holds = needs.map((need): Need => (need.kind === 'minute' ? { ...need, kind: 'running' } : need))
      const reserved = table.reserve(thread, holds, { at, read: new Map() })
      if (reserved instanceof Map) throw new Error('an account that was opened is gone')
      if (!reserved.isReserved) return table.reserve(thread, needs, { at, read: new Map(), isAsked: true }) as Reserved
      reserved.parts.forEach(({ amount }, index) => {
        this.#unanswered.push({ id, need: needs[index] as Need, amount })
      })
      return reserved
    })
  }

  /** Counts the cost of rows that are not on disk yet, each account in a step of its own. */
  async spend(payments: readonly Payment[]): Promise<void> {
    const { accounts, thread } = this.#options
    const spent = payments.flatMap(({ accounts: names, cost }) =>
      names.map((name) =>
        accounts.inTable((table, at) => {
          const account = this.#open(table, { account: name, kind: 'money', limit: null }, at)
          table.memory.add(account + row.spent, cost)
          table.memory.add(table.rows.column(account, thread) + column.unwritten, cost)
        }),
      ),
    )
    await Promise.all(spent)
  }

  /** Releases what it held: it has ended. */
  async gone(): Promise<void> {
    await this.#options.accounts.release(this.#options.thread)
  }

  #open({ rows }: AccountTable, { account: name, kind, limit }: Named, at: number): number {
    const known = rows.find(name)
    if (known !== 0) return known
    const spent = kind === 'money' ? this.#options.readSpent(name) : 0n
    const account = rows.insert({ name, kind, spent }, [], at)
    rows.setLimit(account, limit)
    return account
  }

  #count(table: AccountTable, named: Named, at: number): void {
    const { memory, rows } = table
    const account = this.#open(table, named, at)
    const own = rows.column(account, this.#options.thread) + column.reserved
    const unanswered = this.#unanswered.filter(({ need }) => need.account === named.account)
    const held = unanswered.reduce((sum, { amount }) => sum + amount, this.#held.get(named.account)?.held ?? 0n)
    const change = held - memory.big(own)
    if (change === 0n) return
    memory.add(own, change)
    memory.add(account + row.reserved, change)
  }

  #countUses(table: AccountTable, named: HeldAccount, at: number): void {
    if (named.uses.length === 0) return
    const account = this.#open(table, named, at)
    const counted = this.#uses.get(named.account) ?? new Map<number, bigint>()
    this.#uses.set(named.account, counted)
    table.windows.expire(account, at)
    for (const endsAt of counted.keys()) if (endsAt <= at) counted.delete(endsAt)
    for (const [endsAt, uses] of named.uses) {
      const change = uses - (counted.get(endsAt) ?? 0n)
      if (endsAt <= at || change === 0n) continue
      table.windows.add(account, endsAt, change)
      counted.set(endsAt, uses)
    }
  }
}
