import { RouterError } from '../../core/errors.ts'
import {
  abilities,
  ascending,
  type BilledTier,
  billedTier,
  type ModelEntry,
  modalFacts,
  type PricingTier,
} from '../../core/models/model.ts'
import { entryAt } from '../../core/models/price-times.ts'
import { bareName, hasName, isEuropean, policyPrefix } from '../../core/names.ts'
import { canServe } from '../../manifest/operation.ts'
import { servedBy, type Target } from '../../manifest/target.ts'
import { yieldBetween } from '../../runtime/event-loop.ts'
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
 * Returns the models that can be called: without a scope all of configured providers; with a scope those that it allows, and the
 * aliases and policies that have a target in it. A name that equals a model's id replaces it. Yields to the event loop: an organization
 * may have thousands of names.
 */
export async function listedModels(directory: Listable, scope?: Scope): Promise<Listed[]> {
  const yieldToOthers = yieldBetween()
  const names = scope ? namesIn(directory, scope) : []
  const replaced = new Set(names)
  const listed: Listed[] = []
  for (const [index, { provider: slug, model, entry }] of directory.models().entries()) {
    if (index % modelsAtOnce === 0) await yieldToOthers()
    const id = `${slug}/${model}`
    const provider = directory.providers.get(slug)
    if (!provider || replaced.has(id)) continue
    const serving = servedBy(provider, entry.is ?? model)
    if (serving.missing.length > 0 || !canServe(serving, entry)) continue
    if (!exclusionOf({ id, entry, identify: directory.identify }, scope)) listed.push({ id, entry })
  }
  const merged = new Map<string, MergedTargets | undefined>()
  for (const name of names) {
    await yieldToOthers()
    const leads = leadsTo(name, scope)
    if (!merged.has(leads)) merged.set(leads, mergedTargets(name, directory, scope))
    listed.push(...listedName(name, merged.get(leads), directory, scope))
  }
  return listed
}

/** Number of models between two looks at the clock. */
const modelsAtOnce = 100

/** Returns a text that two names share when they lead to the same targets: an alias of a policy has those of the policy. */
function leadsTo(name: string, scope: Scope | undefined): string {
  const target = scope?.rules.aliases.get(name)
  if (target === undefined || !scope) return name
  const isEuOnly = isEuropean(name) || isEuropean(target)
  const { accessList } = scope
  const isNamed = accessList !== null && (hasName(accessList, name) || hasName(accessList, `${policyPrefix}${name}`))
  // What the alias promises or allows by itself is its own.
  return `${target.startsWith(policyPrefix) ? policyPrefix : ''}${bareName(target)} ${isEuOnly} ${isNamed}`
}

/** Returns the managed policies that have a target, without the rules of any organization. */
export function listedPolicies(directory: Directory): Listed[] {
  return [...directory.managed.keys()].flatMap((id) => listedName(id, mergedTargets(id, directory), directory))
}

/** Lists all names, each once. */
function namesIn({ managed }: Directory, { rules: { aliases, policies } }: Scope): string[] {
  return [...new Set([...aliases.keys(), ...policies.keys(), ...managed.keys()])]
}

/** Returns the facts of a listed model at a moment (Unix milliseconds). Those of the same targets are merged once, in `known`. */
export function entryOfListed(
  { entry, targets }: Listed,
  at: number,
  known = new Map<readonly ModelEntry[], ModelEntry>(),
): ModelEntry {
  if (!targets) return entryAt(entry, at)
  const { description } = entry
  const common = known.get(targets) ?? commonEntry(targets.map((one) => entryAt(one, at)))
  known.set(targets, common)
  return description === undefined ? common : { ...common, description }
}

/** Targets that a name leads to, and the facts that all of them have. */
type MergedTargets = Required<Pick<Listed, 'entry' | 'targets'>>

/** Returns the targets of a name; undefined when it has none. */
function mergedTargets(name: string, directory: Directory, scope?: Scope): MergedTargets | undefined {
  const entries = targetsOf(name, directory, scope).map(({ entry }): ModelEntry => entry ?? { api: 'chat' })
  // Calls go only to those of the same kind.
  const api = entries.some((one) => one.api === 'chat') ? 'chat' : entries[0]?.api
  const targets = entries.filter((one) => one.api === api)
  const [first] = targets
  return first && { entry: targets.length > 1 ? commonEntry(targets) : first, targets }
}

/** Returns a name with the facts that all its targets have; empty when it has none. */
function listedName(name: string, merged: MergedTargets | undefined, directory: Directory, scope?: Scope): Listed[] {
  if (!merged) return []
  const { entry, targets } = merged
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

/**
 * Returns the entry that holds whichever of these models serves: the smallest limits, the abilities that all have, the highest prices, and
 * the data rules of the least careful provider. A fact that they do not share is left out.
 */
export function commonEntry(entries: readonly ModelEntry[]): ModelEntry {
  const all = <Name extends keyof ModelEntry>(name: Name) => entries.map((entry) => entry[name])
  const comments = [...new Set(all('privacy_comments').filter((text) => text !== undefined))]
  const pricing = highestTiers(entries)
  return {
    api: entries[0]?.api ?? 'chat',
    ...known({
      created: highest(all('created')),
      updated: highest(all('updated')),
      context_window: lowest(all('context_window')),
      max_output_tokens: lowest(all('max_output_tokens')),
      ...Object.fromEntries(abilities.map((name) => [name, everyOne(all(name))])),
      data_retention: anyOne(all('data_retention')),
      data_retention_days: highest(all('data_retention_days')),
      data_used_for_training: anyOne(all('data_used_for_training')),
      privacy_comments: comments.length > 0 ? comments.join(' ') : undefined,
      geolocation: shared(all('geolocation')) ?? 'global',
      open_weights: everyOne(all('open_weights')),
      model_lab: shared(all('model_lab')),
      model_canonical_name: shared(all('model_canonical_name')),
      other_prices: highestOfAll(all('other_prices')),
      image_prices: highestOfAll(all('image_prices')),
      ...Object.fromEntries(modalFacts.map((name) => [name, sharedValue(all(name))])),
      ...Object.fromEntries(upperLimits.map((name) => [name, lowest(all(name))])),
      ...Object.fromEntries(choices.map((name) => [name, inAll<string>(all(name))])),
      min_seconds: highest(all('min_seconds')),
      audio_tokens_per_second: highest(all('audio_tokens_per_second')),
      streams: all('streams').includes(false) ? false : shared(all('streams')),
    }),
    ...(pricing.length > 0 && { pricing }),
  }
}

/** Limits of what models of other APIs take. */
const upperLimits = ['max_inputs', 'max_characters', 'granularities_at_once'] as const
/** Lists of supported values, where not every value can be asked for. */
const choices = ['sizes', 'qualities', 'voices', 'formats', 'granularities'] as const

function known(facts: { [name in keyof ModelEntry]?: ModelEntry[name] | undefined }): Partial<ModelEntry> {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined))
}

function numbers(values: readonly (number | undefined)[]): number[] {
  return values.filter((value) => value !== undefined)
}

function lowest(values: readonly (number | undefined)[]): number | undefined {
  const found = numbers(values)
  return found.length > 0 ? Math.min(...found) : undefined
}

function highest(values: readonly (number | undefined)[]): number | undefined {
  const found = numbers(values)
  return found.length > 0 ? Math.max(...found) : undefined
}

/** Checks whether all are known to have it. */
function everyOne(values: readonly (boolean | undefined)[]): boolean | undefined {
  return values.every((value) => value === undefined) ? undefined : values.every((value) => value === true)
}

/** Checks whether one has it, or may have it as far as is known. */
function anyOne(values: readonly (boolean | undefined)[]): boolean | undefined {
  return values.every((value) => value === undefined) ? undefined : values.some((value) => value !== false)
}

/** Returns the items that all lists have; a model without a list takes anything. */
function inAll<Item>(lists: readonly (readonly Item[] | undefined)[]): Item[] | undefined {
  const [first, ...others] = lists.filter((list) => list !== undefined)
  const items = first?.filter((item) => others.every((list) => list.includes(item)))
  return items && items.length > 0 ? items : undefined
}

function shared<Value>(values: readonly Value[]): Value | undefined {
  return new Set(values).size === 1 ? values[0] : undefined
}

function sharedValue<Value>(values: readonly Value[]): Value | undefined {
  return shared(values.map((value) => JSON.stringify(value))) === undefined ? undefined : values[0]
}

/** Returns every price that one of them has, at its highest. */
function highestOfAll(
  all: readonly ({ [name: string]: number } | undefined)[],
): { [name: string]: number } | undefined {
  const names = new Set(all.flatMap((prices) => Object.keys(prices ?? {})))
  if (names.size === 0) return undefined
  return Object.fromEntries([...names].map((name) => [name, Math.max(...all.map((prices) => prices?.[name] ?? 0))]))
}

/** Returns a tier for every threshold of any of them, with the highest price of each kind that a prompt of that size can have. */
function highestTiers(entries: readonly ModelEntry[]): PricingTier[] {
  const priced = entries.map(({ pricing }) => ascending(pricing).map(billedTier)).filter(({ length }) => length > 0)
  const thresholds = new Set(priced.flatMap((tiers) => tiers.map((tier) => tier.prompt_tokens_threshold)))
  return [...thresholds]
    .sort((one, other) => one - other)
    .map((threshold) => {
      const tiers = priced.map((own) => tierAt(own, threshold))
      const dearest = (name: keyof BilledTier) => Math.max(...tiers.map((tier) => tier[name]))
      return {
        prompt_tokens_threshold: threshold,
        input_price: dearest('input_price'),
        caching_price: dearest('caching_price'),
        caching_5m_price: dearest('caching_5m_price'),
        caching_1h_price: dearest('caching_1h_price'),
        cached_price: dearest('cached_price'),
        output_price: dearest('output_price'),
      }
    })
}

/** Returns the tier of a prompt beyond a threshold. */
function tierAt(tiers: readonly BilledTier[], threshold: number): BilledTier {
  return (tiers.findLast((tier) => tier.prompt_tokens_threshold <= threshold) ?? tiers[0]) as BilledTier
}
