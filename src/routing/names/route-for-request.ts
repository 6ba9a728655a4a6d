import { RouterError } from '../../core/errors.ts'
import { ascending, billedTier, type ModelEntry } from '../../core/models/model.ts'
import { entryAt } from '../../core/models/price-times.ts'
import { type MaxPrice, type PriceKind, priceKinds, type RoutingRequest } from '../../core/routing/request.ts'
import type { RoutingRules } from '../../core/routing/rules.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import type { Explanation } from '../explanation.ts'
import { type Directory, isEuOnly, type Purpose, type Route, resolve, type Targets } from './resolve.ts'
import type { Scope } from './scope.ts'

/** Facts that a route depends on besides the request. */
type RouteContext = PricedCall & { directory: Directory; scope: Scope; purpose: Purpose }

/**
 * Returns the targets that the names of a request lead to, and the rules for asking them: those of the first name, except where the request
 * itself sets others. Further names that may not be called are passed over; where none is left, throws RouterError as `resolve` does for
 * the first one. Throws RouterError 404 where the request's own preferences leave no target.
 */
export function routeForRequest(model: string, asked: RoutingRequest | undefined, context: RouteContext): Route {
  const { directory, scope, purpose } = context
  if (!asked) return resolve(model, directory, scope, purpose)
  const route = asked.models
    ? joinedRoute([model, ...asked.models], context)
    : resolve(model, directory, scope, purpose)
  const wished = preferredTargets(route.targets, asked, context, purpose.explanation)
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
    ...(asked.ignored && { ignored: asked.ignored }),
  }
}

/** Returns the targets of several names, each once. The promises of the first one hold for all. */
function joinedRoute(names: readonly string[], { directory, scope, purpose }: RouteContext): Route {
  const [model = ''] = names
  const euOnly = isEuOnly(model, scope.rules)
  const found: Route[] = []
  let refusal: RouterError | undefined
  for (const [index, name] of [...new Set(names)].entries()) {
    try {
      found.push(resolve(name, directory, scope, index > 0 && euOnly ? { ...purpose, euOnly } : purpose))
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

/** Returns the targets of these providers first, in their order. */
function inOrder(targets: Targets, order: readonly string[]): Targets {
  const placeOf = ({ provider }: Target) => {
    const place = order.indexOf(provider.slug)
    return place < 0 ? order.length : place
  }
  return targets.toSorted((one, other) => placeOf(one) - placeOf(other)) as unknown as Targets
}

/** Returns the rules of a request. One that names the order of providers leaves nothing to choose; a session is kept at its target. */
function rulesFor(rules: RoutingRules, { order, sort, sessionId, totalMs = Infinity }: RoutingRequest): RoutingRules {
  const isShorter = totalMs < (rules.totalMs ?? Infinity)
  const sticky = sessionId !== undefined && rules.sticky === 'none' ? 'session' : rules.sticky
  return {
    ...rules,
    sticky,
    ...(sort && { sort }),
    ...(order && { sort: 'order', sticky: 'none' }),
    ...(isShorter && { totalMs, isTotalOfCaller: true }),
  }
}

/** Facts that the prices of a call depend on: Unix milliseconds, and the tokens of its prompt. */
type PricedCall = { at: number; promptTokens(): number }

/** Returns the targets that a request lets serve it. Throws RouterError 404 with a reason for each, when there are none. */
function preferredTargets(
  targets: Targets,
  asked: RoutingRequest,
  call: PricedCall,
  explanation?: Explanation,
): Targets {
  const reasons: Reason[] = []
  const left = targets.filter((target) => {
    const reason = reasonAgainst(target, asked, call)
    if (reason) {
      reasons.push(reason)
      explanation?.skip(target, 'wished', reason.message)
    }
    return reason === undefined
  })
  const [first, ...others] = left
  if (first) return [first, ...others]
  const [{ field } = { field: 'provider' }] = reasons
  const named = reasons.slice(0, maxReasons).map(({ message }) => message)
  const more = reasons.length > maxReasons ? [`${reasons.length - maxReasons} more were left out as well.`] : []
  const message = `No target matches the preferences of the request. ${[...named, ...more].join(' ')}`
  throw new RouterError('model_not_found', message, { param: field })
}

/** Maximum number of reasons: more would make the message unreadable. */
const maxReasons = 5

type Reason = { field: string; message: string }

function reasonAgainst(target: Target, asked: RoutingRequest, call: PricedCall): Reason | undefined {
  const { slug } = target.provider
  const { only, ignore, order, allowFallbacks, dataCollection, zeroRetention, maxPrice } = asked
  const against = (field: string, why: string) => ({
    field: `provider.${field}`,
    message: `'${targetId(target)}' ${why}.`,
  })
  if (only && !only.includes(slug)) return against('only', 'has a provider that is not in `only`')
  if (ignore?.includes(slug)) return against('ignore', 'has a provider that is in `ignore`')
  if (order && allowFallbacks === false && !order.includes(slug)) {
    return against('order', 'has a provider that is not in `order`, and `allow_fallbacks` is false')
  }
  if (dataCollection === 'deny' && !keepsNothing(target)) {
    return against('data_collection', 'may keep data or train on it, which `data_collection: deny` forbids')
  }
  if (zeroRetention && target.entry?.data_retention !== false) {
    return against('zdr', 'may keep data, which `zdr` forbids')
  }
  const kind = maxPrice && priceAbove(target, maxPrice, call)
  return kind && against('max_price', `costs more than \`max_price.${kind}\`, or its price is unknown`)
}

function keepsNothing({ entry }: Target): boolean {
  return entry?.data_retention === false && entry.data_used_for_training === false
}

/** Returns the first price that is higher than it may be, or not known. */
function priceAbove({ entry }: Target, most: MaxPrice, { at, promptTokens }: PricedCall): PriceKind | undefined {
  const now = entry && entryAt(entry, at)
  return priceKinds.find((kind) => {
    const { [kind]: highest } = most
    if (highest === undefined) return false
    const price = now && prices[kind](now, promptTokens)
    return price === undefined || rounded(price) > rounded(highest)
  })
}

/** Prices as a request names them: USD per million tokens, per request, per image; undefined where none is known. */
const prices: {
  readonly [kind in PriceKind]: (entry: ModelEntry, promptTokens: () => number) => number | undefined
} = {
  prompt: (entry, promptTokens) => perMillion(reachedTiers(entry, promptTokens).map((tier) => tier.input_price)),
  completion: (entry, promptTokens) => {
    const tiers = reachedTiers(entry, promptTokens)
    const { reasoning_token: reasoning = 0 } = entry.other_prices ?? {}
    return perMillion(tiers.map((tier) => Math.max(tier.output_price, reasoning)))
  },
  request: ({ other_prices = {} }) => highestPrice(other_prices, /^per_request/),
  image: ({ other_prices = {}, image_prices = {} }) =>
    Math.max(highestPrice(other_prices, /^per_(input_)?image$/), highestPrice(image_prices, /./)),
}

/** Returns the tiers that a prompt may be billed by. */
function reachedTiers({ pricing }: ModelEntry, promptTokens: () => number) {
  const tiers = ascending(pricing).map(billedTier)
  if (tiers.length < 2) return tiers
  const tokens = promptTokens()
  return tiers.filter((tier, index) => index === 0 || tier.prompt_tokens_threshold <= tokens)
}

function perMillion(ofTokens: readonly number[]): number | undefined {
  return ofTokens.length === 0 ? undefined : Math.max(...ofTokens) * 1e6
}

function highestPrice(listed: { readonly [name: string]: number | undefined }, names: RegExp): number {
  return Math.max(0, ...Object.entries(listed).map(([name, price = 0]) => (names.test(name) ? price : 0)))
}

/** Rounds a price, as products of prices are not exact. */
function rounded(usd: number): number {
  return Math.round(usd * 1e9)
}
