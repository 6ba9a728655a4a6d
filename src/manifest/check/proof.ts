import type { Mapping } from '../../mapping/mapping.ts'
import type { Provider } from '../provider.ts'
import type { FileCache } from '../read/file-cache.ts'
import type { Layer } from '../read/layer.ts'
import type { Source } from '../read/source.ts'
import { proveExamples } from './examples.ts'
import type { Problem } from './problem.ts'

/** Result of compiling the mappings of a file and running its examples: what is wrong, and the mappings that are not compiled. */
export type Proof = { problems: Problem[]; interpreted: ReadonlySet<Mapping> }

/** A provider, or a dialect as one, with the layers that it is made of and the files that these are in. */
type Provable = { provider: Provider; layers: readonly Layer[]; files: readonly Source[] }

/** Proves a provider's last layer, unless this was done before with the same files, and nothing was found. */
export async function prove({ provider, layers, files }: Provable, cache: FileCache): Promise<Proof> {
  // Functions of plugins may be other ones the next time.
  const isLasting = files.every(({ sound }) => sound !== undefined) && layers.every(isBare)
  const about = aboutOf(provider, files)
  if (isLasting && cache.read(about) === true) return { problems: [], interpreted: new Set() }
  const problems = await proveExamples(provider, layers)
  const interpreted = new Set(ownMappings(layers).filter(isInterpreted))
  if (isLasting && problems.length === 0 && interpreted.size === 0) cache.write(about, true)
  return { problems, interpreted }
}

/** Checks whether the mappings of a layer know no functions but the router's. */
function isBare({ places, variants }: Layer): boolean {
  const own = [...places.keys()].every(({ functions }) => functions === undefined)
  return own && variants.every(({ layers }) => layers.every(isBare))
}

/** The mappings of the last layer and of the variants in it. */
function ownMappings(layers: readonly Layer[]): Mapping[] {
  const own = layers.at(-1)
  return own ? [...own.places.keys(), ...own.variants.flatMap((variant) => ownMappings(variant.layers))] : []
}

/** Checks whether a mapping is one for the interpreter. One that does not compile for another reason is a problem. */
function isInterpreted(mapping: Mapping): boolean {
  try {
    return !mapping.compiled
  } catch {
    return false
  }
}

/** The texts that a proof depends on: the files, and the settings that facts about models depend on. */
function aboutOf({ slug, unknownModels, unknownEntry, refuseRetired }: Provider, files: readonly Source[]): string[] {
  const settings = JSON.stringify([slug, unknownModels, unknownEntry, refuseRetired])
  return ['proof', settings, ...files.map(({ text }) => text)]
}
