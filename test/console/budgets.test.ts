import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { forecastOf } from '../../console/forecast.ts'
import { noBrowser } from '../helpers/browser.ts'
import { expectAccessible, expectFaultless, expectNoOverflow, go, openWorld, type World } from './world.ts'

describe('the day on which a budget runs out', () => {
  const now = Date.parse('2026-11-20T12:00:00Z')
  const day = (at: string) => at.slice(0, 10)
  const of = (spent: number, limit: number, pace: number | undefined, isBalance = false) =>
    forecastOf({ spent, limit, pace, isBalance }, day, now)

  test('is that of the spend of a day, and none after the month, in which it begins anew', () => {
    expect(of(60, 100, 8)).toMatchObject({ kind: 'warn', text: 'runs out on 2026-11-25 at this pace' })
    expect(of(80, 100, 8)).toMatchObject({ kind: 'bad', text: 'runs out on 2026-11-23 at this pace' })
    expect(of(10, 100, 8).text).toBe('enough for this month')
    expect(of(100, 100, 8)).toEqual({ kind: 'bad', text: 'used up until 2026-12-01' })
    expect(of(10, 100, 0).text).toBe('no spend in the last 24 hours')
    expect(of(10, 100, undefined).text).toBe('')
  })

  test('of a balance does not end with the month', () => {
    expect(of(10, 100, 3, true)).toMatchObject({ kind: 'warn', text: 'runs out on 2026-12-20 at this pace' })
    expect(of(10, 100, 0.5, true).text).toBe('lasts more than 90 days')
    expect(of(100, 100, 3, true).text).toBe('used up')
  })
})

describe.skipIf(noBrowser)('budgets', () => {
  let world: World
  let key = ''
  beforeAll(async () => {
    world = await openWorld()
    const { api } = world
    const { group_id }: { group_id?: string } = await api('/v1/manage/group', 'POST', {
      name: 'few',
      monthly_limit: 0.004,
    })
    const made: { api_key_id?: string; api_key?: string } = await api('/v1/manage/apikey', 'POST', {
      name: 'spender',
      monthly_limit: 0.005,
      group_id,
    })
    key = made.api_key_id ?? ''
    await api('/v1/manage/org/credit', 'POST', { amount: 1 })
    for (let calls = 0; calls < 3; calls++) {
      const body = {
        model: 'demo/echo',
        messages: [{ role: 'user', content: 'Spend a little. '.repeat(20) }],
        max_tokens: 100,
      }
      const answer = await world.router.call('/v1/chat/completions', body, { authorization: `Bearer ${made.api_key}` })
      expect(answer.status).toBe(200)
      await answer.text()
    }
  })
  afterAll(() => world?.close())

  test('are bars of keys, groups and the balance, in words as well', async () => {
    const tab = await world.open('keys')
    const { page } = tab
    const words = async () =>
      (await page.getByRole('meter', { name: 'Budget' }).first().getAttribute('aria-valuetext')) ?? ''
    const forecast = /^\$0\.0\d+ of \$0\.00\d+, \d.*%, (runs out on .* at this pace|enough for this month)$/
    await expect.poll(words).toMatch(forecast)
    expect(await page.getByRole('meter').count()).toBe(1)
    await expectAccessible(tab)
    await page.setViewportSize({ width: 360, height: 800 })
    await expectNoOverflow(tab)
    await go(tab, `keys/${key}`)
    await expect.poll(words).toMatch(forecast)
    await go(tab, 'groups')
    await expect.poll(words).toMatch(forecast)
    await expectNoOverflow(tab)
    await go(tab, 'organization')
    await expect.poll(words).toMatch(/^\$0\.0\d+ of \$1\.00, .*lasts more than 90 days$/)
    await expectNoOverflow(tab)
    await expectAccessible(tab)
    expectFaultless(tab, world)
    await tab.page.close()
  })
})
