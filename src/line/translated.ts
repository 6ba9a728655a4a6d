import { type Target, targetId } from '../manifest/target.ts'
import { writeRequest } from '../manifest/translate.ts'
import { inlineMedia } from '../upstream/inline.ts'
import type { PreparedCall, Translation } from './call.ts'

/** For a provider of another format: its mappings translate through the neutral form. */
export function translatedTranslation(target: Target, { call, request, turn, media }: PreparedCall): Translation {
  const { clientApi } = call
  const { provider } = target
  return {
    request: async () =>
      await writeRequest(provider, await inlineMedia(request, provider.chat?.history.inline_media, media), target),
    forwardedHeaders: [],
    whole: ({ reply }, facts) => clientApi.writeReply(reply, facts),
    stream() {
      const writer = clientApi.openStream(request, { model: targetId(target), id: call.id })
      return {
        frame({ events }, fold) {
          let text = ''
          for (const event of events) text += writer.events(fold.take(event))
          return text
        },
        close: (fold) => writer.events(fold.end()),
        end: writer.end,
        fail: writer.fail,
        ...(writer.reply && { reply: writer.reply }),
      }
    },
    responseToStore: (response, text) => turn.responseToStore(response, text, { target, sameFormat: false }),
  }
}
