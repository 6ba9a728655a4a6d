import type { ClientApi, EditFacts } from '../../api/client-api.ts'
import { droppedChoice } from '../../api/remove-fields.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { takesPart } from '../../manifest/run/inferred-support.ts'
import { type OwnFormatFields, ownFormatFields } from '../../manifest/run/own-names.ts'
import { finishOf } from '../../manifest/run/read-reply.ts'
import { andThen, chatEndpoint } from '../../manifest/run/run-mapping.ts'
import {
  type ProviderRequest,
  patchRequest,
  textFilePlaces,
  unsupportedInRequest,
} from '../../manifest/run/translate.ts'
import { demanding, distinctNames, hasLinks } from '../../manifest/run/unsupported.ts'
import { type Target, targetFacts } from '../../manifest/target.ts'
import { fetchMedia } from '../../upstream/files/inline.ts'
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
  const finishMapping = { finishOf: (reason: string) => finishOf(provider, reason) }
  return {
    request: () => requestOf(target, prepared),
    forwardedHeaders: call.forwardedHeaders ?? [],
    edits: true,
    whole({ body }, facts) {
      storesItself = body.store === true
      holds(provider.slug, clientApi.heldIds?.(body, request) ?? [])
      return clientApi.editReply(turn.withPrevious(body), { ...facts, ...finishMapping })
    },
    stream(model) {
      const { id, requestId } = call
      const writer = clientApi.openStream(request, { model, id, requestId, ...finishMapping })
      const repetitions = writer.repeatsText ? new Repetitions() : undefined
      return {
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
        // The provider's frames already close every part.
        close: () => '',
        end(facts) {
          holds(provider.slug, writer.heldIds?.() ?? [])
          return writer.end(facts)
        },
        fail: writer.fail,
        ...(writer.reply && { reply: writer.reply }),
      }
    },
    responseToStore(response, text) {
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
  const files = hasLinks(request) ? await fetchMedia(request, chat.history.inline_media, media, takes) : undefined
  const words = call.clientApi.hasAlternativeNames?.(request)
    ? await ownFormatFields(provider, request, target)
    : undefined
  return await writtenRequest(target, prepared, { losses, files, words })
}

/** Losses of a body, and the files and wire names that were found for it. */
type Found = { losses: readonly string[]; files?: EditFacts['files']; words?: OwnFormatFields | undefined }

function writtenRequest(
  target: Target,
  { call, request, turn, length }: TargetedCall,
  { losses, files, words }: Found,
): ProviderRequest | Promise<ProviderRequest> {
  const { provider } = target
  const asked = {
    body: turn.bodyFor(provider),
    stream: request.stream === true,
    losses: distinctNames(words ? [...losses, ...words.dropped] : losses),
    textRefusals: chatEndpoint(provider).history.refusals === 'text',
    textFiles: textFilePlaces(chatEndpoint(provider)),
    files,
    providerFields: words,
    length,
  }
  return andThen(editedRequest(target, call.clientApi, asked), ({ body, dropped }) => {
    const lost = turn.lostFor?.(provider) ?? []
    return { body, dropped: demanding(distinctNames([...dropped, ...lost]), request) }
  })
}

/** Returns a client's body, edited for a provider of the same format, and the neutral names of the dropped fields. */
export function editedRequest(
  target: Target,
  clientApi: ClientApi,
  asked: { body: JsonObject; losses: readonly string[] } & Omit<EditFacts, 'model' | 'dropped'>,
): ProviderRequest | Promise<ProviderRequest> {
  const { provider, model } = target
  const { body, losses, stream, files, providerFields, textRefusals = false, textFiles, length } = asked
  const edited = clientApi.editRequest(body, {
    model,
    stream,
    dropped: losses,
    files,
    providerFields,
    textRefusals,
    textFiles,
    length,
  })
  const dropped = distinctNames([...losses, ...clientApi.droppedByEdit(body), ...droppedChoice(body, edited, losses)])
  return andThen(patchRequest(provider, edited, targetFacts(provider, target)), (patched) => ({
    body: patched,
    dropped,
  }))
}
