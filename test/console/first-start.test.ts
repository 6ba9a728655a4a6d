import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { noBrowser, openBrowser, openContext, openTab, type Tab } from '../helpers/browser.ts'
import { type RouterProcess, routerProcess } from '../helpers/process.ts'
import { routerFolder, simulatorOnly } from '../helpers/router.ts'
import { limit } from '../helpers/time.ts'

if (noBrowser) console.warn(noBrowser)

/** The shortest of several times is below a limit: other tests have the processor as well. Milliseconds. */
async function expectWithin(ms: number, measure: () => Promise<number>): Promise<void> {
  let shortest = Number.POSITIVE_INFINITY
  for (let tries = 0; tries < 4 && shortest >= ms; tries++) shortest = Math.min(shortest, await measure())
  expect(shortest).toBeLessThan(ms)
}

/** What has happened is seen two seconds later: `seen` changes from what it was. */
async function expectSeenSoon(happen: () => Promise<unknown>, seen: () => Promise<unknown>): Promise<void> {
  await expectWithin(limit(2_000), async () => {
    const before = await seen()
    await happen()
    const begun = performance.now()
    await expect.poll(seen).not.toEqual(before)
    return performance.now() - begun
  })
}

describe.skipIf(noBrowser)('from the first start to a refused call', () => {
  let folder: ReturnType<typeof routerFolder>
  let router: RouterProcess
  let browser: Browser
  let tab: Tab
  let page: Page
  const ends: (() => void)[] = []
  const secrets: string[] = []

  beforeAll(async () => {
    folder = routerFolder({ files: simulatorOnly })
    const env = { INFERENCE_ROUTER_ADMIN_KEY: '', LOG_LEVEL: 'trace' }
    const started = routerProcess(folder.configPath, { env, afterTest: (end) => ends.push(end) })
    ;[router, browser] = await Promise.all([started, openBrowser()])
    tab = await openTab(await openContext(browser))
    page = tab.page
  })
  afterAll(async () => {
    await browser?.close()
    for (const end of ends) end()
    rmSync(folder.folder, { recursive: true, force: true })
  })

  const go = async (name: string) => {
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true }).click()
    await page.getByRole('heading', { level: 1, name }).waitFor()
  }
  const card = (name: string) => page.getByRole('group', { name: 'Now' }).locator('.card', { hasText: name })
  const rows = () => page.getByRole('region', { name: 'Calls' }).getByRole('row')

  let app: OpenAI
  const ask = () =>
    app.chat.completions.create({ model: 'demo/echo', messages: [{ role: 'user', content: 'private words' }] })

  test('the link that is printed signs in, and the key does not stay in the address', async () => {
    const [, link = '', secret = ''] = /(http:\S+\/console\/#key=(\S+))/.exec(router.output()) ?? []
    secrets.push(secret)
    expect(secret).toMatch(/^ir-[\w-]{43}$/)
    await page.goto(link)
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    expect(page.url()).toBe(`${router.url}/console/#/`)
    expect(await page.evaluate('history.length')).toBeLessThanOrEqual(2)
  })

  test('a key is made, and shown once', async () => {
    await go('Keys')
    await page.getByRole('button', { name: 'Create key' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('the app')
    await dialog.getByRole('button', { name: 'Create key' }).click()
    const shown = page.getByRole('dialog', { name: 'Your new key' })
    const secret = (await shown.locator('code').textContent()) ?? ''
    expect(secret).toMatch(/^ir-[\w-]{43}$/)
    secrets.push(secret)
    await shown.getByRole('button', { name: 'Done' }).click()
    expect(await page.content()).not.toContain(secret)
    app = new OpenAI({ baseURL: `${router.url}/v1`, apiKey: secret, maxRetries: 0 })
  })

  test('what a call spends is on the overview two seconds later', async () => {
    await go('Overview')
    await expect.poll(() => card('In flight').textContent()).toContain('0 streams')
    expect(await card('Spent today').textContent()).toContain('0 calls')
    await expectSeenSoon(ask, () => card('Spent today').textContent())
    expect(await card('Spent today').textContent()).toMatch(/\$0\.0*[1-9]/)
  })

  test('the next one is in the list of calls two seconds later, and is told part by part', async () => {
    await go('Calls')
    await expect.poll(() => rows().count()).toBeGreaterThan(1)
    await expectSeenSoon(ask, () => rows().count())
    const newest = rows().nth(1)
    expect(await newest.textContent()).toMatch(/complete.*demo\/echo.*the app/)
    await newest.getByRole('link').first().click()
    await page.getByRole('heading', { level: 1, name: 'Call' }).waitFor()
    const parts = page.getByRole('region', { name: 'Cost by part' }).getByRole('row')
    await expect.poll(() => parts.count()).toBeGreaterThan(1)
  })

  test('when the limit is lowered the next call is 402, and its reason is seen two seconds later', async () => {
    await go('Keys')
    await page.getByRole('link', { name: 'the app' }).click()
    const monthly = page.locator('.facts > div', { hasText: 'Monthly limit' })
    await monthly.getByRole('button', { name: 'Change' }).click()
    const dialog = page.getByRole('dialog', { name: 'Monthly limit' })
    await dialog.getByLabel('USD per month').fill('0.000000001')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    await go('Calls')
    await expect.poll(() => rows().count()).toBeGreaterThan(2)
    const refusals: { error: { message: string } }[] = []
    const beRefused = async () => {
      const refused = await ask().catch((thrown: unknown) => thrown)
      expect(refused).toMatchObject({ status: 402 })
      refusals.push(refused as (typeof refusals)[0])
    }
    await expectSeenSoon(beRefused, () => rows().count())
    expect(await rows().nth(1).textContent()).toContain('budget_exhausted')
    expect(await rows().nth(1).textContent()).toContain(refusals.at(-1)?.error.message)
    await page.getByLabel('Outcome').selectOption('refused')
    await expect.poll(() => rows().count()).toBe(1 + refusals.length)
    expect(page.url()).toContain('#/calls?outcome=refused')
    await page.reload()
    await expect.poll(() => rows().count()).toBe(1 + refusals.length)
  })

  test('no secret was in an address, the log or what the browser keeps, and nothing was violated', async () => {
    expect(tab.faults).toEqual([])
    expect(tab.asked.filter((url) => !url.startsWith(router.url))).toEqual([])
    expect(secrets).toHaveLength(2)
    const kept = await page.evaluate<string>('JSON.stringify([localStorage, document.cookie, location.href])')
    const files = readdirSync(join(folder.folder, 'data'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    const [first = '', ofApp = ''] = secrets
    // The first key is printed once, with the link.
    const log = router
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .join('\n')
    for (const place of [kept, log, ...tab.asked, ...files, await page.content()])
      for (const secret of [first, ofApp, 'private words']) expect(place).not.toContain(secret)
  })

  test('the first page is less than 150 kB, compressed and with all its data, and there is something to use in 300 ms', async () => {
    const context = await openContext(browser)
    const { page } = await openTab(context)
    onTestFinished(() => context.close())
    const session = await context.newCDPSession(page)
    await session.send('Network.enable')
    let bytes = 0
    session.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength
    })
    await page.goto(`${router.url}/console/#key=${secrets[0]}`)
    await page.getByRole('group', { name: 'Speed' }).waitFor()
    expect(bytes).toBeGreaterThan(10_000)
    expect(bytes).toBeLessThan(150_000)
    await expectWithin(2 * limit(300), async () => {
      await page.reload()
      return await page.evaluate<number>(
        `new Promise((resolve) => {
          const look = () => document.querySelector('nav a') ? resolve(performance.now()) : requestAnimationFrame(look)
          look()
        })`,
      )
    })
  })
})
