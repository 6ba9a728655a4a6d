import type { Need, Part, QuotaStatus, Reserved } from './account.ts'
import { type AccountMemory, allocateAccounts, column } from './memory.ts'
import { AccountTable, type Payment, type ReadSpend } from './table.ts'

export type AccountsOptions = {
  /** Reads what a money account has spent, when it is used for the first time. */
  readSpent(account: string): bigint | Promise<bigint>
  /** Returns milliseconds of the monotonic clock that all threads share. */
  now?(): number
  /** The memory that threads share, and the column of this one. */
  memory?: AccountMemory
  thread?: number
  /** Decides about needs that the grants of this instance do not cover. */
  beyondGrant?(needs: readonly Need[]): Promise<Reserved>
  /** Called with accounts of which less than half of the last grant is free, as needs of nothing. */
  onLow?(needs: readonly Need[]): void
}

const noneRead: ReadonlyMap<string, ReadSpend> = new Map()

/**
 * The accounts of an instance for one of its threads. A call reserves in one synchronous step, whichever thread it runs in, so no limit is
 * exceeded and no call is refused that fits. Only the first use of an account may take longer, and what others have been granted.
 */
export class Accounts {
  readonly table: AccountTable
  readonly thread: number
  readonly now: () => number
  readonly #options: AccountsOptions

  constructor(options: AccountsOptions) {
    const { memory = allocateAccounts(), thread = 0, now = () => performance.now() } = options
    this.#options = options
    this.table = new AccountTable(memory, thread)
    this.thread = thread
    this.now = now
  }

  /** Reserves all needs of a call, or none. Throws what reading an account throws, and RouterError `unavailable` when memory is full. */
  reserve(needs: readonly Need[]): Reserved | Promise<Reserved> {
    const reserved = this.#reserve(needs, false, noneRead)
    if (reserved instanceof Promise) return reserved.then((one) => this.#granted(needs, one))
    return this.#granted(needs, reserved)
  }

  /** Returns the state of accounts, without a reservation. */
  statuses(needs: readonly Need[]): QuotaStatus[] | Promise<QuotaStatus[]> {
    const asked = this.#reserve(needs, true, noneRead)
    return asked instanceof Promise ? asked.then(({ statuses }) => statuses) : asked.statuses
  }

  /** Spends money that parts of a reservation hold, and releases what is left of it. `ends` counts the reservations that are over. */
  spend(parts: readonly Part[], change: { cost: bigint; released: bigint; ends: bigint }): void {
    this.table.memory.step(() => this.table.spend(this.thread, parts, change))
  }

  /** Ends running calls and corrects the uses of the last minute, each by an amount. */
  end(parts: readonly Part[], changes: readonly bigint[]): void {
    this.table.memory.step(() => this.table.end(this.thread, parts, changes, this.now()))
  }

  /** Rows are on disk. `messages` is the number of messages to the main thread of which that is known now. */
  written(payments: readonly Payment[], messages = 0): void {
    const { table, thread } = this
    table.memory.step(() => {
      table.written(thread, payments)
      if (messages > 0) table.acknowledge(thread, messages)
    })
  }

  /** Returns how many accounts are in memory, and what the calls of this thread reserve of money. */
  totals(): { accounts: number; reservedNano: bigint } {
    const { rows, memory } = this.table
    let reservedNano = 0n
    // Without the lock: a figure for metrics.
    for (const account of rows.all())
      if (rows.kind(account) === 'money')
        reservedNano += memory.big(rows.column(account, this.thread) + column.reserved)
    return { accounts: rows.count(), reservedNano }
  }

  #granted(needs: readonly Need[], reserved: Reserved): Reserved | Promise<Reserved> {
    const { beyondGrant } = this.#options
    return !reserved.isReserved && reserved.needsGrant && beyondGrant ? beyondGrant(needs) : reserved
  }

  #reserve(
    needs: readonly Need[],
    isAsked: boolean,
    read: ReadonlyMap<string, ReadSpend>,
  ): Reserved | Promise<Reserved> {
    const { table, thread } = this
    let known = read
    for (;;) {
      const result = table.memory.step(() => table.reserve(thread, needs, { at: this.now(), read: known, isAsked }))
      if (table.low.length > 0) this.#options.onLow?.(table.low.splice(0))
      if (!(result instanceof Map)) return result
      const reading = this.#read(result)
      const before = known
      if (reading instanceof Promise)
        return reading.then((spends) => this.#reserve(needs, isAsked, new Map([...before, ...spends])))
      known = new Map([...known, ...reading])
    }
  }

  #read(unread: ReadonlyMap<string, number>): Map<string, ReadSpend> | Promise<Map<string, ReadSpend>> {
    const reads = [...unread].map(([name, evictions]) => ({ name, evictions, spent: this.#options.readSpent(name) }))
    if (reads.every(isRead)) return new Map(reads.map(({ name, evictions, spent }) => [name, { spent, evictions }]))
    const reading = reads.map(async ({ name, evictions, spent }): Promise<[string, ReadSpend]> => {
      return [name, { spent: await spent, evictions }]
    })
    return Promise.all(reading).then((entries) => new Map(entries))
  }
}

function isRead(one: { spent: bigint | Promise<bigint> }): one is { name: string; evictions: number; spent: bigint } {
  return typeof one.spent === 'bigint'
}
