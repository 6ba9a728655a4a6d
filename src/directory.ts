import type { ModelDirectory } from './management/names.ts'
import type { Listable } from './routing/listed.ts'
import type { Snapshot } from './snapshot/snapshot.ts'

/** The directory of a snapshot: what names may lead to. The same object for as long as the snapshot is the current one. */
export function directoryOf(snapshot: Snapshot): ModelDirectory & Listable {
  const { providers, catalog, config } = snapshot
  const modelIds = () => catalog.list().map(({ provider, model }) => `${provider}/${model}`)
  const names = { providers, findModel: catalog.find, managed: config.policies }
  const places = () => new Set([...widelyKnown, ...catalog.list().flatMap(({ entry }) => entry.geolocation ?? [])])
  const known = directories.get(snapshot) ?? { ...names, modelIds, places, models: catalog.list }
  directories.set(snapshot, known)
  return known
}

/** Places that may be asked for before a model is there. */
const widelyKnown = ['global', 'us', 'eu']

const directories = new WeakMap<Snapshot, ModelDirectory & Listable>()
