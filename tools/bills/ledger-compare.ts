import { readFileSync } from 'node:fs'
import type { Catalog } from '../../src/catalog/catalog.ts'
import { type Args, CommandError, relativePath, table, UsageError } from '../../src/cli/command.ts'
import { type Finding, type LedgerSource, rangeFrom } from '../../src/cli/ledger/ledger-action.ts'
import { dayMs } from '../../src/core/time.ts'
import { nanoOf, usdOf, usdText } from '../../src/money/usd.ts'
import { type Bill, type BillColumns, readBill, UnreadableBill } from './bill.ts'
import { type Compared, compareBill, type Tolerance } from './compare-bill.ts'
import { type ModelNames, modelNames } from './model-names.ts'

const text = { type: 'string' } as const

export const options = { bill: text, columns: text, provider: text, tolerance: text, from: text, to: text }

/** Prepares `ledger compare`: compares a provider's bill with the ledger, by model and day. */
export function prepare(args: Args): (source: LedgerSource) => Promise<Finding> {
  const [path, provider] = [args.text('bill'), args.text('provider')]
  if (!path) throw new UsageError('name the bill: ledger compare --bill FILE.csv')
  const columns = columnsFrom(args.text('columns'))
  const tolerance = toleranceFrom(args.text('tolerance') ?? '0.01')
  const range = rangeFrom(args)
  for (const at of [range.from, range.to])
    if (at !== undefined && at % dayMs !== 0)
      throw new UsageError('a bill is compared by days: write --from and --to as days')
  return async ({ store, snapshot }) => {
    if (provider !== undefined && !snapshot.providers.has(provider))
      throw new CommandError(`There is no provider '${provider}'. Known: ${[...snapshot.providers.keys()].join(', ')}`)
    const bill = await billIn(path, columns)
    const lines = bill.lines.filter(({ day }) => day >= (range.from ?? day) && day < (range.to ?? day + 1))
    if (lines.length === 0)
      throw new CommandError(
        `${relativePath(path)} has no line with a day and a model${(range.from ?? range.to) ? ' in this time' : ''}`,
      )
    const from = range.from ?? lines.reduce((least, { day }) => Math.min(least, day), Number.POSITIVE_INFINITY)
    const to = range.to ?? lines.reduce((most, { day }) => Math.max(most, day), 0) + dayMs
    const spent = (await store.ledger.byDay(from, to)).filter(
      (one) => provider === undefined || one.provider === provider,
    )
    const names = namesOf(snapshot.catalog, provider)
    const named = lines.map(({ texts = [], ...line }) => ({ ...line, model: names.within(texts) ?? line.model }))
    const compared = compareBill(named, spent, { tolerance, nameOf: names.of })
    return findingOf(compared, bill.left)
  }
}

function columnsFrom(text: string | undefined): BillColumns {
  const columns: BillColumns = {}
  for (const part of text?.split(',') ?? []) {
    const [, name, title] = /^\s*(date|model|cost)\s*=\s*(.*?)\s*$/.exec(part) ?? []
    if (!name || !title)
      throw new UsageError(`--columns has '${part}'; write date=<column>,model=<column>,cost=<column>`)
    columns[name as keyof BillColumns] = title
  }
  return columns
}

function toleranceFrom(text: string): Tolerance {
  const share = /^(\d{1,3}(?:\.\d{1,4})?)%$/.exec(text)?.[1]
  if (share !== undefined) return { millionths: BigInt(Math.round(Number(share) * 10_000)) }
  const nano = nanoOf(text)
  if (nano === undefined || nano < 0n)
    throw new UsageError(`--tolerance is '${text}'; write USD as 0.01, or a share as 1%`)
  return { nano }
}

async function billIn(path: string, columns: BillColumns): Promise<Bill> {
  try {
    return await readBill(readFileSync(path), relativePath(path), columns)
  } catch (thrown) {
    if (thrown instanceof UnreadableBill) throw new CommandError(thrown.message)
    throw new CommandError(`${relativePath(path)} cannot be read: ${thrown instanceof Error ? thrown.message : thrown}`)
  }
}

/** Returns the names of the models of a provider, or of all. */
function namesOf(catalog: Catalog, provider: string | undefined): ModelNames {
  const models = catalog.list().filter((one) => provider === undefined || one.provider === provider)
  return modelNames(models.map(({ model, entry }) => ({ model, aliases: entry.aliases ?? [] })))
}

function findingOf(compared: readonly Compared[], left: { lines: number; nano: bigint }): Finding {
  const sum = (of: (one: Compared) => bigint | undefined) =>
    compared.reduce((total, one) => total + (of(one) ?? 0n), 0n)
  const total = { ledger: sum(({ ledger }) => ledger), bill: sum(({ bill }) => bill) }
  const exceeding = compared.filter(({ exceeds }) => exceeds).length
  return {
    json: asJson(compared, { ...total, exceeding, left }),
    text: asText(compared, { ...total, exceeding, left }),
    ok: exceeding === 0,
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
  const totals = ['', 'total', '', usdText(ledger), usdText(bill), usdText(bill - ledger), '']
  const verdict =
    exceeding === 0 ? 'Ledger and bill agree.' : `Ledger and bill differ in ${exceeding} of ${compared.length} lines.`
  const leftOut =
    left.lines === 0
      ? ''
      : `Left out: ${left.lines} lines of the bill without a day or a model, or of other services, ${usdText(left.nano)} USD.\n`
  return `${table([['DAY', 'MODEL', 'CALLS', 'LEDGER USD', 'BILL USD', 'DIFFERENCE', ''], ...rows, totals])}\n\n${leftOut}${verdict}\n`
}

function noteOf(ledger: bigint | undefined, bill: bigint | undefined): string {
  if (ledger === undefined) return 'only in the bill'
  return bill === undefined ? 'only in the ledger' : 'differs'
}

function dayText(day: number): string {
  return new Date(day).toISOString().slice(0, 10)
}
