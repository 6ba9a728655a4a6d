import type { ModelDirectory } from '../management/names.ts'
import type { Listable } from '../routing/names/listed.ts'
import { ModelNames } from '../routing/names/model-names.ts'
import { placeOf, type Snapshot } from '../snapshot/snapshot.ts'

/**
 * Returns the directory of a snapshot, against which names are resolved. One object for each snapshot, so that lists can be cached by it.
 */
export function directoryOf(snapshot: Snapshot): ModelDirectory & Listable {
  const known = directories.get(snapshot)
  if (known) return known
  const { providers, off, catalog, config, plugins } = snapshot
  const modelIds = () => catalog.list().map(({ provider, model }) => `${provider}/${model}`)
  const names = {
    providers,
    off,
    unavailable: unavailablePlaces(snapshot),
    findModel: catalog.find,
    identify: catalog.identify,
    managed: config.policies,
    names: new ModelNames(catalog.list, Object.keys(config.providers)),
    unprefixed: config.unprefixedModels,
    routing: config.routing,
    refuseRetired: config.refuseRetired,
    plugins: plugins.map(({ name }) => name),
  }
  const places = () => new Set([...commonPlaces, ...catalog.list().flatMap(({ entry }) => entry.geolocation ?? [])])
  const directory = { ...names, modelIds, places, models: catalog.list }
  directories.set(snapshot, directory)
  return directory
}

/** Returns the places of the errors because of which providers are not in use, by slug. */
export function unavailablePlaces({
  unavailable,
  config,
  off,
}: Pick<Snapshot, 'unavailable' | 'config' | 'off'>): ReadonlyMap<string, string> {
  const isOff = (slug: string) => off.has(slug) || config.providers[slug]?.enabled === false
  const wanted = [...unavailable.providers].filter(([slug]) => !isOff(slug))
  return new Map(wanted.map(([slug, problem]) => [slug, placeOf(problem, config.path)]))
}

/** Geolocations that rules may name before any model has them. */
const commonPlaces = ['global', 'us', 'eu']

const directories = new WeakMap<Snapshot, ModelDirectory & Listable>()
