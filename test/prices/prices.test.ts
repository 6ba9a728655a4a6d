// @module-tag slow
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { isRetired, type ModelEntry } from '../../src/core/models/model.ts'
import { shippedModels } from '../money/catalog.ts'
import { difference } from './differences.ts'
import { comparedAt, modelsDevProviders, priceLists } from './price-lists.ts'

/** Reasons by list, each with the models that it explains and how many times as much as there they cost here. */
type Reasons = { [list: string]: { because: string; models: { [model: string]: number } }[] }

const { neither, ...reasons } = parse(readFileSync(join(import.meta.dirname, 'reasons.yaml'), 'utf8')) as Reasons & {
  neither: { because: string; models?: string[]; providers?: string[] }[]
}

test.each(priceLists)('the catalog costs what $name says, or a reason is written down', (list) => {
  const found = new Map<string, number>()
  let known = 0
  for (const [id, provider, model, entry] of allModels()) {
    const times = difference(list, provider, model, entry)
    if (times !== undefined) known++
    if (times !== undefined && times !== 1) found.set(id, times)
  }
  const explained = new Map((reasons[list.name] ?? []).flatMap(({ models }) => Object.entries(models)))
  const without = [...found].filter(([id, times]) => explained.get(id) !== times)
  expect(without.map(asLine), 'without a reason').toEqual([])
  expect(
    [...explained.keys()].filter((id) => !found.has(id)),
    'with a reason, but they agree',
  ).toEqual([])
  console.info(`${known - found.size} of ${known} models cost what ${list.name} says; the others are explained`)
  expect(known - found.size).toBeGreaterThan(400)
})

test('a model that neither list knows is named, or its provider, with the reason', () => {
  const known = new Set<string>()
  const all = new Set<string>()
  for (const [id, provider, model, entry] of allModels()) {
    // An alias is known with its model.
    if (Object.hasOwn(shippedModels(provider).models, model)) all.add(id)
    const names = [model, ...(entry.aliases ?? [])]
    const isKnown = priceLists.some((list) =>
      names.some((name) => difference(list, provider, name, entry) !== undefined),
    )
    if (isKnown) known.add(id)
  }
  const providers = neither.flatMap(({ providers = [] }) => providers)
  const unknown = [...all].filter((id) => !known.has(id))
  const ofProvider = (id: string) => providers.find((provider) => id.startsWith(`${provider}/`))
  const named = neither.flatMap(({ models = [] }) => models)
  expect(named.toSorted()).toEqual(unknown.filter((id) => !ofProvider(id)).toSorted())
  expect(
    providers.filter((provider) => [...known].some((id) => id.startsWith(`${provider}/`))),
    'known after all',
  ).toEqual([])
  expect(new Set(unknown.map(ofProvider).filter(Boolean))).toEqual(new Set(providers))
})

test.each(Object.entries(modelsDevProviders))('the catalog of %s says what lists call it', (provider, names) => {
  const text = readFileSync(join(import.meta.dirname, '../../catalog', `${provider}.yaml`), 'utf8')
  const { listed_as: listed } = parse(text) as { listed_as?: { models_dev?: string | string[] } }
  expect([listed?.models_dev ?? provider].flat()).toEqual(names)
})

test('every reason is of a known list and says why', () => {
  expect(Object.keys(reasons).sort()).toEqual(priceLists.map(({ name }) => name).sort())
  for (const { because } of [...neither, ...Object.values(reasons).flat()]) expect(because).toMatch(/\w+ \w+/)
  const ids = Object.values(reasons).map((all) => all.flatMap(({ models }) => Object.keys(models)))
  for (const list of ids) expect(list.filter((id, index) => list.indexOf(id) !== index)).toEqual([])
})

/** Every model under each of its names. */
function* allModels(): Iterable<[id: string, provider: string, model: string, entry: ModelEntry]> {
  for (const file of readdirSync(join(import.meta.dirname, '../../catalog'))) {
    const provider = file.replace('.yaml', '')
    const { defaults, models } = shippedModels(provider)
    for (const [id, own] of Object.entries(models)) {
      const entry = { ...defaults, ...own } as ModelEntry
      if (isRetired(entry, comparedAt.getTime())) continue
      for (const name of [id, ...(entry.aliases ?? [])]) yield [`${provider}/${name}`, provider, name, entry]
    }
  }
}

/** As reasons.yaml has it. */
function asLine([id, times]: [id: string, times: number]): string {
  return `${id}: ${times}`
}
