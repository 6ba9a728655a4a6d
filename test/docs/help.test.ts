import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { alone, type TestRouter, testRouter } from '../helpers/router.ts'
import { blocksOf, fileOf, guidePages, runPage } from './guides.ts'

// The pages about concepts and help: their commands, the messages that they explain, and the drawings.

const root = join(import.meta.dirname, '../..')
const text = (path: string) => readFileSync(join(root, path), 'utf8')

describe('commands', () => {
  let provider: LoopbackProvider
  let router: TestRouter
  beforeAll(async () => {
    provider = await loopbackProvider(({ body }, response) => answerJson(response, { ...answered, model: body.model }))
  })
  afterAll(() => provider.close())
  afterEach(() => router.end())

  test('from OpenRouter: the same names through it, and through an alias', async () => {
    const page = 'docs/help/from-openrouter.md'
    const { policies } = parse(fileOf(page, 'yaml', 'config.yaml'))
    router = await testRouter({
      providers: alone({
        openrouter: { base_url: `${provider.url}/api/v1` },
        openai: { base_url: `${provider.url}/v1` },
        demo: {},
      }),
      settings: { policies },
      env: { OPENROUTER_API_KEY: 'sk-or-1', OPENAI_API_KEY: 'sk-1' },
    })
    const [called] = await runPage(page, router)
    expect(provider.received.at(-1)).toMatchObject({
      headers: { authorization: 'Bearer sk-or-1' },
      body: { model: 'openai/gpt-5-mini' },
    })
    expect(called?.output).toContain('"cost"')
    const messages = [{ role: 'user', content: 'Hello' }]
    const preferred = await router.call('/v1/chat/completions', { model: 'policy/mini', messages })
    expect(preferred.headers.get('x-router-model')).toMatch(/^openai\//)
    const fields = /^\| `provider\.order`(.*) \| the same/m.exec(text(page))?.[1]?.match(/[a-z_]+/g) ?? []
    expect(fields.length).toBeGreaterThan(6)
    for (const field of fields) expect(text('docs/api.md')).toMatch(new RegExp(`provider\\.[^|]*${field}`))
  })

  test.each(['docs/concepts/routing.md', 'docs/help/troubleshooting.md'])('%s', async (page) => {
    router = await testRouter({ providers: alone({ demo: {} }) })
    expect((await runPage(page, router)).length).toBeGreaterThan(0)
  })
})

test('every page with commands is followed by a test', () => {
  const followed = ['docs/concepts/routing.md', 'docs/help/troubleshooting.md', 'docs/help/from-openrouter.md']
  const pages = guidePages().filter((page) => /^docs\/(?:concepts|help)\//.test(page))
  expect(pages.filter((page) => blocksOf(page).some(({ kind }) => kind === 'sh')).toSorted()).toEqual(
    followed.toSorted(),
  )
})

describe('messages that troubleshooting explains', () => {
  const code = globSync(['src/**/*.ts', 'providers/**/*.yaml'], { cwd: root }).map(text).join('\n')
  const rows = text('docs/help/troubleshooting.md').match(/^\| `.*$/gm) ?? []
  const messages = rows.flatMap((row) => /^\| `([^`]+)`/.exec(row)?.[1] ?? [])
  /** Messages that the code composes, as a router sends them. */
  let sent = ''
  beforeAll(async () => {
    const router = await testRouter({ providers: alone({ demo: {} }) })
    const key = { name: 'slow', limits: { requests_per_minute: 1 } }
    const { api_key } = (await (await router.call('/v1/manage/apikey', key)).json()) as { api_key: string }
    const slow = { authorization: `Bearer ${api_key}` }
    const body = (model: string, content: string) => ({ model, messages: [{ role: 'user', content }] })
    for (const [path, request, headers] of [
      ['/v1/chat/completions', body('demo/echo', 'x'), { authorization: '' }],
      ['/chat/completions', body('demo/echo', 'x'), {}],
      ['/v1/v1/chat/completions', body('demo/echo', 'x'), {}],
      ['/v1/chat/completions', body('demo/trouble', 'garble'), {}],
      ['/v1/chat/completions', body('demo/echo', 'x'), slow],
      ['/v1/chat/completions', body('demo/echo', 'x'), slow],
    ] as const) {
      const { error } = (await (await router.call(path, request, headers)).json()) as { error?: { message: string } }
      sent += `${error?.message}\n`
    }
    await router.end()
  })

  test('there are many', () => expect(messages.length).toBeGreaterThan(20))

  test.each(messages)('%s', (message) => {
    const pieces = message.split('…').map((piece) => piece.trim().replace(/^'|'$/g, '').trim())
    const known = pieces.filter((piece) => piece.length > 3)
    expect(known.length).toBeGreaterThan(0)
    expect(known.filter((piece) => !code.includes(piece) && !sent.includes(piece))).toEqual([])
  })
})

test('drawings are SVG with a title and colours for dark screens', () => {
  const drawings = globSync('docs/concepts/*.svg', { cwd: root })
  expect(drawings).toHaveLength(3)
  for (const drawing of drawings) {
    expect(text(drawing)).toMatch(/^<svg [^>]*role="img"[^>]*>\n<title>[^<]+<\/title>/)
    expect(text(drawing)).toContain('prefers-color-scheme: dark')
    expect(text(drawing.replace('.svg', '.md'))).toContain(`](${drawing.split('/').at(-1)})`)
  }
})

test('the figures of the comparison are those of the page about performance', () => {
  const rows = text('docs/help/comparison.md').match(/^\| .* µs .*$/gm) ?? []
  expect(rows.length).toBeGreaterThan(2)
  for (const figure of rows.join().match(/[\d.,–]+ µs/g) ?? []) expect(text('docs/performance.md')).toContain(figure)
})

test('the example of the page about money is right', () => {
  const page = text('docs/concepts/money.md')
  expect(page).toContain('= 0.006 USD')
  expect(1_000 * 0.000002 + 500 * 0.000008).toBeCloseTo(0.006, 12)
  expect(1_000 * 0.000002 + 120 * 0.000008).toBeCloseTo(0.00296, 12)
  expect(1 - 0.00296).toBeCloseTo(0.99704, 12)
})

const answered = {
  id: 'c1',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
}
