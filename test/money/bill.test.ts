import { describe, expect, test } from 'vitest'
import { type BillColumns, readBill } from '../../tools/bills/bill.ts'
import { compareBill } from '../../tools/bills/compare-bill.ts'

const day = Date.UTC(2026, 10, 1)
const read = (text: string, columns?: BillColumns) => readBill(new TextEncoder().encode(text), 'bill.csv', columns)
const line = { day, model: 'm', nano: 1_250_000_000n }

describe('a bill', () => {
  test.each([
    ['plain', 'date,model,cost\n2026-11-01,m,1.25\n'],
    ['with a mark at its beginning and the line ends of Windows', '\ufeffdate,model,cost\r\n2026-11-01,m,1.25\r\n'],
    ['with quotes', '"date","model","cost"\n"2026-11-01","m","1.25"\n'],
    ['with semicolons', 'date;model;cost\n2026-11-01;m;1.25'],
    ['with tabs', 'date\tmodel\tcost\n2026-11-01\tm\t1.25'],
    ['with other columns, in another order', 'Amount (USD),Project,Model,Date\n$1.25,"a, ""b""\nc",m,2026-11-01\n'],
    ['with empty lines and spaces', 'date , model , cost\n\n 2026-11-01 , m , 1.25 \n\n'],
  ])('%s is read', async (_how, text) => {
    expect(await read(text)).toEqual({ lines: [line], left: { lines: 0, nano: 0n } })
  })

  test('in UTF-16 is read', async () => {
    const bytes = new Uint8Array(Buffer.from('\ufeffdate\tmodel\tcost\n2026-11-01\tm\t1.25\n', 'utf16le'))
    expect((await readBill(bytes, 'bill.csv')).lines).toEqual([line])
  })

  test.each([
    '20261101',
    '2026-11-01 23:59',
    '2026-11-01T00:00:00Z',
    '2026-11-01T23:59:59.999Z',
    '2026-11-02T01:00:00+02:00',
    '2026-11-01 20:00:00 -0300',
    '2026-11-01 12:00:00 UTC',
    '1793534400',
    '1793534400000',
  ])('may name its day as %s', async (text) => {
    expect((await read(`date,model,cost\n${text},m,1.25`)).lines).toEqual([line])
  })

  test.each([
    ['1', 1_000_000_000n],
    ['$0.000000001', 1n],
    ['.5', 500_000_000n],
    ['0.0000000005', 1n],
    ['1.2E-5', 12_000n],
    ['"$1,234,567.89"', 1_234_567_890_000_000n],
    ['-3', -3_000_000_000n],
    ['-$3.10', -3_100_000_000n],
    ['($3.10)', -3_100_000_000n],
    ['US$ 2', 2_000_000_000n],
    ['2 USD', 2_000_000_000n],
    ['USD 2', 2_000_000_000n],
    ['0.1234567891234', 123_456_789n],
  ])('may write its sums as %s', async (text, nano) => {
    expect((await read(`date,model,cost\n2026-11-01,m,${text}`)).lines).toEqual([{ ...line, nano }])
  })

  test('has columns of any name when they are configured', async () => {
    const text = 'When,cost,What,Net\n2026-11-01,99,m,1.25'
    expect((await read(text, { date: 'when', model: 'What', cost: 'Net' })).lines).toEqual([line])
  })

  test('may have totals: they are skipped and reported', async () => {
    const text = 'date,model,cost\n2026-11-01,m,1.25\n,,1.25\nTotal,,2\n,a note,\n'
    expect(await read(text)).toEqual({ lines: [line], left: { lines: 2, nano: 3_250_000_000n } })
  })

  test.each([
    ['', undefined, /^bill\.csv is empty/],
    [
      'day,model\n',
      undefined,
      /^bill\.csv has no column for the cost; it has: day, model\. Choose one: --columns cost=/,
    ],
    ['a,b,cost\n', undefined, /no column for the date; it has: a, b, cost/],
    ['date,b,cost\n', undefined, /no column for the model/],
    ['date,model,cost\n', { cost: 'Net' }, /no column 'Net'; it has: date, model, cost/],
    [
      'date,model,cost\n2026-11-01,m,1\n\n2026-02-30,m,1\n',
      undefined,
      /^bill\.csv:4: date is '2026-02-30'; write a day as 2026-11-30/,
    ],
    ['date,model,cost\n11/01/2026,m,1\n', undefined, /^bill\.csv:2: date is '11\/01\/2026'/],
    ['date,model,cost\n2026-11-01,m,"1,25"\n', undefined, /^bill\.csv:2: cost is '1,25'; write USD as 1\.25/],
    // Who parts columns by semicolons writes one and a half like this; a thousand and a half it is elsewhere.
    ['date;model;cost\n2026-11-01;m;1,500\n', undefined, /^bill\.csv:2: cost is '1,500'; write USD as 1\.25/],
    ['date,model,cost\n2026-11-01,m,1 EUR\n', undefined, /cost is '1 EUR'/],
    ['date,model,cost\n2026-11-01,m\n', undefined, /^bill\.csv:2: cost is ''/],
    ['date,model,cost\n2026-11-01,"m,1\n', undefined, /^bill\.csv is not CSV: .*[Qq]uot/],
  ])('that reads %j is refused, with the place', async (text, columns, message) => {
    await expect(read(text, columns)).rejects.toThrow(message)
  })
})

describe('a comparison', () => {
  const spent = (model: string, nano: bigint, at = day) => ({ day: at, model, requests: 1, nano })
  const compare = (bill: bigint, ledger: bigint, tolerance: Parameters<typeof compareBill>[2]['tolerance']) =>
    compareBill([{ day, model: 'm', nano: bill }], [spent('m', ledger)], { tolerance, nameOf: (model) => model })[0]

  test('adds up both sides by day and by the name that a model has', () => {
    const lines = [line, line, { ...line, day: day + 1 }, { ...line, model: 'only billed' }]
    const nameOf = (model: string) => (model === 'also m' ? 'm' : model)
    const compared = compareBill(lines, [spent('also m', 1n), spent('m', 2n), spent('only ours', 7n)], {
      tolerance: { nano: 7n },
      nameOf,
    })
    expect(compared).toEqual([
      { day, model: 'm', requests: 2, ledger: 3n, bill: 2_500_000_000n, difference: 2_499_999_997n, exceeds: true },
      {
        day,
        model: 'only billed',
        requests: 0,
        ledger: undefined,
        bill: 1_250_000_000n,
        difference: 1_250_000_000n,
        exceeds: true,
      },
      { day, model: 'only ours', requests: 1, ledger: 7n, bill: undefined, difference: -7n, exceeds: false },
      {
        day: day + 1,
        model: 'm',
        requests: 0,
        ledger: undefined,
        bill: 1_250_000_000n,
        difference: 1_250_000_000n,
        exceeds: true,
      },
    ])
  })

  test('exceeds beyond a sum, or beyond a share of the bill, whichever side is more', () => {
    expect(compare(100n, 90n, { nano: 10n })).toMatchObject({ difference: 10n, exceeds: false })
    expect(compare(100n, 111n, { nano: 10n })).toMatchObject({ difference: -11n, exceeds: true })
    expect(compare(1_000n, 990n, { millionths: 10_000n })).toMatchObject({ exceeds: false })
    expect(compare(1_000n, 1_011n, { millionths: 10_000n })).toMatchObject({ exceeds: true })
    expect(compare(-1_000n, -995n, { millionths: 10_000n })).toMatchObject({ exceeds: false })
  })
})
