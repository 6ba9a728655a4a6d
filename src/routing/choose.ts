import { isRetired } from '../core/models/model.ts'
import type { RoutingRules } from '../core/routing/rules.ts'
import { type Target, targetId } from '../manifest/target.ts'
import type { Explanation } from './explanation.ts'
import type { CallClass, Gauge, Speed } from './measurements.ts'
import type { Targets } from './names/resolve.ts'
import type { RoutingState } from './types.ts'
import { byWeight, unitsOf, type Weights, weightOf } from './weights.ts'

/** A call whose targets are to be put in order. */
export type Choosing = {
  rules: Pick<RoutingRules, 'sort' | 'sticky'>
  weights?: Weights | undefined
  /** Targets of another rank come before or after, however they are sorted. */
  rank?: ReadonlyMap<Target, number> | undefined
  kind: CallClass
  /** Returns the most that the call can cost at a target, its prompt in the cache or not; undefined where no price is known. */
  costAt(target: Target, isCached: boolean): bigint | undefined
  /** Organization that makes the call. */
  organization?: string | undefined
  /** Key that keeps calls together, and the time it is kept after the last one at a target. */
  kept?: { key: string; idleMs(target: Target): number } | undefined
  /** Checks whether a target can continue content that only its signer can read; undefined where there is none. */
  continues?: ((target: Target) => boolean) | undefined
  /** The order is only asked for: nothing is remembered of it. */
  looksOnly?: boolean | undefined
  /** Receives the facts that decided the order. */
  explanation?: Explanation | undefined
}

/** Reason why a target stands first. */
export type ChosenBy = RoutingRules['sort'] | 'sticky' | 'maker'

/** Targets in the order in which they are to be tried. */
export type Choice = { targets: Targets; by: ChosenBy }

type State = Pick<RoutingState, 'health' | 'measurements' | 'affinity' | 'random'>

/** Puts the targets of a call in order: the best one, and the others for when it fails. */
export function chooseTargets(targets: Targets, choosing: Choosing, state: State): Choice {
  const { rules, kept } = choosing
  if (targets.length === 1) return { targets, by: rules.sort }
  const earlier = kept && state.affinity.find(kept.key)
  const sorted = retiredLast(targets, (some) => rankedTargets(some, { ...choosing, earlier }, state))
  const stays = keptTarget(sorted, { ...choosing, earlier }, state)
  const ordered = stays && stays !== sorted[0] ? [stays, ...sorted.filter((one) => one !== stays)] : sorted
  const bound = choosing.continues && ordered.filter(choosing.continues)
  const isBound = bound !== undefined && bound.length > 0
  const all = isBound ? [...bound, ...ordered.filter((one) => !bound.includes(one))] : ordered
  const { explanation, weights, rank } = choosing
  if (explanation) {
    const warm = rules.sticky === 'cache' ? earlier : undefined
    const costOf = (target: Target) => choosing.costAt(target, targetId(target) === warm)
    explanation.ordered(all, { rules, weights, rank, stays, bound, costOf })
  }
  // Calls of one conversation may come at once.
  if (kept && !stays && !choosing.looksOnly) {
    const [first] = all as unknown as Targets
    state.affinity.keep(kept.key, targetId(first), kept.idleMs(first))
  }
  return { targets: all as unknown as Targets, by: isBound ? 'maker' : stays ? 'sticky' : rules.sort }
}

/** A call and the id of the target that served the one before. */
type Known = Choosing & { earlier: string | undefined }

/** Puts targets whose announced retirement has come behind the others: they answer only as long as their provider postpones it. */
function retiredLast(
  targets: readonly Target[],
  sort: (targets: readonly Target[]) => readonly Target[],
): readonly Target[] {
  const now = Date.now()
  const isPast = ({ entry }: Target) => entry !== undefined && isRetired(entry, now)
  if (!targets.some(isPast)) return sort(targets)
  return [...sort(targets.filter((one) => !isPast(one))), ...sort(targets.filter(isPast))]
}

function rankedTargets(targets: readonly Target[], choosing: Known, state: State): readonly Target[] {
  const { rank } = choosing
  if (!rank) return sortedTargets(targets, choosing, state)
  const ranks = Map.groupBy(targets, (target) => rank.get(target) ?? 0)
  const inTurn = [...ranks].sort(([one], [other]) => one - other)
  return inTurn.flatMap(([, ranked]) => sortedTargets(ranked, choosing, state))
}

function sortedTargets(targets: readonly Target[], choosing: Known, state: State): readonly Target[] {
  if (targets.length <= 1) return targets
  const { rules, weights, kept, earlier } = choosing
  // Every thread finds the same target for a key that it does not know yet.
  const units = kept && earlier === undefined ? unitsOf(kept.key) : (state.random ?? Math.random)
  if (rules.sticky === 'hash' && kept) return byWeight(targets, weights, unitsOf(kept.key))
  switch (rules.sort) {
    case 'order':
      return targets
    case 'weighted':
      return byWeight(targets, weights, units)
    case 'price':
      return byPrice(targets, choosing)
    case 'latency':
      return bySpeed(targets, (speed) => speed.toContent(choosing.kind), choosing, state)
    case 'throughput':
      return bySpeed(targets, (speed) => speed.perToken(choosing.kind), choosing, state)
  }
}

/** Sorts targets by price: those whose price is not known are the last ones. */
function byPrice(targets: readonly Target[], { costAt, rules, earlier }: Known): Target[] {
  const warm = rules.sticky === 'cache' ? earlier : undefined
  const priced = targets.map((target) => ({ target, cost: costAt(target, targetId(target) === warm) }))
  priced.sort(({ cost: one }, { cost: other }) => {
    if (one === undefined || other === undefined) return Number(one === undefined) - Number(other === undefined)
    return one < other ? -1 : Number(one > other)
  })
  return priced.map(({ target }) => target)
}

type Measured = { target: Target; gauge: Gauge; underWay: number; score: number }

/** Returns the better one of two at random, then the others by their score. */
function bySpeed(
  targets: readonly Target[],
  gaugeOf: (speed: Speed) => Gauge,
  { looksOnly }: Choosing,
  state: State,
): Target[] {
  const { measurements, random = Math.random } = state
  const now = measurements.now()
  const all = targets.map((target): Measured => {
    const speed = measurements.of(target)
    const gauge = gaugeOf(speed)
    return { target, gauge, underWay: speed.underWay, score: gauge.estimate(now) * (speed.underWay + 1) }
  })
  const place = Math.floor(random() * all.length)
  const other = (place + 1 + Math.floor(random() * (all.length - 1))) % all.length
  const pair = [all[place] as Measured, all[other] as Measured] as const
  const first = betterOf(...pair, random)
  if (!looksOnly && pair.every(isMeasured)) for (const one of pair) if (one !== first) one.gauge.passOver()
  const others = all
    .filter((one) => one !== first)
    .sort((one, next) => (one.score < next.score ? -1 : Number(one.score > next.score)))
  return [first.target, ...others.map(({ target }) => target)]
}

function betterOf(one: Measured, other: Measured, random: () => number): Measured {
  const [isKnown, isOtherKnown] = [isMeasured(one), isMeasured(other)]
  if (isKnown && isOtherKnown) return smallerOf(one, other, random)
  // It has its measurements on their way.
  if (isKnown && !mayBeTried(other)) return one
  if (isOtherKnown && !mayBeTried(one)) return other
  return random() < 0.5 ? one : other
}

function smallerOf(one: Measured, other: Measured, random: () => number): Measured {
  const isFirst = one.score === other.score ? random() < 0.5 : one.score < other.score
  return isFirst ? one : other
}

function isMeasured({ gauge }: Measured): boolean {
  return gauge.count >= minMeasurements
}

function mayBeTried({ gauge, underWay }: Measured): boolean {
  return gauge.count + underWay < minMeasurements
}

const minMeasurements = 5

/** Returns the target that a call is kept at, unless it takes no calls, or the savings of a warm cache are not worth the load there. */
function keptTarget(targets: readonly Target[], choosing: Known, state: State): Target | undefined {
  const { rules, kept, earlier, organization } = choosing
  if (!kept) return undefined
  const isOpen = (target: Target) => state.health.closedFor(target, organization) === undefined
  if (rules.sticky === 'hash') return targets.find(isOpen)
  // The price determines the value of its cache.
  if (earlier === undefined || (rules.sticky === 'cache' && rules.sort === 'price')) return undefined
  const target = targets.find((one) => targetId(one) === earlier)
  if (!target || !isOpen(target)) return undefined
  return rules.sticky !== 'cache' || hasCapacity(target, targets, choosing, state) ? target : undefined
}

/** Checks whether a target has less than its share of the calls in flight, and a quarter more. */
function hasCapacity(
  target: Target,
  targets: readonly Target[],
  { weights }: Choosing,
  { measurements }: State,
): boolean {
  let [calls, all] = [1, 0]
  for (const one of targets) {
    calls += measurements.of(one).underWay
    all += weightOf(one, weights)
  }
  const fair = (calls * weightOf(target, weights)) / all
  return measurements.of(target).underWay + 1 <= Math.ceil(maxOverFairShare * fair)
}

const maxOverFairShare = 1.25
