import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { run as check } from '../../src/cli/check.ts'
import { run as eject } from '../../src/cli/eject.ts'
import { formatProblem } from '../../src/manifest/check/problem.ts'
import type { KnownSources } from '../../src/manifest/read/folder.ts'
import { loadConfig } from '../../src/snapshot/config.ts'
import { buildSnapshot } from '../../src/snapshot/snapshot.ts'
import { ran } from '../cli/running.ts'
import { cache } from '../helpers/router.ts'
import { acme, folderOf, plainDialect, writeIn } from '../manifest/files.ts'

const root = join(import.meta.dirname, '../..')
const shippedText = (path: string) => readFileSync(join(root, path), 'utf8')
let known: KnownSources = new Map()

async function build(files: { [path: string]: string }, env: { [name: string]: string } = {}) {
  const folder = folderOf(files)
  const { snapshot, problems } = await buildSnapshot(join(folder, 'config.yaml'), env, { known, cache })
  if (snapshot) known = snapshot.sources
  return { folder, snapshot, problems: problems.map((problem) => formatProblem(problem).replace(`${folder}/`, '')) }
}

const lists = 'folders: { providers: [./providers, shipped], catalog: [./catalog, shipped] }\n'
/** A configuration that names no folders; a comment, so that the helpers of tests add none. */
const noFolders = '# no folders\n'
const ofAcme = { 'providers/dialects/plain.yaml': plainDialect, 'providers/acme.yaml': acme }

test('a file of the first folder goes before one of the same name in the next', async () => {
  const { snapshot, problems } = await build({
    'config.yaml': 'folders: { providers: [./mine, ./ours], catalog: [./prices, ./catalog] }\n',
    'mine/acme.yaml': acme.replace('Acme', 'Mine'),
    'ours/acme.yaml': acme.replace('Acme', 'Ours'),
    'ours/beta.yaml': acme.replaceAll('acme', 'beta'),
    'ours/dialects/plain.yaml': plainDialect,
    'prices/acme.yaml': 'provider: acme\nmodels: { one: { api: chat } }\n',
    'catalog/acme.yaml': 'provider: acme\nmodels: { two: { api: chat } }\n',
    'catalog/beta.yaml': 'provider: beta\nmodels: { three: { api: chat } }\n',
  })
  expect(problems).toEqual([])
  expect([...(snapshot?.providers.values() ?? [])].map(({ slug, name }) => `${slug} ${name}`).sort()).toEqual([
    'acme Mine',
    'beta Acme',
  ])
  expect(
    snapshot?.catalog
      .list()
      .map(({ model }) => model)
      .sort(),
  ).toEqual(['one', 'three'])
})

test('a text is that folder alone', async () => {
  const { snapshot } = await build({
    ...ofAcme,
    'config.yaml': 'folders: { providers: ./providers, catalog: ./catalog }\n',
  })
  expect([...(snapshot?.providers.keys() ?? [])]).toEqual(['acme'])
  const { config } = await loadConfig(
    join(folderOf({ 'config.yaml': 'folders: { providers: shipped }\n' }), 'config.yaml'),
    {},
  )
  expect(config?.folders.providers).toEqual([
    { path: expect.stringMatching(/router-[^/]*\/shipped$/), isShipped: false },
  ])
})

test('`shipped` adds the files of the program below those of the configuration', async () => {
  const { snapshot, problems } = await build({
    ...ofAcme,
    'config.yaml': lists,
    'providers/groq.yaml': shippedText('providers/groq.yaml').replace('name: Groq', 'name: Mine'),
  })
  expect(problems).toEqual([])
  expect(snapshot?.providers.get('groq')).toMatchObject({
    name: 'Mine',
    file: expect.stringMatching(/router-.*groq\.yaml$/),
  })
  expect(snapshot?.providers.get('mistral')?.name).toBe('Mistral')
  expect(snapshot?.providers.has('acme')).toBe(true)
  expect(snapshot?.catalog.find('groq', 'openai/gpt-oss-120b')).toBeDefined()
})

test('shipped providers without a secret are off until they are named', async () => {
  const { snapshot } = await build({ 'config.yaml': lists })
  const local = ['demo', 'llama-cpp', 'lmstudio', 'ollama', 'sglang', 'vllm']
  expect([...(snapshot?.off.keys() ?? [])].filter((slug) => !/-(?:responses|messages)$/.test(slug)).sort()).toEqual(
    local,
  )
  expect(snapshot?.off.get('ollama')).toContain('`providers: { ollama: {} }`')
  const named = await build({ 'config.yaml': `${lists}providers: { ollama: {}, vllm: }\n` })
  const served = [...(named.snapshot?.providers.keys() ?? [])].filter((slug) => /^(?:ollama|vllm|lmstudio)/.test(slug))
  expect(served.sort()).toEqual([
    ...['ollama', 'ollama-cloud', 'ollama-messages', 'ollama-responses'],
    ...['vllm', 'vllm-messages', 'vllm-responses'],
  ])
  const own = await build({ 'config.yaml': lists, 'providers/vllm.yaml': shippedText('providers/vllm.yaml') })
  expect(own.snapshot?.providers.has('vllm')).toBe(true)
})

test('a configuration without folders uses its own files and, below them, the shipped ones', async () => {
  const { snapshot, problems } = await build({ 'config.yaml': `${noFolders}providers: { demo: {} }\n` })
  expect(problems).toEqual([])
  expect(snapshot?.providers.has('openai')).toBe(true)
  expect(snapshot?.catalog.find('demo', 'echo')).toBeDefined()
  const own = await build({ ...ofAcme, 'config.yaml': noFolders })
  expect(own.snapshot?.providers.has('acme')).toBe(true)
  expect(own.problems).toEqual([])
})

test('shipped providers that serve beside own ones, unasked, are named in a warning', async () => {
  const env = { GROQ_API_KEY: 'groq' }
  const { problems } = await build({ ...ofAcme, 'config.yaml': noFolders }, env)
  expect(problems).toEqual([
    expect.stringContaining(
      'shipped providers serve beside your own, because their variables are set: `groq`, `groq-responses`; write',
    ),
  ])
  for (const config of [lists, 'folders: {}\n', `${noFolders}providers: { groq: {}, groq-responses: {} }\n`]) {
    expect((await build({ ...ofAcme, 'config.yaml': config }, env)).problems).toEqual([])
  }
  expect((await build({ 'config.yaml': noFolders }, env)).problems).toEqual([])
})

test('an own manifest with another address moves the shipped variants of its account, or switches them off', async () => {
  const moved = (slug: string, from: string) =>
    shippedText(`providers/${slug}.yaml`).replace(from, `https://eu.${slug}.example/v1`)
  const { snapshot, problems } = await build({
    'config.yaml': lists,
    'providers/openai.yaml': moved('openai', 'https://api.openai.com/v1'),
    'providers/zai.yaml': moved('zai', 'https://api.z.ai/api/paas/v4'),
  })
  expect(snapshot?.providers.get('openai-responses')?.baseUrl).toBe('https://eu.openai.example/v1')
  expect(snapshot?.providers.has('zai-messages')).toBe(false)
  expect(problems).toEqual([
    expect.stringContaining('`zai-messages` is switched off: the base_url of `zai` is not the shipped one'),
  ])
})

test('an own file that cannot be used is never replaced by the shipped one', async () => {
  const { snapshot } = await build({
    'config.yaml': lists,
    'providers/openai.yaml': 'slug: openai\nbase_ulr: https://eu.openai.example/v1\n',
    'providers/bedrock.yaml': 'slug: [\n',
    'providers/groq.yml': shippedText('providers/groq.yaml'),
  })
  const slugs = ['openai', 'openai-responses', 'bedrock', 'bedrock-responses', 'groq', 'groq-responses']
  expect(slugs.filter((slug) => snapshot?.providers.has(slug))).toEqual([])
  expect(slugs.filter((slug) => !snapshot?.unavailable.providers.has(slug))).toEqual([])
  expect(snapshot?.providers.has('mistral')).toBe(true)
})

test('a reload sees a file that appears over a shipped one, and one that goes', async () => {
  const { folder, snapshot } = await build({ 'config.yaml': lists })
  writeIn(folder, 'providers/groq.yaml', shippedText('providers/groq.yaml').replace('name: Groq', 'name: Mine'))
  const { snapshot: next } = await buildSnapshot(join(folder, 'config.yaml'), {}, { previous: snapshot })
  expect(next?.providers.get('groq')?.name).toBe('Mine')
})

test('an ejected file is used, and `check` says when the shipped one is newer', async () => {
  const folder = folderOf({ 'config.yaml': noFolders })
  const config = ['--config', join(folder, 'config.yaml')]
  const copied = await ran(eject, 'providers/groq.yaml', 'providers/dialects/openai-chat.yaml', ...config)
  expect([copied.code, copied.stderr]).toEqual([0, ''])
  const file = join(folder, 'providers/groq.yaml')
  const text = readFileSync(file, 'utf8')
  expect(text).toBe(`${text.split('\n')[0]}\n${shippedText('providers/groq.yaml')}`)
  const good = await ran(check, file, ...config)
  expect([good.code, good.stdout]).toEqual([0, expect.stringContaining('no problems')])
  const again = await ran(eject, 'providers/groq.yaml', ...config)
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('--force')])
  // As if a later version had changed the file.
  writeFileSync(file, text.replace(/[0-9a-f]{16}\n/, '0123456789abcdef\n'))
  const old = await ran(check, file, ...config)
  expect([old.code, old.stdout]).toEqual([
    0,
    expect.stringMatching(/:1:1: warning: older than the shipped providers\/groq\.yaml/),
  ])
  const [, now = ''] = /write ([0-9a-f]{16}) instead/.exec(old.stdout) ?? []
  writeFileSync(file, text.replace(/[0-9a-f]{16}\n/, `${now}\n`))
  expect((await ran(check, file, ...config)).stdout).toContain('no problems')
  expect((await ran(eject, 'providers/groq.yaml', '--force', ...config)).code).toBe(0)
})

test('only shipped files can be ejected, and only to a folder of one’s own', async () => {
  const config = (text: string) => ['--config', join(folderOf({ 'config.yaml': text }), 'config.yaml')]
  for (const path of ['../config.yaml', 'config.yaml', 'providers/../config.yaml', '/etc/passwd', 'plugins/cache']) {
    expect((await ran(eject, path, ...config(noFolders))).code).toBe(2)
  }
  expect((await ran(eject, 'providers/nobody.yaml', ...config(noFolders))).stderr).toContain('There is no shipped file')
  const none = await ran(eject, 'providers/groq.yaml', ...config('folders: { providers: [shipped] }\n'))
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('providers: [./my-providers, shipped]')])
})

const working = process.cwd()
let home: string
beforeEach(() => {
  home = realpathSync(folderOf({}))
})
afterEach(() => process.chdir(working))

const own = join(root, 'config.yaml')

test('without a configuration the database is among the data of the user, never inside the program', async () => {
  process.chdir(home)
  const { config } = await loadConfig(own, { XDG_DATA_HOME: join(home, 'data') })
  const inProgram = join(root, 'data/router.sqlite')
  const expected = [`sqlite:${join(home, 'data/inference-router/router.sqlite')}`, `sqlite:${inProgram}`]
  expect(expected).toContain(config?.store.url)
  // Only a database that is there already stays where it is.
  expect(config?.store.url === expected[1]).toBe(existsIn(inProgram))
})

test('a configuration has its database beside it', async () => {
  process.chdir(home)
  mkdirSync(join(home, 'etc'))
  writeFileSync(join(home, 'etc/config.yaml'), '')
  const { config } = await loadConfig(join(home, 'etc/config.yaml'), { XDG_DATA_HOME: join(home, 'data') })
  expect(config?.store.url).toBe(`sqlite:${join(home, 'etc/data/router.sqlite')}`)
})

/** Checks whether a file is there. */
function existsIn(file: string): boolean {
  try {
    readFileSync(file)
    return true
  } catch {
    return false
  }
}
