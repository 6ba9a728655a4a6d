import type { ClientApi } from '../../api/client-api.ts'
import { namesInBody } from '../../api/wire-fields.ts'
import { asRouterError, RouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { deniedFields } from '../../manifest/run/abilities.ts'
import { unreadableFile, withBlockTypes } from '../../manifest/run/unsupported.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import { type ProviderAnswer, requestAnswer } from '../../upstream/provider-answer.ts'
import type { TargetAnswer } from '../call-kind.ts'
import type { AttemptContext, Turn } from '../types.ts'
import { losesChoices, translationOf } from './choose-translation.ts'
import { withClientNames } from './client-names.ts'
import { heldAnswer } from './held-answer.ts'
import type { PreparedCall, TargetedCall, Translation } from './types.ts'
import { withinTime } from './within-time.ts'

/** The answer of a target to a conversation, and what translates it for the client. */
export type ProviderResult = { translation: Translation; answer: ProviderAnswer }

/** `translate`: in place of the usual translation; `holds`: a stream is read to its end first. */
type ProviderCallOptions = { translate?: typeof translationOf; holds?: boolean | undefined }

/** Calls one target. Retries once with the full conversation if the provider no longer has its stored copy. */
export async function callProvider(
  target: Target,
  prepared: PreparedCall,
  attempt: AttemptContext,
  { holds, translate = translationOf }: ProviderCallOptions = {},
): Promise<TargetAnswer<ProviderResult>> {
  const translation = translate(target, targeted(target, prepared))
  const call = (given = attempt) => callOnce(target, prepared, { translation, attempt: given, holds })
  if (!hasSteps(target)) return await resending(prepared.turn, target, call)
  const { limits, signal } = attempt
  const ownMs = Math.min(limits.totalMs ?? Infinity, prepared.request.stream ? Infinity : (limits.wholeMs ?? Infinity))
  const totalMs = ownMs === Infinity ? undefined : ownMs
  return await withinTime(target, { signal, totalMs }, (signal) =>
    resending(prepared.turn, target, () => call({ ...attempt, signal })),
  )
}

/** Checks whether an answer of a target takes several requests, which share the time of one attempt. */
function hasSteps({ provider: { chat } }: Target): boolean {
  return chat !== undefined && (chat.job !== undefined || chat.stream.address !== undefined)
}

/** Asks once more, with the full conversation, where the provider no longer has its stored copy. */
export async function resending<Result>(
  turn: Pick<Turn, 'mustResend'>,
  { provider }: Target,
  ask: () => Promise<Result>,
): Promise<Result> {
  try {
    return await ask()
  } catch (thrown) {
    if (!turn.mustResend(asRouterError(thrown), provider)) throw thrown
    return await ask()
  }
}

/** Returns the call with the output limit that this target gets. */
function targeted(target: Target, prepared: PreparedCall): TargetedCall {
  const length = prepared.admission.lengthAt(target)
  if (length === undefined) return prepared
  return { ...prepared, length, request: { ...prepared.request, max_output_tokens: length } }
}

async function callOnce(
  target: Target,
  prepared: PreparedCall,
  { translation, attempt, holds }: { translation: Translation; attempt: AttemptContext; holds: boolean | undefined },
): Promise<TargetAnswer<ProviderResult>> {
  const { call, request, admission } = prepared
  const body = await bodyToSend(target, prepared, { translation, attempt })
  const making = attempt.client()
  const client = making instanceof Promise ? await making : making
  const { forwardedHeaders } = translation
  const stream = request.stream === true
  // Spans quote a reply: then all of it is read.
  const edited = translation.edits() && call.trace?.hasContents !== true
  const begunMs = performance.now()
  const outgoing = { ...attempt, body, stream, edited, forwardedHeaders, choices: admission.choices }
  const answer = withClientNames(await requestAnswer(target, outgoing, client), translation.clientNames())
  const { exhaustedMs } = answer
  const isHeld = holds === true && answer.kind === 'stream'
  return {
    translation,
    exhaustedMs,
    answer: isHeld ? await heldAnswer(answer, target, { ...prepared, begunMs }) : answer,
  }
}

/** Writes the body for a target, and reports the fields that it leaves out. Throws RouterError where that is too much. */
export async function bodyToSend(
  target: Target,
  prepared: PreparedCall,
  {
    translation,
    attempt,
  }: { translation: Pick<Translation, 'request'>; attempt: Pick<AttemptContext, 'report' | 'beforeSend'> },
): Promise<JsonObject> {
  const { call, request } = prepared
  const writing = translation.request()
  const written = writing instanceof Promise ? await writing : writing
  const fields = withBlockTypes(lostFields(written.dropped, target, prepared), request)
  const dropped = wireNames(call.clientApi, fields, request.origin.body)
  attempt.report(dropped)
  const fileId = unreadableFile(request, written.dropped)
  if (fileId !== undefined) throw fileRefused(fileId, dropped, target)
  const sending = attempt.beforeSend(written.body)
  return sending instanceof Promise ? await sending : sending
}

/** Lists the fields that a request loses at a target; for a strict call also those that are sent although the model's entry denies them. */
function lostFields(dropped: string[], target: Target, { call, request, admission }: PreparedCall): string[] {
  const denied = call.strict && target.entry ? deniedFields(target.entry, request) : []
  const lowered = isLowered(target, request, admission) ? ['max_output_tokens'] : []
  const choices = losesChoices(target, request) ? ['n'] : []
  const others = [...lowered, ...choices, ...denied]
  return others.length === 0 ? dropped : [...dropped, ...others]
}

/** Checks whether the client asks for a longer reply than the model can give. */
function isLowered(
  target: Target,
  { max_output_tokens }: NeutralRequest,
  { lengthAt }: PreparedCall['admission'],
): boolean {
  return max_output_tokens !== undefined && lengthAt(target) !== undefined
}

/** Returns the client's names of neutral fields: those used in its body, else the default name. */
export function wireNames(clientApi: ClientApi, fields: readonly string[], body: JsonObject): string[] {
  return [...new Set(fields.flatMap((field) => namesInBody(clientApi.wireNames(field), body)))]
}

/**
 * Returns the error for a file id. It means something only where the file was uploaded; a reply about a file that nobody sent would be
 * worse than none.
 */
function fileRefused(fileId: string, dropped: readonly string[], target: Target): RouterError {
  const message = `${targetId(target)} cannot read the file '${fileId.slice(0, 100)}' by its id. Send the file as data or by URL, or call the provider that it was uploaded to.`
  return new RouterError('invalid_request', message, { param: dropped.find((name) => name.endsWith('file_id')) })
}
