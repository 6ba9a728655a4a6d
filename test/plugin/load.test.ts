import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { formatProblem } from '../../src/manifest/check/problem.ts'
import type { KnownSources } from '../../src/manifest/read/folder.ts'
import { buildSnapshot, type Snapshot } from '../../src/snapshot/snapshot.ts'
import { slow } from '../helpers/slow.ts'

/** The shipped dialects, read once. */
let shipped: KnownSources = new Map()
const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** A folder with plugins; `listed` is what config.yaml says of them. */
function world(files: Record<string, string>, listed = '[{ name: one }]') {
  const folder = mkdtempSync(join(tmpdir(), 'plugins-'))
  folders.push(folder)
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  put('config.yaml', `plugins: ${listed}\n`)
  for (const [path, text] of Object.entries(files)) put(path, text)
  const build = async (previous?: Snapshot, env = {}) => {
    const built = await buildSnapshot(join(folder, 'config.yaml'), env, {
      previous,
      known: previous?.sources ?? shipped,
    })
    shipped = built.snapshot?.sources ?? shipped
    const problems = built.problems.map(formatProblem).map((line) => line.replaceAll(`${folder}/`, ''))
    return { snapshot: built.snapshot as Snapshot, problems }
  }
  return { folder, put, build }
}

const greets = (word: string) => `
import { definePlugin } from 'inference-router/plugin'

export default definePlugin({
  setup: () => ({ functions: { greeting: (): string => '${word}' } }),
})
`

const greetingOf = ({ plugins }: Snapshot) => plugins[0]?.hooks.functions?.greeting?.()

describe('a plugin', () => {
  test('is a file or a folder, with the defaults of what config.yaml does not say', async () => {
    const listed = '[{ name: two, on_error: closed, timeout: 50ms, organizations: [a], enabled: false }, { name: one }]'
    const { build } = world(
      { 'plugins/one.ts': 'export default { setup: () => ({}) }', 'plugins/two/index.ts': greets('2') },
      listed,
    )
    const { snapshot, problems } = await build()
    expect(problems).toEqual([])
    const organizations = new Set(['a'])
    expect(snapshot.plugins).toEqual([
      { name: 'two', onError: 'closed', timeoutMs: 50, organizations, enabled: false, hooks: expect.anything() },
      { name: 'one', onError: 'open', timeoutMs: 1_000, organizations: 'all', enabled: true, hooks: expect.anything() },
    ])
    expect(greetingOf(snapshot)).toBe('2')
  })

  test('gets its options with the defaults of its schema, and says itself how long it may take and what its failure means', async () => {
    const text = `
      import { definePlugin } from 'inference-router/plugin'
      export default definePlugin<{ words: string[]; most: number }>({
        options: { properties: { words: { type: 'array' }, most: { type: 'number', default: 7 } } },
        timeoutMs: 30,
        onError: 'closed',
        setup: (options) => ({ functions: { greeting: () => ({ ...options }) } }),
      })`
    const { build } = world({ 'plugins/one.ts': text }, '[{ name: one, options: { words: ["${WORD:-b}"] } }]')
    const { snapshot, problems } = await build()
    expect(problems).toEqual([])
    expect(greetingOf(snapshot)).toEqual({ words: ['b'], most: 7 })
    expect(snapshot.plugins[0]).toMatchObject({ timeoutMs: 30, onError: 'closed' })
  })

  test('is loaded anew with what it imports when one of them changes, and kept when nothing of it does', async () => {
    const text = `import { word } from './words/greeting.ts'\n${greets('').replace("'';", 'word').replace("''", 'word')}`
    const { put, build } = world({ 'plugins/one.ts': text, 'plugins/words/greeting.ts': "export const word = 'hi'" })
    const first = (await build()).snapshot
    put('plugins/words/other.ts', 'export const other = 1')
    put('config.yaml', 'plugins: [{ name: one, enabled: false }]\n')
    const second = (await build(first)).snapshot
    expect(second.generation).toBe(2)
    expect(second.plugins[0]?.hooks).toBe(first.plugins[0]?.hooks)
    expect((await build(second)).snapshot).toBe(second)
    put('plugins/words/greeting.ts', "export const word = 'hello'")
    const third = (await build(second)).snapshot
    expect([greetingOf(first), greetingOf(third)]).toEqual(['hi', 'hello'])
  })

  test('moves from a file to a folder, and the other way', slow, async () => {
    const { folder, put, build } = world({ 'plugins/one/index.ts': greets('folder') })
    const first = (await build()).snapshot
    put('plugins/one.ts', greets('file'))
    const second = (await build(first)).snapshot
    rmSync(join(folder, 'plugins/one.ts'))
    const third = (await build(second)).snapshot
    expect([first, second, third].map(greetingOf)).toEqual(['folder', 'file', 'folder'])
  })

  test('is set up again for other options', async () => {
    const text = `export default {
      options: { properties: { word: { type: 'string' } } },
      setup: ({ word }) => ({ functions: { greeting: () => word } }),
    }`
    const { put, build } = world({ 'plugins/one.ts': text }, '[{ name: one, options: { word: a } }]')
    const first = (await build()).snapshot
    put('config.yaml', 'plugins: [{ name: one, options: { word: b } }]\n')
    const second = (await build(first)).snapshot
    expect([greetingOf(first), greetingOf(second)]).toEqual(['a', 'b'])
  })

  test('may import JSON, packages and modules of Node, and the contract is that of the router', async () => {
    const text = `
      import { LRUCache } from 'lru-cache'
      import { hash } from 'node:crypto'
      import { Refusal } from 'inference-router/plugin'
      import words from './words.json' with { type: 'json' }
      const refusal = new Refusal(403, words.no, { param: 'model' })
      export default { setup: () => ({ functions: { greeting: () => refusal } }) }
      new LRUCache({ max: 1 }).set(hash('sha256', 'a'), 1)`
    const { folder, put, build } = world({ 'plugins/one.ts': text, 'plugins/words.json': '{"no": "No."}' })
    put('plugins/node_modules/lru-cache/package.json', '{"type": "module", "exports": "./index.js"}')
    put('plugins/node_modules/lru-cache/index.js', 'export class LRUCache { set() {} }')
    const { snapshot, problems } = await build()
    expect(problems).toEqual([])
    const { Refusal } = await import('../../src/plugin/contract.ts')
    expect(greetingOf(snapshot)).toEqual(new Refusal(403, 'No.', { param: 'model' }))
    expect(greetingOf(snapshot)).toBeInstanceOf(Refusal)
    expect([...(snapshot.instances[0]?.files.keys() ?? [])].sort()).toEqual(
      ['plugins/one.ts', 'plugins/words.json'].map((path) => join(folder, path)),
    )
  })
})

describe('what is wrong with a plugin is told with its place', () => {
  const plugin = (hooks: string) => `export default {\n  setup() {\n    return ${hooks}\n  },\n}\n`
  const schema = "{ properties: { word: { type: 'string', minLength: 1 } }, required: ['word'] }"
  const withOptions = `export default { options: ${schema}, setup: () => ({}) }`
  test.each<[what: string, files: Record<string, string>, listed: string | undefined, problem: string]>([
    [
      'no such file',
      { 'plugins/ones.ts': plugin('{}') },
      undefined,
      'config.yaml:1:19: there is no plugin `one`: neither one.ts nor one/index.ts in plugins; did you mean `ones`?',
    ],
    [
      'twice',
      { 'plugins/one.ts': plugin('{}') },
      '[{ name: one }, { name: one }]',
      'config.yaml:1:34: the plugin `one` is listed twice',
    ],
    [
      'a name that is a path',
      {},
      '[{ name: ../one }]',
      'config.yaml:1:19: `plugins[0].name` must be the name of a plugin',
    ],
    [
      'a syntax error',
      { 'plugins/one.ts': 'export default {\n  a: 1,\n  b b: 2,\n}\n' },
      undefined,
      'plugins/one.ts:3:5: ',
    ],
    [
      'TypeScript that needs a compiler',
      { 'plugins/one.ts': 'const a = 1\nenum B { c }\n' },
      undefined,
      'plugins/one.ts:2:1: TypeScript enum is not supported',
    ],
    [
      'an error in what it imports',
      { 'plugins/one.ts': "import './other.ts'", 'plugins/other.ts': '\nconst const' },
      undefined,
      'plugins/other.ts:2:',
    ],
    [
      'a missing export',
      { 'plugins/one.ts': "import {\n  a,\n} from './other.ts'", 'plugins/other.ts': '' },
      undefined,
      'plugins/one.ts:2:3: The requested module',
    ],
    [
      'an import of nothing',
      { 'plugins/one.ts': "\n  import './other'", 'plugins/other.ts': '' },
      undefined,
      'plugins/one.ts:2:10: there is no file plugins/other; add its extension .ts',
    ],
    [
      'an unknown package',
      { 'plugins/one.ts': "import 'no-such'" },
      undefined,
      "plugins/one.ts:1:8: Cannot find package 'no-such'",
    ],
    [
      'an import from elsewhere',
      { 'plugins/one.ts': "import '../config.yaml'" },
      undefined,
      'plugins/one.ts:1:8: a plugin may only import files below plugins',
    ],
    [
      'an import of the router',
      { 'plugins/one.ts': `import '${join(import.meta.dirname, '../../src/store/open.ts')}'` },
      undefined,
      'plugins/one.ts:1:8: a plugin may only import files below plugins',
    ],
    [
      'another kind of file',
      { 'plugins/one.ts': "import './a.cjs'", 'plugins/a.cjs': '' },
      undefined,
      'plugins/a.cjs:1:1: a plugin consists of',
    ],
    [
      'no default export',
      { 'plugins/one.ts': 'export const a = 1' },
      undefined,
      'plugins/one.ts:1:1: the file needs `export default',
    ],
    [
      'no setup',
      { 'plugins/one.ts': '\nexport default {}' },
      undefined,
      'plugins/one.ts:2:1: the plugin needs a function `setup`',
    ],
    [
      'a typo',
      { 'plugins/one.ts': 'export default {\n  set_up() {} }' },
      undefined,
      'plugins/one.ts:2:3: unknown member `set_up`; did you mean `setup`?',
    ],
    [
      'a throw at its top',
      { 'plugins/one.ts': 'const a = 1\n\nthrow new Error("no luck")' },
      undefined,
      'plugins/one.ts:3:7: no luck',
    ],
    [
      'a setup that throws',
      { 'plugins/one.ts': `${plugin('load()')}function load(): never {\n  throw new TypeError("no luck")\n}` },
      undefined,
      'plugins/one.ts:7:9: `setup`: no luck',
    ],
    [
      'an unknown hook',
      { 'plugins/one.ts': plugin('{ requests() {} }') },
      undefined,
      'plugins/one.ts:3:14: unknown member `requests`; did you mean `request`?',
    ],
    [
      'a hook that is none',
      { 'plugins/one.ts': plugin('{ event: 1 }') },
      undefined,
      'plugins/one.ts:3:14: `event` must be a function',
    ],
    [
      'a function of mappings by a name that is taken',
      { 'plugins/one.ts': plugin('{ functions: { uppercase() {} } }') },
      undefined,
      'plugins/one.ts:3:27: mappings already have a function `$uppercase`',
    ],
    [
      'options that it does not have',
      { 'plugins/one.ts': plugin('{}') },
      '[{ name: one, options: { a: 1 } }]',
      'config.yaml:1:33: the plugin `one` has no options',
    ],
    ['a missing option', { 'plugins/one.ts': withOptions }, undefined, 'config.yaml:1:11: `options` needs `word`'],
    [
      'a wrong option',
      { 'plugins/one.ts': withOptions },
      '[{ name: one, options: { word: 1 } }]',
      'config.yaml:1:41: `word` must be a string, not 1',
    ],
    [
      'an unknown option',
      { 'plugins/one.ts': withOptions },
      '[{ name: one, options: { word: a, words: b } }]',
      'config.yaml:1:44: unknown field `words`; did you mean `word`?',
    ],
    [
      'a schema that is none',
      { 'plugins/one.ts': 'export default { setup() {},\n  options: { type: 1 } }' },
      undefined,
      'plugins/one.ts:2:3: `options` is not a valid JSON schema',
    ],
  ])('%s', async (_, files, listed, problem) => {
    const { folder, build } = world(files, listed)
    const { problems } = await build()
    expect(problems).toHaveLength(1)
    expect(problems[0]?.replaceAll(`${folder}/`, '')).toContain(problem)
  })

  test('a plugin that breaks leaves the old generation as it is', async () => {
    const { put, build } = world({ 'plugins/one.ts': greets('old') })
    const first = (await build()).snapshot
    put('plugins/one.ts', `${greets('new')}\nnonsense(`)
    const { snapshot, problems } = await build(first)
    expect(snapshot).toBe(first)
    expect(problems).toEqual([expect.stringMatching(/^plugins\/one\.ts:\d+:\d+: /)])
    expect(greetingOf(first)).toBe('old')
    put('plugins/one.ts', greets('new'))
    expect(greetingOf((await build(first)).snapshot)).toBe('new')
  })

  test('those that are set up beside a broken one are ended, those of the old generation are not', async () => {
    const ends =
      "export default { setup: () => ({ async [Symbol.asyncDispose]() { globalThis.endedPlugins.push('NAME') } }) }"
    const ended: string[] = []
    Object.assign(globalThis, { endedPlugins: ended })
    const { put, build } = world({ 'plugins/one.ts': ends.replace('NAME', 'one') })
    const first = (await build()).snapshot
    put('config.yaml', 'plugins: [{ name: one }, { name: two }, { name: three }]\n')
    put('plugins/two.ts', ends.replace('NAME', 'two'))
    expect((await build(first)).problems).toEqual([expect.stringContaining('there is no plugin `three`')])
    expect(ended).toEqual(['two'])
    await first.instances[0]?.close()
    expect(ended).toEqual(['two', 'one'])
  })
})

test('no credential of a provider is in the environment while plugins run, nor in their hands', async () => {
  const text = `export default {
    setup: (_, { secret }) => {
      const read = (name) => { try { return secret(name) } catch (error) { return error.message } }
      return { functions: { greeting: () => [process.env.ACME_KEY, read('$ACME_KEY'), read('$HOOK'), read('$NONE'), read('plain')] } }
    },
  }`
  const manifest = `slug: acme
name: Acme
base_url: http://127.0.0.1:9
auth: { scheme: bearer, secret: "\${ACME_KEY}" }
dialect: openai-chat
unknown_models: pass
`
  const { build } = world({ 'plugins/one.ts': text, 'providers/acme.yaml': manifest })
  process.env.ACME_KEY = 'secret-of-acme'
  const { snapshot, problems } = await build(undefined, { ACME_KEY: 'secret-of-acme', HOOK: 'hook-secret' })
  expect(problems).toEqual([])
  expect(snapshot.providers.get('acme')?.auth).toEqual({ scheme: 'bearer', secret: 'secret-of-acme' })
  expect(greetingOf(snapshot)).toEqual([
    undefined,
    'ACME_KEY is a credential of a provider, which plugins do not get.',
    'hook-secret',
    'The variable NONE is not set.',
    'Name a secret by the variable that contains it: $NAME.',
  ])
})
