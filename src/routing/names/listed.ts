import { RouterError } from '../../core/errors.ts'
import type { ModelEntry } from '../../core/models/model.ts'
import { entryAt } from '../../core/models/price-times.ts'
import { canServe } from '../../manifest/operation.ts'
import { servedBy, type Target } from '../../manifest/target.ts'
import { commonEntry } from './common-entry.ts'
import { type Directory, resolve } from './resolve.ts'
import { exclusionOf, type Scope } from './scope.ts'

/**
 * A model by the id that clients send, and its facts; `isName` when it is an alias or a policy. The facts of one with several targets are
 * those of the `targets` together, which may have prices that depend on the time.
 */
export type Listed = { id: string; entry: ModelEntry; isName?: true; targets?: readonly ModelEntry[] }

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
    if (!provider || replaced.has(id)) return []
    const serving = servedBy(provider, entry.is ?? model)
    if (serving.missing.length > 0 || !canServe(serving, entry)) return []
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

/** The facts of a listed model at a moment (Unix milliseconds). */
export function entryOfListed({ entry, targets }: Listed, at: number): ModelEntry {
  if (!targets) return entryAt(entry, at)
  const { description } = entry
  return { ...commonEntry(targets.map((one) => entryAt(one, at))), ...(description !== undefined && { description }) }
}

/** A name with the facts that all its targets have; empty when it has none. */
function listedName(name: string, directory: Directory, scope?: Scope): Listed[] {
  const entries = targetsOf(name, directory, scope).map(({ entry }): ModelEntry => entry ?? { api: 'chat' })
  // Calls go only to those of the same kind.
  const api = entries.some((one) => one.api === 'chat') ? 'chat' : entries[0]?.api
  const targets = entries.filter((one) => one.api === api)
  const [first] = targets
  if (!first) return []
  const entry = targets.length > 1 ? commonEntry(targets) : first
  const description = scope?.rules.aliases.has(name)
    ? undefined
    : (scope?.rules.policies.get(name) ?? directory.managed.get(name))?.description
  const described = description ? { ...entry, description } : entry
  return [{ id: name, entry: described, isName: true, ...(targets.length > 1 && { targets }) }]
}

function targetsOf(name: string, directory: Directory, scope: Scope | undefined): readonly Target[] {
  try {
    return resolve(name, directory, scope).targets
  } catch (thrown) {
    if (thrown instanceof RouterError) return []
    throw thrown
  }
}
