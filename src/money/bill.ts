import { dayMs, parseTime } from '../core/time.ts'

/** One line of a provider's bill: a day of UTC (when it begins, Unix milliseconds), a model as the bill names it, nano-USD. */
export type BillLine = { day: number; model: string; nano: bigint }

/** The lines of a bill; `left` are those without a day or a model, such as totals. */
export type Bill = { lines: BillLine[]; left: { lines: number; nano: bigint } }

/** The names of a bill's columns; a missing one is looked for under the usual names. */
export type BillColumns = { date?: string; model?: string; cost?: string }

/** The bill cannot be read; the message names the file, and the line and column where there is one. */
export class UnreadableBill extends Error {}

/** Reads a bill in CSV, of any delimiter, quoted or not. `file` is its name for messages. Rejects with UnreadableBill. */
export async function readBill(bytes: Uint8Array, file: string, columns: BillColumns = {}): Promise<Bill> {
  const text = decoded(bytes)
  const delimiter = delimiterOf(text)
  const [head, ...records] = await recordsOf(text, delimiter, file)
  if (!head) throw new UnreadableBill(`${file} is empty; a bill begins with a line that names its columns`)
  const indexes = indexesOf(head.cells, columns, file)
  const bill: Bill = { lines: [], left: { lines: 0, nano: 0n } }
  for (const { cells, line } of records) {
    const cell = (name: keyof BillColumns) => ({
      text: (cells[indexes[name]] ?? '').trim(),
      where: `${file}:${line}: ${head.cells[indexes[name]]}`,
    })
    const [date, model, cost] = [cell('date'), cell('model'), cell('cost')]
    const nano = isAmbiguous(cost.text, delimiter) ? undefined : nanoOfCost(cost.text)
    if (date.text !== '' && model.text !== '') {
      if (nano === undefined)
        throw new UnreadableBill(`${cost.where} is '${cost.text}'; write USD as 1.25 or $1,234.50`)
      bill.lines.push({ day: dayOf(date), model: model.text, nano })
    } else if (nano !== undefined) {
      bill.left.lines++
      bill.left.nano += nano
    }
  }
  return bill
}

type Record = { cells: string[]; line: number }

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

async function recordsOf(text: string, delimiter: string, file: string): Promise<Record[]> {
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

/** UTF-16 where the byte order mark says so, as spreadsheets write it; the mark is removed. */
function decoded(bytes: Uint8Array): string {
  return new TextDecoder(bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : 'utf-8').decode(bytes)
}

/** The delimiter of the header line. */
function delimiterOf(text: string): string {
  const head = text.slice(0, Math.max(0, text.search(/[\r\n]/)) || text.length)
  const counts = [',', ';', '\t'].map((mark) => ({ mark, count: head.split(mark).length }))
  return counts.reduce((best, one) => (one.count > best.count ? one : best)).mark
}

function indexesOf(head: readonly string[], columns: BillColumns, file: string) {
  const indexOf = (name: keyof BillColumns): number => {
    const chosen = columns[name]
    const names = chosen === undefined ? usualNames[name] : [chosen]
    const found = names
      .map((each) => head.findIndex((title) => plainName(title) === plainName(each)))
      .find((index) => index >= 0)
    if (found !== undefined) return found
    const what = chosen === undefined ? `no column for the ${name}` : `no column '${chosen}'`
    throw new UnreadableBill(
      `${file} has ${what}; it has: ${head.join(', ')}. Choose one: --columns ${name}=<its name>`,
    )
  }
  return { date: indexOf('date'), model: indexOf('model'), cost: indexOf('cost') }
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

/** Unix milliseconds of a day, a time (UTC by default), or a number of seconds or milliseconds since 1970. */
function timeOf(text: string): number | undefined {
  if (/^\d{10}$/.test(text)) return Number(text) * 1_000
  if (/^\d{13}$/.test(text)) return Number(text)
  const match = /^(\d{4})-?(\d\d)-?(\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(Z|UTC|[+-]\d\d:?\d\d)?)?$/i.exec(text)
  if (!match) return undefined
  const [, year, month, day, time = '00:00', zone = 'Z'] = match
  const offset = /^(?:z|utc)$/i.test(zone) ? 'Z' : zone.replace(/^(...)(\d\d)$/, '$1:$2')
  return parseTime(`${year}-${month}-${day}T${time.length === 5 ? `${time}:00` : time}${offset}`)
}

/** Where commas do not separate columns, a single one may be a decimal or a thousands separator. */
function isAmbiguous(cost: string, delimiter: string): boolean {
  return delimiter === ';' && cost.includes(',') && !cost.includes('.')
}

/** USD as bills write it, rounded to nano-USD: `0.0123`, `$1,234.50`, `-1.2e-5 USD`, `(3.00)` for a refund. */
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
