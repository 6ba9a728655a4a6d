import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import axe, { type AxeResults } from 'axe-core'
import { expect } from 'vitest'
import { openBrowser, openContext, openTab, type Tab } from '../helpers/browser.ts'
import { simulatorOnly, type TestRouter, testKey, testRouter } from '../helpers/router.ts'

/** Text as bad as people and providers can make it: markup, quotes, directions, and 10,000 letters without a space. */
export const hostile = `<img src=x onerror="document.title='hit'"> "quoted" 'and' \u202eright-to-left\u202c \u05d0\u05d1 {{7*7}}`
export const long = 'W'.repeat(10_000)

/** The pages of the console, in the order of the navigation: the last part of each address. */
export const routePaths: readonly string[] = [
  ...readFileSync(join(import.meta.dirname, '../../console/routes.ts'), 'utf8').matchAll(/\bpath: '([\w-]+)'/g),
].map(([, path = '']) => path)

/** A router with the simulated provider, a browser, and a way to tabs that are signed in. */
export type World = {
  router: TestRouter
  /** Tabs share a browser's process, which takes a second to start, unless they are those of another time zone. */
  open(page: string, options?: { key?: string; timezoneId?: string }): Promise<Tab>
  /** A request with the first key: the JSON of its answer. */
  api(path: string, method?: string, body?: unknown): Promise<Record<string, never>>
  close(): Promise<void>
}

export async function openWorld(files: Record<string, string> = {}, settings: object = {}): Promise<World> {
  const [router, browser] = await Promise.all([
    testRouter({ files: { ...simulatorOnly, ...files }, settings }),
    openBrowser(),
  ])
  const shared = await openContext(browser)
  return {
    router,
    async open(page, { key = testKey, timezoneId } = {}) {
      const tab = await openTab(timezoneId === undefined ? shared : await openContext(browser, { timezoneId }))
      await tab.page.goto(`${router.url}/console/#key=${key}`)
      await tab.page.getByRole('heading', { level: 1 }).waitFor()
      await go(tab, page)
      return tab
    },
    async api(path, method = 'GET', body = undefined) {
      const response = await fetch(`${router.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
      return text === '' ? {} : JSON.parse(text)
    },
    async close() {
      await browser.close()
      await router.end()
    },
  }
}

/** Opens another page in a tab, and waits for what is loaded with it. */
export async function go({ page }: Tab, to: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(`#/${to}`)}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await expect.poll(() => page.locator('.spinner').count()).toBe(0)
}

/** Nothing came from elsewhere, no policy was violated, nothing was thrown. */
export function expectFaultless({ faults, asked }: Tab, { router }: World): void {
  expect(faults).toEqual([])
  expect(asked.filter((url) => !url.startsWith(router.url) && !/^(data|blob):/.test(url))).toEqual([])
}

/** No serious problem, by all rules or by these, for those who do not see or do not use a mouse. */
export async function expectAccessible({ page }: Tab, rules?: readonly string[]): Promise<void> {
  // Pages of the console change within one document.
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(axe.source)
  const options = JSON.stringify(rules ? { runOnly: rules } : {})
  const { violations } = (await page.evaluate(`axe.run(${options})`)) as AxeResults
  const problems = violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`)
  expect(problems).toEqual([])
}

/** The page is no wider than the window. */
export async function expectNoOverflow({ page }: Tab): Promise<void> {
  const [needed, has] = await page.evaluate<[number, number]>('[document.documentElement.scrollWidth, innerWidth]')
  expect(needed, 'the width that the page needs').toBeLessThanOrEqual(has)
}
