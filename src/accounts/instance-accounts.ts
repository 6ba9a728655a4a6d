import { type Kind, type Named, type Need, parseAccount, type Reserved } from './account.ts'
import { type AccountMemory, column, header, row, slot } from './memory.ts'
import { AccountTable, type Payment } from './table.ts'

/**
 * The accounts of this instance as the protocol between instances uses them, in the main thread. An instance that is alone has been
 * granted everything, and refuses by the limits. While it shares, a call may only use what was granted; what goes beyond that is decided
 * by the function of `decideBy`.
 */
export type InstanceAccounts = {
  /**
   * Runs one step under the lock: at once if the lock is free, otherwise as soon as it is (this thread never blocks on it). Nothing else
   * changes the accounts meanwhile. If the step throws, none of its changes remain.
   */
  step<Result>(change: (accounts: AccountsStep) => Result): Promise<Result>
  /** Sets the time until which calls are admitted, by the clock of the accounts. */
  admitUntil(at: number): void
  /** Sets the function that decides about needs which the grants do not cover. An error that it rejects with reaches the client of the call. */
  decideBy(decide: Decide): void
  /** Sets the function that gets more of accounts of which less than half of the last grant is free. It is called once for each grant. */
  refillBy(refill: Refill): void
}

/** Decides about the needs of a call; it reserves for the call with `AccountsStep.reserve`. */
export type Decide = (caller: Caller, needs: readonly Need[]) => Promise<Reserved>

/** Asks for more of accounts. These needs are of nothing: no call waits. */
export type Refill = (needs: readonly Need[]) => void

/** The thread whose call it is. It is `isGone` once the thread has died: nothing can be reserved for it then. */
export type Caller = { readonly thread: number; isGone: boolean }

/** The changes of one step. Accounts that are not in memory hold nothing and have been granted nothing. */
export type AccountsStep = {
  /** Grants everything from now on, until `share`. */
  alone(): void
  /** Restricts all accounts to what was granted to them. Each begins with exactly what it holds. */
  share(): void
  /** Reserves for a call within the grants: all of its needs or none. Money accounts must be in memory. */
  reserve(caller: Caller, needs: readonly Need[]): Reserved
  read(account: string): Figures
  /** Lowers what is granted to what is held. Returns the figures afterwards. */
  giveBack(account: string): Figures
  /**
   * Raises what is granted. `spent` and `reserved` are what the store has: costs with a row, or uses that count; and all grants, including
   * those of this instance. Without them, what is known stays.
   */
  grant(account: Named, granted: { amount: bigint; spent?: bigint; reserved?: bigint }): void
  /** Returns the accounts in memory that hold something, have been granted something, or have uses that count. */
  inUse(): (Named & Figures)[]
}

/** An account in the memory of this instance. */
export type Figures = {
  /** Amount that this instance may use: running calls and costs without a row included, uses of the last minute not. */
  granted: bigint
  /** Amount that running calls hold, or that is spent without a row on disk. It may not be taken away. */
  held: bigint
  /** The sum of costs whose rows were written since `share`. It grows in the step in which `granted` and `held` fall by them. */
  written: bigint
  /** A number that grows with every reservation, and with every cost above its reservation. */
  moved: number
  /** Uses of this instance by the time at which they stop to count, by the clock of the accounts. */
  uses: readonly (readonly [endsAt: number, uses: bigint])[]
}

/** Money that a thread which died had spent without a row on disk. */
export type UnwrittenSpend = {
  key: string
  organization: string
  group: string | undefined
  month: string
  nano: bigint
}

/** Rows that one step looks at where all of them are looked at. */
const rowsOfStep = 500
const retryMs = 1

type Waiting = { run(): void; reject(thrown: unknown): void }

/** The accounts for the main thread of an instance. It never waits for the lock, as only it can free the lock of a thread that has died. */
export class MainAccounts implements InstanceAccounts {
  readonly #table: AccountTable
  readonly #now: () => number
  #waiting: Waiting[] = []
  #timer: NodeJS.Timeout | undefined
  #decide: Decide | undefined
  #refill: Refill = () => {}

  constructor(memory: AccountMemory, { now = () => performance.now() }: { now?(): number } = {}) {
    this.#table = new AccountTable(memory, 0)
    this.#now = now
  }

  step<Result>(change: (accounts: AccountsStep) => Result): Promise<Result> {
    return this.inTable((table, at) => change(stepsOf(table, at)))
  }

  /** Runs a step on the table itself. */
  inTable<Result>(change: (table: AccountTable, at: number) => Result): Promise<Result> {
    return this.#step(() => change(this.#table, this.#now()))
  }

  admitUntil(at: number): void {
    this.#table.memory.floats[header.admitUntil] = at
  }

  decideBy(decide: Decide): void {
    this.#decide = decide
  }

  refillBy(refill: Refill): void {
    this.#refill = refill
  }

  /** Decides about needs of a call that the grants do not cover. */
  async decide(caller: Caller, needs: readonly Need[]): Promise<Reserved> {
    if (!this.#decide) throw new Error('nobody decides about grants')
    return await this.#decide(caller, needs)
  }

  refill(needs: readonly Need[]): void {
    this.#refill(needs)
  }

  /** Rows are on disk of threads that have died, whose costs have moved to column 0, or of the process in another column. */
  async written(payments: readonly Payment[], thread = 0): Promise<void> {
    await this.#step(() => this.#table.written(thread, payments))
  }

  /** Grants everything again, after others have spent: what the tables have is read anew for each account. */
  async alone(readSpent: (account: string) => bigint): Promise<void> {
    await this.#step(() => {
      const { memory, rows } = this.#table
      for (const account of rows.all())
        if (rows.kind(account) === 'money')
          memory.setBig(account + row.spent, readSpent(rows.name(account)) + rows.unwritten(account))
      memory.setInt(header.isSharing, 0)
    })
  }

  /** Returns how many messages with rows a thread knows to be on disk. */
  acknowledged(thread: number): number {
    return this.#table.memory.int(header.acknowledged + thread)
  }

  /**
   * Releases everything that a thread held which has died, so that its column can be used again. Costs without a row stay spent: they move
   * to column 0, for `written`. Resolves to those, by key, and to the number of messages with rows that the thread knew to be on disk.
   */
  async release(thread: number): Promise<{ unwritten: UnwrittenSpend[]; acknowledged: number }> {
    const { memory, rows } = this.#table
    memory.recover(thread)
    const acknowledged = this.acknowledged(thread)
    const unwritten: UnwrittenSpend[] = []
    for (let from = 0; from < rows.used(); from += rowsOfStep) {
      const release = () => [...rows.all(from, from + rowsOfStep)].flatMap((one) => this.#free(one, thread))
      unwritten.push(...(await this.#step(release)))
    }
    await this.#step(() => memory.setInt(header.acknowledged + thread, 0))
    return { unwritten, acknowledged }
  }

  #free(account: number, thread: number): UnwrittenSpend[] {
    const { memory, rows } = this.#table
    const own = rows.column(account, thread)
    const reserved = memory.big(own + column.reserved)
    const unwritten = memory.big(own + column.unwritten)
    const open = memory.big(own + column.open)
    if (reserved !== 0n) memory.add(account + row.reserved, -reserved)
    if (open !== 0n) memory.add(account + row.open, -open)
    if (unwritten !== 0n) memory.add(rows.column(account, 0) + column.unwritten, unwritten)
    for (let cell = own; cell < own + column.cells; cell++) if (memory.big(cell) !== 0n) memory.setBig(cell, 0n)
    if (unwritten === 0n) return []
    const { owner, id: key, organization, month } = parseAccount(rows.name(account))
    const groupRow = memory.int(account + row.group)
    const group = groupRow === 0 ? undefined : parseAccount(rows.name(groupRow)).id
    return owner === 'key' ? [{ key, organization, group, month, nano: unwritten }] : []
  }

  #step<Result>(change: () => Result): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    this.#waiting.push({ run: () => resolve(change()), reject })
    if (this.#waiting.length === 1) this.#runAll()
    return promise
  }

  #runAll(): void {
    clearTimeout(this.#timer)
    while (this.#waiting.length > 0) {
      const [next] = this.#waiting as [Waiting]
      try {
        if (this.#table.memory.tryStep(() => next.run()) === undefined) {
          this.#timer = setTimeout(() => this.#runAll(), retryMs)
          return
        }
      } catch (thrown) {
        next.reject(thrown)
      }
      this.#waiting.shift()
    }
  }
}

function stepsOf(table: AccountTable, at: number): AccountsStep {
  const { memory, rows } = table
  const figures = (name: string): Figures => figuresOf(table, rows.find(name), at)
  return {
    alone: () => memory.setInt(header.isSharing, 0),
    share() {
      memory.setInt(header.isSharing, 1)
      for (const account of rows.all()) {
        memory.setBig(account + row.granted, table.held(account))
        memory.setBig(account + row.written, 0n)
        memory.setBig(account + row.elsewhere, 0n)
        memory.commit()
      }
    },
    reserve({ thread, isGone }, needs) {
      if (isGone) throw new Error('the worker ended')
      const reserved = table.reserve(thread, needs, { at, read: new Map() })
      if (reserved instanceof Map) throw new Error(`the spend of ${[...reserved.keys()].join(', ')} is unknown`)
      return reserved
    },
    read: figures,
    giveBack(name) {
      const account = rows.find(name)
      if (account !== 0) memory.setBig(account + row.granted, table.held(account))
      return figures(name)
    },
    grant({ account: name, kind, limit }, { amount, spent, reserved }) {
      const account = rows.find(name) || rows.insert({ name, kind, spent: 0n }, [], at)
      rows.setLimit(account, limit)
      if (spent !== undefined && reserved !== undefined) setFacts(table, account, { spent, reserved })
      memory.add(account + row.granted, amount)
      memory.setBig(account + row.low, amount / 2n)
    },
    inUse: () =>
      [...rows.all()].flatMap((account) => {
        const found = figuresOf(table, account, at)
        if (found.held === 0n && found.granted === 0n && found.uses.length === 0) return []
        const kind: Kind = rows.kind(account)
        return [{ account: rows.name(account), kind, limit: rows.limit(account), ...found }]
      }),
  }
}

/** Sets what the store has of an account: `reserved` are the grants of all instances. */
function setFacts(
  { memory, rows }: AccountTable,
  account: number,
  { spent, reserved }: { spent: bigint; reserved: bigint },
): void {
  const isMinute = rows.kind(account) === 'minute'
  if (rows.kind(account) === 'money') memory.setBig(account + row.spent, spent + rows.unwritten(account))
  const own = memory.big(account + row.granted) + (isMinute ? memory.big(account + row.spent) : 0n)
  const others = reserved - own + (isMinute ? spent : 0n)
  memory.setBig(account + row.elsewhere, others > 0n ? others : 0n)
}

/** Reads the figures of an account; row 0 is none. */
function figuresOf(table: AccountTable, account: number, at: number): Figures {
  if (account === 0) return { granted: 0n, held: 0n, written: 0n, moved: 0, uses: [] }
  const { memory, windows } = table
  windows.expire(account, at)
  return {
    granted: memory.big(account + row.granted),
    held: table.held(account),
    written: memory.big(account + row.written),
    moved: memory.float(account + row.moved),
    uses: windows.all(account).map((one) => [memory.float(one + slot.endsAt), memory.big(one + slot.uses)] as const),
  }
}
