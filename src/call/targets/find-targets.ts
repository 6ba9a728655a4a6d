import type { Key } from '../../access/keys.ts'
import { anyModel } from '../../catalog/catalog.ts'
import { RouterError } from '../../core/errors.ts'
import type { RoutingRequest } from '../../core/routing/request.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import type { Explanation } from '../../routing/explanation.ts'
import { isEuOnly, type Purpose, type Route } from '../../routing/names/resolve.ts'
import { routeForRequest } from '../../routing/names/route-for-request.ts'
import type { OrganizationRules } from '../../store/rules.ts'
import type { CallKind } from '../call-kind.ts'
import type { Found, OpenedCall, ReadCall, Services } from '../types.ts'
import { restrictedTargets } from './restricted-targets.ts'
import { withoutUnpriced } from './unpriced-targets.ts'

/** A call as far as its targets depend on it. `at` is Unix milliseconds. */
export type FindingCall<Read extends ReadCall> = Pick<OpenedCall<Read>, 'read' | 'explanation' | 'inEurope'> & {
  call: { strict: boolean }
  start: { at: number }
}

/** The services by which targets are found. */
export type FindingServices = Pick<Services, 'directory' | 'rulesOf' | 'held' | 'resources'>

/**
 * Finds the targets that a call of a key may go to and that can take it, as far as that is known now, in the order of its names.
 * Throws RouterError 400, 402, 403, 404 where there are none.
 */
export function findTargets<Read extends ReadCall>(
  key: Key,
  call: FindingCall<Read>,
  kind: CallKind<Read>,
  services: FindingServices,
): Found {
  const { read, explanation, start } = call
  const { at } = start
  const rules = services.rulesOf(key.organization)
  const route = routeOf(key, call, kind, services)
  const priced = kind.isFree ? route.targets : withoutUnpriced(route.targets, { key, rules, at }, explanation)
  const { organization } = key
  const { held, resources, directory } = services
  const restricted = restrictedTargets(
    priced,
    { ...kind.restricted(read), organization, held, account: resources, isCataloged: catalogedIn(directory), at },
    explanation,
  )
  const strict = call.call.strict || route.strict === true
  const targets = kind.able?.(restricted, read, { strict, directory, explanation }) ?? restricted
  return { key, rules, targets, route, strict }
}

/** Returns the target of this id for a call, where the caller may use it and it can take the call. */
export function targetNamed<Read extends ReadCall>(
  id: string,
  { key, read, inEurope, ...call }: FindingCall<Read> & { key: Key },
  kind: CallKind<Read>,
  services: FindingServices,
): Target | undefined {
  const { models: _, ...routing } = read.routing ?? {}
  const euOnly = inEurope || isEuOnly(read.model, services.rulesOf(key.organization))
  const named = { ...read, model: id, routing: read.routing && routing }
  try {
    const { targets } = findTargets(
      key,
      { ...call, read: named, inEurope: euOnly, explanation: undefined },
      kind,
      services,
    )
    return targets.find((target) => targetId(target) === id)
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
  key: Key,
  { read, explanation, inEurope: euOnly, start: { at } }: FindingCall<Read>,
  kind: CallKind<Read>,
  services: FindingServices,
): Route {
  const promptTokens = () => kind.promptTokens(read)
  const purpose = kind.purpose(read, explanation)
  return resolveNames(key, { ...read, promptTokens, purpose: euOnly ? { ...purpose, euOnly } : purpose, at }, services)
}

/** Resolves a model that a form names before all of it has arrived. Throws RouterError 400, 402, 403, 404. */
export function routeForModel(
  key: Key,
  { model, kind, at, explanation }: { model: string; kind: CallKind; at: number; explanation: Explanation | undefined },
  services: FindingServices,
): void {
  const purpose = kind.purpose(undefined, explanation)
  const { targets } = resolveNames(key, { model, routing: undefined, promptTokens: () => 0, purpose, at }, services)
  if (!kind.isFree) withoutUnpriced(targets, { key, rules: services.rulesOf(key.organization), at }, explanation)
}

function resolveNames(
  key: Key,
  { model, routing, purpose, at, promptTokens }: Named,
  { directory, rulesOf }: Pick<FindingServices, 'directory' | 'rulesOf'>,
): Route {
  const rules: OrganizationRules = rulesOf(key.organization)
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
