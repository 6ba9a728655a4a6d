/**
 * The memory of all accounts of an instance, which its threads share: a plain object that can be sent to a thread. Column 0 belongs to the
 * main thread, or to the only one. The buffer is large and fixed, and the system commits only the pages that are used: views of a growable
 * one take 5 to 30 times as long (`docs/decisions/accounts.md`).
 */
export type AccountMemory = {
  buffer: SharedArrayBuffer
  columns: number
  rows: number
  slots: number
  /** Number of accounts from which idle ones are evicted. */
  maxIdle: number
}

type Sizes = Partial<Pick<AccountMemory, 'columns' | 'rows' | 'slots' | 'maxIdle'>>

/** Allocates the memory for accounts. A row is an account, a slot the uses of an account within 100 ms, a column the part of a thread. */
export function allocateAccounts({
  columns = 1,
  rows = 262_144,
  slots = 1_048_576,
  maxIdle = 10_000,
}: Sizes = {}): AccountMemory {
  const { end } = layoutOf({ columns, rows, slots })
  const buffer = new SharedArrayBuffer(end * cellBytes)
  new Float64Array(buffer)[header.admitUntil] = Number.POSITIVE_INFINITY
  return { buffer, columns, rows, slots, maxIdle }
}

const cellBytes = 8

/** Cells of the header. `lock` is 0 or the owner, column + 1, with `contended` set while others wait. */
export const header = {
  lock: 0,
  journalLength: 1,
  rowsUsed: 2,
  freeRow: 3,
  rowCount: 4,
  hand: 5,
  slotsUsed: 6,
  freeSlot: 7,
  generation: 8,
  isSharing: 9,
  /** The time until which calls are admitted. */
  admitUntil: 10,
  /** Messages with rows whose acknowledgements a thread has handled, by column. */
  acknowledged: 16,
}
export const maxColumns = 1_024
const headerCells = header.acknowledged + maxColumns

/** Changes that a step can make: of some accounts many times, or of every account that there may be. Pages that are not used take no memory. */
function changesOf(rows: number): number {
  return Math.max(8_192, 4 * rows)
}
/** An entry is the index of a cell and the two halves of its old value. */
const entryInts = 3

/** Cells of a row. Ints are the lower half of a cell, `…High` the upper one. */
export const row = {
  /** 0 is a free row. The upper half is set when the account is used, and cleared when the sweep passes. */
  kind: 0,
  generation: 1,
  /** Hash of the name; the upper half is its length in bytes. */
  hash: 2,
  /** The next row of the same bucket, or the next free one. */
  next: 3,
  limit: 4,
  spent: 5,
  reserved: 6,
  granted: 7,
  /** Less than this part of what is granted is little. */
  low: 8,
  moved: 9,
  open: 10,
  /** The first and, in the upper half, the last slot. */
  uses: 11,
  /** The row of the group that pays as well. */
  group: 12,
  /** Costs whose rows were written while the instance shared. */
  written: 13,
  /** Amount that other instances use or hold, as the store said last. */
  elsewhere: 14,
  columns: 15,
}
/** Cells of a column. */
export const column = { reserved: 0, unwritten: 1, open: 2, cells: 3 }
/** Cells of a slot. */
export const slot = { next: 0, endsAt: 1, uses: 2, cells: 3 }
const nameCells = 24
export const maxNameBytes = nameCells * cellBytes

export type Layout = ReturnType<typeof layoutOf>

export function layoutOf({ columns, rows, slots }: Pick<AccountMemory, 'columns' | 'rows' | 'slots'>) {
  if (columns > maxColumns) throw new Error(`no more than ${maxColumns} threads can share accounts`)
  const journal = headerCells
  const changes = changesOf(rows)
  const buckets = journal + Math.ceil((changes * entryInts) / 2)
  const bucketCount = 2 ** Math.ceil(Math.log2(rows))
  const firstRow = buckets + bucketCount
  const name = row.columns + columns * column.cells
  const rowCells = name + nameCells
  const firstSlot = firstRow + rows * rowCells
  return {
    journal,
    changes,
    buckets,
    bucketCount,
    firstRow,
    name,
    rowCells,
    firstSlot,
    end: firstSlot + slots * slot.cells,
  }
}

const contended = 1 << 30
/** Some microseconds: as long as a step takes. */
const maxSpins = 200
/** A waiting thread looks again after this time, also if nobody has woken it. Milliseconds. */
const maxWaitMs = 5

/**
 * The memory as one thread sees it. All changes happen in steps: one thread at a time, and each step as a whole or not at all. Every cell is
 * recorded in a journal before it is changed; the end of the step empties the journal. If a thread dies in a step, `recover` puts the old
 * values back and frees the lock.
 */
export class Memory {
  readonly layout: Layout
  readonly ints: Int32Array
  readonly bigs: BigInt64Array
  readonly floats: Float64Array
  readonly bytes: Buffer
  readonly #owner: number
  readonly #isShared: boolean
  readonly #journal: number
  #isInside = false
  /** Called between any two stores, for tests that stop a thread there. */
  onStore: (() => void) | undefined

  constructor(memory: AccountMemory, thread: number) {
    const { buffer, columns } = memory
    this.layout = layoutOf(memory)
    this.ints = new Int32Array(buffer)
    this.bigs = new BigInt64Array(buffer)
    this.floats = new Float64Array(buffer)
    this.bytes = Buffer.from(buffer)
    this.#owner = thread + 1
    this.#isShared = columns > 1
    this.#journal = 2 * this.layout.journal
  }

  /** Runs a step, and waits for the lock as long as it takes. Not for the main thread of an instance, which has to recover the others. */
  step<Result>(change: () => Result): Result {
    if (this.#isInside) return change()
    if (this.#isShared) this.#lock()
    return this.#run(change)
  }

  /** Runs a step if the lock is free within microseconds. */
  tryStep<Result>(change: () => Result): { result: Result } | undefined {
    if (this.#isInside) return { result: change() }
    if (this.#isShared && !this.#spin(this.#owner)) return undefined
    return { result: this.#run(change) }
  }

  /** Undoes the unfinished step of a thread that has died, and frees its lock. */
  recover(thread: number): void {
    if ((Atomics.load(this.ints, header.lock) & ~contended) !== thread + 1) return
    this.#undo()
    this.#unlock()
  }

  /** Makes the changes of a step final so far, for a step of the main thread that changes all accounts. */
  commit(): void {
    this.ints[2 * header.journalLength] = 0
  }

  int(cell: number): number {
    return this.ints[2 * cell] as number
  }

  high(cell: number): number {
    return this.ints[2 * cell + 1] as number
  }

  big(cell: number): bigint {
    return this.bigs[cell] as bigint
  }

  float(cell: number): number {
    return this.floats[cell] as number
  }

  setInt(cell: number, value: number): void {
    this.record(cell)
    this.ints[2 * cell] = value
  }

  setHigh(cell: number, value: number): void {
    this.record(cell)
    this.ints[2 * cell + 1] = value
  }

  setBig(cell: number, value: bigint): void {
    this.record(cell)
    this.bigs[cell] = value
  }

  setFloat(cell: number, value: number): void {
    this.record(cell)
    this.floats[cell] = value
  }

  add(cell: number, amount: bigint): void {
    this.setBig(cell, this.big(cell) + amount)
  }

  /** Writes the old value of a cell into the journal. */
  record(cell: number): void {
    const { ints } = this
    const length = this.int(header.journalLength)
    if (length >= this.layout.changes) throw new Error('a step changes too many accounts')
    const entry = this.#journal + entryInts * length
    ints[entry] = cell
    ints[entry + 1] = ints[2 * cell] as number
    ints[entry + 2] = ints[2 * cell + 1] as number
    this.onStore?.()
    ints[2 * header.journalLength] = length + 1
    this.onStore?.()
  }

  #run<Result>(change: () => Result): Result {
    this.#isInside = true
    try {
      this.onStore?.()
      const result = change()
      this.onStore?.()
      return result
    } catch (thrown) {
      this.#undo()
      throw thrown
    } finally {
      this.#isInside = false
      this.#unlock()
    }
  }

  /** Puts back the old values, from the last change to the first: the oldest value of a cell is written last, so that this can be repeated. */
  #undo(): void {
    const { ints } = this
    for (let length = this.int(header.journalLength); length > 0; length--) {
      const entry = this.#journal + entryInts * (length - 1)
      const cell = ints[entry] as number
      ints[2 * cell] = ints[entry + 1] as number
      ints[2 * cell + 1] = ints[entry + 2] as number
    }
  }

  #unlock(): void {
    this.ints[2 * header.journalLength] = 0
    if (!this.#isShared) return
    this.onStore?.()
    if (Atomics.exchange(this.ints, header.lock, 0) & contended) Atomics.notify(this.ints, header.lock, 1)
  }

  #spin(owner: number): boolean {
    for (let spins = 0; spins < maxSpins; spins++)
      if (Atomics.compareExchange(this.ints, header.lock, 0, owner) === 0) return true
    return false
  }

  #lock(): void {
    if (this.#spin(this.#owner)) return
    for (;;) {
      const seen = Atomics.load(this.ints, header.lock)
      // Others may still wait: they are woken when this thread is done.
      if (seen === 0 && Atomics.compareExchange(this.ints, header.lock, 0, this.#owner | contended) === 0) return
      if (seen === 0) continue
      const waiting = seen | contended
      if (seen === waiting || Atomics.compareExchange(this.ints, header.lock, seen, waiting) === seen)
        Atomics.wait(this.ints, header.lock, waiting, maxWaitMs)
    }
  }
}
