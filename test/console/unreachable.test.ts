import { afterAll, beforeAll, expect, test } from 'vitest'
import { noBrowser } from '../helpers/browser.ts'
import { slow } from '../helpers/slow.ts'
import { expectAccessible, go, openWorld, routePaths, type World } from './world.ts'

if (noBrowser) console.warn(noBrowser)

let world: World

beforeAll(async () => {
  if (!noBrowser) world = await openWorld()
})
afterAll(async () => {
  await world?.close()
})

test.skipIf(noBrowser)('every page says that the router is gone, and goes on when it is back', slow, async () => {
  const tab = await world.open('overview')
  const { page } = tab
  const notice = page.getByText('The router has not answered since')
  expect(routePaths.length).toBeGreaterThan(9)
  for (const name of routePaths) {
    await go(tab, name)
    await page.context().setOffline(true)
    await notice.first().waitFor()
    if (name === 'overview') await page.getByText('not connected').waitFor()
    await expectAccessible(tab, ['color-contrast', 'aria-allowed-role'])
    await page.context().setOffline(false)
    await expect.poll(() => notice.count()).toBe(0)
    expect(await page.locator('.failure').count()).toBe(0)
  }
  await page.close()
})

test.skipIf(noBrowser)('a page whose files do not arrive says so, and comes when they do', slow, async () => {
  const tab = await world.open('overview')
  const { page } = tab
  await page.context().setOffline(true)
  await page.evaluate("location.hash = '#/groups'")
  await page.getByText('This page could not be loaded.').waitFor()
  await page.context().setOffline(false)
  await page.getByRole('heading', { level: 1, name: 'Groups' }).waitFor()
  await page.close()
})

test.skipIf(noBrowser)(
  'a tab that is opened while the router is going keeps its key, and is signed in when it is back',
  async () => {
    const tab = await world.open('keys')
    const { page } = tab
    await page.route('**/v1/**', (route) => route.abort())
    await page.route('**/health', (route) => route.abort())
    await page.reload()
    await page.getByText('The router has not answered since').waitFor()
    expect(await page.getByLabel('API key').count()).toBe(0)
    await page.unrouteAll()
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
    await page.close()
  },
)

test.skipIf(noBrowser)('a proxy that finds no router is not an answer of the router', async () => {
  const tab = await world.open('keys')
  const { page } = tab
  const broken = { status: 502, contentType: 'text/html', body: '<html><h1>502 Bad Gateway</h1></html>' }
  await page.route('**/v1/**', (route) => route.fulfill(broken))
  await page.route('**/health', (route) => route.fulfill(broken))
  await page.getByText('The router has not answered since').waitFor()
  await go(tab, 'models')
  expect(await page.locator('main').innerText()).not.toContain('<html>')
  await page.unrouteAll()
  await page.getByRole('link', { name: 'demo/echo' }).waitFor()
  expect(await page.locator('.failure').count()).toBe(0)
  await page.close()
})
