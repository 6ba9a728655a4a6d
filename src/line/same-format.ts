import type { ClientApi } from '../api/client-api.ts'
import { lostChoice } from '../api/tool-choice.ts'
import type { JsonObject } from '../core/json.ts'
import { type Target, targetId } from '../manifest/target.ts'
import { targetFacts } from '../manifest/target-facts.ts'
import { finishOf, type ProviderRequest, patchRequest, usedLosses } from '../manifest/translate.ts'
import type { PreparedCall, Translation } from './call.ts'

/** For a provider of the client's own format: bodies are edited, so fields unknown to the router survive both ways. */
export function sameFormatTranslation(target: Target, { call, request, turn }: PreparedCall): Translation {
  const { clientApi } = call
  const { provider } = target
  const finishMapping = { finishOf: (reason: string) => finishOf(provider, reason) }
  return {
    async request() {
      const losses = await usedLosses(provider, request, target)
      const body = turn.bodyFor(provider)
      return await editedRequest(target, clientApi, { body, stream: request.stream === true, losses })
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

/** A client's body, edited for a provider of the same format, and the neutral names of what it lost. */
export async function editedRequest(
  target: Target,
  clientApi: ClientApi,
  { body, stream, losses }: { body: JsonObject; stream: boolean; losses: readonly string[] },
): Promise<ProviderRequest> {
  const { provider, model } = target
  const edited = clientApi.editRequest(body, { model, stream, dropped: losses })
  const patched = await patchRequest(provider, edited, targetFacts(provider, target))
  return { body: patched, dropped: [...losses, ...lostChoice(body, edited, losses)] }
}
