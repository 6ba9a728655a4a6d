import type { Lookups } from '../../access/lookups.ts'
import { unknownFieldSearch } from '../../api/operations/unknown-fields.ts'
import { type RestrictedSearch, type RestrictedUse, restrictedSearch } from '../../api/restricted-fields.ts'
import { RouterError } from '../../core/errors.ts'
import { isObject, type Json } from '../../core/json.ts'
import { entryAt } from '../../core/models/price-times.ts'
import type { Operation } from '../../core/operation.ts'
import type { Api } from '../../core/request.ts'
import { isPlainMode } from '../../core/usage.ts'
import { endpointFor } from '../../manifest/operation.ts'
import type { Provider } from '../../manifest/provider.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import { tariffOf } from '../../money/rates.ts'
import type { Explanation } from '../../routing/explanation.ts'
import type { Targets } from '../../routing/names/resolve.ts'
import type { AccountResources, HeldState, RestrictedBody } from '../types.ts'
import { refusedResource } from './refused-resource.ts'

/**
 * A body, and what decides whether its restricted fields may go on: who may use what at a provider, and which targets the catalog lists
 * by name. `at` is Unix milliseconds.
 */
export type RestrictedCall = RestrictedBody & {
  organization: string
  held: Pick<HeldState, 'holders'>
  account: AccountResources
  lookups: Lookups
  isCataloged?: (target: Target) => boolean
  at: number
}

/**
 * Returns the targets that may serve a body as it is: fields that decide who serves, what it costs or what is kept are read by the
 * router, or lead to no other target and no unknown price, or the call is refused. Throws RouterError 400 when no target
 * is left.
 */
export function restrictedTargets(targets: Targets, call: RestrictedCall, explanation?: Explanation): Targets {
  const refusals = targets.map((target) => refusalOf(target, call))
  if (refusals.every((refusal) => refusal === undefined)) return targets
  if (explanation) {
    for (const [index, refusal] of refusals.entries()) {
      if (refusal) explanation.skip(targets[index] as Target, 'governed', refusal.message)
    }
  }
  const [first, ...others] = targets.filter((_, index) => refusals[index] === undefined)
  if (first) return [first, ...others]
  throw refusals[0]
}

function refusalOf(target: Target, call: RestrictedCall): RouterError | undefined {
  for (const use of searchFor(target.provider, call)(call.body)) {
    const refusal = judges[use.field.rule](use, target, call)
    if (refusal) return refusal
  }
  return refusedResource(target, call)
}

type Judge = (use: RestrictedUse, target: Target, call: RestrictedCall) => RouterError | undefined

const judges: { readonly [rule in RestrictedUse['field']['rule']]: Judge } = {
  read: () => undefined,
  // Fields inside were found on their own.
  inside: () => undefined,
  // Resources are found in the whole request.
  resource: () => undefined,
  refuse: (use) => refused(use),
  edited: (use, target, call) => (sendsUnknown(target, call) ? refused(use) : undefined),
  priced: ofUnknownPrice,
  held: (use, target, call) => (use.path === 'thread' ? ofThread(use, target, call) : ofContainer(use, target, call)),
}

/** Search tables by provider, each made once. */
const searches = new WeakMap<Provider, { [kind in Api | Operation]?: RestrictedSearch }>()

function searchFor(provider: Provider, { api, operation }: RestrictedCall): RestrictedSearch {
  const known = searches.get(provider) ?? {}
  searches.set(provider, known)
  const kind = operation ?? api
  const before = known[kind]
  if (before) return before
  const { slug, restricted = [] } = provider
  const search = operation ? unknownFieldSearch(operation, slug, restricted) : restrictedSearch(api, slug, restricted)
  known[kind] = search
  return search
}

/** Checks whether a target is sent what the router does not know: where its endpoint has the words of the API. */
function sendsUnknown({ provider, entry }: Target, { api, operation }: RestrictedCall): boolean {
  if (!operation) return provider.sameAs === api
  const endpoint = endpointFor(provider, operation, entry)
  return endpoint !== undefined && endpoint.request === undefined
}

function refused({ field: { instead }, path }: RestrictedUse): RouterError {
  const message = `'${path}' is not supported by this router${instead === undefined ? '.' : `: ${instead}.`}`
  return new RouterError('invalid_request', message, { param: path })
}

/** Returns the error for a tier or speed that may cost more than the catalog states. */
function ofUnknownPrice({ path, value }: RestrictedUse, target: Target, call: RestrictedCall): RouterError | undefined {
  const { provider, entry } = target
  const tariff = entry && tariffOf(entryAt(entry, call.at))
  if (!tariff || typeof value !== 'string' || isPlainMode(value) || neverDearer.has(value)) return undefined
  if (tariff.multipliers.has(value) || !reaches(provider, path, call)) return undefined
  const message = `'${path}' is '${value}', and the price of '${targetId(target)}' for it is not known.`
  return new RouterError('invalid_request', message, { param: path })
}

/** Ways of serving that no provider sells above its list price. */
const neverDearer: ReadonlySet<string> = new Set(['flex', 'batch', 'standard_only'])

/** Checks whether a field can reach a provider: in an edited body, unless it is always taken out, else by a mapping that reads it. */
function reaches({ chat, sameAs, operations }: Provider, field: string, { api, operation }: RestrictedCall): boolean {
  if (operation) return operations?.[operation]?.request === undefined
  if (chat?.unsupported.some((loss) => loss.field === field && !loss.when)) return false
  return sameAs === api || chat?.request.support.has(field) === true
}

function ofContainer(use: RestrictedUse, { provider }: Target, call: RestrictedCall): RouterError | undefined {
  const { path, value, field } = use
  const id = isObject(value) ? value.id : value
  if (typeof id !== 'string' || id === '') return undefined
  if (provider.sameAs === field.format && isHeld(id, provider, call)) return undefined
  const message = `The container of '${path}' was not created through this router by your organization for '${provider.slug}', or more than 30 days ago. Let the provider create one, and name it in later calls.`
  return new RouterError('invalid_request', message, { param: path })
}

/** Checks whether a provider holds something that the organization made through this router. */
function isHeld(id: string, { slug }: Provider, { held, lookups, organization }: RestrictedCall): boolean {
  return lookups.find(`holders of ${id}`, () => held.holders(organization, id), [slug]).includes(slug)
}

/** Returns the error for a thread. Anthropic's SDKs depend on these details: they go on without a thread, or begin a new one. */
function ofThread({ value, field }: RestrictedUse, target: Target, call: RestrictedCall): RouterError | undefined {
  const { provider } = target
  if (provider.sameAs !== field.format || !call.mayStore) {
    const reason = call.mayStore
      ? `'${targetId(target)}' does not store threads`
      : 'your organization does not let providers store threads'
    const message = `'thread' is not supported here: ${reason}. Send the whole conversation without it.`
    const details = { error_code: 'thread_unsupported_request', unsupported: null }
    return new RouterError('invalid_request', message, { param: 'thread', details })
  }
  const unknown = isObject(value) ? Object.keys(value).find((name) => !threadMembers.has(name)) : undefined
  if (unknown !== undefined) {
    const message = `'thread.${unknown}' is not supported by this router: a thread has a \`type\` and a \`previous_message_id\`.`
    return new RouterError('invalid_request', message, { param: `thread.${unknown}` })
  }
  const previous = previousMessage(value)
  if (previous === undefined || isHeld(previous, provider, call)) return undefined
  const message = `The message '${previous}' does not end a thread of your organization. Send the whole conversation with thread: {"type": "create"}.`
  const details = { error_code: 'thread_not_found' }
  return new RouterError('not_found', message, { param: 'thread.previous_message_id', details })
}

/** Members that a thread may have: anything else that names one would not be found among those of the organization. */
const threadMembers: ReadonlySet<string> = new Set(['type', 'previous_message_id'])

function previousMessage(thread: Json): string | undefined {
  const id = isObject(thread) ? thread.previous_message_id : thread
  return typeof id === 'string' ? id : undefined
}
