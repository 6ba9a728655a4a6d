import type { Key } from '../../access/keys.ts'
import type { OperationApi } from '../../api/operation-api.ts'
import { asRouterError } from '../../core/errors.ts'
import { type OperationRequest, operations } from '../../core/operation.ts'
import type { RoutingRequest } from '../../core/routing-request.ts'
import type { Explanation } from '../../routing/explanation.ts'
import type { Purpose, Route, Targets } from '../../routing/resolve.ts'
import { routeForRequest } from '../../routing/route-for-request.ts'
import { hasEndpoint, isAskedByChat } from '../attempt/operation-by-chat.ts'
import type { GovernedCall } from '../targets/restricted-targets.ts'
import { withoutUnpriced } from '../targets/unpriced-targets.ts'
import type { OperationServices } from './operation.ts'

/** An operation whose targets are looked for. `at` is Unix milliseconds. */
export type RoutedOperation = {
  api: OperationApi
  model: string
  at: number
  explanation?: Explanation | undefined
  /** What the request says of how it is routed. */
  routing?: RoutingRequest | undefined
  promptTokens?(): number
  /** Only targets in the EU may serve it. */
  inEurope?: boolean | undefined
}

/** The targets that a name leads to, for a key, but for those that it cannot pay. Throws RouterError. */
export function routeForOperation(
  key: Key,
  { api, model, at, explanation, routing, promptTokens = () => 0, inEurope }: RoutedOperation,
  { rulesOf, directory }: Pick<OperationServices, 'rulesOf' | 'directory'>,
): Route {
  const rules = rulesOf(key.organization)
  const scope = { rules, accessList: key.accessList }
  const purpose = { ...purposeOf(api), explanation, ...(inEurope && { inEurope }) }
  const route = routeForRequest(model, routing, { directory, scope, purpose, at, promptTokens })
  return { ...route, targets: withoutUnpriced(route.targets, { key, rules, at }, explanation) }
}

/** What the API does not know of a body goes on where the body is edited: nothing in it may decide what only the router decides. */
export function governed(
  { unread, operation }: OperationRequest,
  key: Key,
  { held }: Pick<OperationServices, 'held'>,
  at: number,
): GovernedCall {
  return { api: 'chat', operation, body: unread, organization: key.organization, mayStore: false, held, at }
}

/** What targets of an operation must be able to do; some can be done by models for conversations as well. */
function purposeOf(api: OperationApi): Purpose {
  const { models, api: name } = operations[api.operation]
  return {
    apis: models,
    serves: (target) => hasEndpoint(target, api) || isAskedByChat(target, api),
    name: `endpoint for ${name}`,
  }
}

/** The targets whose models can do what is asked. Throws the reason of the first when there are none. */
export function ableTargets(
  targets: Targets,
  {
    api: { checkModel },
    request,
    explanation,
  }: { api: OperationApi; request: OperationRequest; explanation: Explanation | undefined },
): Targets {
  if (!checkModel) return targets
  let reason: unknown
  const able = targets.filter((target) => {
    const { entry } = target
    if (!entry) return true
    try {
      checkModel(request, entry)
      return true
    } catch (thrown) {
      reason ??= thrown
      explanation?.skip(target, 'able', asRouterError(thrown).message)
      return false
    }
  })
  const [first, ...others] = able
  if (!first) throw reason
  return [first, ...others]
}
