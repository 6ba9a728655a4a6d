import { randomUUIDv7 } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import { connect } from '../../src/store/sqlite/connection.ts'
import { ledgerWriter } from '../../src/store/sqlite/ledger/ledger-writer.ts'
import { noBrowser } from '../helpers/browser.ts'
import { plainRecord } from '../store/plain-record.ts'
import { expectAccessible, expectFaultless, expectNoOverflow, go, openWorld, type World } from './world.ts'

if (noBrowser) console.warn(noBrowser)

const failed = { outcome: 'failed', status: 502, error: 'provider_timeout', failure: 'timeout' } as const
const nothing = { usage: {}, cost: { nanoUsd: 0, parts: {}, priceVersion: '' } }

describe.skipIf(noBrowser)('the attempts of a call', () => {
  let world: World
  let write: (rows: CallRecord[]) => void
  let owner: Pick<CallRecord, 'organization' | 'key'>

  beforeAll(async () => {
    world = await openWorld()
    const db = connect(`${world.router.folder}/data/router.sqlite`)
    const key = db.prepare<[], { organization: string; id: string }>('SELECT organization, id FROM api_keys').get()
    owner = { organization: key?.organization ?? '', key: key?.id ?? '' }
    write = (rows) => void ledgerWriter(db)(rows)
  })
  afterAll(() => world?.close())

  test.each([1_280, 360])('are drawn on one scale of time, with waits and what failed: %i px', async (width) => {
    const at = Date.now() - 60_000
    const id = randomUUIDv7()
    const call = { ...owner, at, id, model: 'second', stream: true, attempts: 2 }
    write([
      plainRecord({
        ...call,
        ...failed,
        ...nothing,
        id: randomUUIDv7(),
        model: 'first',
        attemptOf: id,
        attempts: 1,
        startedMs: 100,
        durationMs: 400,
      }),
      plainRecord({ ...call, startedMs: 700, firstEventMs: 1_000, durationMs: 2_000 }),
    ])
    const tab = await world.open(`calls/${id}`)
    const { page } = tab
    await page.setViewportSize({ width, height: 900 })
    const drawing = page.getByRole('img', { name: /^Attempt 1, / })
    const name = (await drawing.getAttribute('aria-label'))?.replaceAll('\u202f', ' ')
    expect(name).toBe(
      'Attempt 1, maker/first: began after 100 ms, of which 100 ms waiting, took 400 ms, provider_timeout. ' +
        'Attempt 2, maker/second: began after 700 ms, of which 200 ms waiting, first token after 300 ms, took 1.3 s, complete.',
    )
    const places = await page.evaluate<string[]>(
      "[...document.querySelectorAll('.track .piece')].map(({ className, style }) => [className.replace('piece ', ''), style.left, style.width].join(' '))",
    )
    expect(places).toEqual(['wait 0% 5%', 'failed 5% 20%', 'wait 25% 10%', 'first 35% 15%', 'rest 50% 50%'])
    await page.getByRole('region', { name: 'Attempts' }).getByText('provider_timeout').waitFor()
    await expectNoOverflow(tab)
    await expectAccessible(tab)
    expectFaultless(tab, world)
    await page.close()
  })

  test('of rows without times are a table alone', async () => {
    const id = randomUUIDv7()
    const call = { ...owner, at: Date.now() - 60_000, id, attempts: 2 }
    write([
      plainRecord({ ...call, ...failed, ...nothing, id: randomUUIDv7(), attemptOf: id, attempts: 1 }),
      plainRecord(call),
    ])
    const tab = await world.open('calls')
    await go(tab, `calls/${id}`)
    const table = tab.page.getByRole('region', { name: 'Attempts' })
    await expect.poll(() => table.getByRole('row').count()).toBe(3)
    expect(await tab.page.locator('.waterfall').count()).toBe(0)
    await tab.page.close()
  })
})
