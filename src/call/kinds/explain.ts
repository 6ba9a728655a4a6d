import type { Key } from '../../access/keys.ts'
import { withLookups } from '../../access/lookups.ts'
import type { JsonObject } from '../../core/json.ts'
import { withoutSecrets } from '../../core/secrets.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import { priceOf } from '../../money/price.ts'
import { Explanation } from '../../routing/explanation.ts'
import { skipClosed, skipDegraded } from '../../routing/health/failures.ts'
import type { TargetOutage } from '../../routing/health/health.ts'
import type { MaybePromise } from '../../runtime/maybe-promise.ts'
import type { OrganizationRules } from '../../store/rules.ts'
import { type Foreseen, foreseen, requireBudget } from '../admission/admission.ts'
import type { CallKind } from '../call-kind.ts'
import { explained, readRequest } from '../handle-call.ts'
import { findTargets } from '../targets/find-targets.ts'
import { orderTargets } from '../targets/order-targets.ts'
import type { AdmissionServices, Found, Services } from '../types.ts'
import type { ReadConversation } from './conversation.ts'

/** The services by which a route is explained. */
export type ExplainServices = Pick<
  Services,
  | 'directory'
  | 'rulesOf'
  | 'held'
  | 'resources'
  | 'conversations'
  | 'signatures'
  | 'maxUnknownFields'
  | 'maxValues'
  | 'routing'
> & { admission: Pick<AdmissionServices, 'budget' | 'defaultOutputTokens'> }

/** A conversation as a client would send it with this key. */
export type SupposedCall = {
  key: Key
  kind: CallKind<ReadConversation>
  body: JsonObject
  strict: boolean
  timeoutMs?: number | undefined
  session?: string | undefined
  /** A name whose targets the asker may know of, also those that the key may not use. */
  ownName?: string
  /** The targets that take no calls, or not all. */
  troubled: readonly TargetOutage[]
}

/**
 * Explains where a call would go if it came now, by the steps of a real one up to the order of its targets: nothing is sent, reserved,
 * counted or remembered. Throws the RouterError of a call that would be refused, with the facts that are known by then.
 */
export async function explainCall(call: SupposedCall, services: ExplainServices): Promise<JsonObject> {
  const { ownName } = call
  const explanation = new Explanation({ ...(ownName !== undefined && { ownName }) })
  return await explained(explanation, async () => {
    const { signal } = new AbortController()
    const { key, kind } = call
    const rules = await services.rulesOf(key.organization)
    const read = await readRequest({ json: call.body }, { call: { ...call, signal }, key, rules, kind, services })
    const found = await findPlanned(call, { read, rules }, { services, explanation })
    return await planned(call, found, { services, explanation })
  })
}

type Explaining = { services: ExplainServices; explanation: Explanation }

/** A supposed call with its targets. */
type FoundCall = Found & { read: ReadConversation; at: number }

function findPlanned(
  { key, kind, strict }: SupposedCall,
  { read, rules }: { read: ReadConversation; rules: OrganizationRules },
  { services, explanation }: Explaining,
): MaybePromise<FoundCall> {
  const at = Date.now()
  return withLookups((lookups) => {
    explanation.begin(performance.now())
    const call = { call: { strict }, read, start: { at }, explanation }
    return { ...findTargets({ key, rules, lookups }, call, kind, services), read, at }
  })
}

async function planned(
  { key, kind, strict, session, troubled }: SupposedCall,
  found: FoundCall,
  { services, explanation }: Explaining,
): Promise<JsonObject> {
  const { routing, admission } = services
  const { organization } = key
  const { read, at } = found
  const call = { strict, session }
  const supposed = { ...found, request: read.request }
  await requireBudget(supposed, admission)
  const expected = await foreseen(supposed, admission)
  orderTargets({ ...found, call, read, admission: expected, explanation, looksOnly: true }, kind, routing)
  for (const target of found.targets) {
    const isClosed = skipClosed(explanation, target, { ...routing, organization })
    if (!isClosed) skipDegraded(explanation, target, { organization, troubled })
  }
  return withCosts(explanation.plan(), found.targets, { at, expected })
}

/**
 * Adds to each target of a plan what the request can cost there at most, and what its prompt costs, whose tokens are estimated; targets without
 * a known price have neither.
 */
function withCosts(
  plan: JsonObject,
  targets: readonly Target[],
  { at, expected }: { at: number; expected: Foreseen },
): JsonObject {
  const { promptTokens } = expected
  const costs = targets.map((target): [string, JsonObject] => {
    const most = expected.costAt(target, false)
    const prompt = priceOf({ input: promptTokens }, target.entry, at)
    const isPriced = most !== undefined && !prompt.unpriced
    return [
      withoutSecrets(targetId(target)),
      isPriced ? { prompt_cost_usd: prompt.nanoUsd / 1e9, max_cost_usd: Number(most) / 1e9 } : {},
    ]
  })
  const costOf = new Map(costs)
  const places = (plan.targets ?? []) as JsonObject[]
  return {
    ...plan,
    prompt_tokens: promptTokens,
    targets: places.map((place) => ({ ...costOf.get(String(place.model)), ...place })),
  }
}
