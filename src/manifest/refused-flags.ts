import type { ModelEntry } from '../core/model.ts'
import type { NeutralRequest } from '../core/request.ts'
import { type AbilityFlag, abilities, abilityFlags } from './abilities.ts'
import type { Provider } from './provider.ts'
import { targetFacts } from './target-facts.ts'
import { writeFor } from './translate.ts'

/** What was found, by provider and family: nothing else about a model decides it. */
const found = new WeakMap<Provider, Map<string, Promise<boolean>>>()

/** The flags that an entry cannot keep: its provider is never sent what they promise. */
export async function refusedFlags(provider: Provider, model: string, entry: ModelEntry): Promise<AbilityFlag[]> {
  const refused: AbilityFlag[] = []
  for (const flag of abilityFlags) {
    if (entry[flag] === true && (await isRefused(provider, model, flag))) refused.push(flag)
  }
  return refused
}

function isRefused(provider: Provider, model: string, flag: AbilityFlag): Promise<boolean> {
  const known = found.get(provider) ?? new Map<string, Promise<boolean>>()
  found.set(provider, known)
  const key = `${flag} ${JSON.stringify(targetFacts(provider, { model }))}`
  const refused = known.get(key) ?? loses(provider, model, flag)
  known.set(key, refused)
  return refused
}

/** Whether a request that uses an ability loses it on its way, or cannot be made at all. */
async function loses(provider: Provider, model: string, flag: AbilityFlag): Promise<boolean> {
  const { fields, request } = abilities[flag]
  const plain: NeutralRequest = {
    model,
    messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
    origin: { api: 'chat', body: {} },
  }
  try {
    const { dropped } = await writeFor(provider, { ...plain, ...request }, model, targetFacts(provider, { model }))
    return dropped.some((name) => fields.some((field) => field === name || field.startsWith(`${name}.`)))
  } catch {
    return true
  }
}
