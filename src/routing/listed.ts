import { RouterError } from '../core/errors.ts'
import type { ModelEntry } from '../core/model.ts'
import { servedBy, type Target } from '../manifest/target.ts'
import { type Directory, resolve } from './resolve.ts'
import { refusalOf, type Scope } from './scope.ts'

/** A model by the id that clients send, and its facts; `isName` when it is an alias or a policy. */
export type Listed = { id: string; entry: ModelEntry; isName?: true }

/** What can be listed: names, and all models that the catalog knows. */
export type Listable = Directory & {
  models(): readonly { provider: string; model: string; entry: ModelEntry }[]
}

/**
 * What can be called: without a scope all models of configured providers, with one those that it leaves, and the aliases
 * and policies that have a target in it. A name that is also the id of a model stands in its place.
 */
export function listedModels(directory: Listable, scope?: Scope): Listed[] {
  const names = scope ? namesIn(directory, scope) : []
  const taken = new Set(names)
  const models = directory.models().flatMap(({ provider: slug, model, entry }): Listed[] => {
    const id = `${slug}/${model}`
    const provider = directory.providers.get(slug)
    if (!provider || servedBy(provider, model).missing.length > 0 || taken.has(id)) return []
    return refusalOf({ id, entry, find: directory.findModel }, scope) ? [] : [{ id, entry }]
  })
  return [...models, ...names.flatMap((name) => named(name, directory, scope))]
}

/** The managed policies that have a target, as they are for everybody. */
export function listedPolicies(directory: Directory): Listed[] {
  return [...directory.managed.keys()].flatMap((id) => named(id, directory))
}

/** Each name once: what it stands for is for `resolve` to say. */
function namesIn({ managed }: Directory, { rules: { aliases, policies } }: Scope): string[] {
  return [...new Set([...aliases.keys(), ...policies.keys(), ...managed.keys()])]
}

/** A name with the facts of its first target; nothing when it has none. */
function named(name: string, directory: Directory, scope?: Scope): Listed[] {
  const target = firstTarget(name, directory, scope)
  if (!target) return []
  const entry: ModelEntry = target.entry ?? { api: 'chat' }
  const description = scope?.rules.aliases.has(name)
    ? undefined
    : (scope?.rules.policies.get(name) ?? directory.managed.get(name))?.description
  return [{ id: name, entry: description ? { ...entry, description } : entry, isName: true }]
}

function firstTarget(name: string, directory: Directory, scope: Scope | undefined): Target | undefined {
  try {
    return resolve(name, directory, scope)[0]
  } catch (thrown) {
    if (thrown instanceof RouterError) return undefined
    throw thrown
  }
}
