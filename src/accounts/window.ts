import { header, type Memory, row, slot } from './memory.ts'

/** The length of an interval: a retry waits at most this much too long. Milliseconds. */
const slotMs = 100
const windowMs = 60_000

/** Returns the time from which uses of this moment no longer count. All times are milliseconds of one monotonic clock. */
export function slotEnd(at: number): number {
  return (Math.floor(at / slotMs) + 1) * slotMs + windowMs
}

/**
 * The uses of accounts in the last 60 seconds, as lists of slots in the order of their ends. The spent amount of such an account is the sum
 * of its slots. Only inside a step.
 */
export class Windows {
  readonly #memory: Memory
  readonly #slots: number

  constructor(memory: Memory, slots: number) {
    this.#memory = memory
    this.#slots = slots
  }

  /** Adds uses, also late ones, and returns their slot; undefined if there is no room for another slot. */
  add(account: number, endsAt: number, uses: bigint): number | undefined {
    const memory = this.#memory
    const last = memory.high(account + row.uses)
    let before = last
    if (last !== 0 && memory.float(last + slot.endsAt) > endsAt) {
      before = 0
      for (let at = memory.int(account + row.uses); this.#isUntil(at, endsAt); at = memory.int(at + slot.next))
        before = at
    }
    const found = before !== 0 && memory.float(before + slot.endsAt) === endsAt ? before : this.#allocate(endsAt)
    if (found === undefined) return undefined
    if (found !== before) this.#insert(account, before, found)
    this.change(account, found, uses)
    return found
  }

  /** Changes the uses of a slot that still counts. */
  change(account: number, at: number, uses: bigint): void {
    this.#memory.add(at + slot.uses, uses)
    this.#memory.add(account + row.spent, uses)
  }

  /** Removes what no longer counts. */
  expire(account: number, at: number): void {
    const memory = this.#memory
    const first = memory.int(account + row.uses)
    let last = 0
    let uses = 0n
    for (let next = first; this.#isUntil(next, at); next = memory.int(next + slot.next)) {
      last = next
      uses += memory.big(next + slot.uses)
    }
    if (last === 0) return
    const rest = memory.int(last + slot.next)
    memory.add(account + row.spent, -uses)
    memory.setInt(account + row.uses, rest)
    if (rest === 0) memory.setHigh(account + row.uses, 0)
    memory.setInt(last + slot.next, memory.int(header.freeSlot))
    memory.setInt(header.freeSlot, first)
  }

  /** Returns the time at which so many uses no longer count, or all of them. */
  freeAt(account: number, uses: bigint): number {
    const memory = this.#memory
    let freed = 0n
    for (let at = memory.int(account + row.uses); at !== 0; at = memory.int(at + slot.next)) {
      freed += memory.big(at + slot.uses)
      if (freed >= uses) return memory.float(at + slot.endsAt)
    }
    return this.lastEnd(account) ?? 0
  }

  /** Returns the time at which nothing counts any more; undefined if nothing does. */
  lastEnd(account: number): number | undefined {
    const last = this.#memory.high(account + row.uses)
    return last === 0 ? undefined : this.#memory.float(last + slot.endsAt)
  }

  /** Returns all slots, in the order of their ends. */
  all(account: number): number[] {
    const all: number[] = []
    const memory = this.#memory
    for (let at = memory.int(account + row.uses); at !== 0; at = memory.int(at + slot.next)) all.push(at)
    return all
  }

  #isUntil(at: number, time: number): boolean {
    return at !== 0 && this.#memory.float(at + slot.endsAt) <= time
  }

  #allocate(endsAt: number): number | undefined {
    const memory = this.#memory
    let found = memory.int(header.freeSlot)
    if (found !== 0) memory.setInt(header.freeSlot, memory.int(found + slot.next))
    else {
      const used = memory.int(header.slotsUsed)
      if (used >= this.#slots) return undefined
      memory.setInt(header.slotsUsed, used + 1)
      found = memory.layout.firstSlot + used * slot.cells
    }
    memory.setFloat(found + slot.endsAt, endsAt)
    memory.setBig(found + slot.uses, 0n)
    return found
  }

  /** Inserts a slot after another one, or as the first. */
  #insert(account: number, before: number, added: number): void {
    const memory = this.#memory
    const next = before === 0 ? memory.int(account + row.uses) : memory.int(before + slot.next)
    memory.setInt(added + slot.next, next)
    if (before === 0) memory.setInt(account + row.uses, added)
    else memory.setInt(before + slot.next, added)
    if (next === 0) memory.setHigh(account + row.uses, added)
  }
}
