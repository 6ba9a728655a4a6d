import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { timeFactor } from './time.ts'

/** Debian's package, or what CHROMIUM names. */
const path = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/google-chrome'].find((one) => one && existsSync(one))

/** Why there is no browser to test with; undefined where there is one. Continuous integration must have one. */
export const noBrowser =
  path === undefined && !process.env.CI ? 'skipped: no Chromium (install it, or set CHROMIUM)' : undefined

/** Few processes, each of which takes half a second to start: pages are drawn in that of the browser, and tabs share theirs. */
const args = ['--no-sandbox', '--disable-gpu', '--in-process-gpu', '--process-per-site', '--renderer-process-limit=1']

/** Starts Chromium, without a window. */
export async function openBrowser(): Promise<Browser> {
  if (path === undefined) throw new Error('There is no Chromium: install it, or set CHROMIUM to its path.')
  return await chromium.launch({ executablePath: path, args })
}

/** What tabs share: cookies, what is kept for long, a window's size at first. */
export async function openContext(
  browser: Browser,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-US', ...options })
  context.setDefaultTimeout(10_000 * timeFactor)
  return context
}

/** A tab, and what was wrong in it: violations of the policy for contents, errors, requests to elsewhere. */
export type Tab = { page: Page; faults: string[]; asked: string[] }

export async function openTab(context: BrowserContext): Promise<Tab> {
  const page = await context.newPage()
  const faults: string[] = []
  const asked: string[] = []
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`))
  page.on('console', (message) => {
    // What the API refuses is shown on the page.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) faults.push(message.text())
  })
  page.on('request', (request) => asked.push(request.url()))
  return { page, faults, asked }
}
