import { createHash } from 'node:crypto'
import { RouterError } from '../core/errors.ts'
import type { Kind } from './account.ts'
import { column, header, type Memory, maxNameBytes, row } from './memory.ts'
import type { Windows } from './window.ts'

const kinds = ['money', 'minute', 'running'] as const

/** Rows that one new account looks at to find an idle one: the work of a step is bounded, and idle rows do not gather. */
const sweepRows = 8
/** The same when there is no other room. */
const lastSweepRows = 4_096
/** Names of which a thread remembers the rows. */
const maxKnown = 20_000
const noLimit = -(2n ** 63n)

/** The rows of accounts, found by their names. Only inside a step. */
export class Rows {
  readonly #memory: Memory
  readonly #windows: Windows
  readonly #columns: number
  readonly #rows: number
  readonly #maxIdle: number
  readonly #known = new Map<string, { account: number; generation: number }>()

  constructor(memory: Memory, windows: Windows, sizes: { columns: number; rows: number; maxIdle: number }) {
    this.#memory = memory
    this.#windows = windows
    this.#columns = sizes.columns
    this.#rows = sizes.rows
    this.#maxIdle = sizes.maxIdle
  }

  /** Returns the account; 0 if it is not in memory. */
  find(name: string): number {
    const memory = this.#memory
    const known = this.#known.get(name)
    if (known && this.isStill(known.account, known.generation)) return known.account
    const { hash, bytes } = encoded(name)
    for (let at = memory.int(this.#bucket(hash)); at !== 0; at = memory.int(at + row.next)) {
      if (memory.int(at + row.hash) !== hash || !bytes.equals(this.#nameBytes(at))) continue
      this.#remember(name, at)
      return at
    }
    return 0
  }

  /** Checks that a row still belongs to the account that it belonged to. */
  isStill(account: number, generation: number): boolean {
    const memory = this.#memory
    return memory.int(account + row.kind) !== 0 && memory.int(account + row.generation) === generation
  }

  /**
   * A number that changes whenever an account is evicted that may be this one. What was read about it before may be out of date then.
   */
  evictions(name: string): number {
    return this.#memory.high(this.#bucket(encoded(name).hash))
  }

  /**
   * Adds an account. Those in `used` are not evicted. Throws RouterError `unavailable` when there is no room.
   */
  insert(
    { name, kind, spent }: { name: string; kind: Kind; spent: bigint },
    used: readonly number[],
    at: number,
  ): number {
    const memory = this.#memory
    if (memory.int(header.rowCount) >= this.#maxIdle) this.#sweep(sweepRows, used, at, false)
    const account = this.#allocate(used, at)
    const { hash, bytes } = encoded(name)
    const bucket = this.#bucket(hash)
    const next = memory.int(bucket)
    for (let cell = account; cell < account + memory.layout.rowCells; cell++) memory.setBig(cell, 0n)
    memory.ints[2 * (account + row.kind)] = kinds.indexOf(kind) + 1
    memory.ints[2 * (account + row.kind) + 1] = 1
    // Not in the journal: a number that was given out once is not given out again.
    const generation = (memory.int(header.generation) + 1) | 0
    memory.ints[2 * header.generation] = generation
    memory.ints[2 * (account + row.generation)] = generation
    memory.ints[2 * (account + row.hash)] = hash
    memory.ints[2 * (account + row.hash) + 1] = bytes.length
    memory.bytes.set(bytes, (account + memory.layout.name) * 8)
    memory.ints[2 * (account + row.next)] = next
    memory.bigs[account + row.limit] = noLimit
    memory.bigs[account + row.spent] = spent
    memory.setInt(bucket, account)
    memory.setInt(header.rowCount, memory.int(header.rowCount) + 1)
    this.#remember(name, account)
    return account
  }

  name(account: number): string {
    return this.#nameBytes(account).toString('utf8')
  }

  kind(account: number): Kind {
    return kinds[this.#memory.int(account + row.kind) - 1] as Kind
  }

  limit(account: number): bigint | null {
    const limit = this.#memory.big(account + row.limit)
    return limit === noLimit ? null : limit
  }

  setLimit(account: number, limit: bigint | null): void {
    const cell = account + row.limit
    const stored = limit ?? noLimit
    if (this.#memory.big(cell) !== stored) this.#memory.setBig(cell, stored)
  }

  /** Marks an account as used: the next sweep passes it by. */
  touch(account: number): void {
    this.#memory.ints[2 * (account + row.kind) + 1] = 1
  }

  /** Returns the cell of a column of an account. */
  column(account: number, thread: number): number {
    return account + row.columns + thread * column.cells
  }

  /** Returns what is spent and not on disk, of all threads. */
  unwritten(account: number): bigint {
    let sum = 0n
    for (let thread = 0; thread < this.#columns; thread++)
      sum += this.#memory.big(this.column(account, thread) + column.unwritten)
    return sum
  }

  count(): number {
    return this.#memory.int(header.rowCount)
  }

  /** Returns the accounts in these rows. */
  *all(from = 0, until = Number.POSITIVE_INFINITY): Generator<number> {
    const end = Math.min(until, this.#memory.int(header.rowsUsed))
    for (let index = from; index < end; index++) {
      const account = this.#at(index)
      if (this.#memory.int(account + row.kind) !== 0) yield account
    }
  }

  /** Returns the number of rows that were ever used. */
  used(): number {
    return this.#memory.int(header.rowsUsed)
  }

  #at(index: number): number {
    return this.#memory.layout.firstRow + index * this.#memory.layout.rowCells
  }

  #bucket(hash: number): number {
    const { buckets, bucketCount } = this.#memory.layout
    return buckets + (hash & (bucketCount - 1))
  }

  #nameBytes(account: number): Buffer {
    const start = (account + this.#memory.layout.name) * 8
    return this.#memory.bytes.subarray(start, start + this.#memory.high(account + row.hash))
  }

  #remember(name: string, account: number): void {
    if (this.#known.size >= maxKnown) this.#known.clear()
    this.#known.set(name, { account, generation: this.#memory.int(account + row.generation) })
  }

  #allocate(used: readonly number[], at: number): number {
    const free = this.#free()
    if (free !== undefined) return free
    this.#sweep(lastSweepRows, used, at, true)
    return this.#free() ?? this.#full()
  }

  #free(): number | undefined {
    const memory = this.#memory
    const free = memory.int(header.freeRow)
    if (free !== 0) {
      memory.setInt(header.freeRow, memory.int(free + row.next))
      return free
    }
    const index = memory.int(header.rowsUsed)
    if (index >= this.#rows) return undefined
    memory.setInt(header.rowsUsed, index + 1)
    return this.#at(index)
  }

  #full(): never {
    throw new RouterError('unavailable', 'The router tracks as many accounts as it can. Try again later.', {
      retryAfterMs: 1_000,
    })
  }

  /** Looks at the next rows, and evicts those that nothing needs and that were not used since the last time. */
  #sweep(rows: number, used: readonly number[], at: number, isUrgent: boolean): void {
    const memory = this.#memory
    const all = memory.int(header.rowsUsed)
    let hand = memory.int(header.hand)
    for (let seen = 0; seen < Math.min(rows, all); seen++) {
      hand = hand + 1 < all ? hand + 1 : 0
      const account = this.#at(hand)
      if (memory.int(account + row.kind) === 0 || used.includes(account)) continue
      const isUsed = memory.high(account + row.kind) === 1
      memory.ints[2 * (account + row.kind) + 1] = 0
      if ((!isUsed || isUrgent) && this.#isIdle(account, at)) this.#evict(account)
      if (isUrgent && memory.int(header.freeRow) !== 0) break
    }
    memory.setInt(header.hand, hand)
  }

  #isIdle(account: number, at: number): boolean {
    const memory = this.#memory
    if (memory.big(account + row.reserved) !== 0n || memory.big(account + row.open) !== 0n) return false
    if (memory.int(header.isSharing) === 1 && memory.big(account + row.granted) !== 0n) return false
    this.#windows.expire(account, at)
    return memory.int(account + row.uses) === 0 && this.unwritten(account) === 0n
  }

  #evict(account: number): void {
    const memory = this.#memory
    const bucket = this.#bucket(memory.int(account + row.hash))
    const next = memory.int(account + row.next)
    if (memory.int(bucket) === account) memory.setInt(bucket, next)
    else {
      let before = memory.int(bucket)
      while (memory.int(before + row.next) !== account) before = memory.int(before + row.next)
      memory.setInt(before + row.next, next)
    }
    memory.setHigh(bucket, (memory.high(bucket) + 1) | 0)
    memory.setInt(account + row.kind, 0)
    memory.setInt(account + row.next, memory.int(header.freeRow))
    memory.setInt(header.freeRow, account)
    memory.setInt(header.rowCount, memory.int(header.rowCount) - 1)
  }
}

/** Encodes a name as it is stored: one that is too long by its digest. */
function encoded(name: string): { hash: number; bytes: Buffer } {
  let bytes = Buffer.from(name)
  if (bytes.length > maxNameBytes) bytes = Buffer.from(`#${createHash('sha256').update(bytes).digest('hex')}`)
  let hash = 0x811c9dc5
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193)
  return { hash, bytes }
}
