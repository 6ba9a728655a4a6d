import { dayMs, parseTime } from '../../src/core/time.ts'
import { currencyColumns, exportWith, foreignCurrencyIn, isUsd } from './bill-exports.ts'
import { type BillRecord, withoutPivot } from './cost-explorer.ts'

/**
 * One line of a provider's bill: a day of UTC (when it begins, Unix milliseconds), a model as the bill names it, nano-USD. `texts` is
 * there where a model is not named but mentioned in texts, the best first.
 */
export type BillLine = { day: number; model: string; nano: bigint; texts?: readonly string[] }

/** The lines of a bill; `left` are those without a day or a model, such as totals, and those of other services. */
export type Bill = { lines: BillLine[]; left: { lines: number; nano: bigint } }

/** The names of a bill's columns; a missing one is looked for under the usual names. */
export type BillColumns = { date?: string; model?: string; cost?: string }

/** The bill cannot be read; the message names the file, and the line and column where there is one. */
export class UnreadableBill extends Error {}

/** Reads a bill in CSV, of any delimiter, quoted or not. `file` is its name for messages. Rejects with UnreadableBill. */
export async function readBill(bytes: Uint8Array, file: string, columns: BillColumns = {}): Promise<Bill> {
  const text = decoded(bytes)
  const delimiter = delimiterOf(text)
  const records = withoutPivot(await recordsOf(text, delimiter, file))
  const { head, layout, rest } = headIn(records, columns, file)
  const bill: Bill = { lines: [], left: { lines: 0, nano: 0n } }
  for (const { cells, line } of rest) {
    const cell = (index: number): Cell => ({
      text: (cells[index] ?? '').trim(),
      where: `${file}:${line}: ${head.cells[index]}`,
    })
    const cost = cell(layout.cost)
    if (layout.currency >= 0) requireUsd(cell(layout.currency))
    const nano = isAmbiguous(cost.text, delimiter) ? undefined : nanoOfCost(cost.text)
    const of = lineOf(cell, layout)
    if (of && nano === undefined)
      throw new UnreadableBill(`${cost.where} is '${cost.text}'; write USD as 1.25 or $1,234.50`)
    if (nano === undefined) continue
    if (of) bill.lines.push({ ...of, nano })
    else {
      bill.left.lines++
      bill.left.nano += nano
    }
  }
  return bill
}

type Cell = { text: string; where: string }

/** Returns the day and the model of a line; undefined when it has none, or is that of another service. */
function lineOf(cell: (index: number) => Cell, layout: Layout): Omit<BillLine, 'nano'> | undefined {
  const date = cell(layout.date)
  const texts = layout.model.map((index) => cell(index).text).filter((text) => text !== '')
  const [model] = texts
  if (date.text === '' || model === undefined) return undefined
  const day = dayOf(date)
  if (layout.until >= 0) requireOneDay(date, cell(layout.until))
  const { service } = layout
  if (!service) return { day, model: layout.modelIn(model) }
  return service.indexes.some((index) => service.of.test(cell(index).text)) ? { day, model, texts } : undefined
}

function requireUsd({ text, where }: Cell): void {
  if (text !== '' && !isUsd(text)) throw foreign(where, text)
}

function foreign(where: string, currency: string): UnreadableBill {
  return new UnreadableBill(
    `${where} is ${currency}: the ledger is in USD, and amounts of another currency cannot be added to it; export the bill in USD`,
  )
}

/** Refuses a line of a month or a week, which cannot be compared with days. */
function requireOneDay(date: Cell, until: Cell): void {
  const [from, to] = [timeOf(date.text), timeOf(until.text)]
  if (from === undefined || to === undefined || to - from <= dayMs) return
  throw new UnreadableBill(
    `${date.where} is '${date.text}' and the line ends on ${until.text}; export the bill by days`,
  )
}

/** The usual names of columns, the best first. */
const usualNames: { readonly [name in keyof Required<BillColumns>]: readonly string[] } = {
  date: [
    'date',
    'day',
    'usage_date',
    'date_utc',
    'usage_date_utc',
    'start_time',
    'start_time_iso',
    'timestamp',
    'time',
    'created_at',
  ],
  model: ['model', 'model_id', 'model_name', 'model_version', 'line_item', 'sku', 'product'],
  cost: [
    'cost',
    'cost_usd',
    'cost_in_usd',
    'amount',
    'amount_usd',
    'amount_value',
    'total_cost',
    'spend',
    'total',
    'price',
  ],
}

async function recordsOf(text: string, delimiter: string, file: string): Promise<BillRecord[]> {
  const { parse } = await import('csv-parse/sync')
  try {
    const options = {
      delimiter,
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
      info: true,
    }
    const parsed = parse(text, options) as unknown as { record: string[]; info: { lines: number } }[]
    return parsed.map(({ record, info }) => ({ cells: record, line: info.lines }))
  } catch (thrown) {
    throw new UnreadableBill(`${file} is not CSV: ${thrown instanceof Error ? thrown.message : thrown}`)
  }
}

/** Decodes a file: UTF-16 where the byte order mark says so, as spreadsheets write it; the mark is removed. */
function decoded(bytes: Uint8Array): string {
  return new TextDecoder(bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : 'utf-8').decode(bytes)
}

/** Returns the delimiter of the line that has the most columns: some exports begin with lines about the invoice. */
function delimiterOf(text: string): string {
  const lines = text.split(/[\r\n]+/, maxLinesBeforeHead)
  const counts = [',', ';', '\t'].map((mark) => ({
    mark,
    count: Math.max(...lines.map((line) => line.split(mark).length)),
  }))
  return counts.reduce((best, one) => (one.count > best.count ? one : best)).mark
}

const maxLinesBeforeHead = 30

/** Layout of a bill: indexes of columns, -1 for none. */
type Layout = {
  date: number
  until: number
  model: readonly number[]
  cost: number
  currency: number
  service: { indexes: readonly number[]; of: RegExp } | undefined
  modelIn(text: string): string
}

/** Returns the line that names the columns: the first one, unless a later one has all required columns. */
function headIn(records: readonly BillRecord[], columns: BillColumns, file: string) {
  const [first] = records
  if (!first) throw new UnreadableBill(`${file} is empty; a bill begins with a line that names its columns`)
  const candidates = records.slice(0, maxLinesBeforeHead)
  const index = Math.max(
    candidates.findIndex(({ cells }) => typeof layoutOf(cells, columns) !== 'string'),
    0,
  )
  const head = candidates[index] as BillRecord
  const layout = layoutOf(head.cells, columns)
  if (typeof layout === 'string') throw new UnreadableBill(`${file} has ${layout}`)
  for (const { cells, line } of candidates.slice(0, index))
    if (/^currency$/i.test(cells[0] ?? '')) requireUsd({ text: cells[1] ?? '', where: `${file}:${line}: currency` })
  const title = head.cells[layout.cost] ?? ''
  const currency = foreignCurrencyIn(title)
  if (currency !== undefined) throw foreign(`${file}:${head.line}: the column '${title}'`, currency)
  return { head, layout, rest: records.slice(index + 1) }
}

/** Returns the layout of a bill with these columns, or what it lacks, to follow `has` in a message. */
function layoutOf(head: readonly string[], columns: BillColumns): Layout | string {
  const squashed = head.map((title) => plainName(withoutUnit(title)).replaceAll('_', ''))
  const known = exportWith(squashed)
  const among = (names: readonly string[] = []) => names.map((name) => squashed.indexOf(name)).filter((at) => at >= 0)
  const indexes: { [name in keyof BillColumns]?: readonly number[] } = {}
  for (const name of ['date', 'model', 'cost'] as const) {
    const chosen = columns[name]
    const names = chosen === undefined ? usualNames[name] : [chosen]
    const usual = names.map((each) => head.findIndex((title) => isNamed(title, each)))
    const found = chosen === undefined && known ? among(known[name]) : usual.filter((at) => at >= 0).slice(0, 1)
    if (found.length === 0) {
      const what = chosen === undefined ? `no column for the ${name}` : `no column '${chosen}'`
      return `${what}; it has: ${head.join(', ')}. Choose one: --columns ${name}=<its name>`
    }
    indexes[name] = found
  }
  const { date = [], model = [], cost = [] } = indexes
  const isText = known?.service !== undefined && columns.model === undefined
  return {
    date: date[0] ?? -1,
    until: among(known?.until)[0] ?? -1,
    model: isText ? model : model.slice(0, 1),
    cost: cost[0] ?? -1,
    currency: among(currencyColumns)[0] ?? -1,
    service: isText ? { indexes: among(known.service?.columns), of: known.service?.of as RegExp } : undefined,
    modelIn: (columns.model === undefined && known?.modelIn) || ((text) => text),
  }
}

/** Checks whether a column has this name, with or without its unit: `cost` is the name of `Cost (USD)`. */
function isNamed(title: string, name: string): boolean {
  return [title, withoutUnit(title)].some((each) => plainName(each) === plainName(name))
}

function withoutUnit(title: string): string {
  return title.replace(/\([^()]{1,4}\)\s*$/, '')
}

function plainName(title: string): string {
  return title
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_|_$/g, '')
}

function dayOf({ text, where }: { text: string; where: string }): number {
  const at = timeOf(text)
  if (at === undefined)
    throw new UnreadableBill(`${where} is '${text}'; write a day as 2026-11-30, or a time as 2026-11-30T12:00:00Z`)
  return Math.floor(at / dayMs) * dayMs
}

/** Returns the Unix milliseconds of a day, a time (UTC by default), or a number of seconds or milliseconds since 1970. */
function timeOf(text: string): number | undefined {
  if (/^\d{10}$/.test(text)) return Number(text) * 1_000
  if (/^\d{13}$/.test(text)) return Number(text)
  const match = /^(\d{4})-?(\d\d)-?(\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(Z|UTC|[+-]\d\d:?\d\d)?)?$/i.exec(text)
  if (!match) return undefined
  const [, year, month, day, time = '00:00', zone = 'Z'] = match
  const offset = /^(?:z|utc)$/i.test(zone) ? 'Z' : zone.replace(/^(...)(\d\d)$/, '$1:$2')
  return parseTime(`${year}-${month}-${day}T${time.length === 5 ? `${time}:00` : time}${offset}`)
}

/** Checks whether a cost is ambiguous: where commas do not separate columns, a single one may be a decimal or a thousands separator. */
function isAmbiguous(cost: string, delimiter: string): boolean {
  return delimiter === ';' && cost.includes(',') && !cost.includes('.')
}

/** Reads USD as bills write it, rounded to nano-USD: `0.0123`, `$1,234.50`, `-1.2e-5 USD`, `(3.00)` for a refund. */
function nanoOfCost(text: string): bigint | undefined {
  const bare = text
    .replace(/^\((.*)\)$/, '-$1')
    .replace(/^(-?)\s*(?:US)?\$\s*/i, '$1')
    .replace(/\s*USD$/i, '')
    .replace(/^(-?)USD\s*/i, '$1')
  const match = /^([+-]?)(\d+|\d{1,3}(?:,\d{3})+)?(?:\.(\d*))?(?:e([+-]?\d{1,2}))?$/i.exec(bare)
  if (!match) return undefined
  const [, sign, whole = '', fraction = '', exponent = '0'] = match
  if (whole === '' && fraction === '') return undefined
  const digits = BigInt(whole.replaceAll(',', '') + fraction)
  const shift = 9 - fraction.length + Number(exponent)
  const size =
    shift >= 0 ? digits * 10n ** BigInt(shift) : (digits + 5n * 10n ** BigInt(-shift - 1)) / 10n ** BigInt(-shift)
  return sign === '-' ? -size : size
}
