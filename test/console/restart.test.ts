import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { noBrowser, openBrowser, openContext, openTab, type Tab } from '../helpers/browser.ts'
import { type RouterProcess, routerProcess } from '../helpers/process.ts'
import { beginStream, loopbackProvider } from '../helpers/provider.ts'
import { routerFolder, simulatorOnly, testKey, usualThreads } from '../helpers/router.ts'
import { slow } from '../helpers/slow.ts'
import { expectAccessible, go, routePaths } from './world.ts'

if (noBrowser) console.warn(noBrowser)

const run = promisify(execFile)
const program = join(import.meta.dirname, '../../src/start.js')
const notice = /The router has not answered since/

/** A provider that begins to answer, and does not end. */
const endless = (url: string) => `slug: endless
name: Endless
base_url: ${url}/v1
auth: { scheme: none }
dialect: openai-chat
models:
  m1: { api: chat, context_window: 1000, max_output_tokens: 100, pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }] }
`

/** A router on a port of its own, so that it is found again where it was. */
async function restartable() {
  const provider = await loopbackProvider((_, response) => {
    beginStream(response)
    const chunk = { id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: 'It begins' } }] }
    response.write(`data: ${JSON.stringify(chunk)}\n\n`)
  })
  onTestFinished(() => provider.close())
  const { configPath, folder } = routerFolder({
    files: { ...simulatorOnly, 'providers/endless.yaml': endless(provider.url) },
    settings: { server: { host: '127.0.0.1', port: await lowPort(), threads: usualThreads } },
  })
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return { configPath, start: () => routerProcess(configPath) }
}

/** A port that no connection gets in the meantime: below those that systems give out. */
async function lowPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await Promise.race([
      once(server, 'listening').then(() => true),
      once(server, 'error').then(() => false),
    ])
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

/** The pages: those of the navigation, and those of one call, key and provider. */
async function pagesOf(router: RouterProcess): Promise<string[]> {
  const answer = await router.call('/v1/chat/completions', {
    model: 'demo/echo',
    messages: [{ role: 'user', content: 'Hello' }],
  })
  const { id } = (await answer.json()) as { id: string }
  const list = await (await router.call('/v1/manage/calls')).json()
  const { keys } = (await (await router.call('/v1/manage/apikey')).json()) as { keys: { id: string }[] }
  const { calls } = list as { calls: { id: string }[] }
  expect([id, calls.length, keys.length]).toEqual([expect.any(String), 1, 1])
  return [...routePaths, `calls/${calls[0]?.id}`, `keys/${keys[0]?.id}`, 'providers/demo']
}

async function openAll(url: string, pages: readonly string[]): Promise<Map<string, Tab>> {
  const browser = await openBrowser()
  onTestFinished(() => browser.close())
  const context = await openContext(browser)
  const tabs = new Map<string, Tab>()
  for (const name of pages) {
    const tab = await openTab(context)
    await tab.page.goto(`${url}/console/#key=${testKey}`)
    await tab.page.getByRole('heading', { level: 1 }).waitFor()
    await go(tab, name)
    tabs.set(name, tab)
  }
  return tabs
}

const raw = /Failed to fetch|NetworkError|network error|TypeError|undefined|\bNaN\b|ERR_/

test.skipIf(noBrowser).for(['SIGTERM', 'SIGKILL'] as const)(
  'pages that are open when the process ends by %s say so, show nothing as live, and are fresh when it is back',
  slow,
  async (signal) => {
    const { configPath, start } = await restartable()
    const router = await start()
    const tabs = await openAll(router.url, await pagesOf(router))
    const at = (name: string) => (tabs.get(name) as Tab).page
    // An answer that is still coming, and a form that is half filled in.
    await at('playground').getByLabel('Model', { exact: true }).fill('endless/m1')
    await at('playground').getByLabel('Message').fill('Hello')
    await at('playground').getByRole('button', { name: 'Send' }).click()
    await at('playground').getByText('It begins').waitFor()
    await at('groups').getByRole('button', { name: 'Create group' }).click()
    await at('groups').getByLabel('Name').fill('Half')
    await at('overview').getByText('1 stream').waitFor()

    if (signal === 'SIGTERM') {
      // The answer would be waited for.
      await at('playground').getByRole('button', { name: 'Stop' }).click()
    }
    await router.end(signal)
    for (const [name, tab] of tabs) {
      await tab.page.getByText(notice).waitFor()
      await expect.poll(() => tab.page.locator('main.out-of-date').count(), { message: name }).toBe(1)
      await expectAccessible(tab, ['color-contrast', 'aria-allowed-role'])
      expect(await tab.page.locator('main').innerText(), name).not.toMatch(raw)
    }
    await at('overview').getByText('not connected').waitFor()
    await at('health').getByText('Not known as long as the router does not answer.').waitFor()
    await at('groups').getByRole('dialog').getByRole('button', { name: 'Create group' }).click()
    await at('groups').getByRole('dialog').getByText('The router did not answer.').waitFor()
    if (signal === 'SIGKILL') await at('playground').getByText('The connection to the router was lost').waitFor()

    await run(process.execPath, [program, 'key', 'create', 'made meanwhile', '--config', configPath])
    const again = await start()
    expect(again.url).toBe(router.url)
    for (const [name, { page }] of tabs) {
      await expect.poll(() => page.getByText(notice).count(), { message: name }).toBe(0)
      await expect.poll(() => page.locator('.spinner, main.out-of-date').count(), { message: name }).toBe(0)
      if (name !== 'playground' && name !== 'groups') expect(await page.locator('.failure').count(), name).toBe(0)
    }
    await at('overview').getByText('0 streams').waitFor()
    await at('keys').getByRole('link', { name: 'made meanwhile' }).waitFor()
    await at('changes').getByText('made meanwhile').first().waitFor()
    await at('groups').getByRole('dialog').getByRole('button', { name: 'Create group' }).click()
    await at('groups').getByRole('row').filter({ hasText: 'Half' }).waitFor()
    if (signal === 'SIGKILL') await at('playground').getByRole('button', { name: 'Send again' }).click()
    await (await again.call('/v1/embeddings', { model: 'demo/vectors', input: 'Hello again' })).json()
    await at('calls').getByRole('row').filter({ hasText: 'demo/vectors' }).waitFor()
    for (const [name, { faults }] of tabs) expect(faults, name).toEqual([])
  },
)
