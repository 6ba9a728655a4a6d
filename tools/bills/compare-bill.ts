import type { BillLine } from './bill.ts'

/** The accepted difference by day and model: nano-USD, or millionths of the bill. */
export type Tolerance = { nano: bigint } | { millionths: bigint }

/** The spend on a model on a day, by the ledger. */
export type Spent = { day: number; model: string; requests: number; nano: bigint }

/** A day and a model on both sides; one that is missing on a side is undefined there. Nano-USD. */
export type Compared = {
  day: number
  model: string
  requests: number
  ledger: bigint | undefined
  bill: bigint | undefined
  /** The bill minus the ledger. */
  difference: bigint
  exceeds: boolean
}

/** Compares both sides by day and model, in order of days and names. `nameOf` gives a model the one name it has on both. */
export function compareBill(
  lines: readonly BillLine[],
  spent: readonly Spent[],
  { tolerance, nameOf }: { tolerance: Tolerance; nameOf: (model: string) => string },
): Compared[] {
  const sides = new Map<string, Omit<Compared, 'difference' | 'exceeds'>>()
  const side = (day: number, writtenModel: string) => {
    const model = nameOf(writtenModel)
    const name = `${day} ${model}`
    const found = sides.get(name) ?? { day, model, requests: 0, ledger: undefined, bill: undefined }
    sides.set(name, found)
    return found
  }
  for (const { day, model, nano } of lines) {
    const found = side(day, model)
    found.bill = (found.bill ?? 0n) + nano
  }
  for (const { day, model, requests, nano } of spent) {
    const found = side(day, model)
    found.requests += requests
    found.ledger = (found.ledger ?? 0n) + nano
  }
  return [...sides.values()]
    .map((one) => {
      const difference = (one.bill ?? 0n) - (one.ledger ?? 0n)
      return { ...one, difference, exceeds: size(difference) > allowed(tolerance, one.bill ?? 0n) }
    })
    .sort((one, other) => one.day - other.day || (one.model < other.model ? -1 : 1))
}

function allowed(tolerance: Tolerance, bill: bigint): bigint {
  return 'nano' in tolerance ? tolerance.nano : (size(bill) * tolerance.millionths) / 1_000_000n
}

function size(nano: bigint): bigint {
  return nano < 0n ? -nano : nano
}
