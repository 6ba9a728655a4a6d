import type { Key } from '../access/keys.ts'
import type { ClientApi } from '../api/client-api.ts'
import { readRouting } from '../api/routing-fields.ts'
import type { JsonObject } from '../core/json.ts'
import { withLoans } from '../lending/with-loans.ts'
import { skipClosed, skipTroubled } from '../routing/closed-reason.ts'
import { Explanation } from '../routing/explanation.ts'
import type { Trouble } from '../routing/health.ts'
import { type AdmissionServices, foreseen } from './admission.ts'
import { refuseLargeArguments } from './call-arguments.ts'
import { eligibleTargets } from './eligible.ts'
import { explained } from './explained.ts'
import type { Services } from './gateway.ts'
import { orderTargets } from './order-targets.ts'
import { refuseManyUnknown } from './unknown-fields.ts'

/** What a route is explained by. */
export type ExplainServices = Pick<
  Services,
  'directory' | 'rulesOf' | 'held' | 'conversations' | 'signatures' | 'maxUnknownFields' | 'maxValues' | 'routing'
> & { admission: Pick<AdmissionServices, 'budget' | 'defaultOutputTokens'> }

/** A conversation as a client would send it with this key. */
export type SupposedCall = {
  key: Key
  clientApi: ClientApi
  body: JsonObject
  strict: boolean
  timeoutMs?: number | undefined
  session?: string | undefined
  /** A name whose targets whoever asks may know of, also those that the key may not use. */
  ownName?: string
  /** What takes no calls, or not all. */
  troubled: readonly Trouble[]
}

/**
 * Where a call would go if it came now, and why: nothing is sent, reserved, counted or remembered. Throws the RouterError of a call
 * that would be refused, with what is known by then.
 */
export async function explainCall(call: SupposedCall, services: ExplainServices): Promise<JsonObject> {
  const { ownName } = call
  const explanation = new Explanation({ ...(ownName !== undefined && { ownName }) })
  return await explained(explanation, async () => withLoans(() => planned(call, services, explanation)))
}

function planned(call: SupposedCall, services: ExplainServices, explanation: Explanation): JsonObject {
  const { key, clientApi, body, strict, session, troubled } = call
  const { routing, admission } = services
  const { organization } = key
  const turn = services.conversations.open(clientApi, organization, body)
  refuseManyUnknown(turn.request, services.maxUnknownFields)
  refuseLargeArguments(turn.request, clientApi, services.maxValues)
  const request = services.signatures.restore(key, turn.request)
  const asked = readRouting(request.origin.body, call.timeoutMs)
  const at = Date.now()
  explanation.begin(performance.now())
  const eligible = eligibleTargets(key, { clientApi, request, turn, asked, strict, at }, services, explanation)
  const costs = foreseen({ ...eligible, request, at }, admission)
  const { targets, route } = eligible
  const affine = { organization, key: key.id, request, session }
  orderTargets({ ...affine, targets, route, turn, admission: costs, explanation, looksOnly: true }, routing)
  for (const target of targets) {
    const isClosed = skipClosed(explanation, target, { ...routing, organization })
    if (!isClosed) skipTroubled(explanation, target, { organization, troubled })
  }
  return explanation.plan()
}
