import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noBrowser, type Tab } from '../helpers/browser.ts'
import { testEach } from '../helpers/slow.ts'
import {
  expectAccessible,
  expectFaultless,
  expectNoOverflow,
  go,
  hostile,
  long,
  openWorld,
  routePaths,
  type World,
} from './world.ts'

if (noBrowser) console.warn(noBrowser)

describe.skipIf(noBrowser)('every page of the console', () => {
  let world: World
  let call = ''
  let key = ''

  beforeAll(async () => {
    world = await openWorld()
    const { api, router } = world
    // Names and labels as long as the API takes them, and as strange.
    const made: { api_key_id?: string } = await api('/v1/manage/apikey', 'POST', {
      name: hostile.slice(0, 200),
      monthly_limit: 5,
      labels: { [hostile.slice(0, 60)]: hostile.slice(0, 60), long: long.slice(0, 64) },
    })
    key = made.api_key_id ?? ''
    await api('/v1/manage/group', 'POST', { name: hostile.slice(0, 200), monthly_limit: 1 })
    await api('/v1/manage/policy', 'POST', {
      id: 'quick',
      description: `${hostile} ${long.slice(0, 500)}`,
      targets: ['demo/echo'],
    })
    await api('/v1/manage/alias', 'POST', { name: 'loud', target: 'demo/echo' })
    const ask = (body: object) =>
      router.call('/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }], ...body })
    for (const model of ['demo/echo', 'quick', 'loud'])
      await (
        await ask({ model, user: hostile, metadata: { [hostile.slice(0, 60)]: hostile, long: long.slice(0, 500) } })
      ).text()
    const answer = await ask({ model: 'demo/trouble', messages: [{ role: 'user', content: 'fail 500' }] })
    await answer.text()
    const { calls } = (await api('/v1/manage/calls?outcome=complete')) as unknown as { calls: { id: string }[] }
    call = calls[0]?.id ?? ''
  })
  afterAll(() => world?.close())

  const pages = () => [...routePaths, `calls/${call}`, `keys/${key}`, 'models/demo/echo', 'providers/demo']

  testEach(
    [
      { colorScheme: 'light', width: 1280 },
      { colorScheme: 'dark', width: 1280 },
      { colorScheme: 'light', width: 360 },
    ] as const,
    { slowIf: (_, index) => index > 0 },
  )(
    'is accessible, breaks nothing and shows texts as text: $colorScheme, $width px',
    async ({ colorScheme, width }) => {
      const tab = await world.open('overview')
      await tab.page.emulateMedia({ colorScheme })
      await tab.page.setViewportSize({ width, height: 900 })
      for (const page of pages()) {
        await go(tab, page)
        await expectNoOverflow(tab)
        // What a page consists of is the same in all of them.
        if (colorScheme === 'dark') await expectAccessible(tab, ['color-contrast'])
        else if (width > 1_000) await expectAccessible(tab)
      }
      expect(await tab.page.title()).not.toContain('hit')
      expectFaultless(tab, world)
      await tab.page.close()
    },
  )

  test('a key that may only read sees all, and the buttons say why they are off', async () => {
    const { api_key: reader }: { api_key?: string } = await world.api('/v1/manage/apikey', 'POST', {
      name: 'reader',
      permissions: { manage: 'read', completions: 'none' },
    })
    const tab = await world.open('keys', { key: reader ?? '' })
    const button = tab.page.getByRole('button', { name: 'Create key' })
    expect(await button.getAttribute('title')).toBe('This key has manage: read. A key with manage: write is needed.')
    await button.click({ force: true })
    expect(await tab.page.getByRole('dialog').count()).toBe(0)
    await go(tab, 'playground')
    await tab.page.getByLabel('Key for calls').waitFor()
    await go(tab, 'health')
    await tab.page.getByText(/Only the calls of your organization are counted/).waitFor()
    await go(tab, 'settings')
    await tab.page.getByText(/This key has instance: none; a key with instance: read is needed/).waitFor()
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test('with a keyboard another page is opened, and read on in it; what a button changes is in its name', async () => {
    const tab = await world.open('overview')
    const { page } = tab
    await page.getByRole('link', { name: 'Keys' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
    expect(await page.evaluate('document.activeElement.id')).toBe('content')
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toContain('Create key')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.textContent')).toContain('Create key')
    await go(tab, `keys/${key}`)
    await page.getByRole('button', { name: 'Change the monthly limit' }).waitFor()
    const names = await page.getByRole('button', { name: /^Change/ }).allTextContents()
    expect(new Set(names).size).toBe(names.length)
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test('the key is in no address, not kept when the tab is closed, and gone after signing out', async () => {
    const tab = await world.open('keys')
    const { page, asked } = tab
    const secret = await page.evaluate("sessionStorage.getItem('inference-router key')")
    expect(secret).toBeTruthy()
    expect([...asked, page.url()].filter((url) => url.includes(String(secret)) && !url.includes('#key='))).toEqual([])
    expect(
      await page.evaluate('JSON.stringify(localStorage) + document.cookie + JSON.stringify(history.state)'),
    ).not.toContain(String(secret))
    expect(await page.content()).not.toContain(String(secret))
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
    expect(await page.evaluate('sessionStorage.length')).toBe(0)
    await page.getByLabel('API key').fill('ir-this-is-no-key-of-anybody')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').filter({ hasText: /key/i }).waitFor()
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test('a key is made with its models, rate limits and plugins at once', async () => {
    const tab = await world.open('keys')
    const { page } = tab
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByLabel('Name', { exact: true }).fill('restricted at once')
    await page.getByLabel('Only these').check()
    await page.getByLabel('Models', { exact: true }).fill('demo/ecoh')
    await page.getByLabel('Requests per minute').fill('7')
    await dialogButton(tab, 'Create key').click()
    await page.getByText('names an unknown model').waitFor()
    expect(await page.getByLabel('Models', { exact: true }).getAttribute('aria-invalid')).toBe('true')
    await page.getByLabel('Models', { exact: true }).fill('demo/echo')
    await dialogButton(tab, 'Create key').click()
    await page.locator('.secret code').waitFor()
    await dialogButton(tab, 'Done').click()
    expect(await page.getByRole('link', { name: 'restricted at once' }).count()).toBe(1)
    await page.getByRole('link', { name: 'restricted at once' }).click()
    await page.getByText('7 requests', { exact: false }).waitFor()
    await page.getByText('demo/echo').waitFor()
    await page.close()
  })

  test('a key is made, shown once, limited, labelled, rotated and deleted', async () => {
    const tab = await world.open('keys')
    const { page } = tab
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByLabel('Name', { exact: true }).fill('from the console')
    await page.getByLabel('Monthly limit, USD').fill('2.5')
    await page.getByLabel('Labels').fill('no pair')
    await dialogButton(tab, 'Create key').click()
    await page.getByText("Write 'no pair' as name=value.").waitFor()
    await page.getByLabel('Labels').fill('team=web')
    await dialogButton(tab, 'Create key').click()
    const secret = (await page.locator('.secret code').textContent()) ?? ''
    expect(secret).toMatch(/^ir-/)
    await dialogButton(tab, 'Done').click()
    expect(await page.content()).not.toContain(secret)
    await page.getByRole('link', { name: 'from the console' }).click()
    await change(tab, 'Monthly limit', async () => {
      await page.getByLabel('USD per month').fill('0.5')
    })
    await page.getByText('$0.5000').waitFor()
    await change(tab, 'Rate limits', async () => {
      await page.getByLabel('Requests per minute').fill('1.5')
      await dialogButton(tab, 'Save').click()
      // The browser tells first what the API would.
      expect(
        await page
          .getByLabel('Requests per minute')
          .evaluate((field) => (field as unknown as { validity: { valid: boolean } }).validity.valid),
      ).toBe(false)
      await page.getByLabel('Requests per minute').fill('60')
    })
    await page.getByText('60 requests').waitFor()
    await change(tab, 'Can call', async () => {
      await page.getByLabel('Only these').check()
      await page.getByLabel('Models', { exact: true }).fill('demo/echo\nnobody/nothing')
      await dialogButton(tab, 'Save').click()
      const field = page.getByLabel('Models', { exact: true })
      await page.getByRole('alert').waitFor()
      await expect.poll(() => field.getAttribute('aria-invalid')).toBe('true')
      await field.fill('demo/echo')
    })
    await page.getByText('demo/echo').first().waitFor()
    await page.getByRole('button', { name: 'Rotate' }).click()
    await dialogButton(tab, 'Rotate').click()
    const rotated = (await page.locator('.secret code').textContent()) ?? ''
    expect(rotated).not.toBe(secret)
    await dialogButton(tab, 'Done').click()
    const status = async (bearer: string) =>
      (await fetch(`${world.router.url}/v1/auth/check`, { headers: { authorization: `Bearer ${bearer}` } })).status
    expect([await status(secret), await status(rotated)]).toEqual([403, 200])
    await page.getByRole('button', { name: 'Delete' }).click()
    await dialogButton(tab, 'Delete').click()
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
    expect(await status(rotated)).toBe(403)
    await go(tab, 'changes')
    for (const action of ['apikey.delete', 'apikey.rotate', 'apikey.create'])
      await page.getByText(action).first().waitFor()
    // By whom is told by name.
    await expect.poll(() => page.locator('a[href^="#/keys/"]').filter({ hasText: /^…/ }).count()).toBe(0)
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test('filters suggest names of keys, groups, models, users and labels, and take a part of a name for an id', async () => {
    const { group_id }: { group_id?: string } = await world.api('/v1/manage/group', 'POST', { name: 'late shift' })
    const made: { api_key?: string; api_key_id?: string } = await world.api('/v1/manage/apikey', 'POST', {
      name: 'filtered robot',
      labels: { team: 'night' },
      group_id,
    })
    const body = {
      model: 'loud',
      messages: [{ role: 'user', content: 'Hi' }],
      user: 'ann',
      metadata: { feature: 'search' },
    }
    await (await world.router.call('/v1/chat/completions', body, { authorization: `Bearer ${made.api_key}` })).text()
    const tab = await world.open('calls')
    const { page } = tab
    const field = (label: string) => page.getByRole('search').getByLabel(label, { exact: true })
    const suggested = async (label: string) => {
      const list = await field(label).getAttribute('list')
      return page.evaluate<string[]>(
        `[...document.querySelectorAll('[id="${list}"] option')].map(({ value }) => value)`,
      )
    }
    for (const [label, ...names] of [
      ['Key', 'filtered robot', 'first key'],
      ['Group', 'late shift'],
      ['Model', 'demo/echo'],
      ['Requested', 'loud', 'quick'],
      ['User', 'ann'],
      ['Label or tag', 'label.team=night', 'extra.feature=search'],
      ['Error code', 'provider_failed'],
    ] as const)
      await expect.poll(() => suggested(label), { message: label }).toEqual(expect.arrayContaining(names))
    const calls = page.getByRole('region', { name: 'Calls' }).getByRole('row')
    for (const [label, text, whole] of [
      ['Group', 'shift', 'late shift'],
      ['Key', 'ROBOT', 'filtered robot'],
      ['User', 'ann', 'ann'],
      ['Label or tag', 'extra.feature=search', 'extra.feature=search'],
    ] as const) {
      await field(label).fill(text)
      await page.keyboard.press('Enter')
      await expect.poll(() => field(label).inputValue()).toBe(whole)
      await expect.poll(() => calls.count(), { message: label }).toBe(2)
      await field(label).fill('')
      await expect.poll(() => calls.count(), { message: label }).toBeGreaterThan(2)
    }
    expect(await page.getByRole('alert').count()).toBe(0)
    await go(tab, `calls?group=${group_id}`)
    await expect.poll(() => field('Group').inputValue()).toBe('late shift')
    await go(tab, 'overview?by=tag')
    const list = await page.getByLabel('Label or tag').getAttribute('list')
    await expect.poll(() => page.locator(`[id="${list}"] option[value="label.team"]`).count()).toBe(1)
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test('calls and figures are those of the chosen time', async () => {
    const tab = await world.open('calls')
    const { page } = tab
    const time = page.getByLabel('Time', { exact: true })
    const calls = page.getByRole('link', { name: /^\w+ \d+, / })
    await calls.first().waitFor()
    await time.selectOption('chosen')
    await page.getByLabel('To', { exact: true }).fill('2020-01-02T00:00')
    await page.getByText('No calls match.').waitFor()
    await page.getByLabel('To', { exact: true }).fill('2090-01-02T00:00')
    await calls.first().waitFor()
    await page.getByLabel('From', { exact: true }).fill('2080-01-02T00:00')
    await page.getByText('No calls match.').waitFor()
    await time.selectOption('hour')
    await calls.first().waitFor()
    await go(tab, 'overview')
    await page.getByRole('link', { name: 'demo/echo' }).waitFor()
    await time.selectOption('chosen')
    await page.getByLabel('From', { exact: true }).fill('2020-01-01T00:00')
    await page.getByLabel('To', { exact: true }).fill('2020-01-02T00:00')
    await page.getByText('No calls in this period.').waitFor()
    await time.selectOption('day')
    await page.getByLabel('By', { exact: true }).selectOption('tag')
    await page.getByLabel('Label or tag').fill('extra.long')
    const tagged = page.getByRole('link', { name: /^W{100}/ })
    await tagged.click()
    await calls.nth(2).waitFor()
    expect(await calls.count()).toBe(3)
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test.each(['America/Los_Angeles', 'Pacific/Kiritimati'])(
    'days are those of UTC for a reader in %s',
    async (timezoneId) => {
      const today = () => new Intl.DateTimeFormat('en-US', { dateStyle: 'medium', timeZone: 'UTC' }).format(new Date())
      const before = today()
      const tab = await world.open('overview?range=quarter', { timezoneId })
      const chart = tab.page.getByRole('img', { name: /^Calls over time/ })
      const lastDay = async () => {
        const plot = await chart.locator('.u-over').boundingBox()
        if (plot) await tab.page.mouse.move(plot.x + plot.width - 1, plot.y + plot.height / 2)
        return await chart.locator('.u-legend .u-value').first().textContent()
      }
      await expect.poll(async () => [before, today()].includes((await lastDay()) ?? '')).toBe(true)
      await tab.page.close()
    },
  )

  test('spend is a stacked chart, whose legend has the values of each group and whose figures are a table as well', async () => {
    const body = { model: 'demo/thinker', messages: [{ role: 'user', content: 'Hi' }] }
    await (await world.router.call('/v1/chat/completions', body)).text()
    const tab = await world.open('overview?by=key')
    const { page } = tab
    const chart = page.getByRole('img', { name: /^Spend over time/ })
    await expect.poll(() => chart.getAttribute('aria-label')).toContain('first key $0.0')
    await page.getByText('As a table').first().focus()
    await page.keyboard.press('Enter')
    const table = page.getByRole('region', { name: 'Spend over time, US dollars' })
    await table.getByRole('columnheader', { name: 'first key' }).waitFor()
    await expect.poll(() => table.getByText(/^\$0\.0\d+$/).count()).toBeGreaterThan(0)
    await expectAccessible(tab)
    await go(tab, 'overview?by=model')
    await expect.poll(() => chart.locator('.u-legend .u-series').count()).toBeGreaterThan(1)
    const plot = await chart.locator('.u-over').boundingBox()
    if (plot) await page.mouse.move(plot.x + plot.width - 3, plot.y + plot.height / 2)
    await chart.locator('.u-legend').getByText('$0.0').first().waitFor()
    await chart.locator('.u-legend .u-label').getByText('demo/echo').click()
    await page.setViewportSize({ width: 360, height: 800 })
    // The chart is drawn anew when its place has another width.
    await expect.poll(() => page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360)
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test('groups are made, limited and deleted with their keys', async () => {
    const tab = await world.open('groups')
    const { page } = tab
    await page.getByRole('button', { name: 'Create group' }).click()
    await page.getByLabel('Name', { exact: true }).fill('night')
    await dialogButton(tab, 'Create group').click()
    const row = page.getByRole('row').filter({ hasText: 'night' })
    await row.getByRole('button', { name: 'Change limit' }).click()
    await page.getByLabel('USD per month').fill('3')
    await dialogButton(tab, 'Save').click()
    await row.getByText('$3.00').waitFor()
    await row.getByRole('button', { name: 'Delete, keep keys' }).click()
    await dialogButton(tab, 'Delete').click()
    await row.waitFor({ state: 'detached' })
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test('names are made and changed, and a dry run says where a request would go', async () => {
    const tab = await world.open('names')
    const { page } = tab
    await page.getByRole('button', { name: 'Create policy' }).click()
    await page.getByLabel('Name', { exact: true }).fill('both')
    await page.getByLabel('Targets', { exact: true }).fill('demo/echo weight 3\ndemo/thinker')
    await page.getByText('Rules', { exact: true }).last().click()
    await page.getByLabel('Order of targets').selectOption('weighted')
    await dialogButton(tab, 'Save').click()
    const row = page.getByRole('row').filter({ hasText: 'demo/thinker' })
    // The shares are in words beside the bar, which those who do not see it do not need.
    await row.getByRole('listitem').filter({ hasText: 'demo/echo' }).getByText('75%').waitFor()
    await row.getByRole('listitem').filter({ hasText: 'demo/thinker' }).getByText('25%').waitFor()
    const [wide, narrow] = await row.locator('.shares > *').all()
    const widths = await Promise.all([wide, narrow].map(async (share) => (await share?.boundingBox())?.width ?? 0))
    expect((widths[0] ?? 0) / (widths[1] ?? 1)).toBeCloseTo(3, 0)
    await row.getByRole('button', { name: 'Dry run' }).click()
    await dialogButton(tab, 'Run').click()
    const planned = page.getByRole('region', { name: 'Targets in order' })
    await planned
      .getByRole('row')
      .filter({ hasText: 'demo/echo' })
      .getByText(/prompt ≈/)
      .waitFor()
    await planned
      .getByRole('row')
      .filter({ hasText: 'demo/thinker' })
      .getByText(/at most/)
      .waitFor()
    expect(await planned.textContent()).toMatch(/demo\/thinkerat most \$0\.00\d+prompt ≈ \$0\.0000\d+/)
    await page.getByText(/^The prompt has about \d+ tokens\./).waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('button', { name: 'Create alias' }).click()
    await page.getByLabel('Name', { exact: true }).fill('nice')
    await page.getByLabel('Model', { exact: true }).fill('nobody/nothing')
    await dialogButton(tab, 'Save').click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Model', { exact: true }).fill('demo/echo')
    await dialogButton(tab, 'Save').click()
    const alias = page.getByRole('row').filter({ hasText: 'nice' })
    await alias.getByRole('button', { name: 'Delete' }).click()
    await dialogButton(tab, 'Delete').click()
    await alias.waitFor({ state: 'detached' })
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test('the organization gets credit, limits and rules', async () => {
    const tab = await world.open('organization')
    const { page } = tab
    await page.getByRole('button', { name: 'Add credit' }).click()
    await page.getByLabel('USD').fill('12.5')
    await page.getByLabel('Note').fill(hostile.slice(0, 100))
    await dialogButton(tab, 'Save').click()
    await page.getByText(/^\$12\.49/).waitFor()
    await change(tab, 'Limits of all keys combined', async () => {
      await page.getByLabel('Requests per minute').fill('6000')
    })
    await page.getByText('6 k requests'.replace(' ', '\u202f')).waitFor()
    await page.locator('section').filter({ hasText: 'Data rules' }).getByRole('button', { name: 'Change' }).click()
    await page.getByLabel('Exclude providers that train on data').check()
    await dialogButton(tab, 'Save').click()
    await page.getByText('are excluded').waitFor()
    expectFaultless(tab, world)
    await tab.page.close()
  })
})

function dialogButton({ page }: Tab, name: string) {
  return page.getByRole('dialog').getByRole('button', { name, exact: true })
}

/** Changes a fact of a page in its dialog. */
async function change(tab: Tab, fact: string, fill: () => Promise<void>): Promise<void> {
  const { page } = tab
  await page
    .locator('.facts > div')
    .filter({ has: page.getByText(fact, { exact: true }) })
    .getByRole('button', { name: 'Change' })
    .click()
  await fill()
  await dialogButton(tab, 'Save').click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}
