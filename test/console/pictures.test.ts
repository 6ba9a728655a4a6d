import { randomUUIDv7 } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import { openLedger } from '../../src/money/ledger.ts'
import { openStore } from '../../src/store/open.ts'
import { openBrowser, openContext, openTab } from '../helpers/browser.ts'
import { type RouterProcess, routerProcess } from '../helpers/process.ts'
import { answerJson, loopbackProvider } from '../helpers/provider.ts'
import { routerFolder, testKey } from '../helpers/router.ts'
import { plainRecord } from '../store/plain-record.ts'
import { go } from './world.ts'

const folder = join(import.meta.dirname, '../../docs/console')
const hourMs = 3_600_000

/** Models that are asked, how often of a hundred times, and their prices in nano-USD for a token. */
const served = [
  { provider: 'openai', model: 'gpt-5.4-mini', share: 46, input: 750, output: 4_500 },
  { provider: 'anthropic', model: 'claude-sonnet-5-5', share: 28, input: 3_000, output: 15_000 },
  { provider: 'google', model: 'gemini-3.8-flash', share: 18, input: 300, output: 2_500 },
  { provider: 'mistral', model: 'mistral-small-latest', share: 8, input: 100, output: 300 },
] as const

/** Random numbers from 0 to 1 that are the same each time. */
function numbers(seed = 7): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** The time for which a provider has failed when the pictures are taken, and what it says. */
const outageMs = 40 * 60_000
const overloaded = 'Service unavailable: all capacity of this region is in use. Please retry later.'

type Owner = Pick<CallRecord, 'organization' | 'key' | 'group'>

function callAt(at: number, owner: Owner, next: () => number): CallRecord {
  const draw = next() * 100
  const sums = served.map((_, index) => served.slice(0, index + 1).reduce((sum, { share }) => sum + share, 0))
  const found = served[sums.findIndex((sum) => draw < sum)] ?? served[0]
  const usage = { input: Math.round(400 + next() * 2_600), output: Math.round(60 + next() * 700) }
  const parts = { input: usage.input * found.input, output: usage.output * found.output }
  const fate = next()
  const isOutage = found.provider === 'mistral' && at > Date.now() - outageMs
  const firstEventMs = Math.round(180 + next() * 900)
  const call = plainRecord({
    ...owner,
    id: randomUUIDv7(),
    at,
    ...{ requested: fate > 0.8 ? 'policy/fast' : `${found.provider}/${found.model}` },
    ...{ provider: found.provider, model: found.model, stream: true, firstEventMs },
    durationMs: Math.round(firstEventMs + usage.output * (6 + next() * 12)),
    metadata: { feature: fate > 0.5 ? 'support' : 'search' },
  })
  const free = { nanoUsd: 0, parts: {}, priceVersion: '' }
  if (isOutage) {
    const why = { error: 'provider_overloaded', failure: 'failed', providerMessage: overloaded } as const
    const { firstEventMs: _, ...failed } = call
    return {
      ...failed,
      durationMs: 40 + Math.round(next() * 300),
      outcome: 'failed',
      status: 503,
      ...why,
      usage: {},
      cost: free,
    }
  }
  if (fate < 0.02) {
    const { firstEventMs: _, ...failed } = call
    return {
      ...failed,
      durationMs: 30 + Math.round(next() * 100),
      outcome: 'failed',
      status: 429,
      error: 'rate_limited',
      failure: 'rate_limited',
      usage: {},
      cost: free,
    }
  }
  return { ...call, usage, cost: { nanoUsd: parts.input + parts.output, parts, priceVersion: '5d1c2a90b7e4' } }
}

/** Two weeks of calls, more by day than by night; the last one had to be asked for twice. */
function history(owners: readonly Owner[], now: number): CallRecord[] {
  const next = numbers()
  const calls: CallRecord[] = []
  for (let hour = 14 * 24; hour >= 0; hour--) {
    const begin = Math.floor(now / hourMs) * hourMs - hour * hourMs
    const byDay = 1 + Math.sin(((new Date(begin).getUTCHours() - 8) / 24) * 2 * Math.PI)
    const most = Math.round(3 + 9 * byDay * (0.6 + next()))
    for (let count = 0; count < most; count++) {
      const at = begin + Math.floor(next() * hourMs)
      const owner = owners[Math.floor(next() ** 2 * owners.length)] as Owner
      if (at < now - 60_000) calls.push(callAt(at, owner, next))
    }
  }
  // The calls of the model that fails, since when it fails.
  for (let at = now - outageMs + 60_000; at < now - 60_000; at += 360_000)
    calls.push(callAt(at, owners[0] as Owner, () => 0.97))
  const last = callAt(now - 30_000, owners[0] as Owner, () => 0.4)
  const failed = {
    usage: {},
    cost: { nanoUsd: 0, parts: {}, priceVersion: '' },
    outcome: 'failed',
    status: 503,
  } as const
  const { firstEventMs = 0, ...plain } = last
  const first = {
    ...plain,
    ...failed,
    id: randomUUIDv7(),
    attemptOf: last.id,
    attempts: 1,
    provider: 'google',
    model: 'gemini-3.8-flash',
  }
  const times = { startedMs: 0, durationMs: 640, error: 'provider_overloaded', failure: 'overloaded' } as const
  calls.push(
    { ...first, ...times },
    {
      ...last,
      requested: 'policy/fast',
      attempts: 2,
      startedMs: 655,
      firstEventMs: 655 + firstEventMs,
      reservedNano: 31_000_000,
    },
  )
  return calls
}

/** A router that has been used for two weeks. */
async function usedRouter(): Promise<{ router: RouterProcess; call: string; key: string }> {
  const failing = await loopbackProvider((_, response) =>
    answerJson(response, { error: { message: overloaded, code: 'capacity_exceeded' } }, 503),
  )
  onTestFinished(() => failing.close())
  const files = routerFolder({
    providers: { mistral: { base_url: `${failing.url}/v1` } },
    settings: {
      health: { consecutive_failures: 3, open_for: '60s', max_open: '60s' },
      plugins: [{ name: 'guard-prompt' }, { name: 'mask-pii', options: { kinds: ['email', 'card'] }, enabled: false }],
    },
  })
  onTestFinished(() => rmSync(files.folder, { recursive: true, force: true }))
  const env = Object.fromEntries(
    ['OPENAI', 'ANTHROPIC', 'GEMINI', 'MISTRAL'].map((name) => [`${name}_API_KEY`, 'a secret of nobody']),
  )
  const router = await routerProcess(files.configPath, { env })
  const post = async (path: string, body: object) => {
    const response = await router.call(`/v1/manage${path}`, body)
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`)
    return (await response.json()) as { [name: string]: string }
  }
  const { group_id: group } = await post('/group', { name: 'Product', monthly_limit: 500 })
  const keys: string[] = []
  for (const [name, monthly_limit] of [
    ['web', 200],
    ['support bot', 80],
    ['search', 50],
    ['nightly reports', 20],
  ] as const) {
    const labels = { team: name === 'nightly reports' ? 'data' : 'product' }
    keys.push(
      String(
        (await post('/apikey', { name, monthly_limit, labels, ...(name !== 'nightly reports' && { group_id: group }) }))
          .api_key_id,
      ),
    )
  }
  await post('/org/credit', { amount: 250 })
  await post('/policy', {
    id: 'fast',
    description: 'What answers customers',
    sort: 'weighted',
    targets: [
      { target: 'openai/gpt-5.4-mini', weight: 3 },
      { target: 'google/gemini-3.8-flash', weight: 1 },
    ],
  })
  await post('/alias', { name: 'best', target: 'anthropic/claude-sonnet-5-5' })
  await router.end('SIGTERM')
  const store = openStore(`sqlite:${join(files.folder, 'data/router.sqlite')}`, { asRouter: true })
  const organization = store.organizations.list()[0]?.id ?? ''
  const ledger = openLedger(store.ledger.openWriter(), { onError: (thrown) => console.error(thrown) })
  const calls = history(
    keys.map((key, index) => ({ organization, key, ...(index < 3 && { group }) })),
    Date.now(),
  )
  await Promise.all(calls.map((call) => ledger.settle(call)))
  await ledger.close()
  store.close()
  const started = await routerProcess(files.configPath, { env })
  for (const content of ['Hello', 'Hello again', 'Are you there?']) {
    const messages = [{ role: 'user', content }]
    await (await started.call('/v1/chat/completions', { model: 'mistral/mistral-small-latest', messages })).text()
  }
  return { router: started, call: calls.at(-1)?.id ?? '', key: keys[0] ?? '' }
}

/** Puts the usual folder and port in place of those of the test, which are of no interest. */
const usualPlaces = `
  document.querySelector('.facts bdi').textContent = '/srv/inference-router/config.yaml'
  const row = [...document.querySelectorAll('tr')].find(({ textContent }) => textContent.startsWith('server.port'))
  row.querySelector('td:nth-child(2) bdi').textContent = '8787'`

test.skipIf(!process.env.UPDATE_PICTURES)(
  'pictures for docs/console.md (skipped without UPDATE_PICTURES)',
  async () => {
    const [{ router, call, key }, browser] = await Promise.all([usedRouter(), openBrowser()])
    onTestFinished(() => browser.close())
    const target = process.env.PICTURES_FOLDER ?? folder
    mkdirSync(target, { recursive: true })
    const pages = {
      ...{
        overview: 'overview?range=week',
        health: 'health',
        plugins: 'plugins',
        settings: 'settings',
        calls: 'calls',
        call: `calls/${call}`,
        keys: 'keys',
        key: `keys/${key}`,
      },
      ...{ groups: 'groups', models: 'models', providers: 'providers', provider: 'providers/mistral', names: 'names' },
      ...{ organization: 'organization', changes: 'changes', playground: 'playground?model=demo/thinker' },
    }
    // Some of them by name, or in another width and elsewhere, for those who change a page: PICTURES=health,call PICTURES_WIDTH=360.
    const wanted = process.env.PICTURES?.split(',') ?? Object.keys(pages)
    const width = Number(process.env.PICTURES_WIDTH ?? 1280)
    const isNarrow = width < 600
    for (const colorScheme of ['light', 'dark'] as const) {
      const tab = await openTab(await openContext(browser, { colorScheme, viewport: { width, height: 800 } }))
      await tab.page.goto(`${router.url}/console/#key=${testKey}`)
      await tab.page.getByRole('heading', { level: 1 }).waitFor()
      for (const [name, page] of Object.entries(pages)) {
        if (!wanted.includes(name) || (colorScheme === 'dark' && !['overview', 'calls'].includes(name))) continue
        await go(tab, page)
        if (name === 'playground') {
          await tab.page.getByLabel('Second model').fill('demo/echo')
          await tab.page.getByLabel('Message').fill('What does a gateway do?')
          await tab.page.getByRole('button', { name: 'Send' }).click()
          await tab.page.getByRole('article').nth(3).getByText('$0.').first().waitFor()
        }
        if (name === 'settings') await tab.page.evaluate(usualPlaces)
        if (['overview', 'key', 'organization'].includes(name)) await tab.page.locator('.u-wrap').first().waitFor()
        await expect.poll(() => tab.page.locator('[aria-busy=true]').count()).toBe(0)
        await tab.page.mouse.move(1_270, 10)
        const file = join(target, `${name}${colorScheme === 'dark' ? '-dark' : ''}.png`)
        await tab.page.screenshot({ path: file, animations: 'disabled', fullPage: isNarrow })
      }
    }
  },
)
