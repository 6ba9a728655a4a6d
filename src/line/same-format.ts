import { defined } from '../api/check.ts'
import type { ClientApi, EditFacts } from '../api/client-api.ts'
import { lostChoice } from '../api/tool-choice.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import { takesPart } from '../manifest/inferred-losses.ts'
import { demanding, distinctNames, hasLinks } from '../manifest/losses.ts'
import { ownWords } from '../manifest/own-words.ts'
import { finishOf } from '../manifest/read-reply.ts'
import { andThen, chatEndpoint } from '../manifest/run-mapping.ts'
import type { Target } from '../manifest/target.ts'
import { targetFacts } from '../manifest/target-facts.ts'
import { type ProviderRequest, patchRequest, usedLosses } from '../manifest/translate.ts'
import { fetchMedia } from '../upstream/inline.ts'
import type { TargetedCall, Translation } from './call.ts'
import { Repetitions } from './repetitions.ts'

/** For a provider of the client's own format: bodies are edited, so fields unknown to the router survive both ways. */
export function sameFormatTranslation(
  target: Target,
  { call, request, turn, media, length, holds }: TargetedCall,
): Translation {
  const { clientApi } = call
  const { provider } = target
  let storesItself = false
  const finishMapping = { finishOf: (reason: string) => finishOf(provider, reason) }
  return {
    async request() {
      const using = usedLosses(provider, request, target)
      const losses = using instanceof Promise ? await using : using
      const body = turn.bodyFor(provider)
      const chat = chatEndpoint(provider)
      const files = hasLinks(request)
        ? await fetchMedia(request, chat.history.inline_media, media, (type) => takesPart(chat, type))
        : undefined
      const words = clientApi.hasOtherWords?.(request) ? await ownWords(provider, request, target) : undefined
      const { body: edited, dropped } = await editedRequest(target, clientApi, {
        body,
        stream: request.stream === true,
        losses: distinctNames([...losses, ...(words?.dropped ?? [])]),
        textRefusals: chat.history.refusals === 'text',
        ...defined({ files, words, length }),
      })
      return {
        body: edited,
        dropped: demanding(distinctNames([...dropped, ...(turn.lostFor?.(provider) ?? [])]), request),
      }
    },
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

/** A client's body, edited for a provider of the same format, and the neutral names of what it lost. */
export function editedRequest(
  target: Target,
  clientApi: ClientApi,
  { body, losses, ...facts }: { body: JsonObject; losses: readonly string[] } & Omit<EditFacts, 'model' | 'dropped'>,
): ProviderRequest | Promise<ProviderRequest> {
  const { provider, model } = target
  const edited = clientApi.editRequest(body, { ...facts, model, dropped: losses })
  const dropped = distinctNames([...losses, ...clientApi.editLosses(body), ...lostChoice(body, edited, losses)])
  return andThen(patchRequest(provider, edited, targetFacts(provider, target)), (patched) => ({
    body: patched,
    dropped,
  }))
}
