import type { ClientApi, EditFacts } from '../../api/client-api.ts'
import { droppedChoice } from '../../api/remove-fields.ts'
import { type Replacement, withReplacedFields } from '../../api/replace-fields.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { ClientNames } from '../../manifest/run/fit-names.ts'
import type { Field, Fitting } from '../../manifest/run/fit-request.ts'
import { takesPart } from '../../manifest/run/inferred-support.ts'
import { type OwnFormatFields, ownFormatFields } from '../../manifest/run/own-names.ts'
import { finishOf } from '../../manifest/run/read-reply.ts'
import { chatEndpoint } from '../../manifest/run/run-mapping.ts'
import {
  fitEdited,
  mapRequest,
  type ProviderRequest,
  patchRequest,
  textFilePlaces,
  unsupportedInRequest,
} from '../../manifest/run/translate.ts'
import { demanding, distinctNames, hasLinks, requestWithoutFields } from '../../manifest/run/unsupported.ts'
import { familyRules, type Target, targetFacts } from '../../manifest/target.ts'
import { andThen } from '../../runtime/maybe-promise.ts'
import { fetchMedia } from '../../upstream/files/inline.ts'
import { inlinedRequest, inOwnFormat, otherFormatTranslation, streamFacts } from './other-format.ts'
import { Repetitions } from './repetitions.ts'
import type { TargetedCall, Translation } from './types.ts'

/**
 * Returns the translation for a provider of the client's own format: bodies are edited, so fields unknown to the router survive both ways.
 */
export function sameFormatTranslation(target: Target, prepared: TargetedCall): Translation {
  const { call, request, turn, holds } = prepared
  const { clientApi } = call
  const { provider } = target
  let storesItself = false
  let names: ClientNames | undefined
  // Where tools have other names at the provider, its reply is written from the neutral form, in which they have the client's.
  const renamed = () => otherFormatTranslation(target, prepared)
  const finishMapping = { finishOf: (reason: string) => finishOf(provider, reason) }
  return {
    request() {
      return andThen(requestOf(target, prepared), (made) => {
        names = made.names
        return made
      })
    },
    clientNames: () => names,
    forwardedHeaders: call.forwardedHeaders ?? [],
    edits: () => names === undefined,
    whole(answer, facts) {
      if (names) return renamed().whole(answer, facts)
      const { body } = answer
      storesItself = body.store === true
      holds(provider.slug, clientApi.heldIds?.(body, request) ?? [])
      return clientApi.editReply(turn.withPrevious(body), { ...facts, ...finishMapping })
    },
    stream(model) {
      if (names) return renamed().stream(model)
      const writer = clientApi.openStream(request, { ...streamFacts(call, model), ...finishMapping })
      const repetitions = writer.repeatsText ? new Repetitions() : undefined
      const keep = () => holds(provider.slug, writer.heldIds?.() ?? [])
      return {
        keep,
        translate(frame, fold) {
          for (const event of frame.events) fold.take(event)
          const repeated = repetitions?.write(frame)
          if (repeated !== undefined) return repeated
          const { payload } = frame
          if (!payload) return ''
          if (isObject(payload.response)) storesItself = payload.response.store === true
          const written = writer.edit(turn.withPrevious(payload))
          repetitions?.learn(frame, written)
          return written
        },
        ...(writer.more && { more: writer.more }),
        // The provider's frames already close every part.
        close: () => '',
        end(facts) {
          keep()
          return writer.end(facts)
        },
        fail: writer.fail,
        ...(writer.reply && { reply: writer.reply }),
      }
    },
    responseToStore(response, text) {
      if (names) return renamed().responseToStore(response, text)
      return turn.responseToStore(response, text, { target, sameFormat: true, storesItself })
    },
  }
}

/** Returns the provider's body: at once, where nothing has to be fetched or translated for it. */
function requestOf(target: Target, prepared: TargetedCall): ProviderRequest | Promise<ProviderRequest> {
  const { call, request } = prepared
  const losses = unsupportedInRequest(target.provider, request, target)
  if (hasLinks(request) || call.clientApi.hasAlternativeNames?.(request))
    return requestWithFound(target, prepared, losses)
  return andThen(losses, (known) => writtenRequest(target, prepared, { losses: known }))
}

async function requestWithFound(
  target: Target,
  prepared: TargetedCall,
  using: readonly string[] | Promise<readonly string[]>,
): Promise<ProviderRequest> {
  const { provider } = target
  const { call, request, media } = prepared
  const chat = chatEndpoint(provider)
  const takes = (type: string) => takesPart(chat, type)
  const losses = await using
  const { inline_media } = familyRules(provider, target).history
  const files = hasLinks(request) ? await fetchMedia(request, inline_media, media, takes) : undefined
  const words = call.clientApi.hasAlternativeNames?.(request)
    ? await ownFormatFields(provider, request, target)
    : undefined
  return await writtenRequest(target, prepared, { losses, files, words })
}

/** Losses of a body, and the files and wire names that were found for it. */
type Found = { losses: readonly string[]; files?: EditFacts['files']; words?: OwnFormatFields | undefined }

function writtenRequest(
  target: Target,
  prepared: TargetedCall,
  { losses, files, words }: Found,
): ProviderRequest | Promise<ProviderRequest> {
  const { call, request, turn, length } = prepared
  const { provider } = target
  const known = distinctNames(words ? [...losses, ...words.dropped] : losses)
  const body = turn.bodyFor(provider)
  const written = continues(body) ? withLength(call.clientApi.read(body), length) : request
  const fitting = fitEdited(provider, written, { dropped: known, target })
  const asked = {
    body,
    stream: request.stream === true,
    losses: known,
    textRefusals: chatEndpoint(provider).history.refusals === 'text',
    textFiles: textFilePlaces(target),
    files,
    providerFields: words,
    length,
  }
  const fitted =
    fitting.changed.size > 0 ? fittedFields(target, { ...prepared, request: written }, { fitting, known }) : undefined
  return andThen(fitted, (replaced) =>
    andThen(editedRequest(target, call.clientApi, { ...asked, replaced }), ({ body, dropped }) => {
      const lost = turn.lostFor?.(provider) ?? []
      const named = demanding(distinctNames([...dropped, ...lost]), request)
      const isRenamed = fitting.names.size > 0 || isLegacyRewritten(asked.body, fitting)
      return { body, dropped: named, ...(isRenamed && { names: fitting.names }) }
    }),
  )
}

function withLength(request: NeutralRequest, length: number | undefined): NeutralRequest {
  return length === undefined ? request : { ...request, max_output_tokens: length }
}

/** Checks whether tools in the former words of an API are sent in the present ones: then the reply is written in the client's. */
function isLegacyRewritten({ functions }: JsonObject, { changed }: Pick<Fitting, 'changed'>): boolean {
  return functions !== undefined && toolFields.some((field) => changed.has(field))
}

const toolFields = ['tools', 'tool_choice', 'messages'] as const satisfies readonly Field[]

/** Checks whether a body continues what the provider has stored: then its own items are all that may be written anew. */
function continues({ previous_response_id, conversation }: JsonObject): boolean {
  return (previous_response_id ?? conversation ?? null) !== null
}

/** Fields that are written anew, and the neutral names of what is lost by that. */
type ReplacedFields = { replacement: Replacement; lost: readonly string[] }

/** Writes the fields anew that are over a limit of the target: as a translated request has them. */
async function fittedFields(
  target: Target,
  { call, request, media }: TargetedCall,
  { fitting: { changed, lost, request: after }, known }: { fitting: Fitting; known: readonly string[] },
): Promise<ReplacedFields> {
  const { provider } = target
  const whole = await inlinedRequest(target, requestWithoutFields(request, known), media)
  const { body: made, dropped } = await mapRequest(
    provider,
    inOwnFormat(whole, provider),
    target,
    targetFacts(provider, target),
  )
  const fields = new Set(changed)
  // A budget for reasoning and the limit for the reply depend on each other.
  if (fields.has('reasoning')) fields.add('max_output_tokens')
  // Tools in an API's former fields are written anew as a whole.
  if (isLegacyRewritten(request.origin.body, { changed })) for (const field of toolFields) fields.add(field)
  const isChanged = (name: string) => {
    const first = name.split('.')[0] as Field | 'parts'
    return fields.has(first === 'parts' ? 'messages' : first)
  }
  // Members that the neutral form does not have are lost with the fields that hold them.
  const holding = new Set(
    [...fields].flatMap((field) => call.clientApi.wireNames(field)).map((name) => name.split('.')[0]),
  )
  const unread = (request.unread ?? []).filter((path) => holding.has(path.split('.')[0]))
  const replacement = { fields, made, before: request.tools ?? [], after: after.tools ?? [] }
  return { replacement, lost: [...lost, ...dropped.filter(isChanged), ...unread.map((path) => `extensions.${path}`)] }
}

/** Returns a client's body, edited for a provider of the same format, and the neutral names of the dropped fields. */
export function editedRequest(
  target: Target,
  clientApi: ClientApi,
  asked: { body: JsonObject; losses: readonly string[]; replaced?: ReplacedFields | undefined } & Omit<
    EditFacts,
    'model' | 'dropped'
  >,
): ProviderRequest | Promise<ProviderRequest> {
  const { provider, model } = target
  const { body, losses, replaced, stream, files, providerFields, textRefusals = false, textFiles, length } = asked
  const own = clientApi.editRequest(body, {
    model,
    stream,
    dropped: losses,
    files,
    providerFields,
    textRefusals,
    textFiles,
    length,
  })
  const edited = replaced ? withReplacedFields(own, replaced.replacement, clientApi.wireNames) : own
  const lost = replaced?.lost ?? []
  const dropped = distinctNames([
    ...[...losses, ...lost],
    ...clientApi.droppedByEdit(body),
    ...droppedChoice(body, own, losses),
  ])
  return andThen(patchRequest(provider, edited, targetFacts(provider, target)), (patched) => ({
    body: patched,
    dropped,
  }))
}
