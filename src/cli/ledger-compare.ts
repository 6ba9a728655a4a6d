import { readFileSync } from 'node:fs'
import type { Catalog } from '../catalog/catalog.ts'
import { dayMs } from '../core/time.ts'
import { type BillColumns, readBill } from '../money/bill.ts'
import { type Compared, compareBill, type Tolerance } from '../money/compare.ts'
import { nanoOf, usdOf, usdText } from '../money/usd.ts'
import { columns as inColumns, seenFrom, type Words } from './args.ts'
import type { Finding, LedgerRoom } from './ledger-action.ts'
import { rangeIn } from './ledger-range.ts'
import { CannotDo, WrongUsage } from './store-command.ts'

/** Options besides those of every action. */
export const options = ['bill', 'columns', 'provider', 'tolerance', 'from', 'to']

/** `ledger compare`: does a provider's bill say what the ledger says, by model and day? */
export function read(words: Words): (room: LedgerRoom) => Promise<Finding> {
  const { bill: path, provider, tolerance: allowed = '0.01' } = words.options
  if (!path) throw new WrongUsage('say which bill: ledger compare --bill FILE.csv')
  const [columns, tolerance, asked] = [columnsIn(words.options.columns), toleranceIn(allowed), rangeIn(words)]
  for (const at of [asked.from, asked.to])
    if (at !== undefined && at % dayMs !== 0)
      throw new WrongUsage('a bill is compared by days: write --from and --to as days')
  return async ({ store, snapshot }) => {
    if (provider !== undefined && !snapshot.providers.has(provider))
      throw new CannotDo(`There is no provider '${provider}'. There are: ${[...snapshot.providers.keys()].join(', ')}`)
    const bill = await readBill(bytesOf(path), seenFrom(path), columns)
    const lines = bill.lines.filter(({ day }) => day >= (asked.from ?? day) && day < (asked.to ?? day + 1))
    if (lines.length === 0)
      throw new CannotDo(
        `${seenFrom(path)} has no line with a day and a model${(asked.from ?? asked.to) ? ' in this time' : ''}`,
      )
    const from = asked.from ?? lines.reduce((least, { day }) => Math.min(least, day), Number.POSITIVE_INFINITY)
    const to = asked.to ?? lines.reduce((most, { day }) => Math.max(most, day), 0) + dayMs
    const spent = store.ledger.byDay(from, to).filter((one) => provider === undefined || one.provider === provider)
    const compared = compareBill(lines, spent, {
      tolerance,
      nameOf: namesOf(snapshot.catalog, [...snapshot.providers.keys()], provider),
    })
    return findingOf(compared, bill.left)
  }
}

function columnsIn(text: string | undefined): BillColumns {
  const columns: BillColumns = {}
  for (const part of text?.split(',') ?? []) {
    const [, name, title] = /^\s*(date|model|cost)\s*=\s*(.*?)\s*$/.exec(part) ?? []
    if (!name || !title)
      throw new WrongUsage(`--columns has '${part}'; write date=<column>,model=<column>,cost=<column>`)
    columns[name as keyof BillColumns] = title
  }
  return columns
}

function toleranceIn(text: string): Tolerance {
  const share = /^(\d{1,3}(?:\.\d{1,4})?)%$/.exec(text)?.[1]
  if (share !== undefined) return { millionths: BigInt(Math.round(Number(share) * 10_000)) }
  const nano = nanoOf(text)
  if (nano === undefined || nano < 0n)
    throw new WrongUsage(`--tolerance is '${text}'; write USD as 0.01, or a share as 1%`)
  return { nano }
}

function bytesOf(path: string): Uint8Array {
  try {
    return readFileSync(path)
  } catch (thrown) {
    throw new CannotDo(`${seenFrom(path)} cannot be read: ${thrown instanceof Error ? thrown.message : thrown}`)
  }
}

/** A model's name without its provider, and the catalog's id for what is also called otherwise: bills name what was served. */
function namesOf(catalog: Catalog, slugs: readonly string[], provider: string | undefined): (model: string) => string {
  const ids = new Map<string, string>()
  for (const { provider: whose, model, entry } of catalog.list()) {
    if (provider !== undefined && whose !== provider) continue
    for (const alias of entry.aliases ?? []) ids.set(alias, model)
  }
  for (const { provider: whose, model } of catalog.list())
    if (provider === undefined || whose === provider) ids.set(model, model)
  const prefixes = slugs.map((slug) => `${slug}/`)
  return (told) => {
    const known = ids.get(told)
    if (known !== undefined) return known
    const prefix = prefixes.find((each) => told.startsWith(each)) ?? ''
    const bare = told.slice(prefix.length)
    return ids.get(bare) ?? bare
  }
}

function findingOf(compared: readonly Compared[], left: { lines: number; nano: bigint }): Finding {
  const sum = (of: (one: Compared) => bigint | undefined) =>
    compared.reduce((total, one) => total + (of(one) ?? 0n), 0n)
  const total = { ledger: sum(({ ledger }) => ledger), bill: sum(({ bill }) => bill) }
  const exceeding = compared.filter(({ exceeds }) => exceeds).length
  return {
    json: asJson(compared, { ...total, exceeding, left }),
    text: asText(compared, { ...total, exceeding, left }),
    fine: exceeding === 0,
  }
}

type Totals = { ledger: bigint; bill: bigint; exceeding: number; left: { lines: number; nano: bigint } }

function asJson(compared: readonly Compared[], { ledger, bill, exceeding, left }: Totals) {
  return {
    days: compared.map(({ day, model, requests, ledger, bill, difference, exceeds }) => ({
      day: dayText(day),
      model,
      calls: requests,
      ledger: ledger === undefined ? null : usdOf(ledger),
      bill: bill === undefined ? null : usdOf(bill),
      difference: usdOf(difference),
      exceeds,
    })),
    ledger: usdOf(ledger),
    bill: usdOf(bill),
    difference: usdOf(bill - ledger),
    exceeding,
    left_out: { lines: left.lines, cost: usdOf(left.nano) },
  }
}

function asText(compared: readonly Compared[], { ledger, bill, exceeding, left }: Totals): string {
  const rows = compared.map(({ day, model, requests, ledger, bill, difference, exceeds }) => [
    dayText(day),
    model,
    String(requests),
    ledger === undefined ? '' : usdText(ledger),
    bill === undefined ? '' : usdText(bill),
    usdText(difference),
    exceeds ? noteOf(ledger, bill) : '',
  ])
  const totals = ['', 'in all', '', usdText(ledger), usdText(bill), usdText(bill - ledger), '']
  const verdict =
    exceeding === 0 ? 'Ledger and bill agree.' : `Ledger and bill differ in ${exceeding} of ${compared.length} lines.`
  const others =
    left.lines === 0
      ? ''
      : `Left out: ${left.lines} lines of the bill without a day or a model, ${usdText(left.nano)} USD.\n`
  return `${inColumns([['DAY', 'MODEL', 'CALLS', 'LEDGER USD', 'BILL USD', 'DIFFERENCE', ''], ...rows, totals])}\n${others}${verdict}\n`
}

function noteOf(ledger: bigint | undefined, bill: bigint | undefined): string {
  if (ledger === undefined) return 'only in the bill'
  return bill === undefined ? 'only in the ledger' : 'differs'
}

function dayText(day: number): string {
  return new Date(day).toISOString().slice(0, 10)
}
