import { join } from 'node:path'
import { expect, test } from 'vitest'
import { entryOf, loadOne, readInput } from '../../src/cli/load-one.ts'
import { formatProblem } from '../../src/manifest/check/problem.ts'
import type { KnownSources } from '../../src/manifest/read/folder.ts'
import { targetFacts } from '../../src/manifest/target.ts'
import { loadConfig } from '../../src/snapshot/config.ts'
import { buildSnapshot } from '../../src/snapshot/snapshot.ts'
import { acme, folderOf, plainDialect } from './files.ts'

const beta = acme.replaceAll('acme', 'beta').replace('Acme', 'Beta')
const files = {
  'config.yaml': 'providers: { acme: { models: { s: { api: chat, context_window: 5 } } } }\n',
  'providers/dialects/plain.yaml': plainDialect,
  'providers/acme.yaml': `${acme}models: { b: { context_window: 2 }, m: { api: chat } }\ntraits: [{ match: ^b, facts: { x: 1, y: 1 } }]\n`,
  'catalog/acme.yaml':
    'provider: acme\ndefaults: { api: chat }\nmodels:\n  a: { aliases: [aa] }\n  b: { context_window: 1, max_output_tokens: 1 }\n',
  'providers/beta.yaml': `${beta}models_of: acme\nmodels: { b: { max_output_tokens: 7 }, own: { api: chat } }\n`,
}

/** The shipped dialects, read once. */
let shipped: KnownSources = new Map()

async function build(changed: { [path: string]: string } = {}) {
  const folder = folderOf({ ...files, ...changed })
  const { snapshot, problems } = await buildSnapshot(join(folder, 'config.yaml'), {}, { known: shipped })
  if (snapshot) shipped = snapshot.sources
  return { folder, snapshot, problems: problems.map((one) => formatProblem(one).replace(`${folder}/`, '')) }
}

test('models of another provider are offered as that one has them; own entries override them', async () => {
  const { folder, snapshot, problems } = await build()
  expect(problems).toEqual([])
  const find = (model: string) => snapshot?.catalog.find('beta', model)
  expect(find('aa')).toEqual({ api: 'chat', aliases: ['aa'] })
  expect(find('b')).toEqual({ api: 'chat', context_window: 2, max_output_tokens: 7 })
  expect([find('m'), find('own'), find('s')?.context_window]).toEqual([{ api: 'chat' }, { api: 'chat' }, 5])
  expect(snapshot?.catalog.find('acme', 'b')?.max_output_tokens).toBe(1)
  expect(snapshot?.catalog.find('acme', 'own')).toBeUndefined()

  // The bench finds the same without reading everything.
  const { config } = await loadConfig(join(folder, 'config.yaml'), {})
  if (!config) throw new Error('the configuration must be readable')
  const { loaded } = await loadOne(await readInput(join(folder, 'providers/beta.yaml')), config, {})
  for (const model of ['aa', 'b', 'm', 'own', 's']) {
    expect(loaded && (await entryOf(loaded.provider, model, config))).toEqual(find(model))
  }
})

test('they are there even while the other provider is switched off', async () => {
  const { snapshot } = await build({ 'config.yaml': 'providers: { acme: { enabled: false } }\n' })
  expect(snapshot?.catalog.find('beta', 'b')).toEqual({ api: 'chat', context_window: 2, max_output_tokens: 7 })
})

test.each([
  ['acmee', 'there is no provider `acmee`; did you mean `acme`?'],
  ['beta', '`models_of` names the provider itself: list its models under `models`'],
  ['gamma', '`gamma` takes its models from `acme`: name that one'],
])('models of %s are a mistake', async (slug, message) => {
  const gamma = `${acme.replaceAll('acme', 'gamma')}models_of: acme\n`
  const { problems } = await build({
    'providers/beta.yaml': `${beta}models_of: ${slug}\n`,
    'providers/gamma.yaml': gamma,
  })
  expect(problems).toEqual([`providers/beta.yaml:6:12: ${message}`])
})

test('model traits are shared, and those of the manifest itself override them', async () => {
  const text = `${beta}traits_of: acme\ntraits: [{ match: '', facts: { y: 2 } }]\n`
  const { snapshot, problems } = await build({ 'providers/beta.yaml': text })
  expect(problems).toEqual([])
  const provider = snapshot?.providers.get('beta')
  expect(provider && targetFacts(provider, { model: 'b1' }).traits).toEqual({ x: 1, y: 2 })
  const { problems: wrong } = await build({
    'providers/beta.yaml': `${beta}variants: [{ match: a, traits_of: acne }]\n`,
  })
  expect(wrong).toEqual(['providers/beta.yaml:6:35: there is no provider `acne`; did you mean `acme`?'])
})
