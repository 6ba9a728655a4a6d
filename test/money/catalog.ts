import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ModelEntry } from '../../src/core/models/model.ts'
import { readSource } from '../../src/manifest/read/source.ts'

type Section = { defaults?: Partial<ModelEntry>; models: { [id: string]: Partial<ModelEntry> } }
type File = Section & { by_api?: { [api: string]: Section } }

const files = new Map<string, File>()

/** A model of the shipped catalog by `<provider>/<model>`, aliases included. Throws when it is not there. */
export function shippedEntry(name: string): ModelEntry {
  const provider = name.slice(0, name.indexOf('/'))
  const model = name.slice(provider.length + 1)
  const { defaults, models } = shippedModels(provider)
  const [, own] =
    Object.entries(models).find(([id, { aliases }]) => id === model || aliases?.includes(model)) ?? missing(name)
  return { ...defaults, ...own } as ModelEntry
}

/** The catalog file of a provider. */
export function shippedModels(provider: string): File {
  const known = files.get(provider)
  if (known) return known
  const text = readFileSync(join(import.meta.dirname, `../../catalog/${provider}.yaml`), 'utf8')
  const file = readSource(`catalog/${provider}.yaml`, text).value as File
  files.set(provider, file)
  return file
}

function missing(name: string): never {
  throw new Error(`no model ${name} in the catalog`)
}
