import type { Policy } from '../../core/names.ts'
import { bareName, policyPrefix, splitModel } from '../../core/names.ts'
import { nearest } from '../../manifest/check/did-you-mean.ts'
import type { Provider } from '../../manifest/provider.ts'
import type { ModelNames } from './model-names.ts'
import { NameIndex } from './name-index.ts'
import type { Scope } from './scope.ts'

/** Names among which the one that was meant may be, and a check of which of them the caller may call. */
export type Suggestible = {
  providers: ReadonlyMap<string, Provider>
  managed: ReadonlyMap<string, Policy>
  names: ModelNames
  rules: Scope['rules'] | undefined
  mayCall(name: string): boolean
}

/**
 * Returns a sentence that proposes what may be meant by an unknown name, such as ` Did you mean 'openai/gpt-5'?`, with a blank before it;
 * empty where nothing is near. It names only what the caller may call, and looks at a limited number of names.
 */
export function suggestion(name: string, known: Suggestible): string {
  let checks = 0
  const mayCall = (id: string) => checks++ < maxChecks && known.mayCall(id)
  const named = withoutVariants(exactly(name, known).filter(mayCall), known)
  const found = [
    ...new Set(named.length > 0 ? named : [...ownNames(name, known, mayCall), ...models(name, known, mayCall)]),
  ]
  const quoted = found.slice(0, maxSuggested).map((id) => `'${id}'`)
  const last = quoted.pop()
  if (last === undefined) return ''
  return ` Did you mean ${quoted.length > 0 ? `${quoted.join(', ')} or ${last}` : last}?`
}

/** Leaves out further endpoints for the models of a provider, such as its native Responses API, where there is any other. */
function withoutVariants(ids: readonly string[], { providers }: Suggestible): readonly string[] {
  const others = ids.filter((id) => providers.get(splitModel(id)?.provider ?? '')?.modelsOf === undefined)
  return others.length > 0 ? others : ids
}

/** Maximum number of names that are checked for whether the caller may call them. */
const maxChecks = 40
const maxSuggested = 3

/** Returns the models that have a name, without a provider or at another one; those of a provider of a similar name come first. */
function exactly(name: string, { providers, names }: Suggestible): string[] {
  const { provider, model } = splitModel(name) ?? {}
  const ids = [...names.meant(name), ...(model === undefined ? [] : names.meant(model))]
  if (provider === undefined || ids.length < 2 || provider.length > maxSlug) return ids
  const similar = nearest(provider, providers.keys())
  const isSimilar = (id: string) => splitModel(id)?.provider === similar
  return [...ids.filter(isSimilar), ...ids.filter((id) => !isSimilar(id))]
}

/** Length of the longest prefix that is compared with the slugs of providers. Characters. */
const maxSlug = 40

/** Returns the alias or policy that is most similar to a name. */
function ownNames(name: string, { managed, rules }: Suggestible, mayCall: (name: string) => boolean): string[] {
  const own = nearestOf(bareName(name), indexOfOwn(rules, managed).similar(bareName(name)).filter(mayCall))
  return own === undefined ? [] : [own]
}

/** Returns the model that is most similar to a name: of the provider that it names, if that has one. */
function models(name: string, { names, providers }: Suggestible, mayCall: (name: string) => boolean): string[] {
  if (name.startsWith(policyPrefix)) return []
  const { provider = '', model = name } = splitModel(name) ?? {}
  const similar = names.similar(model)
  const callable = new Map<string, string>()
  for (const isOfProvider of providers.has(provider) ? [true, false] : [false]) {
    for (const text of similar) {
      const ids = names.meant(text)
      const id = (isOfProvider ? ids.filter((one) => one.startsWith(`${provider}/`)) : ids).find(mayCall)
      if (id !== undefined) callable.set(text, id)
    }
    const meant = nearestOf(model, [...callable.keys()])
    if (meant !== undefined) return [callable.get(meant) as string]
  }
  return []
}

/** Returns the name that is nearest to a mistyped one, else one that only goes on after it. */
function nearestOf(name: string, candidates: readonly string[]): string | undefined {
  const written = name.toLowerCase()
  return nearest(name, candidates) ?? candidates.find((one) => one.toLowerCase().startsWith(written))
}

function indexOfOwn(rules: Scope['rules'] | undefined, managed: ReadonlyMap<string, Policy>): NameIndex {
  const owner = rules ?? managed
  const known = indexes.get(owner)
  if (known?.managed === managed) return known.index
  const names = [...(rules?.aliases.keys() ?? []), ...(rules?.policies.keys() ?? []), ...managed.keys()]
  const index = new NameIndex(names)
  indexes.set(owner, { managed, index })
  return index
}

/** Rules and policies are replaced, never changed. */
const indexes = new WeakMap<object, { managed: ReadonlyMap<string, Policy>; index: NameIndex }>()
