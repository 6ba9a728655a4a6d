import type { Key } from '../../access/keys.ts'
import type { ClientApi } from '../../api/client-api.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { RoutingRequest } from '../../core/routing-request.ts'
import { estimatePromptTokens } from '../../money/meter.ts'
import type { Explanation } from '../../routing/explanation.ts'
import { forChat, type Route, type Targets } from '../../routing/resolve.ts'
import { routeForRequest } from '../../routing/route-for-request.ts'
import type { OrganizationRules } from '../../store/rules.ts'
import type { Services } from '../handle-call.ts'
import type { Turn } from '../open/conversations.ts'
import { governedTargets } from './restricted-targets.ts'
import { withoutUnable } from './unable-targets.ts'
import { withoutUnpriced } from './unpriced-targets.ts'

/** A conversation whose targets are looked for. `at` is Unix milliseconds. */
export type Conversation = {
  clientApi: Pick<ClientApi, 'wireNames'>
  request: NeutralRequest
  turn: Pick<Turn, 'mayStore'>
  /** What the request says of how it is routed. */
  asked: RoutingRequest | undefined
  strict: boolean
  /** Only targets in the EU may serve it. */
  inEurope?: boolean | undefined
  at: number
}

/** The targets that a conversation of a key may go to and that can take it, as far as that is known now, in the order of its names. */
export type Eligible = { key: Key; rules: OrganizationRules; targets: Targets; route: Route }

/** Finds them. Throws RouterError 400, 402, 403, 404 where there are none. */
export function eligibleTargets(
  key: Key,
  { clientApi, request, turn, asked, at, inEurope, strict: isStrict }: Conversation,
  { directory, rulesOf, held }: Pick<Services, 'directory' | 'rulesOf' | 'held'>,
  explanation?: Explanation,
): Eligible {
  const { organization } = key
  const rules = rulesOf(organization)
  const scope = { rules, accessList: key.accessList }
  const forThis = forChat(request, explanation)
  const purpose = inEurope ? { ...forThis, inEurope } : forThis
  const promptTokens = () => estimatePromptTokens(request)
  const route = routeForRequest(request.model, asked, { directory, scope, purpose, at, promptTokens })
  const priced = withoutUnpriced(route.targets, { key, rules, at }, explanation)
  const { api, body } = request.origin
  const governing = { api, body, organization, mayStore: turn.mayStore, held, at }
  const governed = governedTargets(priced, governing, explanation)
  const strict = isStrict || route.strict === true
  const { targets, skipped } = withoutUnable(governed, { clientApi, strict, request })
  if (explanation) for (const { target, reason } of skipped) explanation.skip(target, 'able', reason)
  return { key, rules, targets, route }
}
