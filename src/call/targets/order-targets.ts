import type { Key } from '../../access/keys.ts'
import type { Part } from '../../core/parts.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { RoutingRules } from '../../core/routing/rules.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import { cacheLifetimeMs } from '../../routing/affinity.ts'
import { type Choice, chooseTargets } from '../../routing/choose.ts'
import { type CallClass, callClass } from '../../routing/measurements.ts'
import type { Route, Targets } from '../../routing/names/resolve.ts'
import type { RoutingState } from '../../routing/types.ts'
import type { CallKind } from '../call-kind.ts'
import type { Admission, AdmittedCall, Call, ReadCall, Turn } from '../types.ts'
import { affinityKey } from './affinity-key.ts'

/** A call whose targets are to be put in order, admitted or only supposed. */
export type OrderedCall<Read extends ReadCall = ReadCall> = Pick<
  AdmittedCall<Read>,
  'read' | 'targets' | 'explanation'
> & {
  route: Omit<Route, 'targets'>
  call: Pick<Call, 'session'>
  key: Pick<Key, 'id' | 'organization'>
  admission: Pick<Admission, 'costAt' | 'caches' | 'promptTokens'>
  /** The order is only asked for: nothing is remembered of it. */
  looksOnly?: boolean
}

/** The order in which targets are tried. `kind`: the calls with which its times are compared; missing where nothing is measured. */
export type Order = Choice & {
  kind: CallClass | undefined
  /** Remembers which target has served the call. */
  served(target: Target): void
}

/** Puts the targets of a call in order, as the rules of its name say. */
export function orderTargets<Read extends ReadCall>(
  ordered: OrderedCall<Read>,
  { operation, isFree, ordering }: Pick<CallKind<Read>, 'operation' | 'isFree' | 'ordering'>,
  state: RoutingState,
): Order {
  const { call, key, read, targets, route, admission, explanation } = ordered
  const looksOnly = isFree === true || ordered.looksOnly === true
  const measured = callClass(operation, read.stream, admission.promptTokens)
  const kind = isFree ? undefined : measured
  const { request, generates, continues } = ordering(read)
  const rules = generates ? route.rules : withoutTokens(route.rules)
  if (targets.length === 1) {
    explanation?.ordered(targets, { rules, costOf: (target) => admission.costAt(target, false) })
    return { targets, kind, by: rules.sort, served: nothing }
  }
  const { organization } = key
  const session = route.sessionId ?? call.session
  const affinity = affinityKey(rules.sticky, { organization, key: key.id, request, session })
  const isLong = admission.caches === '1h'
  const idleMs = (target: Target) => (rules.sticky === 'cache' ? cacheLifetimeMs(target, isLong) : idleSessionMs)
  const kept = affinity === undefined ? undefined : { key: affinity, idleMs }
  const choosing = {
    rules,
    kind: measured,
    organization,
    kept,
    continues: continues?.(targets),
    looksOnly,
    explanation,
  }
  const { weights, rank, onlyFirst } = route
  const chosen = chooseTargets(targets, { ...choosing, weights, rank, costAt: admission.costAt }, state)
  if (onlyFirst && explanation) {
    for (const other of chosen.targets.slice(1)) explanation.skip(other, 'fallbacks', noFallbacks)
  }
  const choice = onlyFirst ? { ...chosen, targets: [chosen.targets[0]] as const } : chosen
  if (!kept || looksOnly || rules.sticky === 'hash') return { ...choice, kind, served: nothing }
  return { ...choice, kind, served: (target) => state.affinity.keep(kept.key, targetId(target), kept.idleMs(target)) }
}

/** Returns the rules for calls of which nothing is cached, and whose answers are not written token by token. */
function withoutTokens({ sort, sticky }: RoutingRules): Pick<RoutingRules, 'sort' | 'sticky'> {
  return { sort: sort === 'throughput' ? 'latency' : sort, sticky: sticky === 'cache' ? 'none' : sticky }
}

const noFallbacks = '`allow_fallbacks` is false, and another target is first'

function nothing(): void {}

/** The time after its last call for which a conversation is kept that no cache holds. */
const idleSessionMs = 3_600_000

/** Finds the targets that can continue a stored response, or content that only its signer can read. */
export function continuing(
  { madeBy }: Pick<Turn, 'madeBy'>,
  request: NeutralRequest,
  targets: Targets,
): ((target: Target) => boolean) | undefined {
  if (madeBy) {
    const isThere = targets.some((target) => targetId(target) === madeBy.model)
    return (target) => (isThere ? targetId(target) === madeBy.model : target.provider.slug === madeBy.provider)
  }
  const maker = sealedBy(request)
  return maker === undefined ? undefined : (target) => target.provider.signer === maker
}

/** Returns the signer of the last part that only its signer can read. */
function sealedBy({ messages }: NeutralRequest): string | undefined {
  for (let place = messages.length - 1; place >= 0; place--) {
    const { role, parts = [] } = messages[place] ?? {}
    const sealed = role === 'assistant' ? parts.findLast(isSealed) : undefined
    if (sealed && 'by' in sealed) return sealed.by
  }
  return undefined
}

function isSealed(part: Part): boolean {
  if (!('by' in part) || part.by === undefined) return false
  const { type } = part
  return type === 'opaque' || 'signature' in part || ('encrypted' in part && part.encrypted !== undefined)
}
