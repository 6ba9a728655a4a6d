import { RouterError } from '../core/errors.ts'
import type { ModelEntry } from '../core/model.ts'
import { servedBy, type Target } from '../manifest/target.ts'
import { type Directory, resolve } from './resolve.ts'
import { exclusionOf, type Scope } from './scope.ts'

/** A model by the id that clients send, and its facts; `isName` when it is an alias or a policy. */
export type Listed = { id: string; entry: ModelEntry; isName?: true }

/** The directory with all models of the catalog. */
export type Listable = Directory & {
  findModel(provider: string, model: string): ModelEntry | undefined
  models(): readonly { provider: string; model: string; entry: ModelEntry }[]
}

/**
 * The models that can be called: without a scope all of configured providers; with a scope those that it allows, and the
 * aliases and policies that have a target in it. A name that equals a model's id replaces it.
 */
export function listedModels(directory: Listable, scope?: Scope): Listed[] {
  const names = scope ? namesIn(directory, scope) : []
  const replaced = new Set(names)
  const models = directory.models().flatMap(({ provider: slug, model, entry }): Listed[] => {
    const id = `${slug}/${model}`
    const provider = directory.providers.get(slug)
    if (!provider || servedBy(provider, entry.is ?? model).missing.length > 0 || replaced.has(id)) return []
    return exclusionOf({ id, entry, identify: directory.identify }, scope) ? [] : [{ id, entry }]
  })
  return [...models, ...names.flatMap((name) => listedName(name, directory, scope))]
}

/** The managed policies that have a target, without the rules of any organization. */
export function listedPolicies(directory: Directory): Listed[] {
  return [...directory.managed.keys()].flatMap((id) => listedName(id, directory))
}

/** All names, each once. */
function namesIn({ managed }: Directory, { rules: { aliases, policies } }: Scope): string[] {
  return [...new Set([...aliases.keys(), ...policies.keys(), ...managed.keys()])]
}

/** A name with the facts of its first target; empty when it has none. */
function listedName(name: string, directory: Directory, scope?: Scope): Listed[] {
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
