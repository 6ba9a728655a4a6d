import type { ModelEntry } from '../../core/models/model.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { Provider } from '../provider.ts'
import type { FileCache } from '../read/file-cache.ts'
import type { KeptProvider } from '../read/manifest.ts'
import { type AbilityFlag, abilities, abilityFlags } from '../run/abilities.ts'
import { writeFor } from '../run/translate.ts'
import { servedBy, targetFacts } from '../target.ts'

/** The flags that a provider's entries cannot keep. */
export type Refusals = {
  /** Returns the flags of an entry whose promises its provider can never be sent. */
  of(family: string, entry: ModelEntry): Promise<AbilityFlag[]>
  /** Keeps what was found for the next start. */
  keep(): void
}

/** Finds refused flags by trying what they promise, unless that was found out before about the same files. */
export function refusals({ provider, files }: KeptProvider, cache: FileCache): Refusals {
  const about = ['refused flags', ...new Set(files.map(({ text }) => text))]
  const known = new Map(cache.read(about) as [string, boolean][] | undefined)
  const knownBefore = known.size
  // The variant of the provider and the facts about the family decide: nothing else about it does.
  const found = new Map<string, Promise<boolean>>()
  const isRefused = (family: string, flag: AbilityFlag): Promise<boolean> => {
    const request = { ...plain, ...abilities[flag].request, model: family }
    const served = servedBy(provider, family, { request })
    if (!served.chat) return Promise.resolve(false)
    const variant = provider.variants?.findIndex((one) => one.provider === served)
    const key = `${flag} ${variant} ${JSON.stringify(targetFacts(served, { model: family }))}`
    const refused = found.get(key) ?? drops(served, request, flag)
    found.set(key, refused)
    return refused
  }
  return {
    async of(family, entry) {
      const refused: AbilityFlag[] = []
      for (const flag of abilityFlags) {
        if (entry[flag] !== true) continue
        const name = `${flag} ${family}`
        const is = known.get(name) ?? (await isRefused(family, flag))
        known.set(name, is)
        if (is) refused.push(flag)
      }
      return refused
    },
    keep: () => {
      if (known.size > knownBefore) cache.write(about, [...known])
    },
  }
}

/** Checks whether an ability is dropped from a request that uses it, or the request cannot be made at all. */
async function drops(provider: Provider, request: NeutralRequest, flag: AbilityFlag): Promise<boolean> {
  const { fields } = abilities[flag]
  const { model } = request
  try {
    const { dropped } = await writeFor(provider, request, { model }, targetFacts(provider, { model }))
    return dropped.some((name) => fields.some((field) => field === name || field.startsWith(`${name}.`)))
  } catch {
    return true
  }
}

const plain: Omit<NeutralRequest, 'model'> = {
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
  origin: { api: 'chat', body: {} },
}
