import type { Lookups } from '../../access/lookups.ts'
import { anyModel } from '../../catalog/catalog.ts'
import { RouterError } from '../../core/errors.ts'
import type { RoutingRequest } from '../../core/routing/request.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import type { Explanation } from '../../routing/explanation.ts'
import { isEuOnly, type Purpose, type Route } from '../../routing/names/resolve.ts'
import { routeForRequest } from '../../routing/names/route-for-request.ts'
import type { CallKind } from '../call-kind.ts'
import type { Found, KeyWithRules, OpenedCall, ReadCall, Services } from '../types.ts'
import { restrictedTargets } from './restricted-targets.ts'
import { withoutUnpriced } from './unpriced-targets.ts'

/** A call as far as its targets depend on it. `at` is Unix milliseconds. */
export type FindingCall<Read extends ReadCall> = Pick<OpenedCall<Read>, 'read' | 'explanation' | 'inEurope'> & {
  call: { strict: boolean }
  start: { at: number }
}

/** The services by which targets are found. */
export type FindingServices = Pick<Services, 'directory' | 'held' | 'resources'>

/**
 * Finds the targets that a call of a key may go to and that can take it, as far as that is known now, in the order of its names.
 * Throws RouterError 400, 402, 403, 404 where there are none.
 */
export function findTargets<Read extends ReadCall>(
  { key, rules, lookups }: KeyWithRules & { lookups: Lookups },
  call: FindingCall<Read>,
  kind: CallKind<Read>,
  services: FindingServices,
): Found {
  const { read, explanation, start } = call
  const { at } = start
  const route = routeOf({ key, rules }, call, kind, services)
  const priced = kind.isFree ? route.targets : withoutUnpriced(route.targets, { key, rules, at }, explanation)
  const { organization } = key
  const { held, resources, directory } = services
  const restricted = restrictedTargets(
    priced,
    {
      ...kind.restricted(read),
      organization,
      held,
      account: resources,
      lookups,
      isCataloged: catalogedIn(directory),
      at,
    },
    explanation,
  )
  const strict = call.call.strict || route.strict === true
  const targets = kind.able?.(restricted, read, { strict, directory, explanation }) ?? restricted
  return { key, rules, targets, route, strict, lookups }
}

/** Returns the target of this id for a call, where the caller may use it and it can take the call, as far as the facts that were read show. */
export function targetNamed<Read extends ReadCall>(
  id: string,
  { key, rules, read, inEurope, ...call }: FindingCall<Read> & Pick<Found, keyof KeyWithRules | 'lookups'>,
  kind: CallKind<Read>,
  services: FindingServices,
): Target | undefined {
  const { models: _, ...routing } = read.routing ?? {}
  const euOnly = inEurope || isEuOnly(read.model, rules)
  const named = { ...read, model: id, routing: read.routing && routing }
  const lookups = call.lookups.known()
  try {
    const { targets } = findTargets(
      { key, rules, lookups },
      { ...call, read: named, inEurope: euOnly, explanation: undefined },
      kind,
      services,
    )
    return lookups.areComplete ? targets.find((target) => targetId(target) === id) : undefined
  } catch (thrown) {
    if (thrown instanceof RouterError) return undefined
    throw thrown
  }
}

/** Returns a check of whether the catalog lists a target by its name: an entry for all names does not. */
function catalogedIn({ identify }: FindingServices['directory']): (target: Target) => boolean {
  return ({ provider: { slug }, entry, isUnknown }) =>
    entry !== undefined && !isUnknown && entry !== identify(slug, anyModel)?.entry
}

/** Resolves the names of a call, whatever it costs and says. Throws RouterError 400, 403, 404. */
export function routeOf<Read extends ReadCall>(
  caller: KeyWithRules,
  { read, explanation, inEurope: euOnly, start: { at } }: FindingCall<Read>,
  kind: CallKind<Read>,
  services: FindingServices,
): Route {
  const promptTokens = () => kind.promptTokens(read)
  const purpose = kind.purpose(read, explanation)
  return resolveNames(
    caller,
    { ...read, promptTokens, purpose: euOnly ? { ...purpose, euOnly } : purpose, at },
    services,
  )
}

/** Resolves a model that a form names before all of it has arrived. Throws RouterError 400, 402, 403, 404. */
export function routeForModel(
  caller: KeyWithRules,
  { model, kind, at, explanation }: { model: string; kind: CallKind; at: number; explanation: Explanation | undefined },
  services: FindingServices,
): void {
  const purpose = kind.purpose(undefined, explanation)
  const { targets } = resolveNames(caller, { model, routing: undefined, promptTokens: () => 0, purpose, at }, services)
  if (!kind.isFree) withoutUnpriced(targets, { ...caller, at }, explanation)
}

function resolveNames(
  { key, rules }: KeyWithRules,
  { model, routing, purpose, at, promptTokens }: Named,
  { directory }: Pick<FindingServices, 'directory'>,
): Route {
  const scope = { rules, accessList: key.accessList }
  return routeForRequest(model, routing, { directory, scope, purpose, at, promptTokens })
}

type Named = {
  model: string
  routing: RoutingRequest | undefined
  purpose: Purpose
  at: number
  promptTokens(): number
}
