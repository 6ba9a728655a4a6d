import type { ClientApi } from '../../api/client-api.ts'
import { compactedBody } from '../../api/responses/edit.ts'
import { RouterError } from '../../core/errors.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { mergeUsage, type Usage } from '../../core/usage.ts'
import { readUsage } from '../../manifest/run/read-reply.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import { promptTexts } from '../../money/estimate-tokens.ts'
import { type BoundedCall, boundedCall, costBound, maxOutputTokens, promptBound, thinks } from '../../money/max-cost.ts'
import { estimatePromptTokens, measuredOperation } from '../../money/meter.ts'
import type { Explanation } from '../../routing/explanation.ts'
import type { Directory, Targets } from '../../routing/names/resolve.ts'
import { withBilled } from '../../upstream/answer-body.ts'
import { requestJson } from '../../upstream/provider-answer.ts'
import { admitOperation, countableTexts, type MostUsed } from '../admission/admission.ts'
import { translationOf } from '../attempt/choose-translation.ts'
import { withClientNamesIn } from '../attempt/client-names.ts'
import { bodyToSend, resending } from '../attempt/provider-call.ts'
import { comparing } from '../targets/unable-targets.ts'
import { type ConversationKind, conversationIn, preparedFor, type ReadConversation } from './conversation.ts'

/** A conversation made shorter by a provider, and what that used. */
type Compacted = { body: JsonObject; usage: Usage }

/**
 * Returns the kind of conversations to be compacted, by a provider of the client's format: the reply is its own, with the cost. A model
 * that cannot do that is refused with a 400 that names those which can.
 */
export function compactKind(clientApi: ClientApi): ConversationKind<Compacted> {
  const shared = conversationIn(clientApi)
  return {
    ...shared,
    operation: 'compact',
    read: async (body, context) => unstreamed(await shared.read(body, context)),
    able(targets, read, context) {
      const able = compacting(targets, context)
      return shared.able?.(able, read, context) ?? able
    },
    reserve(applicant, services) {
      const { read, at, counted } = applicant
      const bounded = boundedCall(read.request, at, counted)
      const promptTokens = estimatePromptTokens(read.request)
      const most = (target: Target) => mostAt(bounded, target)
      return admitOperation({ ...applicant, most, promptTokens, abandoned: { input: promptTokens } }, services)
    },
    countable(applicant, services) {
      const { read, at } = applicant
      const costAt = (target: Target, counted: number) => mostAt(boundedCall(read.request, at, counted), target).nanoUsd
      return countableTexts(applicant, { texts: promptTexts(read.request), costAt }, services)
    },
    serve(admitted, services) {
      const { call, read, admission, explanation } = admitted
      const prepared = preparedFor(admitted, clientApi, services)
      const { forwardedHeaders = [] } = call
      const measure = ({ usage }: Compacted, target: Target) => {
        const estimate = { input: estimatePromptTokens(read.request) }
        const bounds = admission.mostAt(target, false)
        return measuredOperation(usage, { counted: {}, estimate, complete: true, entry: target.entry, bounds })
      }
      return {
        canTake: comparing(read.request, admission.promptTokens),
        ask: (target, attempt) =>
          resending(read.turn, target, async () => {
            const translation = translationOf(target, prepared)
            const body = compactedBody(await bodyToSend(target, prepared, { translation, attempt }))
            const path = target.provider.compact?.path ?? ''
            const outgoing = { ...attempt, path, body, forwardedHeaders }
            const answer = await requestJson(target, outgoing, await attempt.client())
            prepared.holds(target.provider.slug, clientApi.heldIds?.(answer.body, read.request) ?? [])
            const compacted = await compactedIn(target, withClientNamesIn(answer.body, translation.clientNames()))
            return { ...compacted, exhaustedMs: answer.exhaustedMs }
          }),
        reportedModel: ({ body: { model } }) => (typeof model === 'string' ? model : undefined),
        measure,
        async reply(answered) {
          const { answer, target, settlement, headers } = answered
          const { cost } = await settlement.complete({ ...answered, measured: measure(answer, target) })
          const reply = withCost(answer.body, cost.unpriced ? undefined : cost.nanoUsd / 1e9)
          return { headers, body: JSON.stringify(explanation ? { ...reply, router: explanation.facts() } : reply) }
        },
      }
    },
  }
}

/** Returns a conversation whose answer comes whole, whatever its body says. */
export function unstreamed(read: ReadConversation): ReadConversation {
  return { ...read, stream: false, request: { ...read.request, stream: false } }
}

/** Leaves out the targets that cannot compact. */
function compacting(
  targets: Targets,
  { directory, explanation }: { directory: Directory; explanation: Explanation | undefined },
): Targets {
  const [first, ...others] = targets.filter(({ provider }) => provider.compact)
  for (const target of targets)
    if (!target.provider.compact) explanation?.skip(target, 'able', 'cannot compact conversations')
  if (first) return [first, ...others]
  const able = [...directory.providers.values()].filter((one) => one.compact && one.missing.length === 0)
  const names = able.map(({ slug }) => `${slug}/<model>`).join(', ')
  const who = names === '' ? 'no configured provider can' : `these can: ${names}`
  const message = `'${targetId(targets[0])}' cannot compact conversations; ${who}.`
  throw new RouterError('invalid_request', message, { param: 'model' })
}

/** Returns the most a call can use: only the model limits the length of the output. */
function mostAt(call: BoundedCall, target: Target): MostUsed {
  const output = maxOutputTokens(target)
  return {
    usage: { input: promptBound(call, target), output },
    nanoUsd: costBound(call, target, output),
    thinks: thinks(call.request, target),
  }
}

async function compactedIn({ provider }: Target, body: JsonObject): Promise<Compacted> {
  const counts = isObject(body.usage)
    ? await readUsage(provider, { service_tier: body.service_tier, ...body.usage })
    : {}
  const usage = mergeUsage({}, counts)
  if (Array.isArray(body.output)) return { body, usage }
  const message = 'The provider sent a compacted conversation without `output`.'
  throw withBilled(new RouterError('provider_unreadable', message, { provider: provider.slug }), usage)
}

function withCost(body: JsonObject, costUsd: number | undefined): JsonObject {
  if (costUsd === undefined || !isObject(body.usage)) return body
  return { ...body, usage: { ...body.usage, cost: costUsd } }
}
