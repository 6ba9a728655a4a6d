import type { ClientApi } from '../api/client-api.ts'
import type { JsonObject } from '../core/json.ts'
import { type Target, targetId } from '../manifest/target.ts'
import { targetFacts } from '../manifest/target-facts.ts'
import { finishOf, patchRequest, usedLosses } from '../manifest/translate.ts'
import type { PreparedCall, Translation } from './call.ts'

/** For a provider of the client's own format: bodies are edited, so fields unknown to the router survive both ways. */
export function nativeTranslation(target: Target, { call, request, turn }: PreparedCall): Translation {
  const { clientApi } = call
  const { provider } = target
  const finishMapping = { finishOf: (reason: string) => finishOf(provider, reason) }
  return {
    async request() {
      const dropped = await usedLosses(provider, request, target)
      const body = turn.bodyFor(provider)
      return { body: await nativeBody(target, clientApi, { body, stream: request.stream === true, dropped }), dropped }
    },
    forwardedHeaders: call.forwardedHeaders ?? [],
    whole: ({ body }, facts) => clientApi.editReply(turn.withPrevious(body), { ...facts, ...finishMapping }),
    stream() {
      const writer = clientApi.openStream(request, { model: targetId(target), id: call.id, ...finishMapping })
      return {
        frame({ payload, events }, fold) {
          for (const event of events) fold.take(event)
          return payload ? writer.frame(turn.withPrevious(payload)) : ''
        },
        // The provider's frames already close every part.
        close: () => '',
        end: writer.end,
        fail: writer.fail,
        ...(writer.reply && { reply: writer.reply }),
      }
    },
    responseToStore: (response, text) => turn.responseToStore(response, text, { target, sameFormat: true }),
  }
}

/** A client's body, edited for a provider of the same format. */
export async function nativeBody(
  target: Target,
  clientApi: ClientApi,
  { body, stream, dropped }: { body: JsonObject; stream: boolean; dropped: readonly string[] },
): Promise<JsonObject> {
  const { provider, model } = target
  const edited = clientApi.editRequest(body, { model, stream, dropped })
  return await patchRequest(provider, edited, targetFacts(provider, target))
}
