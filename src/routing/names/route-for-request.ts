import { RouterError } from '../../core/errors.ts'
import type { RoutingRequest } from '../../core/routing/request.ts'
import type { RoutingRules } from '../../core/routing/rules.ts'
import type { Target } from '../../manifest/target.ts'
import { type PricedCall, wishedTargets } from './provider-preferences.ts'
import { type Directory, type Purpose, promisesEurope, type Route, resolve, type Targets } from './resolve.ts'
import type { Scope } from './scope.ts'

/** What a route depends on beside the request. */
export type RouteContext = PricedCall & { directory: Directory; scope: Scope; purpose: Purpose }

/**
 * What the names of a request lead to, and the rules for asking it: those of the first name, but for what the request itself
 * says. Further names that may not be called are passed over; where none is left, throws RouterError as `resolve` does for the
 * first one. Throws RouterError 404 where the request's own wishes leave no target.
 */
export function routeForRequest(model: string, asked: RoutingRequest | undefined, context: RouteContext): Route {
  const { directory, scope, purpose } = context
  if (!asked) return resolve(model, directory, scope, purpose)
  const route = asked.models
    ? joinedRoute([model, ...asked.models], context)
    : resolve(model, directory, scope, purpose)
  const wished = wishedTargets(route.targets, asked, context, purpose.explanation)
  const { rank, ...named } = route
  return {
    ...named,
    targets: asked.order ? inOrder(wished, asked.order) : wished,
    rules: rulesFor(route.rules, asked),
    // An order that the request itself asks for is one of all targets.
    ...(rank && (!asked.sort || asked.partition === 'model') && !asked.order && { rank }),
    ...(asked.allowFallbacks === false && { onlyFirst: true as const }),
    ...(asked.requireParameters && { strict: true as const }),
    ...(asked.sessionId !== undefined && { sessionId: asked.sessionId }),
    ...(asked.unheeded && { unheeded: asked.unheeded }),
  }
}

/** The targets of several names, each once. What the first one promises holds for all. */
function joinedRoute(names: readonly string[], { directory, scope, purpose }: RouteContext): Route {
  const [model = ''] = names
  const inEurope = promisesEurope(model, scope.rules)
  const found: Route[] = []
  let refusal: RouterError | undefined
  for (const [index, name] of [...new Set(names)].entries()) {
    try {
      found.push(resolve(name, directory, scope, index > 0 && inEurope ? { ...purpose, inEurope } : purpose))
    } catch (thrown) {
      if (!(thrown instanceof RouterError)) throw thrown
      purpose.explanation?.skip(name, 'allowed', thrown.message)
      refusal ??= thrown
    }
  }
  const [first, ...others] = found
  if (!first) throw refusal
  return others.length === 0 ? first : joined([first, ...others], directory)
}

function joined(routes: readonly [Route, ...Route[]], { identify }: Directory): Route {
  const rank = new Map<Target, number>()
  const weights = new Map<Target, number>()
  const known = new Set<string>()
  for (const [place, { targets, weights: own }] of routes.entries()) {
    for (const target of targets) {
      const { provider, model } = target
      const id = `${provider.slug}/${identify(provider.slug, model)?.name ?? model}`
      if (known.has(id)) continue
      known.add(id)
      rank.set(target, place)
      const weight = own?.get(target)
      if (weight !== undefined) weights.set(target, weight)
    }
  }
  const [{ rules }] = routes
  const targets = [...rank.keys()] as unknown as Targets
  return { targets, rules, rank, ...(weights.size > 0 && { weights }) }
}

/** The targets of these providers first, in their order. */
function inOrder(targets: Targets, order: readonly string[]): Targets {
  const placeOf = ({ provider }: Target) => {
    const place = order.indexOf(provider.slug)
    return place < 0 ? order.length : place
  }
  return targets.toSorted((one, other) => placeOf(one) - placeOf(other)) as unknown as Targets
}

/** Who names the order of providers leaves nothing to be chosen; a session is kept at its target. */
function rulesFor(rules: RoutingRules, { order, sort, sessionId, totalMs }: RoutingRequest): RoutingRules {
  const sticky = sessionId !== undefined && rules.sticky === 'none' ? 'session' : rules.sticky
  return {
    ...rules,
    sticky,
    ...(sort && { sort }),
    ...(order && { sort: 'order', sticky: 'none' }),
    ...(totalMs !== undefined && { totalMs: Math.min(totalMs, rules.totalMs ?? Infinity) }),
  }
}
