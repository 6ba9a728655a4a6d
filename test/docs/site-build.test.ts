import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize, sep } from 'node:path'
import { gzipSync } from 'node:zlib'
import axe, { type AxeResults } from 'axe-core'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noBrowser, openBrowser, openContext, openTab, type Tab } from '../helpers/browser.ts'
import { slow } from '../helpers/slow.ts'

const root = join(import.meta.dirname, '../..')
const site = join(root, 'dist/docs')
const noGenerator = existsSync(join(root, 'dist/docs-build/node_modules/vitepress'))
  ? undefined
  : 'skipped: no VitePress (npm run docs:build installs it)'
const missing = noGenerator ?? noBrowser

/** Paths of all pages of the site. */
function htmlPages(): string[] {
  const names = readdirSync(site, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll(sep, '/'))
  return names.filter((name) => name.endsWith('.html') && !name.startsWith('files/')).sort()
}

/** Media types of the files of the site. */
const types: { [extension: string]: string } = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.png': 'image/png',
  '.md': 'text/markdown',
}

describe.skipIf(missing !== undefined)(`the built site${missing ? ` (${missing})` : ''}`, slow, () => {
  let server: Server
  let browser: Browser
  let url = ''
  let transferred = 0
  beforeAll(async () => {
    execFileSync(process.execPath, [join(root, 'tools/site/main.ts')], { cwd: root, stdio: 'pipe' })
    server = createServer(({ url: path = '/' }, response) => {
      const file = join(site, normalize(decodeURI(path.split('?')[0] ?? '/')).replace(/\/$/, '/index.html'))
      if (!existsSync(file)) return response.writeHead(404).end()
      const body = gzipSync(readFileSync(file))
      transferred += body.length
      response.writeHead(200, { 'content-type': types[extname(file)] ?? 'text/plain', 'content-encoding': 'gzip' })
      return response.end(body)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    browser = await openBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    server?.closeAllConnections()
    server?.close()
  })

  async function opened(path: string, colorScheme: 'light' | 'dark' = 'light'): Promise<Tab> {
    const tab = await openTab(await openContext(browser, { colorScheme }))
    await tab.page.goto(`${url}${path}`, { waitUntil: 'networkidle' })
    return tab
  }

  test.each([
    '/',
    '/add-a-provider.html',
    '/errors.html',
    '/api.html',
    '/plugins.html',
    '/reference/schemas.html',
    '/reference/calls.html',
  ])('%s loads at most 200 kB, from one host', async (path) => {
    transferred = 0
    const { asked, faults, page } = await opened(path)
    expect(transferred).toBeGreaterThan(20_000)
    expect(transferred).toBeLessThanOrEqual(200_000)
    expect(asked.filter((one) => !one.startsWith(url))).toEqual([])
    expect(faults).toEqual([])
    await page.context().close()
  })

  test.each(['light', 'dark'] as const)('no page has violations of accessibility rules: %s', async (scheme) => {
    const { page } = await opened('/', scheme)
    const found: string[] = []
    for (const path of htmlPages().filter((_, index) => scheme === 'light' || index % 10 === 0)) {
      await page.goto(`${url}/${path}`, { waitUntil: 'networkidle' })
      await page.evaluate(axe.source)
      const { violations } = (await page.evaluate('axe.run()')) as AxeResults
      found.push(...violations.map(({ id, nodes }) => `${path}: ${id}: ${nodes.map(({ html }) => html.slice(0, 200))}`))
    }
    expect(found).toEqual([])
    await page.context().close()
  })

  test('search finds a page without a network', async () => {
    const { page, asked, faults } = await opened('/')
    await page.getByRole('button', { name: 'Search' }).first().click()
    await page.locator('#localsearch-input').fill('takeover')
    const found = page.locator('.VPLocalSearchBox .results .result')
    await found.first().waitFor()
    expect(await found.count()).toBeGreaterThan(0)
    await found.first().click()
    await page.waitForURL((to) => to.pathname !== '/')
    expect(asked.filter((one) => !one.startsWith(url))).toEqual([])
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('every page is there as Markdown too', () => {
    const index = readFileSync(join(site, 'llms.txt'), 'utf8')
    const links = [...index.matchAll(/\]\(([^)]+)\)/g)].map(([, path = '']) => path)
    expect(links.length).toBeGreaterThan(25)
    expect(links.filter((path) => !existsSync(join(site, path)))).toEqual([])
    for (const path of links.filter((one) => one.endsWith('.md')))
      expect(existsSync(join(site, path.replace(/\.md$/, '.html')))).toBe(true)
  })
})
