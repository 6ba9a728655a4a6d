import type { ClientApi } from '../../api/client-api.ts'
import { namesInBody } from '../../api/wire-fields.ts'
import { letsProviderAct } from '../../core/acting.ts'
import { asRouterError, RouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { deniedFields } from '../../manifest/abilities.ts'
import { unreadableFile } from '../../manifest/losses.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import type { AttemptLimits } from '../../routing/trial.ts'
import type { HttpClient } from '../../upstream/http-client.ts'
import { type ProviderAnswer, requestAnswer } from '../../upstream/provider-answer.ts'
import { withoutSecretsOf } from '../../upstream/secrets.ts'
import { clientByPlugins } from '../plugins/plugin-targets.ts'
import type { PreparedCall, TargetedCall, Translation } from '../types.ts'
import { translationOf } from './choose-translation.ts'
import { heldAnswer } from './held-answer.ts'

/** The result of calling one target: its answer or an error, and the client's names of the fields that were left out. */
export type ProviderResult = { dropped: string[] } & (
  | { translation: Translation; answer: ProviderAnswer; exhaustedMs: number | undefined; error?: undefined }
  /** `sent`: the provider has the whole request. */
  | { error: RouterError; sent: boolean }
)

/** How a target is called. `translate`: in place of the usual translation; `holds`: a stream is read to its end first. */
type ProviderCallOptions = {
  httpClient: HttpClient
  limits: AttemptLimits
  translate?: typeof translationOf
  holds?: boolean | undefined
}

/** Calls one target. Retries once with the full conversation if the provider no longer has its stored copy. */
export async function callProvider(
  target: Target,
  prepared: PreparedCall,
  { httpClient, limits, holds, translate = translationOf }: ProviderCallOptions,
): Promise<ProviderResult> {
  const translation = translate(target, targeted(target, prepared))
  const how = { translation, httpClient, limits, holds }
  const result = await callOnce(target, prepared, how)
  if (!result.error || !prepared.turn.mustResend(result.error, target.provider)) return result
  return await callOnce(target, prepared, how)
}

/** The call with the output limit that this target gets. */
function targeted(target: Target, prepared: PreparedCall): TargetedCall {
  const length = prepared.admission.lengthAt(target)
  if (length === undefined) return prepared
  return { ...prepared, length, request: { ...prepared.request, max_output_tokens: length } }
}

async function callOnce(
  target: Target,
  prepared: PreparedCall,
  { translation, httpClient, limits, holds }: Omit<ProviderCallOptions, 'translate'> & { translation: Translation },
): Promise<ProviderResult> {
  const { call, request, admission, plugins, answerBounds: bounds } = prepared
  const { clientApi, signal } = call
  let dropped: string[] = []
  let sent = false
  try {
    const writing = translation.request()
    const written = writing instanceof Promise ? await writing : writing
    dropped = wireNames(clientApi, lostFields(written.dropped, target, prepared), request.origin.body)
    const fileId = unreadableFile(request, written.dropped)
    if (fileId !== undefined) throw fileRefused(fileId, dropped, target)
    if (call.strict && dropped.length > 0) throw lossRefused(dropped, target)
    const stream = request.stream === true
    const { body } = written
    const covering = admission.cover(target, body)
    if (covering) await covering
    const { forwardedHeaders, edits } = translation
    // What spans say of a reply is read of all of it.
    const edited = edits && call.trace?.hasContents !== true
    const onSent = () => {
      sent = true
    }
    const choosing = plugins ? clientByPlugins(httpClient, target, plugins) : httpClient
    const client = choosing instanceof Promise ? await choosing : choosing
    const outgoing = {
      body,
      stream,
      edited,
      signal,
      forwardedHeaders,
      onSent,
      bounds,
      limits,
      idempotencyKey: call.id,
      once: letsProviderAct(request),
      choices: admission.choices,
    }
    const answer = await requestAnswer(target, outgoing, client)
    const isHeld = holds === true && answer.kind === 'stream'
    const { exhaustedMs } = answer
    return { dropped, translation, exhaustedMs, answer: isHeld ? await heldAnswer(answer, target, prepared) : answer }
  } catch (thrown) {
    return { dropped, error: withoutSecretsOf(target.provider, asRouterError(thrown)), sent }
  }
}

/** What a request loses at a target; who is strict hears as well of what is sent although the model's entry denies it. */
function lostFields(dropped: string[], target: Target, { call, request, admission }: PreparedCall): string[] {
  const denied = call.strict && target.entry ? deniedFields(target.entry, request) : []
  const lowered = isLowered(target, request, admission) ? ['max_output_tokens'] : []
  return denied.length + lowered.length === 0 ? dropped : [...dropped, ...lowered, ...denied]
}

/** Whether the client asks for a longer reply than the model can give. */
function isLowered(
  target: Target,
  { max_output_tokens }: NeutralRequest,
  { lengthAt }: PreparedCall['admission'],
): boolean {
  return max_output_tokens !== undefined && lengthAt(target) !== undefined
}

/** The client's names of neutral fields: those used in its body, else the default name. */
export function wireNames(clientApi: ClientApi, fields: readonly string[], body: JsonObject): string[] {
  return [...new Set(fields.flatMap((field) => namesInBody(clientApi.wireNames(field), body)))]
}

/** An id means something only where the file was uploaded; a reply about a file that nobody sent would be worse than none. */
function fileRefused(fileId: string, dropped: readonly string[], target: Target): RouterError {
  const message = `${targetId(target)} cannot read the file '${fileId.slice(0, 100)}' by its id. Send the file as data or by URL, or call the provider that it was uploaded to.`
  return new RouterError('invalid_request', message, { param: dropped.find((name) => name.endsWith('file_id')) })
}

function lossRefused(dropped: readonly string[], target: Target): RouterError {
  const fields = dropped.join(', ')
  const message = `${targetId(target)} does not support: ${fields}. Remove the fields, or send the request without x-router-strict and provider.require_parameters.`
  return new RouterError('loss_refused', message, { param: dropped[0] ?? '' })
}
