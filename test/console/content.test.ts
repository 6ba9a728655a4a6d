import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import * as key from '../../src/cli/key.ts'
import { printed } from '../cli/administration.ts'
import { noBrowser } from '../helpers/browser.ts'
import { testKey } from '../helpers/router.ts'
import { expectAccessible, expectFaultless, expectNoOverflow, go, hostile, openWorld, type World } from './world.ts'

describe.skipIf(noBrowser)('the content of a call', () => {
  let world: World
  let reader = ''
  const folder = mkdtempSync(join(tmpdir(), 'payloads-'))
  const stored = () =>
    readdirSync(folder)
      .map((name) => readFileSync(join(folder, name), 'utf8'))
      .join('')
  const tools = [
    { type: 'function', function: { name: 'weather', description: 'The weather', parameters: { type: 'object' } } },
  ]

  beforeAll(async () => {
    world = await openWorld(
      {},
      {
        folders: { plugins: join(import.meta.dirname, '../../plugins') },
        plugins: [{ name: 'log-payloads', options: { folder } }],
      },
    )
    const url = `sqlite:${world.router.folder}/data/router.sqlite`
    const args = ['create', 'reader', '--manage', 'write', '--operate', 'write', '--content', 'read', '--json']
    const { stdout } = await printed((out) => key.run(args, out, () => url))
    reader = JSON.parse(stdout).api_key
  })
  afterAll(async () => {
    await world?.close()
    rmSync(folder, { recursive: true })
  })

  /** Makes a call and returns its id when all of it is written. */
  async function call(path: string, body: object): Promise<string> {
    const response = await world.router.call(path, body)
    await response.arrayBuffer()
    const id = response.headers.get('x-request-id') ?? ''
    await expect.poll(() => stored()).toContain(`{"kind":"end","id":"${id}"`)
    return id
  }

  test('is displayed when it is asked for, and opened in the playground, by a key that may read it', async () => {
    const messages = [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: hostile },
      {
        role: 'assistant',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'sunny' },
      { role: 'user', content: 'My key is sk-proj-abcdefghijklmnop1234. And now?' },
    ]
    const id = await call('/v1/chat/completions', { model: 'demo/echo', messages, tools, temperature: 0.3, top_p: 0.5 })
    const tab = await world.open(`calls/${id}`, { key: reader })
    const { page } = tab
    await page.getByRole('button', { name: 'Show content' }).click()
    const content = page.getByRole('region', { name: 'Stored content' })
    await content.getByText('<img src=x').first().waitFor()
    await content.getByText('My key is [secret]. And now?').first().waitFor()
    await content.getByText('calls weather').waitFor()
    await content.getByRole('article', { name: 'Tool' }).getByText('sunny').waitFor()
    expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('Stored content')
    expect(await content.getByRole('article', { name: 'Answer' }).textContent()).not.toBe('')
    await expectAccessible(tab)
    await page.setViewportSize({ width: 360, height: 800 })
    await expectNoOverflow(tab)
    await page.getByRole('link', { name: 'Replay in the playground' }).click()
    await page.getByText('Nothing is sent until you send it.').waitFor()
    expect(await page.getByText('It is sent without').textContent()).toContain('top_p')
    expect(await page.getByRole('combobox', { name: 'Model', exact: true }).inputValue()).toBe('demo/echo')
    expect(await page.getByLabel('System prompt').inputValue()).toBe('Be kind.')
    expect(await page.getByLabel('Streamed').isChecked()).toBe(false)
    expect(await page.getByLabel('Temperature').inputValue()).toBe('0.3')
    expect(await page.getByLabel('Tools').inputValue()).toContain('"weather"')
    await page.getByLabel('Tools').fill('')
    await page.getByRole('button', { name: 'Send the request' }).click()
    await page.getByRole('article', { name: 'Model' }).last().getByText(/took /).waitFor()
    expectFaultless(tab, world)
    await tab.page.close()
    const { entries } = (await world.api('/v1/manage/audit?limit=2')) as unknown as { entries: object[] }
    expect(entries).toMatchObject([
      { action: 'content.read', subject: id },
      { action: 'content.read', subject: id },
    ])
  })

  test('is opened in the API that the call was made by', async () => {
    const body = { model: 'demo/echo', max_tokens: 20, stream: true, messages: [{ role: 'user', content: 'Hello' }] }
    const id = await call('/v1/messages', body)
    const tab = await world.open(`playground?replay=${id}`, { key: reader })
    const { page } = tab
    await page.getByText('Nothing is sent until you send it.').waitFor()
    expect(await page.getByLabel('API', { exact: true }).inputValue()).toBe('messages')
    expect(await page.getByLabel('Max tokens').inputValue()).toBe('20')
    expect(await page.getByLabel('Streamed').isChecked()).toBe(true)
    await page.getByLabel('Second model').fill('demo/thinker')
    await page.getByRole('button', { name: 'Send the request' }).click()
    await expect
      .poll(() =>
        page
          .getByRole('article', { name: /^Model, demo/ })
          .getByText(/took /)
          .count(),
      )
      .toBe(2)
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test('is linked from the audit log, which says who has read it', async () => {
    const id = await call('/v1/chat/completions', { model: 'demo/echo', messages: [{ role: 'user', content: 'Hi' }] })
    await fetch(`${world.router.url}/v1/manage/calls/${id}/content`, { headers: { authorization: `Bearer ${reader}` } })
    const tab = await world.open('changes', { key: reader })
    const row = tab.page.getByRole('row').filter({ hasText: 'content.read' }).first()
    await row.getByRole('link', { name: 'reader' }).waitFor()
    await row.getByRole('link', { name: `call …${id.slice(-12)}` }).click()
    await tab.page.getByRole('button', { name: 'Show content' }).waitFor()
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test('of an image is opened with its prompt', async () => {
    const id = await call('/v1/images/generations', { model: 'demo/painter', prompt: 'A quiet lake', size: '64x64' })
    const tab = await world.open(`playground?replay=${id}`, { key: reader })
    await expect.poll(() => tab.page.getByLabel('Prompt', { exact: true }).inputValue()).toBe('A quiet lake')
    expect(await tab.page.getByLabel('Size').inputValue()).toBe('64x64')
    await tab.page.getByRole('button', { name: 'Send' }).click()
    await tab.page.getByRole('article', { name: 'Result' }).getByRole('img').waitFor()
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test('is not displayed to a key without the permission, nor opened by it', async () => {
    const id = await call('/v1/chat/completions', {
      model: 'demo/echo',
      messages: [{ role: 'user', content: 'Not for you' }],
    })
    const tab = await world.open(`calls/${id}`, { key: testKey })
    const button = tab.page.getByRole('button', { name: 'Show content' })
    expect(await button.getAttribute('title')).toBe('This key has content: none. A key with content: read is needed.')
    await button.click({ force: true })
    await go(tab, `playground?replay=${id}`)
    await tab.page.getByRole('alert').filter({ hasText: 'needs content: read' }).waitFor()
    expect(await tab.page.content()).not.toContain('Not for you')
    await tab.page.close()
  })

  test('of a call that nothing is stored of is said to be missing', async () => {
    const id = await call('/v1/chat/completions', { model: 'demo/echo', messages: [{ role: 'user', content: 'Gone' }] })
    for (const name of readdirSync(folder)) rmSync(join(folder, name))
    const tab = await world.open(`calls/${id}`, { key: reader })
    await tab.page.getByRole('button', { name: 'Show content' }).click()
    await tab.page.getByText('Nothing is stored of this call.').waitFor()
    await tab.page.close()
  })
})
