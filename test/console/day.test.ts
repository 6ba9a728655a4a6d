import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noBrowser, type Tab } from '../helpers/browser.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { expectAccessible, expectFaultless, expectNoOverflow, openWorld, type World } from './world.ts'

if (noBrowser) console.warn(noBrowser)

const excuse = 'No capacity is left in this region. Try again in an hour.'

const manifest = (slug: string, url: string) => `slug: ${slug}
name: ${slug}
base_url: ${url}/${slug}
auth: { scheme: none }
dialect: openai-chat
models:
  small: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }] }
  large: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.00001, output_price: 0.00002 }] }
`

/** Refuses one model during some hours of the day, in UTC. */
const night = `import { definePlugin, Refusal } from 'inference-router/plugin'
type Options = { model: string; hours: number[] }
export default definePlugin<Options>({
  options: { properties: { model: { type: 'string' }, hours: { type: 'array', items: { type: 'integer' } } } },
  guards: true,
  onError: 'closed',
  setup: ({ model, hours }) => ({
    chat(request) {
      const isNight = hours.includes(new Date().getUTCHours())
      if (isNight && request.chat.model === model) throw new Refusal(403, model + ' is not available at night.')
      return undefined
    },
  }),
})
`

/** One day of an operator, who has a keyboard alone. */
describe.skipIf(noBrowser)('the day of an operator', () => {
  let provider: LoopbackProvider
  let world: World
  let isNorthDown = false
  const secrets = { web: '', batch: '' }

  beforeAll(async () => {
    provider = await loopbackProvider(({ path, body }, response) => {
      if (path.startsWith('/north') && isNorthDown)
        return answerJson(response, { error: { message: excuse, code: 'no_capacity' } }, 503)
      const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }]
      const { model } = body as { model: string }
      const usage = { prompt_tokens: 900, completion_tokens: 100, total_tokens: 1_000 }
      answerJson(response, { id: 'c', object: 'chat.completion', created: 1, model, choices, usage })
    })
    const now = new Date().getUTCHours()
    const hours = [now, (now + 1) % 24]
    world = await openWorld(
      {
        'providers/north.yaml': manifest('north', provider.url),
        'providers/south.yaml': manifest('south', provider.url),
        'plugins/night.ts': night,
      },
      {
        health: { consecutive_failures: 3, min_calls: 1_000_000, open_for: '1s', max_open: '1s', ramp_up: '1s' },
        plugins: [{ name: 'night', enabled: false, options: { model: 'south/large', hours } }],
      },
    )
    for (const name of ['web', 'batch'] as const)
      secrets[name] = String((await world.api('/v1/manage/apikey', 'POST', { name })).api_key)
    await world.api('/v1/manage/policy', 'POST', { id: 'answers', targets: ['north/small'] })
  })
  afterAll(async () => {
    await world?.close()
    await provider?.close()
  })

  /** Makes calls as clients do all day. */
  const ask = async (
    model: string,
    { key = 'web', times = 1 }: { key?: keyof typeof secrets; times?: number } = {},
  ) => {
    const messages = [{ role: 'user', content: 'Hello' }]
    const statuses: number[] = []
    for (let time = 0; time < times; time++) {
      const headers = { authorization: `Bearer ${secrets[key]}` }
      const response = await world.router.call('/v1/chat/completions', { model, messages, max_tokens: 9 }, headers)
      await response.text()
      statuses.push(response.status)
    }
    return statuses
  }

  test.each([1_440, 360])('passes without a mouse, a reload or a raw error: %i px', async (width) => {
    isNorthDown = false
    await world.api('/v1/manage/policy/answers', 'PUT', { targets: ['north/small'] })
    await world.api('/v1/manage/org/plugins', 'PUT', { plugins: { night: null } })
    const tab = await world.open('overview')
    const { page } = tab
    await page.setViewportSize({ width, height: 900 })
    await page.evaluate('window.isSameDay = true')
    const keys = keyboardOf(page)

    // In the morning all is well.
    expect(await ask('answers', { times: 3 })).toEqual([200, 200, 200])
    await keys.open('Health')
    await page
      .getByText(/^(All \d+ targets that were called are|The only target that was called is) healthy\.$/)
      .waitFor()
    await expectClean(tab)

    // At nine a provider starts to fail. The page says which, since when, and what it says.
    isNorthDown = true
    expect(await ask('answers', { times: 4 })).not.toContain(200)
    const problem = page.getByRole('article').filter({ hasText: 'north/small' })
    await problem.getByText('failing', { exact: true }).waitFor()
    await problem.getByText(/^Failing since/).waitFor()
    expect(await problem.locator('time').first().getAttribute('datetime')).toMatch(/Z$/)
    await problem.getByText(excuse).waitFor()
    expect(await problem.textContent()).toContain('provider_overloaded')
    await expectClean(tab)
    await keys.follow('Last failed call')
    await page.getByRole('heading', { level: 1, name: 'Call', exact: true }).waitFor()
    await page.getByRole('img', { name: /^Attempt 1, north\/small: .*provider_overloaded\.$/ }).waitFor()
    await expectClean(tab)

    // A policy is switched to another provider, and calls succeed again.
    await keys.open('Aliases & policies')
    await keys.press('Change', ['tr', 'answers'])
    const dialog = page.getByRole('dialog')
    await dialog.waitFor()
    await expectAccessible(tab)
    await keys.reach('Targets')
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type('south/small')
    await keys.press('Save')
    await dialog.waitFor({ state: 'detached' })
    expect(await ask('answers', { times: 2 })).toEqual([200, 200])
    await keys.open('Health')
    const row = (name: string) =>
      page.getByRole('region', { name: 'Targets' }).getByRole('row').filter({ hasText: name })
    await row('south/small').getByText('healthy').waitFor()
    await row('north/small').getByText('failing').waitFor()

    // The provider recovers, and the page says so by itself.
    isNorthDown = false
    await expect.poll(() => ask('north/small')).toEqual([200])
    await expect.poll(() => ask('north/small', { times: 5 })).toEqual(Array(5).fill(200))
    await row('north/small').getByText('recovered').waitFor({ timeout: 60_000 })
    await page
      .getByText(/^(All \d+ targets that were called are|The only target that was called is) healthy\.$/)
      .waitFor()
    await expectClean(tab)

    // The key that spent most stands first, and leads to its calls.
    await ask('south/large', { key: 'batch', times: 3 })
    await keys.open('Overview')
    await keys.reach('By')
    await page.keyboard.type('Key')
    const first = page.getByRole('region', { name: 'Usage by group' }).getByRole('row').nth(1)
    await first.getByText('batch').waitFor()
    await expectClean(tab)
    await keys.follow('batch')
    await page.getByRole('heading', { level: 1, name: 'Calls' }).waitFor()
    await page.getByRole('row').filter({ hasText: 'south/large' }).first().waitFor()
    await expectClean(tab)

    // At night one model is refused by a plugin, and no other one.
    await keys.open('Plugins')
    await keys.press('Switch on night')
    await page.getByText('Switched on.').first().waitFor()
    await page.getByRole('button', { name: 'Switch off night' }).waitFor()
    expect(await ask('south/large', { key: 'batch' })).toEqual([403])
    expect(await ask('south/small', { key: 'batch' })).toEqual([200])
    await expectClean(tab)
    await keys.open('Calls')
    const refused = page
      .getByRole('row')
      .filter({ hasText: 'south/large' })
      .filter({ hasText: /forbidden|plugin_refused/ })
    await refused.first().waitFor()
    await expectClean(tab)

    expect(await page.evaluate('window.isSameDay')).toBe(true)
    expectFaultless(tab, world)
    await page.close()
  })
})

/** A page without a raw error, problems of accessibility, or anything beside the window. */
async function expectClean(tab: Tab): Promise<void> {
  const text = (await tab.page.locator('main').textContent()) ?? ''
  expect(text).not.toMatch(/Failed to fetch|TypeError|undefined|\[object Object\]|NaN|\{"error"/)
  await expectNoOverflow(tab)
  await expectAccessible(tab)
}

/** Uses a page with the keys of a keyboard alone. */
function keyboardOf(page: Page) {
  const focused = () =>
    page.evaluate<string>(`(() => {
      const one = document.activeElement
      if (!one) return ''
      const label = one.getAttribute('aria-label') ?? one.labels?.[0]?.textContent ?? one.textContent
      return (label ?? '').replace(/\\s+/g, ' ').trim()
    })()`)
  /** Tabs until something with this name has the focus; within an element with this selector and text, if one is given. */
  const reach = async (name: string, [selector, text = '']: [selector: string, text?: string] = ['body']) => {
    const inside = `document.activeElement.closest(${JSON.stringify(selector)})?.textContent.includes(${JSON.stringify(text)})`
    const seen: string[] = []
    for (let tabs = 0; tabs < 200; tabs++) {
      await page.keyboard.press('Tab')
      const found = await focused()
      if (found === name && (await page.evaluate(inside))) return
      seen.push(found.slice(0, 60))
    }
    throw new Error(`'${name}' cannot be reached with Tab: ${[...new Set(seen)].join(' | ')}`)
  }
  const press = async (name: string, within?: [selector: string, text?: string]) => {
    await reach(name, within)
    await page.keyboard.press('Enter')
  }
  return {
    reach,
    press,
    follow: press,
    /** Opens a page by the navigation, which is behind a button on narrow screens. */
    async open(title: string) {
      if (await page.getByRole('button', { name: 'Menu' }).isVisible()) await press('Menu')
      await press(title, ['nav'])
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
      await expect.poll(() => page.locator('.spinner').count()).toBe(0)
    },
  }
}
