import type { Problem } from '../manifest/check/problem.ts'
import { isBare, noExtensions } from '../manifest/provider.ts'
import type { Dialect } from '../manifest/read/dialect.ts'
import { type KeptProvider, loadManifest } from '../manifest/read/manifest.ts'
import type { Names, Surroundings } from '../manifest/read/references.ts'
import type { Source } from '../manifest/read/source.ts'
import type { YieldToOthers } from '../runtime/event-loop.ts'

/**
 * Reads manifests, each with its surroundings, and calls `onSound` for those without problems. One that was read before is not read again
 * while its sources are unchanged: calls go on with the code that its mappings were compiled to.
 */
export async function loadProviders(
  manifests: readonly Source[],
  {
    around,
    onSound,
    giveTurn: yieldToOthers,
  }: { around(manifest: Source): Surroundings; onSound(manifest: Source): void; giveTurn: YieldToOthers },
): Promise<{ providers: KeptProvider[]; problems: Problem[] }> {
  const providers: KeptProvider[] = []
  const problems: Problem[] = []
  for (const manifest of manifests) {
    await yieldToOthers()
    const surroundings = around(manifest)
    const known = keptOf(manifest, surroundings)
    const { loaded = known, problems: found } = known ? { problems: [] } : readOrExplain(manifest, surroundings)
    problems.push(...found.map((problem) => breaking(manifest, problem)))
    if (found.length === 0) onSound(manifest)
    if (loaded) providers.push(loaded)
  }
  return { providers, problems }
}

/** Returns a problem with the file that it breaks, which may be at another place than the problem. */
export function breaking({ file }: Pick<Source, 'file'>, problem: Problem): Problem {
  return problem.file === file ? problem : { ...problem, breaks: file }
}

/** Runs a step that is about one file: what it throws is a problem of that file and of no other. */
export function explained<Result>(source: Source, step: () => Result, otherwise: (problem: Problem) => Result): Result {
  try {
    return step()
  } catch (thrown) {
    return otherwise(source.problem([], `this file cannot be used: ${(thrown as Error).message}`))
  }
}

function readOrExplain(manifest: Source, around: Surroundings): ReturnType<typeof loadManifest> {
  return explained(
    manifest,
    () => read(manifest, around),
    (problem) => ({ problems: [problem] }),
  )
}

/** Result of loading a manifest, the settings that it had, and the values that were looked up for it. */
type Kept = {
  loaded: KeptProvider
  settings: string
  dialects: Lookups<Dialect | 'unusable'>
  manifests: Lookups<Source>
  variables: Lookups<string>
}

/** Results of manifests without problems. */
const kept = new WeakMap<Source, Kept>()

function keptOf(manifest: Source, around: Surroundings): KeptProvider | undefined {
  const known = kept.get(manifest)
  const isSame =
    known?.settings === settingsOf(around) &&
    isBare(around.extensions ?? noExtensions) &&
    known.dialects.areSame((name) => around.dialects.get(name)) &&
    known.manifests.areSame((name) => around.manifests?.get(name)) &&
    known.variables.areSame((name) => around.env[name])
  return isSame ? known.loaded : undefined
}

function read(manifest: Source, around: Surroundings): ReturnType<typeof loadManifest> {
  const { extensions = noExtensions, manifests = new Map<string, Source>(), env } = around
  const dialects = new Lookups<Dialect | 'unusable'>()
  const others = new Lookups<Source>()
  const variables = new Lookups<string>()
  const { loaded, problems } = loadManifest(manifest, {
    ...around,
    dialects: dialects.of(around.dialects),
    manifests: others.of(manifests),
    env: variables.ofMembers(env),
  })
  if (!loaded || problems.length > 0 || !isBare(extensions)) {
    kept.delete(manifest)
    return { problems, ...(loaded && { loaded }) }
  }
  const { layers: _, ...lasting } = loaded
  kept.set(manifest, { loaded: lasting, settings: settingsOf(around), dialects, manifests: others, variables })
  return { loaded, problems }
}

function settingsOf({ settings, unknownModels }: Surroundings): string {
  return JSON.stringify([settings?.value, unknownModels])
}

/** Record of the names that were looked up and the values that were found; not of the place, which may be large. */
class Lookups<Value> {
  readonly #found = new Map<string, Value | undefined>()

  /** Returns names whose lookups are known here. */
  of(names: Names<Value>): Names<Value> {
    const get = (name: string) => this.#note(name, names.get(name))
    return { get, has: (name) => get(name) !== undefined, keys: () => names.keys() }
  }

  ofMembers(members: Members<Value>): Members<Value> {
    return new Proxy(members, { get: (all, name: string) => this.#note(name, all[name]) })
  }

  /** Checks whether the same would be found now. */
  areSame(find: (name: string) => Value | undefined): boolean {
    return [...this.#found].every(([name, value]) => find(name) === value)
  }

  #note(name: string, value: Value | undefined): Value | undefined {
    this.#found.set(name, value)
    return value
  }
}

type Members<Value> = { readonly [name: string]: Value | undefined }
