import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run as providers } from '../../src/cli/providers.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { alone, type TestRouter, testRouter } from '../helpers/router.ts'
import { folderOf } from '../manifest/files.ts'
import { commandsOf, fileOf, ranAlone, runPage } from './guides.ts'

// The first pages, followed to the letter. Not run: `npm start` itself (test/install.test.ts does), and the permissions that `chmod` sets.

let provider: LoopbackProvider
let router: TestRouter

beforeAll(async () => {
  provider = await loopbackProvider((_, response) => answerJson(response, answered))
  router = await testRouter({
    providers: alone({ openai: { base_url: `${provider.url}/v1` }, demo: {} }),
    env: { OPENAI_API_KEY: 'sk-of-the-operator' },
  })
})
afterAll(async () => {
  await router.end()
  await provider.close()
})

describe('docs/start/demo.md', () => {
  const page = 'docs/start/demo.md'

  test('every call answers as the page describes', async () => {
    const [echo, stream, failed, explained, list, usage] = await runPage(page, router)
    expect(JSON.parse(echo?.output ?? '')).toMatchObject({
      choices: [{ message: { content: 'You said: Hello' } }],
      usage: { cost: expect.any(Number) },
    })
    expect(stream?.output).toMatch(/event: message_stop\n/)
    expect(JSON.parse(failed?.output ?? '')).toMatchObject({
      error: { provider: 'demo', code: 'server_is_overloaded' },
    })
    expect(JSON.parse(explained?.output ?? '')).toMatchObject({
      model: 'demo/echo',
      router: { explain: { attempts: [{ model: 'demo/trouble' }, { model: 'demo/echo' }] } },
    })
    expect(JSON.parse(list?.output ?? '').data.length).toBeGreaterThan(5)
    expect(usage?.output).toContain('demo/echo')
  })

  test('its table has the models of the simulator', async () => {
    const table = readFileSync(join(import.meta.dirname, '../..', page), 'utf8').split('## What there is')[1] ?? ''
    const named = new Set(table.match(/demo\/\w+/g))
    const { data } = (await (await router.call('/v1/models/all')).json()) as { data: { id: string }[] }
    const simulated = data.map(({ id }) => id).filter((id) => id.startsWith('demo/'))
    expect([...named].toSorted()).toEqual(simulated.toSorted())
  })
})

describe('docs/start/first-provider.md', () => {
  const page = 'docs/start/first-provider.md'

  test('the commands and the call work, with the key of the operator', async () => {
    router.put('.env', fileOf(page, 'ini', '.env'))
    const steps = await runPage(page, router)
    expect(steps.map(({ command }) => command.split(' ')[0])).toEqual(['npm', 'npm', 'curl', 'npm'])
    expect(steps[0]?.output).toMatch(/^openai .*/m)
    expect(JSON.parse(steps[2]?.output ?? '')).toMatchObject({ choices: [{ message: { content: 'Hello.' } }] })
    expect(provider.received.at(-1)).toMatchObject({ headers: { authorization: 'Bearer sk-of-the-operator' } })
  })

  test('a variable in `.env` makes the provider available', async () => {
    const file = fileOf(page, 'ini', '.env')
    const folder = folderOf({ 'config.yaml': 'folders: { providers: [shipped], catalog: [shipped] }\n' })
    const stateOf = async () => {
      const { stdout } = await ranAlone(providers, '--config', join(folder, 'config.yaml'))
      return /^openai .*$/m.exec(stdout)?.[0]
    }
    expect(await stateOf()).toContain('set OPENAI_API_KEY')
    writeFileSync(join(folder, '.env'), file, { mode: 0o600 })
    expect(await stateOf()).not.toContain('set OPENAI_API_KEY')
    expect(statSync(join(folder, '.env')).mode & 0o777).toBe(0o600)
  })

  test('the settings move the address, take another variable, and switch a provider off', async () => {
    const config = fileOf(page, 'yaml', 'config.yaml')
    const folder = folderOf({
      'config.yaml': `${config}folders: { providers: [shipped], catalog: [shipped] }\n`,
      '.env': 'MY_OPENAI_KEY=sk-other\n',
    })
    const { stdout } = await ranAlone(providers, '--config', join(folder, 'config.yaml'), '--json')
    expect(stdout).toContain('https://eu.api.openai.com/v1')
    expect(stdout).not.toContain('sk-other')
    const { stdout: table } = await ranAlone(providers, '--config', join(folder, 'config.yaml'))
    expect(/^groq .*$/m.exec(table)?.[0] ?? 'off').toMatch(/off/)
  })

  test('the answers that it explains are those of the router', async () => {
    const messages = [{ role: 'user', content: 'x' }]
    const unknown = await router.call('/v1/chat/completions', { model: 'gpt-5', messages })
    expect(await unknown.text()).toContain("The model 'gpt-5' does not exist")
    const bare = await testRouter({ providers: alone({ openai: {} }) })
    const missing = await bare.call('/v1/chat/completions', { model: 'openai/gpt-5-mini', messages })
    expect(await missing.text()).toContain("The provider 'openai' is not configured: set OPENAI_API_KEY")
    await bare.end()
  })
})

describe('docs/start/point-a-client.md', () => {
  test('the list and the alias work', async () => {
    const page = 'docs/start/point-a-client.md'
    const [list, , aliased] = await runPage(page, router)
    expect(commandsOf(page)).toHaveLength(3)
    expect(list?.output).toContain('"id":"demo/echo"')
    expect(JSON.parse(aliased?.output ?? '')).toMatchObject({ model: 'demo/echo' })
  })
})

const answered = {
  id: 'c1',
  object: 'chat.completion',
  model: 'gpt-5-mini',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
}
