import type { OperationApi, OperationByChat } from '../../api/operation-api.ts'
import { asRouterError } from '../../core/errors.ts'
import type { OperationRequest } from '../../core/operation.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { type Usage, usageClasses } from '../../core/usage.ts'
import { endpointFor } from '../../manifest/operation.ts'
import { requestWithin } from '../../manifest/run/translate-operation.ts'
import type { Target } from '../../manifest/target.ts'
import { sizeOfTexts } from '../../money/estimate-tokens.ts'
import {
  boundedCall,
  costBound,
  maxOutputTokens,
  outputBound,
  promptBound,
  textBound,
  thinks,
} from '../../money/max-cost.ts'
import { highestCost } from '../../money/price.ts'
import type { CallMedia } from '../../upstream/files/inline.ts'
import type { OperationAnswer } from '../../upstream/operation-answer.ts'
import { requestAnswer } from '../../upstream/provider-answer.ts'
import type { MostUsed } from '../admission/admission.ts'
import type { TargetAnswer } from '../call-kind.ts'
import type { AttemptContext } from '../types.ts'
import { translatedRequest } from './other-format.ts'

/** Checks whether a target has an endpoint of its own for an operation. */
export function hasEndpoint(
  { provider, entry }: Pick<Target, 'provider' | 'entry'>,
  { operation }: OperationApi,
): boolean {
  return endpointFor(provider, operation, entry) !== undefined
}

/** Checks whether a target runs an operation as a conversation: it has no endpoint for it, and the model is a chat model. */
export function isAskedByChat(target: Pick<Target, 'provider' | 'entry'>, api: OperationApi): boolean {
  const { provider, entry } = target
  const converses =
    provider.chat !== undefined && (entry === undefined || [entry.api, ...(entry.also ?? [])].includes('chat'))
  return api.byChat !== undefined && converses && !hasEndpoint(target, api)
}

/** An operation whose cost is bounded. `at` is Unix milliseconds; `counted` are the tokens of its texts by a tokenizer. */
export type BoundedOperation = {
  api: OperationApi
  request: OperationRequest
  at: number
  counted?: number | undefined
}

/** Returns the maximum usage of a call at a target, and what that can cost. */
export function mostAt(target: Target, operation: BoundedOperation): MostUsed {
  const { api, request, at, counted } = operation
  if (!api.byChat || !isAskedByChat(target, api)) {
    const usage = countedUsage(mostUsage(target, operation), target, operation)
    const plausible = api.plausible?.(request)
    return { usage, nanoUsd: highestCost(usage, target.entry, at), ...(plausible && { plausible }) }
  }
  const asked = conversationFor(target, api.byChat, request)
  const call = boundedCall(asked, at, counted)
  const output = outputBound(call, target, asked.max_output_tokens)
  return {
    usage: { input: promptBound(call, target), output },
    nanoUsd: costBound(call, target, output),
    thinks: thinks(asked, target),
  }
}

/** Returns the most of each class, whether or not the target takes the fields that it may leave out. */
function mostUsage({ provider, entry }: Target, { api, request }: BoundedOperation): Usage {
  const usage = api.maxUsage(request, entry)
  const endpoint = endpointFor(provider, request.operation, entry)
  const taken = endpoint && requestWithin(endpoint, request)
  return taken === undefined || taken === request ? usage : largerUsage(usage, api.maxUsage(taken, entry))
}

function largerUsage(one: Usage, other: Usage): Usage {
  const larger = { ...one, ...other }
  for (const name of usageClasses) {
    if (one[name] !== undefined) larger[name] = Math.max(one[name], other[name] ?? 0)
  }
  return larger
}

/** Returns a usage whose input is bounded by the bytes of its texts, bounded by their tokens instead where they have been counted. */
function countedUsage(usage: Usage, target: Target, { api, request, counted }: BoundedOperation): Usage {
  const { input } = usage
  const texts = counted === undefined ? undefined : api.texts?.(request)
  if (input === undefined || !texts) return usage
  const size = { ...sizeOfTexts(texts), bytes: input }
  return { ...usage, input: textBound({ size, counted }, target) }
}

/** Returns the conversation, no longer than the model can write. */
function conversationFor(target: Target, byChat: OperationByChat, request: OperationRequest) {
  const asked = byChat.request(request)
  return { ...asked, max_output_tokens: Math.min(asked.max_output_tokens, maxOutputTokens(target)) }
}

/** Asks a target for an operation as a conversation. Throws RouterError. */
export async function askByChat(
  target: Target,
  { byChat, request, media }: { byChat: OperationByChat; request: OperationRequest; media: CallMedia },
  attempt: AttemptContext,
): Promise<TargetAnswer<OperationAnswer>> {
  const conversation: NeutralRequest = conversationFor(target, byChat, request)
  const { body, dropped } = await translatedRequest(target, conversation, media)
  attempt.report([...Object.keys(request.unread), ...lostNames(dropped, byChat)])
  const sent = await attempt.beforeSend(body)
  const outgoing = { ...attempt, body: sent, stream: false, forwardedHeaders: [] }
  const answer = await requestAnswer(target, outgoing, await attempt.client())
  if (answer.kind !== 'whole') throw new Error('a streamed answer to a call that is not streamed')
  const { exhaustedMs, reply } = answer
  const { usage, model } = reply
  try {
    return { kind: 'whole', reply: byChat.reply(reply, request), usage, reported: undefined, model, exhaustedMs }
  } catch (thrown) {
    const error = asRouterError(thrown)
    error.billed ??= usage
    error.billedModel ??= model
    throw error
  }
}

function lostNames(dropped: readonly string[], { names }: OperationByChat): string[] {
  return [...new Set(dropped.flatMap((field) => names[field] ?? []))]
}
