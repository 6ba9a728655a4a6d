import { execFile } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseDocument } from 'yaml'
import { run as check } from '../src/cli/check.ts'
import { run as tryMapping } from '../src/cli/try.ts'
import { ran } from './cli/running.ts'
import { answerJson, type LoopbackProvider, loopbackProvider, type Received } from './helpers/provider.ts'
import { alone, simulatorOnly, type TestRouter, testRouter } from './helpers/router.ts'
import { folderOf } from './manifest/files.ts'

const root = join(import.meta.dirname, '..')
const folder = join(root, 'examples')
const read = (name: string) => readFileSync(join(folder, name), 'utf8')
const manifest = 'providers/parley.yaml'

describe('the page of the examples', () => {
  test('links every file, and nothing that does not exist', () => {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:yaml|ts)$/.test(name))
      .filter((name) => !name.startsWith('data'))
    const links = [...read('README.md').matchAll(/\]\(([^)#]+)\)/g)].map(([, path = '']) => path)
    expect(links.filter((path) => !path.startsWith('..')).toSorted()).toEqual(files.toSorted())
    expect(links.filter((path) => !existsSync(join(folder, path)))).toEqual([])
  })

  test('is linked from the guides', () => {
    const guides = ['add-a-provider.md', 'plugins.md', 'routing.md']
    const linking = guides.filter((page) => readFileSync(join(root, 'docs', page), 'utf8').includes('](../examples/'))
    expect(linking).toEqual(guides)
  })
})

test('the manifest has no problems, and `try` shows its examples', async () => {
  const checked = await ran(check, join(folder, manifest), '--config', join(folder, 'policies.yaml'))
  expect([checked.code, checked.stderr]).toEqual([0, ''])
  expect(checked.stdout).toContain('3 examples, 9 mappings: no problems')
  const tried = await ran(tryMapping, join(folder, manifest), '--config', join(folder, 'policies.yaml'))
  expect([tried.code, tried.stderr]).toEqual([0, ''])
  expect(tried.stdout).toContain('"engine": "parley-small"')
})

/** Providers of the policies; to load all the others would take seconds. */
const slugs = ['openai', 'openai-responses', 'anthropic', 'mistral', 'bedrock', 'demo']

test('the configuration has no problems: its policies, their targets and its plugin', async () => {
  const copy = folderOf({ 'examples/policies.yaml': read('policies.yaml') })
  const parts = ['examples/plugins', 'providers/dialects', ...slugs.flatMap((slug) => shippedFiles(slug))]
  for (const part of parts) cpSync(join(root, part), join(copy, part), { recursive: true })
  const { code, stdout } = await ran(check, '--config', join(copy, 'examples/policies.yaml'))
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^6 providers, .* 1 plugin, .*: no problems/)])
})

function shippedFiles(slug: string): string[] {
  return [`providers/${slug}.yaml`, `catalog/${slug}.yaml`].filter((path) => existsSync(join(root, path)))
}

describe('a router with the policies', () => {
  let router: TestRouter
  beforeAll(async () => {
    const { policies } = parseDocument(read('policies.yaml')).toJS()
    router = await testRouter({
      providers: alone(Object.fromEntries(slugs.map((slug) => [slug, {}]))),
      settings: { policies },
    })
  })
  afterAll(() => router.end())

  const messages = [{ role: 'user', content: 'Hi' }]

  test.each(['agent', 'migration'])('serves %s without any provider account', async (name) => {
    const response = await router.call('/v1/chat/completions', { model: `policy/${name}`, messages })
    expect([response.status, await response.json()]).toEqual([200, expect.objectContaining({ model: 'demo/echo' })])
  })

  test.each(['fast', 'cheap', 'best@eu'])('says which account is missing for %s', async (name) => {
    const response = await router.call('/v1/chat/completions', { model: `policy/${name}`, messages })
    expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('_KEY')])
  })
})

test('the test of the plugin passes', async () => {
  const args = ['plugin', 'test', 'require-metadata', '--config', join(folder, 'policies.yaml')]
  const { stdout } = await promisify(execFile)(process.execPath, [join(root, 'src/start.js'), ...args])
  expect(stdout).toMatch(/pass 4\n/)
  expect(stdout).toMatch(/fail 0\n/)
})

describe('a router with the manifest and the plugin', () => {
  let provider: LoopbackProvider
  let router: TestRouter
  beforeAll(async () => {
    provider = await loopbackProvider(serveParley)
    const { plugins } = parseDocument(read('policies.yaml')).toJS()
    router = await testRouter({
      files: {
        ...simulatorOnly,
        [manifest]: read(manifest),
        'plugins/require-metadata.ts': read('plugins/require-metadata.ts'),
      },
      providers: { parley: { base_url: provider.url } },
      settings: { plugins: plugins.map((plugin: object) => ({ ...plugin, enabled: true })) },
      env: { PARLEY_API_KEY: 'parley-secret' },
    })
  })
  afterAll(async () => {
    await router.end()
    await provider.close()
  })

  const body = {
    model: 'parley/parley-small',
    messages: [{ role: 'user', content: 'Weather in Bern?' }],
    metadata: { ticket: 'T-1' },
  }

  test('serves a whole call at its price', async () => {
    const response = await router.call('/v1/chat/completions', body)
    expect([response.status, response.headers.get('x-attributed-to')]).toEqual([200, 'T-1'])
    expect(await response.json()).toMatchObject({
      choices: [{ message: { content: 'Sunny.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 9, completion_tokens: 2, cost: 34e-7 },
    })
    expect(provider.received.at(-1)).toMatchObject({
      path: '/dialogue',
      headers: { authorization: 'Bearer parley-secret' },
      body: { engine: 'parley-small', limit: 4_096, turns: [{ by: 'person', text: 'Weather in Bern?' }] },
    })
  })

  test('streams a call of a tool', async () => {
    const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }]
    const text = await (await router.call('/v1/chat/completions', { ...body, tools, stream: true })).text()
    const chunks = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, json = '']) => JSON.parse(json))
    const calls = chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])
    expect(calls[0]).toMatchObject({ id: 'c1', function: { name: 'weather' } })
    expect(calls.map((call) => call.function.arguments ?? '').join('')).toBe('{"city":"Bern"}')
    expect(text).toContain('"finish_reason":"tool_calls"')
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true)
  })

  test('has the plugin refuse a call without the metadata', async () => {
    const { metadata: _, ...without } = body
    const response = await router.call('/v1/chat/completions', without)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { message: 'Set metadata.ticket.', param: 'metadata' } })
  })
})

/** A server of the invented API. */
function serveParley({ path, body }: Received, response: ServerResponse): void {
  const count = { asked: 9, answered: 2 }
  if (path === '/dialogue') {
    answerJson(response, { say: 'Sunny.', because: 'finished', count })
    return
  }
  const events = [
    { kind: 'call', ref: 'c1', name: body.functions[0].name },
    { kind: 'input', ref: 'c1', piece: '{"city":' },
    { kind: 'input', ref: 'c1', piece: '"Bern"}' },
    { kind: 'end', because: 'wants_function', count },
  ]
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  response.end(events.map((event) => `${JSON.stringify(event)}\n`).join(''))
}
