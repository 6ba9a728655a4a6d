import { turnsBetween } from '../core/turn.ts'
import { isBare, noExtensions } from '../manifest/extensions.ts'
import { type LoadedProvider, loadManifest } from '../manifest/manifest.ts'
import type { Problem } from '../manifest/problem.ts'
import type { Surroundings } from '../manifest/references.ts'
import type { Source } from '../manifest/source.ts'

/**
 * Reads manifests, each with what is around it, and calls `onSound` for those without problems. One that was read before is not read
 * again while nothing is different that it was made of: calls go on with the code that its mappings were compiled to.
 */
export async function loadProviders(
  manifests: readonly Source[],
  { around, onSound }: { around(manifest: Source): Surroundings; onSound(manifest: Source): void },
): Promise<{ providers: LoadedProvider[]; problems: Problem[] }> {
  const providers: LoadedProvider[] = []
  const problems: Problem[] = []
  const others = turnsBetween()
  for (const manifest of manifests) {
    await others()
    const surroundings = around(manifest)
    const { loaded, problems: found } = keptOf(manifest, surroundings) ?? read(manifest, surroundings)
    problems.push(...found)
    if (found.length === 0) onSound(manifest)
    if (loaded) providers.push(loaded)
  }
  return { providers, problems }
}

type Read = ReturnType<typeof loadManifest>
/** What came of a manifest, the settings that it had, and whether all that was looked up for it is still the same. */
type Kept = { read: Read; settings: string; isSame(around: Surroundings): boolean }

/** Of manifests without problems. */
const kept = new WeakMap<Source, Kept>()

function keptOf(manifest: Source, around: Surroundings): Read | undefined {
  const known = isBare(around.extensions ?? noExtensions) ? kept.get(manifest) : undefined
  return known?.settings === settingsOf(around) && known.isSame(around) ? known.read : undefined
}

function read(manifest: Source, around: Surroundings): Read {
  const { extensions = noExtensions, manifests = new Map<string, Source>() } = around
  const [ofDialects, ofManifests] = [new Lookups(around.dialects), new Lookups(manifests)]
  const variables = new Map<string, string | undefined>()
  const env = new Proxy(around.env, {
    get(all, name: string) {
      variables.set(name, all[name])
      return all[name]
    },
  })
  const found = loadManifest(manifest, { ...around, dialects: ofDialects, manifests: ofManifests, env })
  if (found.problems.length > 0 || !isBare(extensions)) kept.delete(manifest)
  else {
    const isSame = (now: Surroundings) =>
      ofDialects.areSame(now.dialects) &&
      ofManifests.areSame(now.manifests ?? new Map()) &&
      [...variables].every(([name, value]) => now.env[name] === value)
    kept.set(manifest, { read: found, settings: settingsOf(around), isSame })
  }
  return found
}

function settingsOf({ settings }: Surroundings): string {
  return JSON.stringify(settings?.value) ?? ''
}

/** A map that knows what was looked up in it. */
class Lookups<Value> extends Map<string, Value> {
  readonly #found = new Map<string, Value | undefined>()

  constructor(entries: ReadonlyMap<string, Value>) {
    super(entries)
  }

  override get(name: string): Value | undefined {
    const value = super.get(name)
    this.#found.set(name, value)
    return value
  }

  override has(name: string): boolean {
    return this.get(name) !== undefined
  }

  areSame(others: ReadonlyMap<string, Value>): boolean {
    return [...this.#found].every(([name, value]) => others.get(name) === value)
  }
}
