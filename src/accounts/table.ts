import { RouterError } from '../core/errors.ts'
import type { Named, Need, Part, QuotaStatus, Reserved } from './account.ts'
import { type AccountMemory, column, header, Memory, row } from './memory.ts'
import { Rows } from './rows.ts'
import { slotEnd, Windows } from './window.ts'

/** Money that was read from the tables of spend, and the evictions counted before that. */
export type ReadSpend = { spent: bigint; evictions: number }

/** The accounts that pay for a row, and its cost. */
export type Payment = { accounts: readonly string[]; cost: bigint }

type Found = { need: Need; account: number; isShort: boolean }

/** All accounts of an instance, as one thread sees them. The methods are parts of a step of `memory`; `thread` is a column. */
export class AccountTable {
  readonly memory: Memory
  readonly rows: Rows
  readonly windows: Windows
  /** Accounts of which less than half of the last grant is free, since this was emptied, as needs of nothing. */
  readonly low: Need[] = []

  constructor(sizes: AccountMemory, thread: number) {
    this.memory = new Memory(sizes, thread)
    this.windows = new Windows(this.memory, sizes.slots)
    this.rows = new Rows(this.memory, this.windows, sizes)
  }

  /**
   * Reserves all needs, or none. `isAsked`: nothing is reserved in any case. Returns the money accounts that have to be read before, with the
   * evictions counted so far, where there are any.
   */
  reserve(
    thread: number,
    needs: readonly Need[],
    { at, read, isAsked = false }: { at: number; read: ReadonlyMap<string, ReadSpend>; isAsked?: boolean },
  ): Reserved | Map<string, number> {
    if (!isAsked && at > this.memory.float(header.admitUntil)) throw lostStore()
    const found = this.#find(needs, read, at)
    if (found instanceof Map) return found
    const isShort = found.some((one) => one.isShort)
    if (isShort || isAsked) {
      const statuses = found.map((one) => this.#statusOf(one, at))
      return { isReserved: false, needsGrant: isShort && this.isSharing, statuses }
    }
    const parts = found.map(({ need, account }) => this.#take(thread, need, account, at))
    const isShown = needs.some(({ kind }) => kind !== 'money')
    return { isReserved: true, parts, statuses: isShown ? found.map((one) => this.#statusOf(one, at)) : [] }
  }

  /** Spends money that is reserved; the first account remembers the group that has paid as well. `ends` as many reservations of each account. */
  spend(
    thread: number,
    parts: readonly Part[],
    { cost, released, ends }: { cost: bigint; released: bigint; ends: bigint },
  ): void {
    const { memory, rows } = this
    for (const { row: account, generation } of parts) {
      if (!rows.isStill(account, generation)) continue
      const own = rows.column(account, thread)
      if (cost > released && this.isSharing) memory.setFloat(account + row.moved, memory.float(account + row.moved) + 1)
      if (cost !== 0n) {
        memory.add(account + row.spent, cost)
        memory.add(own + column.unwritten, cost)
      }
      if (released !== 0n) {
        memory.add(account + row.reserved, -released)
        memory.add(own + column.reserved, -released)
      }
      if (ends === 0n) continue
      memory.add(account + row.open, -ends)
      memory.add(own + column.open, -ends)
    }
    if (cost !== 0n) this.#rememberGroup(parts)
  }

  /** Ends uses and running calls; the uses of a minute change by an amount each, unless they no longer count. */
  end(thread: number, parts: readonly Part[], changes: readonly bigint[], at: number): void {
    const { memory, rows } = this
    parts.forEach(({ row: account, generation, amount, slot: uses, endsAt }, index) => {
      if (uses === 0) {
        memory.add(account + row.reserved, -amount)
        memory.add(rows.column(account, thread) + column.reserved, -amount)
        return
      }
      const change = changes[index] ?? 0n
      if (change === 0n || endsAt <= at || !rows.isStill(account, generation)) return
      this.windows.change(account, uses, change)
      if (this.isSharing) memory.add(account + row.granted, -change)
    })
  }

  /** Rows are on disk: what they cost is no longer unwritten. */
  written(thread: number, payments: readonly Payment[]): void {
    for (const { accounts, cost } of payments) for (const name of accounts) this.#written(thread, name, cost)
  }

  /** Counts messages with rows whose acknowledgements a thread has handled. */
  acknowledge(thread: number, messages: number): void {
    const cell = header.acknowledged + thread
    this.memory.setInt(cell, (this.memory.int(cell) + messages) | 0)
  }

  get isSharing(): boolean {
    return this.memory.int(header.isSharing) === 1
  }

  /** Returns what an instance may not lose: see `AccountsStep.held`. */
  held(account: number): bigint {
    const { memory } = this
    return memory.big(account + row.reserved) + this.rows.unwritten(account)
  }

  #find(needs: readonly Need[], read: ReadonlyMap<string, ReadSpend>, at: number): Found[] | Map<string, number> {
    const used: number[] = []
    const found: Found[] = []
    for (const need of needs) {
      const account = this.rows.find(need.account) || this.#added(need, read, used, at)
      if (account === undefined) return this.#unread(needs, read)
      this.rows.touch(account)
      this.rows.setLimit(account, need.limit)
      used.push(account)
      if (need.kind === 'minute') this.windows.expire(account, at)
      found.push({ need, account, isShort: this.#isShort(need, account) })
    }
    return found
  }

  /** Adds an account; undefined if what it has spent is unknown, or was read before it was evicted with costs that the tables did not have. */
  #added(
    { account: name, kind }: Named,
    read: ReadonlyMap<string, ReadSpend>,
    used: readonly number[],
    at: number,
  ): number | undefined {
    if (kind !== 'money') return this.rows.insert({ name, kind, spent: 0n }, used, at)
    const known = read.get(name)
    if (known?.evictions !== this.rows.evictions(name)) return undefined
    return this.rows.insert({ name, kind, spent: known.spent }, used, at)
  }

  #unread(needs: readonly Named[], read: ReadonlyMap<string, ReadSpend>): Map<string, number> {
    const unread = new Map<string, number>()
    for (const { account: name, kind } of needs) {
      if (kind !== 'money' || this.rows.find(name) !== 0) continue
      const evictions = this.rows.evictions(name)
      if (read.get(name)?.evictions !== evictions) unread.set(name, evictions)
    }
    return unread
  }

  #isShort({ limit, least, passesAlone }: Need, account: number): boolean {
    if (limit === null || least <= 0n) return false
    const { memory } = this
    if (this.#free(limit, account) >= least) return false
    const isAlone = memory.big(account + row.spent) <= 0n && memory.big(account + row.reserved) <= 0n
    return !(passesAlone === true && isAlone && !this.isSharing)
  }

  /** Returns what another call may use: of the limit, or of what was granted while others have the rest. */
  #free(limit: bigint, account: number): bigint {
    const { memory } = this
    if (this.isSharing) return memory.big(account + row.granted) - this.held(account)
    return limit - memory.big(account + row.spent) - memory.big(account + row.reserved)
  }

  #take(thread: number, need: Need, account: number, at: number): Part {
    const { memory, rows } = this
    const { kind, limit, least, wish } = need
    const free = limit === null ? wish + least : this.#free(limit, account)
    const wished = free < wish ? free : wish
    const amount = wished > least ? wished : least
    const generation = memory.int(account + row.generation)
    const part = { row: account, generation, amount, slot: 0, endsAt: 0 }
    if (this.isSharing) this.#move(account, need, free - amount)
    if (kind === 'minute') {
      part.endsAt = slotEnd(at)
      part.slot = this.#use(account, part.endsAt, amount)
      if (this.isSharing) memory.add(account + row.granted, -amount)
      return part
    }
    const own = rows.column(account, thread)
    memory.add(account + row.reserved, amount)
    memory.add(own + column.reserved, amount)
    if (kind === 'running') return part
    memory.add(account + row.open, 1n)
    memory.add(own + column.open, 1n)
    return part
  }

  #move(account: number, { account: name, kind, limit }: Need, free: bigint): void {
    const { memory } = this
    memory.setFloat(account + row.moved, memory.float(account + row.moved) + 1)
    if (free >= memory.big(account + row.low)) return
    // Once for each grant.
    memory.setBig(account + row.low, 0n)
    this.low.push({ account: name, kind, limit, least: 0n, wish: 0n })
  }

  #use(account: number, endsAt: number, uses: bigint): number {
    const added = this.windows.add(account, endsAt, uses)
    if (added !== undefined) return added
    const message = 'The router tracks as many uses of rate limits as it can. Try again later.'
    throw new RouterError('unavailable', message, { retryAfterMs: 1_000 })
  }

  #rememberGroup([key, ...others]: readonly Part[]): void {
    if (!key) return
    const { memory } = this
    const group = others.length > 1 ? (others[0]?.row ?? 0) : 0
    if (memory.int(key.row + row.group) !== group) memory.setInt(key.row + row.group, group)
  }

  #written(thread: number, name: string, cost: bigint): void {
    const { memory, rows } = this
    const account = rows.find(name)
    if (account === 0 || cost <= 0n) return
    const cell = rows.column(account, thread) + column.unwritten
    const unwritten = memory.big(cell)
    memory.setBig(cell, unwritten > cost ? unwritten - cost : 0n)
    if (!this.isSharing) return
    // The store has taken it out of the grant together with the row.
    memory.add(account + row.granted, -cost)
    memory.add(account + row.written, cost)
  }

  #statusOf({ need, account, isShort }: Found, at: number): QuotaStatus {
    const { memory, windows } = this
    const { limit, least, kind } = need
    const spent = memory.big(account + row.spent)
    const reserved = memory.big(account + row.reserved)
    const elsewhere = this.isSharing ? memory.big(account + row.elsewhere) : 0n
    const left = limit === null ? 0n : limit - spent - reserved - elsewhere
    const isMinute = kind === 'minute'
    const waitMs = isShort && isMinute ? Math.max(windows.freeAt(account, least - left) - at, 0) : 0
    const resetMs = isMinute ? Math.max((windows.lastEnd(account) ?? at) - at, 0) : 0
    return { account: need.account, kind, limit, spent, reserved, left, isShort, waitMs, resetMs }
  }
}

function lostStore(): RouterError {
  const message = 'This instance of the router has lost contact with its store. New calls are refused until it is back.'
  return new RouterError('unavailable', message, { retryAfterMs: 1_000 })
}
