import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { help, run } from '../../src/cli/ledger/ledger.ts'
import type { CallRecord } from '../../src/core/call.ts'
import { priceOf } from '../../src/money/price.ts'
import { maxListed } from '../../src/money/recount.ts'
import { openStore } from '../../src/store/open.ts'
import { damage, pagesWithContent } from '../helpers/damage.ts'
import { acme, folderOf, plainDialect } from '../manifest/files.ts'
import { plainRecord } from '../store/plain-record.ts'
import { ran } from './running.ts'

/** When the calls came. */
const at = Date.UTC(2026, 10, 21, 12)

const pricing = [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 2e-6 }]
const entry = { api: 'chat', pricing }

/** A folder with prices and a database of these records. */
async function ledgerWith(records: readonly CallRecord[] = []) {
  const folder = folderOf({
    'config.yaml': 'store: { url: "sqlite:router.sqlite" }\n',
    'providers/dialects/plain.yaml': plainDialect,
    'providers/acme.yaml': `${acme}models:\n  m: { api: chat, aliases: [m-2026], pricing: ${JSON.stringify(pricing)} }\n`,
  })
  const store = await openStore(`sqlite:${folder}/router.sqlite`)
  const writer = store.ledger.openWriter()
  await writer.write(records)
  await writer.close()
  await store.close()
  const put = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const runCommand = (...args: string[]) => ran(run, ...args, '--config', join(folder, 'config.yaml'))
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand(...args, '--json')
    return { code, stderr, result: JSON.parse(stdout || 'null') }
  }
  return { folder, put, runCommand, json }
}

const usage = { input: 10, output: 5 }
const priced = (changes: Partial<CallRecord> = {}) =>
  plainRecord({ provider: 'acme', model: 'm', usage, cost: priceOf(usage, entry, at), ...changes })
const wrongCost = { ...priceOf(usage, entry, at), nanoUsd: 20_001 }
const november = ['--from', '2026-11-01', '--to', '2026-11-30']

describe('ledger recount', () => {
  test('finds every cost to be right: exit code 0', async () => {
    const failed = priced({
      outcome: 'failed',
      status: 502,
      usage: {},
      cost: { nanoUsd: 0, parts: {}, priceVersion: '' },
    })
    const { runCommand, json } = await ledgerWith([
      priced(),
      priced({ key: 'key-2' }),
      priced({ model: 'm-2026' }),
      failed,
    ])
    const { code, stdout } = await runCommand('recount', ...november)
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout:
        "4 calls from 2026-11-01T00:00:00Z to 2026-12-01T00:00:00Z: 3 are correct, 0 are wrong, 0 were billed at prices other than today's, 1 failed without charge\n",
    })
    expect((await json('recount', ...november, '--key', 'key-2')).result).toMatchObject({ calls: 1, agreeing: 1 })
    expect((await json('recount', '--from', '2026-11-22')).result).toMatchObject({ calls: 0 })
  })

  test('counts attempts with rows of their own apart, and checks what was billed for them', async () => {
    const unbilled = { usage: {}, cost: { nanoUsd: 0, parts: {}, priceVersion: '' } }
    const attempt = { attemptOf: 'c1', outcome: 'failed', status: 502 } as const
    const { runCommand, json } = await ledgerWith([
      priced({ id: 'c1' }),
      priced(attempt),
      priced({ ...attempt, ...unbilled }),
      priced({ ...attempt, cost: wrongCost }),
    ])
    const { result } = await json('recount', ...november)
    expect(result).toMatchObject({ calls: 1, attempts: 3, unbilled: 0, agreeing: 2, wrong: { calls: 1 } })
    expect((await runCommand('recount', ...november)).stdout).toContain('1 calls and 3 further attempts from ')
  })

  test('lists a call that costs a nano-dollar more than it should: exit code 1', async () => {
    const wrong = priced({ cost: wrongCost })
    const { runCommand, json } = await ledgerWith([priced(), wrong])
    const { code, result } = await json('recount', ...november)
    expect(code).toBe(1)
    expect(result).toMatchObject({ calls: 2, agreeing: 1 })
    expect(result.wrong).toEqual({
      calls: 1,
      difference: -1e-9,
      listed: [
        {
          id: wrong.id,
          at: '2026-11-21T12:00:00Z',
          organization: 'org-1',
          key: 'key-1',
          model: 'acme/m',
          ledger: 0.000020001,
          today: 0.00002,
        },
      ],
    })
    expect((await runCommand('recount', ...november)).stdout).toMatch(
      new RegExp(`${wrong.id} +acme/m +0.000020001 +0.00002 +-0.000000001\n`),
    )
  })

  test('reads all of many calls and lists some of many wrong ones', async () => {
    const at = Date.UTC(2026, 10, 2)
    const { json } = await ledgerWith(
      Array.from({ length: 2_500 }, (_, index) => priced({ at: at + (index % 3), cost: wrongCost })),
    )
    const { result } = await json('recount', ...november)
    expect(result).toMatchObject({ calls: 2_500, wrong: { calls: 2_500, difference: -0.0000025 } })
    expect(result.wrong.listed).toHaveLength(maxListed)
  })

  test('sums up the costs at other prices, and prices that were added or removed', async () => {
    const old = { nanoUsd: 7, parts: {}, priceVersion: 'older' }
    const { runCommand, json } = await ledgerWith([
      priced({ cost: old }),
      priced({ cost: old }),
      priced({ cost: { nanoUsd: 0, parts: {}, priceVersion: '', unpriced: true } }),
      priced({ model: 'gone', cost: old }),
    ])
    const { code, result } = await json('recount', ...november)
    expect({ code, repriced: result.repriced }).toEqual({
      code: 0,
      repriced: [
        { model: 'acme/gone', calls: 1, ledger: 7e-9, today: 0, difference: -7e-9 },
        { model: 'acme/m', calls: 3, ledger: 14e-9, today: 0.00006, difference: 0.000059986 },
      ],
    })
    expect((await runCommand('recount', ...november)).stdout).toContain("Prices other than today's:\nMODEL ")
  })

  test('shows costs that providers reported beside our own', async () => {
    const costing = (reported_cost: number) => priced({ usage: { ...usage, reported_cost } })
    const { runCommand, json } = await ledgerWith([costing(0.00002), costing(0.000025), priced()])
    const { code, result } = await json('recount', ...november)
    expect({ code, reported: result.reported }).toEqual({
      code: 0,
      reported: [{ model: 'acme/m', calls: 2, ledger: 0.00004, provider: 0.000045, difference: 0.000005 }],
    })
    expect((await runCommand('recount', ...november)).stdout).toMatch(
      /Reported by the provider:\n.*\nacme\/m +2 +0.00004 +0.000045 +0.000005\n/,
    )
  })

  test('counts the organization that is named', async () => {
    const { folder, runCommand, json } = await ledgerWith()
    const store = await openStore(`sqlite:${folder}/router.sqlite`)
    const { id: organization } = await store.organizations.create('one')
    const writer = store.ledger.openWriter()
    await writer.write([priced({ organization }), priced(), priced({ organization: 'two' })])
    await writer.close()
    await store.close()
    expect((await json('recount', ...november)).result).toMatchObject({ calls: 3, agreeing: 3 })
    expect((await json('recount', ...november, '--org', 'one')).result).toMatchObject({ calls: 1 })
    expect((await json('recount', ...november, '--org', organization, '--key', 'key-1')).result).toMatchObject({
      calls: 1,
    })
    expect(await runCommand('recount', ...november, '--org', 'nobody')).toMatchObject({
      code: 1,
      stderr: "There is no organization 'nobody'. Known: one\n",
    })
  })
})

describe('ledger compare', () => {
  const records = [
    priced(),
    priced({ model: 'm-2026' }),
    priced({ at: Date.UTC(2026, 10, 22) }),
    priced({ provider: 'other', model: 'x' }),
  ]

  test('finds a bill that agrees: exit code 0', async () => {
    const { put, runCommand, json } = await ledgerWith(records)
    const bill = put(
      'bill.csv',
      '\ufeffDate,Model,"Cost (USD)"\n2026-11-21,m,$0.00003\n2026-11-21,acme/m-2026,0.00001\n2026-11-22,m,0.00002\n,,0.00006\n',
    )
    const compare = [
      'compare',
      '--bill',
      bill,
      '--provider',
      'acme',
      '--tolerance',
      '0',
      '--columns',
      'cost=cost (usd)',
    ]
    const { code, result } = await json(...compare)
    expect(code).toBe(0)
    expect(result).toEqual({
      days: [
        { day: '2026-11-21', model: 'm', calls: 2, ledger: 0.00004, bill: 0.00004, difference: 0, exceeds: false },
        { day: '2026-11-22', model: 'm', calls: 1, ledger: 0.00002, bill: 0.00002, difference: 0, exceeds: false },
      ],
      ledger: 0.00006,
      bill: 0.00006,
      difference: 0,
      exceeding: 0,
      left_out: { lines: 1, cost: 0.00006 },
    })
    expect(await runCommand(...compare)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(
        'Left out: 1 lines of the bill without a day or a model, or of other services, 0.00006 USD.\nLedger and bill agree.\n',
      ),
    })
  })

  test('shows lines on one side only, and differences: exit code 1', async () => {
    const { put, runCommand, json } = await ledgerWith(records)
    const bill = put('bill.csv', 'date,model,cost\n2026-11-21,m,0.00005\n2026-11-21,mystery,1\n')
    const { code, stdout } = await runCommand('compare', '--bill', bill, '--tolerance', '0.000001')
    expect(code).toBe(1)
    expect(stdout.split('\n').map((line) => line.replace(/ {2,}/g, ' | '))).toEqual([
      'DAY | MODEL | CALLS | LEDGER USD | BILL USD | DIFFERENCE',
      '2026-11-21 | m | 2 | 0.00004 | 0.00005 | 0.00001 | differs',
      '2026-11-21 | mystery | 0 | 1.00 | 1.00 | only in the bill',
      '2026-11-21 | x | 1 | 0.00002 | -0.00002 | only in the ledger',
      ' | total | 0.00006 | 1.00005 | 0.99999',
      '',
      'Ledger and bill differ in 3 of 3 lines.',
      '',
    ])
    expect((await json('compare', '--bill', bill, '--tolerance', '25%', '--provider', 'acme')).result).toMatchObject({
      exceeding: 1,
    })
    const longer = await json(
      'compare',
      '--bill',
      bill,
      '--from',
      '2026-11-20',
      '--to',
      '2026-11-22',
      '--provider',
      'acme',
    )
    expect(longer.result.days.map(({ day }: { day: string }) => day)).toEqual([
      '2026-11-21',
      '2026-11-21',
      '2026-11-22',
    ])
  })

  test('explains an unreadable bill: exit code 1', async () => {
    const { put, folder, runCommand } = await ledgerWith()
    const bad = put('bad.csv', 'day,sku\n2026-11-21,m\n')
    expect(await runCommand('compare', '--bill', bad)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('no column for the cost'),
    })
    expect(await runCommand('compare', '--bill', join(folder, 'none.csv'))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cannot be read'),
    })
    const empty = put('empty.csv', 'day,model,cost\n')
    expect(await runCommand('compare', '--bill', empty)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('has no line'),
    })
    expect(await runCommand('compare', '--bill', bad, '--provider', 'acem')).toMatchObject({
      code: 1,
      stderr: "There is no provider 'acem'. Known: acme\n",
    })
  })
})

test.each([
  [[], 'name an action: show, check, recount, compare'],
  [['audit'], "unknown action 'audit'; actions: show, check, recount, compare"],
  [['constructor'], "unknown action 'constructor'"],
  [['recount', '--from', 'monday'], "--from is 'monday'; write a day as 2026-11-30"],
  [['recount', '--from', '2026-11-02', '--to', '2026-11-01'], '--to 2026-11-01 is before --from 2026-11-02'],
  [['recount', 'all'], "unexpected argument 'all'"],
  [['compare'], 'name the bill'],
  [['compare', '--bill', 'x', '--tolerance', '-1'], '--tolerance'],
  [['compare', '--bill', 'x', '--tolerance', 'some'], "--tolerance is 'some'"],
  [['compare', '--bill', 'x', '--columns', 'price=net'], "--columns has 'price=net'; write date=<column>"],
  [['compare', '--bill', 'x', '--from', '2026-11-01T12:00:00Z'], 'write --from and --to as days'],
])('%j is wrong usage: exit code 2, the reason and the help', async (args, reason) => {
  const result = await ran(run, ...args)
  expect(result).toMatchObject({ code: 2, stdout: '' })
  expect(result.stderr).toContain(reason)
  expect(result.stderr).toContain(help)
})

test.each([['--help'], ['recount', '-h'], ['compare', '--help']])('%j %j helps', async (...args) => {
  expect(await ran(run, ...args)).toEqual({ code: 0, stdout: help, stderr: '' })
})

test('a configuration with errors is reported: exit code 1', async () => {
  const { put, runCommand } = await ledgerWith()
  put('config.yaml', 'stor: 1\n')
  expect(await runCommand('recount')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('config.yaml:1:1'),
  })
})

describe('ledger check', () => {
  test('finds every sum to equal the total of its rows: exit code 0', async () => {
    const { runCommand, json } = await ledgerWith([
      priced(),
      priced({ key: 'key-2', group: 'lab' }),
      priced({ at: at + 40 * 24 * 60 * 60 * 1_000, usage: { cache_read: 7, output_audio: 2 } }),
      priced({ outcome: 'failed', usage: {}, cost: { nanoUsd: 0, parts: {}, priceVersion: '' } }),
    ])
    const { code, stdout } = await runCommand('check')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^The database file is sound; \d+ sums equal the totals of the ledger's rows\n$/)
    expect((await json('check')).result).toMatchObject({ damage: [], wrong: 0, listed: [] })
  })

  test('finds nothing wrong with an empty ledger', async () => {
    const { json } = await ledgerWith()
    expect(await json('check')).toMatchObject({ code: 0, result: { checked: 0, wrong: 0 } })
  })

  test('lists a sum that lost a nano-dollar, a missing one and a surplus one: exit code 1', async () => {
    const { folder, json } = await ledgerWith([priced(), priced({ key: 'key-2', group: 'lab' })])
    const db = new Database(join(folder, 'router.sqlite'))
    db.exec(`
      UPDATE key_spend SET nano = nano - 1 WHERE key = 'key-2';
      DELETE FROM group_spend;
      INSERT INTO organization_spend VALUES ('nobody', '2026-01', 5);
      UPDATE organization_usage SET requests = requests + 1;`)
    db.close()
    const { code, result } = await json('check')
    expect(code).toBe(1)
    expect(result.wrong).toBe(4)
    expect(result.listed).toMatchObject([
      { table: 'key_spend', owner: 'key-2', period: '2026-11', figure: 'spend', kept: 0.000019999, rows: 0.00002 },
      { table: 'group_spend', owner: 'lab', period: '2026-11', figure: 'spend', kept: 0, rows: 0.00002 },
      { table: 'organization_spend', owner: 'nobody', period: '2026-01', kept: 5e-9, rows: 0 },
      { table: 'organization_usage', period: '2026-11-21T12:00:00Z', figure: 'requests', kept: 3, rows: 2 },
    ])
  })

  test('finds damage wherever it is in the file, also where every sum can be read: exit code 1', async () => {
    const calls = Array.from({ length: 400 }, (_, index) =>
      priced({ key: `key-${index}`, group: 'lab', at: at + index }),
    )
    const { folder, json } = await ledgerWith(calls)
    const path = join(folder, 'router.sqlite')
    const store = await openStore(`sqlite:${path}`)
    const { id: organization } = await store.organizations.create('acme')
    await store.organizations.credit(organization, 5n)
    await store.groups.create({ organization, name: 'lab' })
    await store.names.setAlias(organization, { name: 'a', target: 'acme/m' })
    await store.audit.append({ organization, actor: 'cli', action: 'alias.create', subject: 'a' })
    await store.close()
    const places = pagesWithContent(path)
    const sound = readFileSync(path)
    expect(new Set(places.map(({ name }) => name)).size).toBeGreaterThan(12)
    const missed: string[] = []
    for (const [index, { name, page }] of places.entries()) {
      damage(path, sound, [page], index % 2 === 0 ? 0 : 0xff)
      const { code, stderr, result } = await json('check')
      const said = result ? result.damage.length > 0 : /damaged|not an SQLite database/.test(stderr)
      if (code !== 1 || !said) missed.push(`${name}, page ${page}: ${code} ${JSON.stringify(result)} ${stderr}`)
    }
    expect(missed).toEqual([])
  })

  test('takes no range: sums are of whole months and hours', async () => {
    const { runCommand } = await ledgerWith()
    expect(await runCommand('check', '--from', '2026-11-01')).toMatchObject({ code: 2 })
  })
})
