import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { run as ledger } from '../../src/cli/ledger/ledger.ts'
import { answerJson, type LoopbackProvider, loopbackProvider, type Received } from '../helpers/provider.ts'
import { alone, type TestRouter, testRouter } from '../helpers/router.ts'
import { eventually } from '../helpers/time.ts'
import { blocksOf, fileOf, guidePages, ranAlone, runPage, settingsOf } from './guides.ts'

// Each page about a task: its configuration is started, its commands are run, and its result is there. Providers are on loopback.

let provider: LoopbackProvider
let router: TestRouter
/** Answers the next requests, where a test needs others than the usual one. */
let answer: (request: Received, response: ServerResponse) => void = answerAll

beforeAll(async () => {
  provider = await loopbackProvider((request, response) => answer(request, response))
})
afterAll(() => provider.close())
afterEach(async () => {
  answer = answerAll
  await router?.end()
})

const secrets = {
  OPENAI_API_KEY: 'sk-openai',
  ANTHROPIC_API_KEY: 'sk-anthropic',
  MISTRAL_API_KEY: 'sk-mistral',
}
const page = (name: string) => `docs/tasks/${name}.md`
const parsed = (output = '') => JSON.parse(output)

/** Starts a router with the configuration of a page, whose providers are on loopback. */
async function start(name: string, { env = {}, settings = {} }: { env?: object; settings?: object } = {}) {
  const at = {
    openai: { base_url: `${provider.url}/openai/v1` },
    anthropic: { base_url: `${provider.url}/anthropic` },
    mistral: { base_url: `${provider.url}/mistral/v1` },
  }
  const own = hasConfig(name) ? settingsOf(page(name), at) : { settings: {}, providers: at }
  router = await testRouter({
    providers: alone({ demo: {}, ...own.providers }),
    settings: { ...own.settings, ...settings },
    env: { ...secrets, ...env },
  })
}

const hasConfig = (name: string) =>
  blocksOf(page(name)).some(({ kind, text }) => kind === 'yaml' && text.startsWith('# config.yaml'))

test('every page is followed here', () => {
  const names = guidePages().filter((path) => path.startsWith('docs/tasks/'))
  expect(names.map((path) => path.slice('docs/tasks/'.length, -'.md'.length)).toSorted()).toEqual(followed.toSorted())
})

const followed = [
  'keys-with-budgets',
  'fallback',
  'cheapest-or-fastest',
  'eu-only',
  'pii',
  'cache',
  'alerts',
  'claude-code-for-a-team',
  'local-models',
  'compare-a-bill',
]

test('keys with budgets: a key spends within its group, its limit and its list', async () => {
  await start('keys-with-budgets')
  const [, , called, self, , exhausted, refused, usage] = await runPage(page('keys-with-budgets'), router)
  expect(parsed(called?.output)).toMatchObject({ choices: [{ message: { content: 'You said: Hello' } }] })
  expect(parsed(self?.output)).toMatchObject({ name: 'search-app', monthly_limit: 50, group: expect.any(String) })
  expect(parsed(exhausted?.output)).toMatchObject({ error: { code: 'budget_exhausted' } })
  expect(parsed(refused?.output)).toMatchObject({ error: { message: expect.stringContaining('demo/thinker') } })
  expect(usage?.output).toContain('"label.team":"search"')
})

test('fallback: the next target answers, and a broken stream ends with an error', async () => {
  await start('fallback', { settings: { health: {} } })
  const [practised, cut, listed] = await runPage(page('fallback'), router)
  expect(parsed(practised?.output)).toMatchObject({ model: 'demo/echo' })
  expect(parsed(practised?.output).router.explain.attempts.length).toBeGreaterThanOrEqual(2)
  expect(cut?.output).toContain('"error"')
  expect(cut?.output).not.toContain('[DONE]')
  expect(parsed(listed?.output)).toMatchObject({ model: 'demo/echo' })
  answer = (request, response) =>
    request.path.startsWith('/anthropic') ? answerJson(response, {}, 503) : answerAll(request, response)
  for (const model of ['policy/assistant', 'assistant'])
    expect(await (await router.call('/v1/chat/completions', { model, messages })).json()).toMatchObject({
      model: expect.stringMatching(/^openai\/gpt-5/),
    })
})

test('cheapest or fastest: the cheaper target is first, and a price limit leaves out the other', async () => {
  await start('cheapest-or-fastest')
  const [cheapest, limited, explained] = await runPage(page('cheapest-or-fastest'), router)
  expect(parsed(cheapest?.output)).toMatchObject({
    model: 'demo/echo',
    router: { explain: { sort: 'price', targets: [{ model: 'demo/echo' }, { model: 'demo/thinker' }] } },
  })
  const [echo, thinker] = parsed(cheapest?.output).router.explain.targets
  expect(thinker.max_cost_usd / echo.max_cost_usd).toBeCloseTo(2)
  expect(parsed(limited?.output)).toMatchObject({ model: 'demo/echo' })
  expect(explained?.output).toContain('demo/echo')
  for (const model of ['policy/cheap', 'policy/fast'])
    expect((await router.call('/v1/chat/completions', { model, messages })).status).toBe(200)
})

test('EU only: other models are refused, and the policy reaches only its targets', async () => {
  await start('eu-only')
  const [, refused, served] = await runPage(page('eu-only'), router)
  expect(refused?.output).toMatch(/geolocation/)
  expect(parsed(served?.output)).toMatchObject({ model: expect.stringMatching(/^mistral\//) })
  const { data } = (await (await router.call('/v1/models')).json()) as { data: { geolocation: string }[] }
  expect(new Set(data.map(({ geolocation }) => geolocation))).toEqual(new Set(['eu']))
})

test('personal data: the provider sees placeholders, the client the values', async () => {
  await start('pii')
  const [echoed] = await runPage(page('pii'), router)
  expect(parsed(echoed?.output).choices[0].message.content).toContain('ada@example.com, staff EMP-12345')
  const said = 'Write to ada@example.com, staff EMP-12345.'
  const response = await router.call('/v1/chat/completions', {
    model: 'openai/gpt-5-mini',
    messages: [{ role: 'user', content: said }],
  })
  expect(JSON.stringify(provider.received.at(-1)?.body)).toContain('Write to <EMAIL_1>, staff <STAFF_1>.')
  expect(await response.text()).not.toContain('<EMAIL_1>')
})

test('cache: the second answer is stored', async () => {
  await start('cache')
  const steps = await runPage(page('cache'), router)
  expect(steps.map(({ output }) => /^x-router-cache: (\w+)/m.exec(output)?.[1])).toEqual(['MISS', 'HIT', 'BYPASS'])
})

test('alerts: the webhook is notified, and metrics can be read', async () => {
  const [plugin] = parse(fileOf(page('alerts'), 'yaml', 'config.yaml')).plugins
  plugin.options.every_seconds = 1
  const settings = { plugins: [{ ...plugin, fetch: [new URL(provider.url).host] }] }
  await start('alerts', { settings, env: { ALERT_WEBHOOK: `${provider.url}/hook` } })
  const [, , metrics, ready] = await runPage(page('alerts'), router)
  expect(metrics?.output).toContain('inference_router_calls_total')
  expect(parsed(ready?.output)).toMatchObject({ status: 'ready' })
  const alerts = await eventually(() => {
    const found = provider.received.filter(({ path }) => path === '/hook').map(({ body }) => body)
    expect(found).not.toEqual([])
    return found
  })
  const example = parsed(fileOf(page('alerts'), 'json', '{'))
  expect(Object.keys(alerts[0])).toEqual(expect.arrayContaining(Object.keys(example)))
  expect(alerts[0]).toMatchObject({ type: 'spend_alert', threshold: { kind: 'spend', value: 0.000001, budget: null } })
})

test('Claude Code for a team: a key of a person reaches its two names only', async () => {
  await start('claude-code-for-a-team')
  const [, , called, usage] = await runPage(page('claude-code-for-a-team'), router)
  expect(parsed(called?.output)).toMatchObject({ type: 'message', content: [{ text: 'Hello.' }] })
  expect(usage?.output).toContain('"label.user":"ada"')
  const settings = parsed(blocksOf(page('claude-code-for-a-team')).find(({ kind }) => kind === 'json')?.text)
  const names = Object.entries(settings.env).filter(([name]) => name.endsWith('MODEL'))
  expect(new Set(names.map(([, model]) => model))).toEqual(new Set(['coder', 'coder-small']))
})

test('local models: any name costs nothing, and the next target answers when the server is down', async () => {
  const { settings, providers } = settingsOf(page('local-models'))
  const entry = parse(blocksOf(page('local-models')).filter(({ kind }) => kind === 'yaml')[1]?.text ?? '')
  const vllm = { ...providers.vllm, base_url: `${provider.url}/vllm/v1` }
  router = await testRouter({ providers: alone({ ...providers, vllm }), settings })
  const [called, first] = await runPage(page('local-models'), router)
  expect(parsed(called?.output)).toMatchObject({ model: expect.stringMatching(/^vllm\//), usage: { cost: 0 } })
  expect(parsed(first?.output).model).toMatch(/^vllm\//)
  answer = (_, response) => answerJson(response, {}, 503)
  const failed = await router.call('/v1/chat/completions', { model: 'policy/local-first', messages })
  expect(await failed.json()).toMatchObject({ model: 'demo/echo' })
  await router.end()
  answer = answerAll
  router = await testRouter({ providers: alone({ demo: {}, vllm: { ...vllm, ...entry.vllm } }) })
  const list = await (await router.call('/v1/models')).text()
  expect(list).toContain('"id":"vllm/qwen3-32b"')
  const priced = await router.call('/v1/chat/completions', { model: 'vllm/qwen3-32b', messages })
  expect(((await priced.json()) as { usage: { cost: number } }).usage.cost).toBeGreaterThan(0)
})

test('a bill: equal sums exit with 0, a difference with 1', async () => {
  await start('compare-a-bill')
  await router.call('/v1/chat/completions', { model: 'openai/gpt-5-mini', messages })
  const bill = join(router.folder, 'bill.csv')
  const lines = fileOf(page('compare-a-bill'), 'csv', 'date')
  const today = new Date().toISOString().slice(0, 10)
  const write = (cost: string) => writeFileSync(bill, lines.replace(/^\d{4}-.*$/m, `${today},gpt-5-mini,${cost}`))
  write('0.00')
  const [compared] = await runPage(page('compare-a-bill'), router)
  expect(compared?.output).toContain('gpt-5-mini')
  write('5.00')
  const words = ['compare', '--bill', bill, '--provider', 'openai', '--config', join(router.folder, 'config.yaml')]
  expect((await ranAlone(ledger, ...words)).code).toBe(1)
})

const messages = [{ role: 'user', content: 'Hello' }]

/** Answers in the form of the provider that is asked. */
function answerAll({ path, body }: Received, response: ServerResponse): void {
  if (path === '/hook') answerJson(response, {})
  else if (path.startsWith('/anthropic'))
    answerJson(response, {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: body.model,
      content: [{ type: 'text', text: 'Hello.' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 9, output_tokens: 2 },
    })
  else
    answerJson(response, {
      id: 'c1',
      object: 'chat.completion',
      model: body.model,
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
    })
}
