import { chat } from '../api/chat/api.ts'
import { oneOf, optional } from '../api/check.ts'
import { messages } from '../api/messages/api.ts'
import { responses } from '../api/responses/api.ts'
import { chatKind } from '../call/kinds/chat.ts'
import { type ExplainServices, explainCall } from '../call/kinds/explain.ts'
import { sessionIn } from '../call/targets/affinity-key.ts'
import { isObject } from '../core/json.ts'
import { bareName } from '../core/names.ts'
import { isStrict, timeoutOf } from '../http/request-headers.ts'
import { json, type ManagementContext, type ManageRequest, type ManageRoute, missing, pathPart } from './manage.ts'
import { invalid } from './read.ts'

/** Serves `/v1/manage/policy/{id}/explain`: where a call by the name of a policy would go, and why, without making it. */
export function explainRoutes({ explaining, degraded }: ManagementContext): ManageRoute[] {
  return [
    {
      path: '/v1/manage/policy/:id/explain',
      method: 'post',
      reads: true,
      isForWorkers: true,
      async handle({ key, organization, headers, params, body: sent }) {
        const id = pathPart({ params }, 'id')
        const services = explaining()
        const { policies } = await services.rulesOf(organization)
        if (!policies.has(id) && !services.directory.managed.has(id)) missing('policy', id)
        const { kind, body } = requestFrom(sent, id)
        const ways = { strict: isStrict(headers), timeoutMs: timeoutOf(headers), session: sessionIn(headers) }
        const call = { key, kind, body, ...ways, troubled: degraded() }
        // Who manages an organization has written its policies, but not those of the configuration.
        const ownName = policies.has(id) ? { ownName: String(body.model) } : {}
        return json({ policy: id, ...(await explainCall({ ...call, ...ownName }, withoutAlias(id, services))) })
      },
    },
  ]
}

const kinds = { chat: chatKind(chat), messages: chatKind(messages), responses: chatKind(responses) }

/** Returns a request as a client would send it; its `model` may be any name of the policy. */
function requestFrom(sent: ManageRequest['body'], id: string) {
  if (!isObject(sent)) throw invalid('The body must be a JSON object: a request as a client would send it.')
  const { api, ...body } = sent
  const kind = kinds[optional(api, 'api', oneOf(['chat', 'messages', 'responses'])) ?? 'chat']
  const { model } = body
  const isNamed = typeof model === 'string' && bareName(model) === id
  return { kind, body: { ...body, model: isNamed ? model : id } }
}

/** Removes the alias of the same name, which hides a policy from calls: here it is the policy that is asked for. */
function withoutAlias(id: string, services: ExplainServices): ExplainServices {
  const rulesOf: ExplainServices['rulesOf'] = async (organization) => {
    const rules = await services.rulesOf(organization)
    if (!rules.aliases.has(id)) return rules
    return { ...rules, aliases: new Map([...rules.aliases].filter(([name]) => name !== id)) }
  }
  return { ...services, rulesOf }
}
