import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RouterProcess, refusedStart, routerProcess } from '../../helpers/process.ts'
import { type LoopbackProvider, pause, within } from '../../helpers/provider.ts'
import { routerFolder, type TestRouter, testRouter } from '../../helpers/router.ts'
import { describeEach, slow } from '../../helpers/slow.ts'
import { eventually } from '../../helpers/time.ts'
import { pricedManifest, pricedProvider } from '../money/budget-world.ts'

const chat = { messages: [{ role: 'user', content: 'Go on' }], max_tokens: 10 }
const bodies: Record<string, object> = {
  '/v1/chat/completions': chat,
  '/v1/messages': chat,
  '/v1/messages/count_tokens': { messages: chat.messages },
  '/v1/responses': { input: 'Go on' },
  '/v1/embeddings': { input: 'Go on' },
  '/v1/completions': { prompt: 'Go on' },
}
const guard = `import { definePlugin, Refusal } from 'inference-router/plugin'
export default definePlugin({ onError: 'closed', setup: () => ({ request() { throw new Refusal(403, 'No.') } }) })
`
const passes = 'export default { setup: () => ({ request: () => undefined }) }\n'

let provider: LoopbackProvider
beforeAll(async () => {
  provider = await pricedProvider()
})
afterAll(() => provider.close())

const manifestOf = (slug: string) => pricedManifest(provider.url).replaceAll(/priced/gi, slug)
const files = () => ({
  'providers/good.yaml': manifestOf('good'),
  'providers/bad.yaml': manifestOf('bad').replace('base_url', 'base_ulr'),
})

type Ready = { status: string; problem_count: number; problems: string[] }
type Told = { code: string; message: string; origin: string }

/** Calls a model, and returns the status with the code and the message of an error. */
async function called(router: Pick<TestRouter, 'call'>, model: string, more: { path?: string; key?: string } = {}) {
  const { path = '/v1/chat/completions', key } = more
  const response = await router.call(
    path,
    { model, ...bodies[path] },
    key === undefined ? {} : { authorization: `Bearer ${key}` },
  )
  const { error } = (await response.json()) as { error?: Told }
  return { status: response.status, code: error?.code, message: error?.message ?? '', origin: error?.origin }
}

async function ready(router: Pick<TestRouter, 'call'>): Promise<Ready & { http: number }> {
  const response = await router.call('/ready', undefined, { connection: 'close' })
  return { ...((await response.json()) as Ready), http: response.status }
}

describeEach([1, 3], { slowIf: (threads) => threads > 1 })('a router with %i thread(s)', (threads) => {
  test('serves with a broken manifest, names it, and takes it in when it is fixed', async () => {
    const router = await testRouter({ files: files(), threads })
    try {
      expect((await called(router, 'good/m1')).status).toBe(200)
      for (const path of ['/v1/chat/completions', '/v1/responses', '/v1/messages', '/v1/embeddings', '/v1/completions'])
        expect(await called(router, 'bad/m1', { path })).toMatchObject({
          status: 503,
          message: expect.stringMatching(/providers\/bad\.yaml because of an error in line \d+, column 1/),
        })
      expect(await called(router, 'bad/m1')).toMatchObject({ code: 'model_unavailable', origin: 'router' })
      for (let asked = 0; asked < 10; asked++)
        expect(await ready(router)).toMatchObject({
          http: 200,
          status: 'ready',
          problem_count: expect.any(Number),
          problems: expect.arrayContaining([
            expect.stringMatching(/^providers\/bad\.yaml:\d+:1: .*base_ulr.* \(unavailable: bad\)$/),
          ]),
        })
      const one = await (await router.call('/v1/manage/providers/bad')).json()
      expect(one).toMatchObject({ slug: 'bad', loaded: false, problems: expect.any(Array) })
      const alias = await router.call('/v1/manage/alias', { name: 'mine', target: 'bad/m1' })
      expect(alias.ok, await alias.text()).toBe(true)
      expect(await called(router, 'mine')).toMatchObject({ status: 503, code: 'model_unavailable' })

      router.put('providers/bad.yaml', manifestOf('bad'))
      await eventually(async () => expect((await called(router, 'bad/m1')).status).toBe(200))
      await eventually(async () => expect((await ready(router)).problems).toEqual([]))
      expect((await called(router, 'mine')).status).toBe(200)

      router.put('providers/bad.yaml', 'slug: [')
      router.put('providers/third.yaml', manifestOf('third'))
      await eventually(async () => expect((await called(router, 'third/m1')).status).toBe(200))
      expect((await called(router, 'bad/m1')).status).toBe(200)
      expect((await ready(router)).problems).toEqual([
        expect.stringMatching(/^providers\/bad\.yaml:1:\d+: not YAML.* \(the previous version stays in use\)$/),
      ])
      for (const thread of router.threads()) await thread.terminate()
      await eventually(async () => {
        expect((await called(router, 'bad/m1')).status).toBe(200)
        expect((await ready(router)).problem_count).toBe(1)
      })
    } finally {
      await router.end()
    }
  })

  test('refuses the calls that a broken plugin would see, and no others', async () => {
    const plugins = [
      { name: 'guard' },
      { name: 'open', on_error: 'open' },
      { name: 'elsewhere', organizations: ['another'] },
      { name: 'off', enabled: false },
    ]
    const broken = 'export default { setup( }\n'
    const ofPlugins = Object.fromEntries(plugins.map(({ name }) => [`plugins/${name}.ts`, broken]))
    const router = await testRouter({
      files: { 'providers/good.yaml': manifestOf('good'), ...ofPlugins },
      settings: { plugins },
      threads,
    })
    try {
      for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/messages/count_tokens', '/v1/embeddings'])
        expect(await called(router, 'good/m1', { path })).toMatchObject({
          status: 503,
          message: expect.stringMatching(/'guard' .*plugins\/guard\.ts because of an error in line 1, column \d+/),
        })
      expect((await called(router, 'good/m1')).code).toBe('plugin_unavailable')
      const { http, problems } = await ready(router)
      expect([http, problems.length]).toEqual([200, 4])
      expect(problems[0]).toMatch(/plugins\/guard\.ts:1:\d+: .* \(calls that the plugin would see are refused\)$/)
      expect(problems[1]).toContain('(calls go on without the plugin)')
      const made = await (await router.call('/v1/manage/apikey', { name: 'free' })).json()
      const { api_key_id: id, api_key: key } = made as { api_key_id: string; api_key: string }
      const rule = await router.call(`/v1/manage/apikey/${id}/plugins`, { plugins: { guard: false } })
      expect(rule.status).toBe(200)
      expect((await called(router, 'good/m1', { key })).status).toBe(200)

      router.put('plugins/guard.ts', passes)
      await eventually(async () => expect((await called(router, 'good/m1')).status).toBe(200))
      router.put('plugins/guard.ts', guard)
      await eventually(async () => expect((await called(router, 'good/m1')).status).toBe(403))
      router.put('plugins/guard.ts', broken)
      await eventually(async () => expect((await ready(router)).problems.join()).toContain('guard.ts'))
      expect((await called(router, 'good/m1')).status).toBe(403)
      rmSync(join(router.folder, 'plugins/guard.ts'))
      router.put('providers/later.yaml', manifestOf('later'))
      await eventually(async () => expect((await ready(router)).problems.join()).toContain('no plugin `guard`'))
      expect((await called(router, 'later/m1')).status).toBe(403)
    } finally {
      await router.end()
    }
  })
})

describe('a process', () => {
  test('names the place of an error in its banner and its log; with strict files it does not start', slow, async () => {
    const { configPath } = routerFolder({ files: files() })
    const running = await routerProcess(configPath)
    await eventually(() => expect(running.output()).toContain('all other files are in use'))
    expect(running.output()).toMatch(/providers\/bad\.yaml:\d+:1: .* \(unavailable: bad\)\n/)
    const inLog = running.output().match(/a file has an error, the others are in use/g)
    expect(inLog).toHaveLength(2)
    expect(await running.end('SIGTERM')).toBe(0)
    const { code, output } = await refusedStart(configPath, { args: ['--strict-files'] })
    expect([code, output]).toEqual([1, expect.stringMatching(/providers\/bad\.yaml:\d+:1: unknown field `base_ulr`/)])
  })

  test('that takes over with a broken file serves the others, and the calls of the first one end', slow, async () => {
    const { configPath, put } = routerFolder({ files: { 'providers/good.yaml': manifestOf('good') } })
    const start = (): Promise<RouterProcess> => routerProcess(configPath, { args: ['--takeover', '--port', '0'] })
    const first = await start()
    put('providers/good2.yaml', 'slug: [')
    const second = await start()
    expect((await called(second, 'good/m1')).status).toBe(200)
    expect(await called(second, 'good2/m1')).toMatchObject({ status: 503, code: 'model_unavailable' })
    expect(await first.end()).toBe(0)
    expect(await second.end('SIGTERM')).toBe(0)
  })
})

/** A generator of numbers from 0 to 1 that is the same in every run. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0
    return ((state ^ (state >>> 12)) >>> 0) / 2 ** 32
  }
}

describeEach([1, 2], { slowIf: () => true })('under load with %i thread(s)', (threads) => {
  test('40 manifests with random mistakes, dropped in and out: no call of another provider fails', async () => {
    const random = seeded(20_261_128)
    const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item
    const mistakes: ((text: string) => string | Buffer)[] = [
      (text) => text.slice(0, Math.floor(random() * text.length)),
      (text) => text.replace(pick([':', '}', '{', '\n', 'slug', 'm1', 'chat']), pick(['', '[', '"', '\t', 'x: y: z'])),
      (text) => `${text}${pick(['tiemouts: {}', 'endpoints: { chat: { request: { body: "{" } } }', '- a', '...'])}\n`,
      (text) => text.replace(/pricing: .*/, `pricing: ${pick(['free', '[]', '[{}]', '{ a: 1 }'])}`),
      (text) => text.replace('openai-chat', pick(['nothing', 'openai-chta', '[]', 'good'])),
      (text) => `${text}traits_of: ${pick(['good', 'mess1', 'mess7', 'nobody'])}\n`,
      (text) => `${text}models_of: ${pick(['good', 'mess2', 'mess8', 'nobody'])}\n`,
      (text) => text.replaceAll('mess', pick(['good', 'other'])),
      () => Buffer.from(Array.from({ length: 3_000 }, () => Math.floor(random() * 256))),
      () => '['.repeat(20_000),
      () => '',
      (text) => text,
    ]
    const router = await testRouter({
      files: { 'providers/good.yaml': manifestOf('good'), 'providers/also.yaml': manifestOf('also') },
      threads,
      log: pino({ level: 'silent' }),
    })
    const failed: unknown[] = []
    let [calls, isLoading] = [0, true]
    const load = async (model: string) => {
      while (isLoading) {
        const ended = await called(router, model)
        calls++
        if (ended.status !== 200) failed.push({ model, ...ended })
      }
    }
    const loads = ['good/m1', 'also/m1', 'good/m1', 'also/m1'].map(load)
    const codes = new Set<string>()
    for (let round = 0; round < 12; round++) {
      for (let index = 0; index < 40; index++) {
        const [folder, slug] = [pick(['providers', 'providers', 'catalog']), `mess${index}`]
        const path = join(router.folder, folder, `${slug}.yaml`)
        if (random() < 0.3) rmSync(path, { force: true })
        else router.put(`${folder}/${slug}.yaml`, pick(mistakes)(manifestOf(slug)) as string)
      }
      await pause(400)
      const { status, code } = await called(router, `mess${round}/m1`)
      codes.add(`${status} ${code ?? ''}`.trim())
      expect(['200', '404 model_not_found', '503 model_unavailable', '402 unpriced_model']).toContain([...codes].at(-1))
    }
    await eventually(async () => expect((await ready(router)).problems.length).toBeGreaterThan(3))
    expect((await ready(router)).http).toBe(200)
    isLoading = false
    await within(30_000, 'the calls', Promise.all(loads))
    expect(failed).toEqual([])
    expect(calls).toBeGreaterThan(50)
    expect(codes.size).toBeGreaterThan(1)
    for (let index = 0; index < 40; index++)
      for (const folder of ['providers', 'catalog'])
        rmSync(join(router.folder, folder, `mess${index}.yaml`), { force: true })
    await eventually(async () => expect((await ready(router)).problems).toEqual([]))
    await router.end()
  })
})
