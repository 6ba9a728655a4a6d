import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { isObject } from '../../src/core/json.ts'
import { proveExamples } from '../../src/manifest/check/examples.ts'
import { loadDialect } from '../../src/manifest/read/dialect.ts'
import { loadManifest } from '../../src/manifest/read/manifest.ts'
import { readSource } from '../../src/manifest/read/source.ts'
import { type RenamedKey, renamedKeys } from '../../src/manifest/renamed-keys.ts'
import { loadConfig } from '../../src/snapshot/config.ts'
import { acme, folderOf, formatted, loadAcme, plainDialect } from './files.ts'

const settings = {
  health: {
    consecutive_failures: 7,
    share: 0.3,
    min_calls: 11,
    window: '7s',
    open_for: '3s',
    max_open: '9s',
    ramp_up: '4s',
  },
}

const endpoint = (when: string) => ({
  path: '/generate',
  unsupported: ['seed', { field: 'top_k', when }],
})
const example = { name: 'a greeting', request: { messages: [] }, target: { signer: 'someone' }, dropped: [] }
const restricted = (name: string) => ({ [name]: { effect: 'cost' } })
const manifest = {
  signer: 'acme-labs',
  restricted: restricted('boost'),
  endpoints: { chat: endpoint('top_k > 9'), embed: { path: '/embed', unsupported: ['user'] } },
  examples: [example],
  variants: [
    {
      match: '^big',
      signer: 'others',
      restricted: restricted('turbo'),
      endpoints: { chat: endpoint('top_k > 5') },
      examples: [example],
    },
  ],
}

/** A file's value with the old names of these keys. */
function withOldNames(value: unknown, keys: readonly RenamedKey[], path: readonly string[] = []): unknown {
  if (Array.isArray(value)) return value.map((item, index) => withOldNames(item, keys, [...path, String(index)]))
  if (!isObject(value)) return value
  const old = (name: string) => keys.find((key) => key.to === name && isAt(key.in, path))?.from ?? name
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [old(name), withOldNames(member, keys, [...path, name])]),
  )
}

function isAt(pattern: readonly string[], path: readonly string[]): boolean {
  return pattern.length === path.length && pattern.every((step, index) => step === '*' || step === path[index])
}

/** What can be compared of a loaded provider: mappings by what they are made of. */
function comparable(value: unknown): unknown {
  if (value instanceof RegExp) return String(value)
  if (value instanceof Map || value instanceof Set) return [...value].map(comparable)
  if (Array.isArray(value)) return value.map(comparable)
  if (typeof value === 'function') return 'a function'
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, comparable(member)]))
}

async function loadSettings(value: unknown) {
  const folder = folderOf({ 'config.yaml': stringify(value) })
  const { config, problems } = await loadConfig(join(folder, 'config.yaml'), {})
  return { settings: config && { ...config, path: '', store: '', folders: '' }, problems }
}

function loadProvider(value: unknown) {
  const { loaded, problems } = loadAcme(`${acme}${stringify(value)}`)
  const layers = loaded?.layers.at(-1)
  return { settings: comparable(loaded?.provider), examples: comparable(layers?.examples), problems }
}

function keysOf(value: unknown): RenamedKey[] {
  return renamedKeys.filter((key) => JSON.stringify(withOldNames(value, [key])) !== JSON.stringify(value))
}

test('every renamed key is in the files of these tests', () => {
  expect(new Set([...keysOf(settings), ...keysOf(manifest)])).toEqual(new Set(renamedKeys))
})

describe.each([
  ['settings', settings, loadSettings],
  ['a manifest', manifest, loadProvider],
] as const)('%s', (_, value, load) => {
  test('with any old names load to the same as with the new ones, and each old name is a warning', async () => {
    const now = await load(value)
    expect(now.problems).toEqual([])
    await fc.assert(
      fc.asyncProperty(fc.subarray(keysOf(value)), async (keys) => {
        const then = await load(withOldNames(value, keys))
        expect({ ...then, problems: [] }).toEqual(now)
        const names = new Set(then.problems.map(({ message }) => message))
        expect(names).toEqual(
          new Set(
            keys.map(
              ({ from, to }) =>
                `\`${from}\` has been renamed to \`${to}\`: the old name will stop working in the next release`,
            ),
          ),
        )
        expect(then.problems.every(({ severity }) => severity === 'warning')).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  test.each(keysOf(value))('$from in $in is read as $to, at the place where it stands', async (key) => {
    const then = await load(withOldNames(value, [key]))
    const { settings: loaded } = await load(value)
    expect(then.settings).toEqual(loaded)
    expect(then.problems.length).toBeGreaterThan(0)
  })
})

test('an old name is reported where it stands, and mistakes below it too', () => {
  const text = `${acme}governed:\n  boost: { effect: costs }\nendpoints:\n  chat:\n    losses: [sed]\n`
  expect(formatted(loadAcme(text).problems)).toEqual([
    '10:5 `losses` has been renamed to `unsupported`: the old name will stop working in the next release',
    '6:1 `governed` has been renamed to `restricted`: the old name will stop working in the next release',
    expect.stringMatching(/^7:20 `restricted\.boost\.effect` must /),
  ])
  expect(formatted(loadAcme(text.replace('costs', 'cost')).problems)).toContainEqual(
    expect.stringMatching(/^10:14 `sed` is neither a field/),
  )
})

test('both names of a key at once are an error that names both', async () => {
  const text = `${acme}maker: one\nsigner: two\n`
  const { loaded, problems } = loadAcme(text)
  expect(loaded).toBeUndefined()
  expect(formatted(problems)).toEqual(['6:1 `maker` is the old name of `signer`: remove one of the two'])
  const folder = folderOf({ 'config.yaml': 'health:\n  open: 1s\n  open_for: 2s\n' })
  const read = await loadConfig(join(folder, 'config.yaml'), {})
  expect(read.config).toBeUndefined()
  expect(formatted(read.problems)).toEqual(['2:3 `open` is the old name of `open_for`: remove one of the two'])
})

test('a dialect with old names works, with warnings, also where a manifest builds on it', async () => {
  const text = `${plainDialect}    losses: [top_k]
governed: { boost: { effect: cost } }
examples:
  - { name: a limit, target: { maker: maker }, request: { top_k: 3, max_output_tokens: 5 }, sends: { limit: 5 }, dropped: [top_k] }
`
  const { dialect, problems } = loadDialect(readSource('plain.yaml', text))
  expect(problems.map(({ severity, message }) => `${severity}: ${message.slice(0, 20)}`)).toEqual([
    'warning: `losses` has been re',
    'warning: `governed` has been ',
    'warning: `maker` has been ren',
  ])
  if (!dialect) throw new Error('no dialect')
  const { loaded } = loadManifest(readSource('acme.yaml', acme), { dialects: new Map([['plain', dialect]]), env: {} })
  expect(loaded?.provider).toMatchObject({
    restricted: [{ name: 'boost' }],
    chat: { unsupported: [{ field: 'top_k' }] },
  })
  expect(loaded && (await proveExamples(loaded.provider, loaded.layers))).toEqual([])
})

test('a mapping may read the former name of a fact about the target, with a warning', async () => {
  const mappings = (member: string) => `endpoints:
  chat:
    request: { body: '{ "model": model, "for": target.${member} }' }
    patch: { request: '$merge([$, { "too": $target.${member} }])' }
examples: [{ name: mine, target: { signer: me }, request: { messages: [] }, sends: { model: model, for: me, too: me } }]
`
  const { loaded, problems } = loadAcme(acme + mappings('maker'))
  expect(problems.map(({ severity, line, message }) => [severity, line, message])).toEqual([
    ['warning', 8, expect.stringContaining('`target.maker` has been renamed to `target.signer`')],
    ['warning', 9, expect.stringContaining('`target.maker` has been renamed to `target.signer`')],
  ])
  expect(loaded && (await proveExamples(loaded.provider, loaded.layers))).toEqual([])
  const { loaded: now, problems: none } = loadAcme(acme + mappings('signer'))
  expect(none).toEqual([])
  expect(now && (await proveExamples(now.provider, now.layers))).toEqual([])
})
