import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { codeFor, keyVariable } from '../../console/playground/code.ts'
import { apis, bodyOf, kinds, noSettings, operationBody, type Settings } from '../../console/playground/request.ts'
import { noBrowser } from '../helpers/browser.ts'
import { testKey } from '../helpers/router.ts'
import { testEach } from '../helpers/slow.ts'
import { expectAccessible, expectFaultless, expectNoOverflow, go, hostile, openWorld, type World } from './world.ts'

const run = promisify(execFile)
const manifest = `slug: odd
name: ${JSON.stringify(hostile)}
base_url: http://127.0.0.1:9
auth: { scheme: bearer, secret: "\${ODD_KEY}" }
dialect: openai-chat
models:
  one: { api: chat, context_window: 1000, max_output_tokens: 100, pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }] }
`
const open = manifest.replace('slug: odd', 'slug: even').replace(/auth: .*/, 'auth: { scheme: none }')
const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

describe.skipIf(noBrowser)('models, providers and the playground', () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld({ 'providers/odd.yaml': manifest, 'providers/even.yaml': open })
  })
  afterAll(() => world?.close())

  test('models are found by text, kind, ability and price, and opened in the playground', async () => {
    const tab = await world.open('models')
    const { page } = tab
    const ids = () => page.getByRole('row').getByRole('link').allTextContents()
    await page.getByLabel('Search').fill('demo think')
    await expect.poll(ids).toEqual(['demo/thinker'])
    await page.getByLabel('Search').fill('')
    await page.getByLabel('Kind').selectOption('embedding')
    await expect.poll(ids).toEqual(['demo/vectors'])
    await page.getByLabel('Kind').selectOption('')
    await page.getByLabel('Supports').selectOption('supports_reasoning')
    await expect.poll(ids).toEqual(['demo/thinker'])
    await page.getByLabel('Max input price').fill('0.1')
    await page.getByText('No models match.').waitFor()
    await page.getByLabel('Max input price').fill('')
    await page.getByRole('link', { name: 'demo/thinker' }).click()
    await page.getByRole('region', { name: 'Prices per million tokens' }).getByText('$0.20').first().waitFor()
    await page.getByRole('link', { name: 'Try it in the playground' }).click()
    await expect.poll(() => page.getByLabel('Model', { exact: true }).inputValue()).toBe('demo/thinker')
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test('a provider says which variable is missing, what its file has wrong and where, and what it would be sent', async () => {
    const tab = await world.open('providers')
    const { page } = tab
    const row = page.getByRole('row').filter({ hasText: 'odd' })
    await row.getByText('ODD_KEY').waitFor()
    await page.getByRole('row').getByRole('link', { name: 'even' }).click()
    await page.getByLabel('Request').fill('{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5}')
    await page.getByLabel('Model', { exact: true }).fill('one')
    await page.getByRole('button', { name: 'Translate' }).click()
    await page.getByText(/^POST http:.*\/chat\/completions/).waitFor()
    world.router.put('providers/odd.yaml', manifest.replace('dialect: openai-chat', 'dialect: nothing-like-it'))
    await go(tab, 'providers')
    await page.getByRole('heading', { name: 'Files with errors' }).waitFor()
    await page
      .getByText(/providers\/odd\.yaml:5:\d+/)
      .first()
      .waitFor()
    await go(tab, 'overview')
    await page.getByRole('heading', { name: 'Files with errors' }).waitFor()
    const problem = page.getByRole('listitem').filter({ hasText: 'providers/odd.yaml' })
    await problem.getByText(/line 5, column \d+/).waitFor()
    await problem.getByText('The previous version stays in use.').waitFor()
    await go(tab, 'providers/odd')
    await expect.poll(() => page.locator('.marked').first().textContent()).toMatch(/^5dialect: nothing-like-it/)
    world.router.put('providers/odd.yaml', manifest)
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test.each(apis)(
    'a conversation by the %s API: streamed, with a picture and a tool, with its cost',
    async (_, label) => {
      const tab = await world.open('playground', {})
      const { page } = tab
      const send = async (text: string) => {
        await page.getByLabel('Message', { exact: true }).fill(text)
        await page.getByRole('button', { name: 'Send' }).click()
      }
      const answers = page.getByRole('article', { name: 'Model' })
      await page.getByLabel('Model', { exact: true }).fill('demo/echo')
      await page.getByLabel('API', { exact: true }).selectOption({ label })
      await page
        .getByLabel('Images')
        .setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: Buffer.from(picture, 'base64') })
      await send(hostile)
      await answers.getByText('<img src=x').waitFor()
      await answers.getByText(/\$0\.0+\d+ · \d+ tokens in · \d+ out · first token after .* · took /).waitFor()
      await page.getByLabel('Streamed').uncheck()
      await send('Again')
      await answers.nth(1).getByText('Again').waitFor()
      await page
        .getByLabel('Tools')
        .fill(
          '[{"name": "weather", "description": "The weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}]',
        )
      await page.getByLabel('Streamed').check()
      await send('call weather')
      await page.getByLabel('What weather returned').fill('{"sun": true}')
      await page.getByRole('button', { name: 'Send the results' }).click()
      await expect.poll(() => answers.count()).toBe(4)
      await page.getByRole('button', { name: 'New conversation' }).click()
      await page.getByLabel('Model', { exact: true }).fill('demo/nothing')
      await page.getByLabel('Tools').fill('')
      await send('Hi')
      await page.getByRole('alert').filter({ hasText: '404 model_not_found' }).waitFor()
      expect(await page.getByText(testKey).count()).toBe(0)
      expectFaultless(tab, world)
      await tab.page.close()
    },
  )

  test('two models answer side by side, each with its cost and its times', async () => {
    const tab = await world.open('playground')
    const { page } = tab
    const column = (model: string) => page.getByRole('region', { name: model, exact: true })
    await page.getByLabel('Model', { exact: true }).fill('demo/echo')
    await page.getByLabel('Second model').fill('demo/thinker')
    await page.getByLabel('Message', { exact: true }).fill('Which of you is faster?')
    await page.keyboard.press('Control+Enter')
    for (const model of ['demo/echo', 'demo/thinker']) {
      const answer = column(model).getByRole('article', { name: 'Model' })
      await answer.getByText('Which of you is faster?').waitFor()
      await answer.getByText(/\$0\.0+\d+ · \d+ tokens in · \d+ out · first token after .* · took /).waitFor()
    }
    const { calls } = (await world.api('/v1/manage/calls?limit=2')) as unknown as { calls: { asked: string }[] }
    expect(calls.map(({ asked }) => asked).sort()).toEqual(['demo/echo', 'demo/thinker'])
    const places = async () =>
      Promise.all(
        ['demo/echo', 'demo/thinker'].map(async (model) => (await column(model).boundingBox()) ?? expect.fail()),
      )
    const [left, right] = await places()
    expect([left?.y, (right?.x ?? 0) > (left?.x ?? 0)]).toEqual([right?.y, true])
    await page.setViewportSize({ width: 360, height: 800 })
    await expectNoOverflow(tab)
    const [above, below] = await places()
    expect(below?.y ?? 0).toBeGreaterThan(above?.y ?? 0)
    await expectAccessible(tab)
    await page.getByLabel('Second model').fill('demo/nothing')
    await page.getByLabel('Message', { exact: true }).fill('And now?')
    await page.getByRole('button', { name: 'Send' }).click()
    await column('demo/nothing').getByText('404 model_not_found').waitFor()
    await expect.poll(() => column('demo/echo').getByRole('article', { name: 'Model' }).count()).toBe(2)
    expectFaultless(tab, world)
    await tab.page.close()
  })

  test('on a small screen the model comes before the message, and the message before the other settings', async () => {
    const tab = await world.open('playground')
    const { page } = tab
    await page.setViewportSize({ width: 360, height: 800 })
    const labels = ['Model', 'Message', 'System prompt']
    const tops = await Promise.all(
      labels.map(async (label) => (await page.getByLabel(label, { exact: true }).first().boundingBox())?.y ?? 0),
    )
    expect(tops).toEqual(tops.toSorted((one, other) => one - other))
    await page.getByLabel('Model', { exact: true }).focus()
    for (let presses = 0; presses < 3; presses++) await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.name')).toBe('message')
    await tab.page.close()
  })

  test('images, speech and embeddings of two models are shown with their costs', async () => {
    const tab = await world.open('playground')
    const { page } = tab
    const result = page.getByRole('article', { name: 'Result' })
    const choose = async (kind: string, model: string) => {
      await page.getByLabel('Kind').selectOption({ label: kind })
      await page.getByLabel('Model', { exact: true }).fill(model)
      await page.getByLabel('Second model').fill(model)
    }
    await choose('Image', 'demo/painter')
    await page.getByLabel('Size').fill('64x64')
    await page.getByLabel('Prompt', { exact: true }).fill(hostile)
    await page.getByRole('button', { name: 'Send' }).click()
    await expect.poll(() => result.getByRole('img').count()).toBe(2)
    await expect.poll(() => result.getByText(/^\$0\.\d+ · took /).count()).toBe(2)
    expect(await page.evaluate("document.querySelector('article img').naturalWidth")).toBe(64)
    await expectAccessible(tab)
    await choose('Speech', 'demo/tone')
    await page.getByLabel('Voice').fill('tone')
    await page.getByLabel('Format').selectOption('wav')
    await page.getByLabel('Text', { exact: true }).fill('Hello there.')
    await page.getByRole('button', { name: 'Send' }).click()
    await expect.poll(() => result.locator('audio').count()).toBe(2)
    await expect.poll(() => page.evaluate("document.querySelector('audio').duration")).toBeGreaterThan(0)
    await expect.poll(() => result.getByText(/^\$0\.\d+ · took /).count()).toBe(2)
    await choose('Embeddings', 'demo/vectors')
    await page.getByLabel('Texts', { exact: true }).fill('one text\nanother text')
    await page.getByRole('button', { name: 'Send' }).click()
    await expect.poll(() => result.getByRole('row').filter({ hasText: '1.000' }).count()).toBe(2)
    await result.first().getByRole('cell', { name: 'another text' }).waitFor()
    await page.getByLabel('Model', { exact: true }).fill('demo/nothing')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('alert').filter({ hasText: '404' }).waitFor()
    await page.setViewportSize({ width: 360, height: 800 })
    await expectNoOverflow(tab)
    expectFaultless(tab, world)
    await tab.page.close()
  })
})

describe('the same call as a program', () => {
  let world: Pick<World, 'router'>
  beforeAll(async () => {
    const { testRouter, simulatorOnly } = await import('../helpers/router.ts')
    world = { router: await testRouter({ files: simulatorOnly }) }
  })
  afterAll(() => world.router.end())

  const settings: Settings = {
    ...noSettings,
    model: 'demo/echo',
    system: 'Be brief.',
    temperature: '0.5',
    most: '50',
    isStreamed: false,
  }
  const said = `It's "quoted", $HOME and \`ticks\` in\ntwo lines`

  testEach(
    apis.flatMap(([api]) => [true, false].map((isStreamed) => ({ api, isStreamed }))),
    { slowIf: (_, index) => index % 3 !== 0 },
  )('$api, streamed: $isStreamed', async ({ api, isStreamed }) => {
    const body = bodyOf({ ...settings, api, isStreamed }, [{ role: 'user', text: said, images: [] }])
    const env = { ...process.env, [keyVariable]: testKey }
    const code = (language: 'curl' | 'typescript') => codeFor(language, api, body, world.router.url)
    expect(code('typescript')).not.toContain(testKey)
    const root = join(import.meta.dirname, '../..')
    const [byShell, byNode] = await Promise.all([
      run('sh', ['-c', code('curl').replace('curl', 'curl -s')], { env }),
      run(process.execPath, ['--input-type=module', '--eval', code('typescript')], { env, cwd: root }),
    ])
    for (const { stdout } of [byShell, byNode]) {
      expect(stdout).toMatch(isStreamed ? /quoted/ : /\$HOME/)
      expect(stdout).not.toMatch(/"error": ?\{/)
    }
  })

  testEach(
    kinds.flatMap(([kind]) => (kind === 'chat' ? [] : [kind])),
    { slowIf: (_, index) => index > 0 },
  )('%s', async (kind) => {
    const models = { image: 'demo/painter', speech: 'demo/tone', embed: 'demo/vectors' }
    const body = operationBody(kind, {
      ...settings,
      model: models[kind],
      prompt: said,
      size: '64x64',
      voice: 'tone',
      format: 'wav',
    })
    const folder = mkdtempSync(join(tmpdir(), 'program-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const env = { ...process.env, [keyVariable]: testKey }
    const code = (language: 'curl' | 'typescript') => codeFor(language, kind, body, world.router.url)
    symlinkSync(join(import.meta.dirname, '../../node_modules'), join(folder, 'node_modules'))
    const at = { env, cwd: folder }
    const byShell = await run('sh', ['-c', code('curl').replace('curl', 'curl -s')], at)
    const soundOfShell = kind === 'speech' && readFileSync(join(folder, 'speech.wav'))
    const byNode = await run(process.execPath, ['--input-type=module', '--eval', code('typescript')], at)
    if (kind === 'speech') expect(readFileSync(join(folder, 'speech.wav')).equals(soundOfShell as Buffer)).toBe(true)
    else for (const { stdout } of [byShell, byNode]) expect(stdout).toMatch(/"(b64_json|embedding)"/)
  })
})
