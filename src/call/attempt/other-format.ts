import { idsOfItem } from '../../api/returned-ids.ts'
import type { StreamEvent } from '../../core/events.ts'
import type { Part } from '../../core/parts.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { takesPart } from '../../manifest/run/inferred-support.ts'
import { chatEndpoint } from '../../manifest/run/run-mapping.ts'
import { type ProviderRequest, writeRequest } from '../../manifest/run/translate.ts'
import { hasLinks } from '../../manifest/run/unsupported.ts'
import type { Target } from '../../manifest/target.ts'
import { type CallMedia, inlineMedia } from '../../upstream/files/inline.ts'
import type { StreamTranslation, TargetedCall, Translation } from './types.ts'

/**
 * Returns the translation for a provider of another format, through the neutral form: `readFrame` in `manifest/run/translate.ts` has made
 * events of each stream chunk by the dialect's mapping, and `stream-write.ts` of the client's API writes them.
 */
export function otherFormatTranslation(
  target: Target,
  { call, request, turn, media, holds }: TargetedCall,
): Translation {
  const { clientApi } = call
  const keep = keptBy(target, holds)
  return {
    request: () => translatedRequest(target, request, media),
    forwardedHeaders: [],
    edits: false,
    whole({ reply }, facts) {
      keep(reply.parts)
      return clientApi.writeReply(reply, facts)
    },
    stream: (model) => neutralStream({ call, request }, model, keep),
    responseToStore: (response, text) =>
      turn.responseToStore(response, text, { target, sameFormat: false, storesItself: false }),
  }
}

type StreamedCall = Pick<TargetedCall, 'request'> & {
  call: Pick<TargetedCall['call'], 'id' | 'requestId' | 'clientApi'>
}

/** Returns a function that remembers what a provider keeps of the parts of a reply. */
export function keptBy({ provider: { slug } }: Target, holds: TargetedCall['holds']): (parts: readonly Part[]) => void {
  return (parts) => holds(slug, parts.flatMap(idsOfPart))
}

function isKept({ type }: Part): boolean {
  return type === 'opaque' || type === 'audio' || type === 'reasoning'
}

/** Returns the ids of what a provider keeps of a part. */
function idsOfPart(part: Part): string[] {
  if (part.type === 'audio') return part.id === undefined ? [] : [part.id]
  if (part.type === 'reasoning') return part.id === undefined || part.encrypted ? [] : [part.id]
  return part.type === 'opaque' ? idsOfItem(part.body) : []
}

/**
 * Writes a streamed answer from its neutral events, of whatever format its frames are; `keep` is called with the parts of which a provider
 * may keep something.
 */
export function neutralStream(
  { call, request }: StreamedCall,
  model: string,
  keep?: (parts: readonly Part[]) => void,
): StreamTranslation {
  const { id, requestId, clientApi } = call
  const writer = clientApi.openStream(request, { model, id, requestId })
  const write = (events: readonly StreamEvent[]) => {
    if (keep) for (const event of events) if (event.type === 'close' && isKept(event.part)) keep([event.part])
    return writer.events(events)
  }
  return {
    translate({ events }, fold) {
      const [first, ...others] = events
      if (!first) return ''
      // What one event of the provider says is written together: log probabilities with their text.
      return write(others.length === 0 ? fold.take(first) : events.flatMap((event) => fold.take(event)))
    },
    close: (fold) => write(fold.end()),
    end: writer.end,
    fail: writer.fail,
    ...(writer.reply && { reply: writer.reply }),
  }
}

/** Returns a neutral request as a target gets it, with the files that the provider cannot fetch itself. Throws RouterError. */
export async function translatedRequest(
  target: Target,
  request: NeutralRequest,
  media: CallMedia,
): Promise<ProviderRequest> {
  const { provider } = target
  const chat = chatEndpoint(provider)
  const whole = hasLinks(request)
    ? await inlineMedia(request, chat.history.inline_media, media, (type) => takesPart(chat, type))
    : request
  return await writeRequest(
    provider,
    provider.sameAs === request.origin.api ? withOwnBlocks(whole, provider) : whole,
    target,
  )
}

/**
 * Returns a request that a plugin has changed with the blocks that its API alone has: a provider of this format understands those that the
 * client wrote itself.
 */
function withOwnBlocks(request: NeutralRequest, { signer }: Target['provider']): NeutralRequest {
  const own = (part: Part): Part => {
    if (part.type === 'tool_result') return { ...part, parts: part.parts.map(own) }
    return part.type === 'opaque' && part.by === undefined ? { ...part, by: signer } : part
  }
  return { ...request, messages: request.messages.map((message) => ({ ...message, parts: message.parts.map(own) })) }
}
