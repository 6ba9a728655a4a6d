import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { noBrowser, openBrowser, openContext, openTab } from '../helpers/browser.ts'
import { testKey, testRouter } from '../helpers/router.ts'
import { expectAccessible, expectNoOverflow } from './world.ts'

if (noBrowser) console.warn(noBrowser)

describe.skipIf(noBrowser)('the first page before a real provider was called', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())

  const open = async (env: Record<string, string>, width: number) => {
    const router = await testRouter({ env })
    onTestFinished(() => router.end())
    const context = await openContext(browser, { viewport: { width, height: 900 } })
    onTestFinished(() => context.close())
    const tab = await openTab(context)
    await tab.page.goto(`${router.url}/console/#key=${testKey}`)
    const steps = tab.page.locator('section').filter({ hasText: 'Call your first real provider' })
    await steps.waitFor()
    return { router, tab, page: tab.page, steps }
  }

  test.each([1_280, 360])(
    'says which variable to set, and how to point a client at the router: %i px',
    async (width) => {
      const { router, tab, page, steps } = await open({}, width)
      await steps.getByText('OPENAI_API_KEY=…').waitFor()
      await steps.getByLabel('Provider').selectOption('anthropic')
      await steps.getByText('ANTHROPIC_API_KEY=…').waitFor()
      expect(await steps.textContent()).toContain(`${router.url}/v1`)
      await steps.getByText(/"model": "anthropic\//).waitFor()
      expect(await steps.getByText('done').count()).toBe(0)
      await expectNoOverflow(tab)
      await expectAccessible(tab)
      expect(tab.faults).toEqual([])
      if (process.env.PICTURES_FOLDER)
        await page.screenshot({ path: `${process.env.PICTURES_FOLDER}/first-${width}.png`, fullPage: true })
    },
  )

  test('ticks off what is done, and goes away with the first real call', async () => {
    const { router, page, steps } = await open({ OPENAI_API_KEY: 'a secret of nobody' }, 1_280)
    await expect.poll(() => steps.getByText('done').count()).toBe(2)
    await steps.getByText('OpenAI is configured.').waitFor()
    const { connect } = await import('../../src/store/sqlite/connection.ts')
    const { ledgerWriter } = await import('../../src/store/sqlite/ledger/ledger-writer.ts')
    const { plainRecord } = await import('../store/plain-record.ts')
    const db = connect(`${router.folder}/data/router.sqlite`)
    const key = db.prepare<[], { organization: string; id: string }>('SELECT organization, id FROM api_keys').get()
    ledgerWriter(db)([
      plainRecord({ organization: key?.organization ?? '', key: key?.id ?? '', at: Date.now(), provider: 'openai' }),
    ])
    db.close()
    await steps.waitFor({ state: 'detached' })
    expect(await page.getByRole('group', { name: 'Now' }).count()).toBe(1)
  })
})
