import { beforeEach, expect, test } from 'vitest'
import { prove } from '../../src/manifest/check/proof.ts'
import type { Dialects } from '../../src/manifest/read/dialect.ts'
import { type FileCache, noCache } from '../../src/manifest/read/file-cache.ts'
import { filesOf } from '../../src/manifest/read/layer.ts'
import { loadManifest } from '../../src/manifest/read/manifest.ts'
import { readSource } from '../../src/manifest/read/source.ts'
import { acme, formatted, loadedDialect, plainDialect } from './files.ts'

const kept = new Map<string, unknown>()
const cache: FileCache = {
  ...noCache,
  read: (about) => kept.get(JSON.stringify(about)),
  write: (about, value) => kept.set(JSON.stringify(about), value),
}
beforeEach(() => kept.clear())

const right = `${acme}examples: [{ name: e, answers: { said: a }, means: { finish: stop } }]\n`
const wrong = right.replace('finish: stop', 'finish: length')

function load(text: string, { dialect = plainDialect, sound = true } = {}) {
  const plain = loadedDialect(dialect)
  if (sound) plain.layer.source.sound = ''
  const dialects: Dialects = new Map([['plain', plain]])
  const source = readSource('acme.yaml', text)
  const { loaded } = loadManifest(source, { dialects, env: {} })
  if (!loaded) throw new Error('the manifest was not loaded')
  if (sound) source.sound = ''
  return { provider: loaded.provider, layers: loaded.layers, files: filesOf(loaded.layers) }
}

async function proved(...given: Parameters<typeof load>): Promise<string[]> {
  return formatted((await prove(load(...given), cache)).problems)
}

test('what was proved once is not compiled or run again with the same files', async () => {
  expect(await proved(right)).toEqual([])
  const again = load(right)
  for (const mapping of again.layers.flatMap(({ places }) => [...places.keys()]))
    Object.assign(mapping, { explain: () => expect.fail('it was compiled'), run: () => expect.fail('it was run') })
  expect(await prove(again, cache)).toEqual({ problems: [], interpreted: new Set() })
})

test('a mistake is found however often it is looked for, and whatever was proved before', async () => {
  expect(await proved(right)).toEqual([])
  const problem = expect.stringContaining("example 'e': means (from answers) differs at finish")
  for (let time = 0; time < 3; time++) expect(await proved(wrong)).toEqual([problem])
  expect(await proved(right)).toEqual([])
})

test('a change of the dialect, or of a setting that facts depend on, is a proof of its own', async () => {
  expect(await proved(right)).toEqual([])
  const dialect = plainDialect.replace('"finish": "stop"', '"finish": "length"')
  expect(await proved(right, { dialect })).toEqual([expect.stringContaining('differs at finish')])
  const { provider, ...rest } = load(right)
  await prove({ ...rest, provider: { ...provider, refuseRetired: true } }, cache)
  expect(kept.size).toBe(2)
})

test('nothing is kept of files with problems, of interpreted mappings and of functions of plugins', async () => {
  await proved(right, { sound: false })
  expect(kept.size).toBe(0)
  const interpreted = `${right}failure: '$eval("1")'\n`
  for (let time = 0; time < 2; time++) {
    const proof = await prove(load(interpreted), cache)
    expect([...proof.interpreted].map(({ fallback }) => fallback)).toEqual(['$eval'])
  }
  const withFunctions = load(right)
  // That of a dialect is enough: examples of the manifest run it.
  for (const mapping of withFunctions.layers[0]?.places.keys() ?? []) Object.assign(mapping, { functions: {} })
  await prove(withFunctions, cache)
  expect(kept.size).toBe(0)
})
