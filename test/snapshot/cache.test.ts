import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { formatProblem } from '../../src/manifest/check/problem.ts'
import { openFileCache } from '../../src/manifest/read/file-cache.ts'
import { buildSnapshot } from '../../src/snapshot/snapshot.ts'
import { slow } from '../helpers/slow.ts'
import { folderOf, plainDialect, writeIn } from '../manifest/files.ts'

const root = join(import.meta.dirname, '../..')
const env = { OPENAI_API_KEY: 'sk-1', INFERENCE_ROUTER_DEMO_URL: 'http://127.0.0.1:9/v1' }

const acme = `slug: acme
name: Acme
base_url: http://127.0.0.1:9/v1
auth: { scheme: none }
dialect: openai-chat
endpoints: { chat: { patch: { request: '$merge([$, { "a": 1 }])' } } }
models:
  m1: { api: chat, context_window: 1000, max_output_tokens: 100, supports_vision: true }
`

/** With a cache that was opened for it, as by a process of its own, and is written when it ends. */
async function builtWith(config: string, cached: string): ReturnType<typeof buildSnapshot> {
  const cache = openFileCache(cached)
  const built = await buildSnapshot(config, env, { cache })
  await cache.written()
  return built
}

function project(manifest = acme): { folder: string; build: () => ReturnType<typeof buildSnapshot>; cached: string } {
  const folder = folderOf({ 'config.yaml': 'server: { port: 0 }\n', 'providers/acme.yaml': manifest })
  const cached = join(folder, 'cache')
  const build = () => builtWith(join(folder, 'config.yaml'), cached)
  return { folder, build, cached }
}

/** All that providers are made of. What several share is written once, and then named by its number. */
function plain({ snapshot }: Awaited<ReturnType<typeof buildSnapshot>>): string {
  const numbers = new Map<object, number>()
  return JSON.stringify([...(snapshot?.providers.values() ?? [])], (_, value) => {
    if (typeof value !== 'object' || value === null) return value
    const number = numbers.get(value)
    if (number !== undefined) return `shared ${number}`
    numbers.set(value, numbers.size)
    return value
  })
}

test('old names of keys are warnings at every start, whatever the cache keeps', async () => {
  const { folder, build } = project(`${acme}governed: { boost: { effect: cost } }\n`)
  writeIn(folder, 'config.yaml', 'health: { ramp: 1s }\n')
  writeIn(folder, 'providers/dialects/plain.yaml', `${plainDialect}    losses: [top_k]\n`)
  const first = await build()
  expect(first.problems.map(({ severity }) => severity)).toEqual(['warning', 'warning', 'warning'])
  for (const again of [await build(), await build()]) {
    expect(again.problems).toEqual(first.problems)
    expect(again.snapshot?.config.health.rampUpMs).toBe(1_000)
    expect(again.snapshot?.providers.get('acme')?.restricted).toMatchObject([{ name: 'boost' }])
  }
})

test('a snapshot from the cache is the one from the files', slow, async () => {
  const folder = folderOf({})
  const build = () => builtWith(join(root, 'config.yaml'), join(folder, 'cache'))
  const first = await build()
  const entries = readdirSync(join(folder, 'cache')).length
  const second = await build()
  expect(first.snapshot && second.snapshot).toBeDefined()
  expect(second.problems).toEqual(first.problems)
  expect(second.snapshot?.catalog.list()).toEqual(first.snapshot?.catalog.list())
  expect(plain(second)).toBe(plain(first))
  // Nothing was missing the second time.
  expect(readdirSync(join(folder, 'cache'))).toHaveLength(entries)
  for (const source of second.snapshot?.sources.values() ?? [])
    if (source.file.endsWith('config.yaml') === false) expect(source.sound, source.file).toBeDefined()
})

test('a file with an error is not kept, and each start reports it at its place', async () => {
  const { build } = project(acme.replace('$merge([$, { "a": 1 }])', '$merg($)'))
  const [first, second] = [await build(), await build()]
  expect(first.problems.map(formatProblem)).toEqual([expect.stringMatching(/acme\.yaml:6:\d+: .*\$merg/)])
  expect(second.problems).toEqual(first.problems)
})

test('a change after which a file is wrong is found although the earlier text was kept', async () => {
  const { folder, build } = project()
  expect((await build()).problems).toEqual([])
  writeIn(folder, 'providers/acme.yaml', acme.replace('api: chat', 'api: chatt'))
  expect((await build()).problems.map(formatProblem)).toEqual([expect.stringMatching(/acme\.yaml:8:\d+: .*chatt/)])
  writeIn(folder, 'providers/acme.yaml', acme)
  expect((await build()).problems).toEqual([])
})

test('a kept manifest is checked anew when its dialect exports something else', async () => {
  const { folder, build } = project(
    acme.replace('openai-chat', 'plain').replace('$merge([$, { "a": 1 }])', '$twice($)'),
  )
  const plain = (more: string) => writeIn(folder, 'providers/dialects/plain.yaml', `${plainDialect}${more}`)
  plain("exports: '$twice := function($x) { $x };'\n")
  expect((await build()).problems).toEqual([])
  plain('')
  for (const start of [1, 2])
    expect((await build()).problems.map(formatProblem), `start ${start}`).toEqual([
      expect.stringMatching(/acme\.yaml:6:\d+: .*\$twice/),
    ])
})

test('definitions that move to another dialect are not those that a kept manifest saw', slow, async () => {
  const { folder, build } = project(
    `${acme.replace('openai-chat', 'plain').replace('$merge([$, { "a": 1 }])', '$twice($)')}variants: [{ match: "z*", dialect: other }]\n`,
  )
  const twice = "exports: '$twice := function($x) { $x };'\n"
  const put = (name: string, more: string) =>
    writeIn(folder, `providers/dialects/${name}.yaml`, `${plainDialect.replace('plain', name)}${more}`)
  put('plain', twice)
  put('other', '')
  expect((await build()).problems).toEqual([])
  put('plain', '')
  put('other', twice)
  expect((await build()).problems.map(formatProblem)).toEqual([expect.stringMatching(/acme\.yaml:6:\d+: .*\$twice/)])
})

test('the settings of a kept manifest are checked anew', slow, async () => {
  const { folder, build } = project()
  expect((await build()).problems).toEqual([])
  writeIn(folder, 'config.yaml', 'server: { port: 0 }\nproviders:\n  acme: { base_url: "ftp://x" }\n')
  expect((await build()).problems.map(formatProblem)).toEqual([expect.stringMatching(/config\.yaml:3:\d+: .*base_url/)])
})

test('a text that is kept as one kind of file is no file of another kind', slow, async () => {
  const { folder, build } = project()
  expect((await build()).problems).toEqual([])
  writeIn(folder, 'catalog/acme.yaml', acme)
  expect((await build()).problems.map(formatProblem)[0]).toMatch(/catalog\/acme\.yaml:1:1: the file needs `provider`/)
})

test('an entry with other content than the file is not believed', async () => {
  const { build, cached } = project()
  const { snapshot } = await build()
  for (const name of readdirSync(cached)) {
    const path = join(cached, name)
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('Acme', 'Evil').replaceAll('m1', 'm2'))
  }
  const again = (await build()).snapshot
  expect(again?.providers.get('acme')?.name).toBe('Acme')
  expect(again?.catalog.list()).toEqual(snapshot?.catalog.list())
})

test('mappings of kept files run, and an error in one still names its place', slow, async () => {
  const { build } = project()
  await build()
  const request = (await build()).snapshot?.providers.get('acme')?.chat?.patch.request
  expect(await request?.run({ b: 2 }, {})).toEqual({ b: 2, a: 1 })
})
