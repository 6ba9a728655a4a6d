import type { OperationRequest } from '../../core/operation.ts'
import type { Part } from '../../core/parts.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { RoutingRules } from '../../core/routing-rules.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import { cacheLifetimeMs } from '../../routing/cache-lifetime.ts'
import { type Choice, type Choosing, chooseTargets } from '../../routing/choose.ts'
import type { Explanation } from '../../routing/explanation.ts'
import { type CallKind, callKind } from '../../routing/measurements.ts'
import type { Route, Targets } from '../../routing/resolve.ts'
import type { RoutingState } from '../../routing/trial.ts'
import type { Admission } from '../admission/admission.ts'
import type { Turn } from '../open/conversations.ts'
import { type AffineCall, affinityKey } from './affinity-key.ts'

/** A call that has been admitted to targets which can take it. */
type AdmittedCall = {
  targets: Targets
  explanation?: Explanation | undefined
  /** The order is only asked for: nothing is remembered of it. */
  looksOnly?: boolean
  route: Omit<Route, 'targets'>
  admission: Pick<Admission, 'costAt' | 'caches' | 'promptTokens'>
}

/** A conversation whose targets are to be put in order. */
export type OrderedChat = AdmittedCall & AffineCall & { turn: Pick<Turn, 'madeBy'> }

/** The order in which targets are tried. */
export type Order = Choice & {
  kind: CallKind
  /** Remembers which target has served the call. */
  served(target: Target): void
}

/** Puts the targets of a conversation in order, as the rules of its name say. */
export function orderTargets(call: OrderedChat, state: RoutingState): Order {
  const { targets, route, request, admission } = call
  const { rules } = route
  const kind = callKind('chat', request.stream === true, admission.promptTokens)
  if (targets.length === 1) return only(call, kind, rules)
  const key = affinityKey(rules.sticky, call)
  const isLong = admission.caches === '1h'
  const idleMs = (target: Target) => (rules.sticky === 'cache' ? cacheLifetimeMs(target, isLong) : idleSessionMs)
  const kept = key === undefined ? undefined : { key, idleMs }
  return ordered(call, { rules, kind, organization: call.organization, kept, continues: continuing(call) }, state)
}

/** An operation whose targets are to be put in order. */
export type OrderedOperation = AdmittedCall & { request: OperationRequest; organization: string; key: string }

/** Puts the targets of an operation in order. Nothing of it is cached, and its answer is not written token by token. */
export function orderForOperation(call: OrderedOperation, state: RoutingState): Order {
  const { targets, route, request, admission } = call
  const { sort, sticky } = route.rules
  const kind = callKind(request.operation, request.stream, admission.promptTokens)
  if (targets.length === 1) return only(call, kind, route.rules)
  const rules = {
    sort: sort === 'throughput' ? 'latency' : sort,
    sticky: sticky === 'cache' ? 'none' : sticky,
  } as const
  const { model, user } = request
  const asked: NeutralRequest = {
    model,
    messages: [],
    origin: { api: 'chat', body: {} },
    ...(user !== undefined && { user }),
  }
  const key = affinityKey(rules.sticky, { ...call, request: asked, session: route.sessionId })
  const kept = key === undefined ? undefined : { key, idleMs: () => idleSessionMs }
  return ordered(call, { rules, kind, organization: call.organization, kept }, state)
}

/** There is nothing to be chosen. */
function only({ targets, explanation, admission }: AdmittedCall, kind: CallKind, rules: Ordering): Order {
  explanation?.ordered(targets, { rules, costOf: (target) => admission.costAt(target, false) })
  return { targets, kind, by: rules.sort, served: nothing }
}

type Ordering = Pick<RoutingRules, 'sort' | 'sticky'>

function ordered(
  { targets, explanation, looksOnly, route: { weights, rank, onlyFirst }, admission: { costAt } }: AdmittedCall,
  choosing: Pick<Choosing, 'rules' | 'kind' | 'organization' | 'kept' | 'continues'>,
  state: RoutingState,
): Order {
  const { kind, kept, rules } = choosing
  const chosen = chooseTargets(targets, { ...choosing, weights, rank, costAt, looksOnly, explanation }, state)
  if (onlyFirst && explanation) {
    for (const other of chosen.targets.slice(1)) explanation.skip(other, 'fallbacks', noFallbacks)
  }
  const choice = onlyFirst ? { ...chosen, targets: [chosen.targets[0]] as const } : chosen
  if (!kept || rules.sticky === 'hash') return { ...choice, kind, served: nothing }
  return { ...choice, kind, served: (target) => state.affinity.keep(kept.key, targetId(target), kept.idleMs(target)) }
}

const noFallbacks = '`allow_fallbacks` is false, and another target stands first'

function nothing(): void {}

/** How long after its last call a conversation is kept that no cache holds. */
const idleSessionMs = 3_600_000

/** The targets that can go on with a stored response, or with what only its maker can read. */
function continuing({ turn, targets, request }: OrderedChat): ((target: Target) => boolean) | undefined {
  const { madeBy } = turn
  if (madeBy) {
    const isThere = targets.some((target) => targetId(target) === madeBy.model)
    return (target) => (isThere ? targetId(target) === madeBy.model : target.provider.slug === madeBy.provider)
  }
  const maker = sealedBy(request)
  return maker === undefined ? undefined : (target) => target.provider.maker === maker
}

/** Who made the last part that only its maker can read. */
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
