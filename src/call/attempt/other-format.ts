import type { StreamFacts } from '../../api/client-api.ts'
import { idsOfItem } from '../../api/returned-ids.ts'
import { RouterError } from '../../core/errors.ts'
import type { StreamEvent } from '../../core/events.ts'
import type { Part } from '../../core/parts.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { ClientNames } from '../../manifest/run/fit-names.ts'
import { takesPart } from '../../manifest/run/inferred-support.ts'
import { chatEndpoint } from '../../manifest/run/run-mapping.ts'
import { type ProviderRequest, writeRequest } from '../../manifest/run/translate.ts'
import { hasLinks } from '../../manifest/run/unsupported.ts'
import { familyRules, type Target, targetId } from '../../manifest/target.ts'
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
  let names: ClientNames | undefined
  return {
    async request() {
      const made = await translatedRequest(target, request, media)
      names = made.names
      return made
    },
    clientNames: () => names,
    forwardedHeaders: [],
    edits: () => false,
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
  call: Pick<TargetedCall['call'], 'id' | 'requestId' | 'headers' | 'clientApi'>
}

/** Returns the facts of a call by which its stream is written. */
export function streamFacts(
  { id, requestId, headers }: Omit<StreamedCall['call'], 'clientApi'>,
  model: string,
): StreamFacts {
  return { model, id, requestId, client: headers?.['user-agent']?.toString() }
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
  const writer = call.clientApi.openStream(request, streamFacts(call, model))
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
  refuseEmptyReply(request, target)
  return await writeRequest(provider, inOwnFormat(await inlinedRequest(target, request, media), provider), target)
}

/** Returns a request with the files in it that the provider cannot fetch itself. Throws RouterError. */
export async function inlinedRequest(
  target: Target,
  request: NeutralRequest,
  media: CallMedia,
): Promise<NeutralRequest> {
  if (!hasLinks(request)) return request
  const chat = chatEndpoint(target.provider)
  const { inline_media } = familyRules(target.provider, target).history
  return await inlineMedia(request, inline_media, media, (type) => takesPart(chat, type))
}

/** Returns a request with the blocks that its API alone has, where the provider speaks that API. */
export function inOwnFormat(request: NeutralRequest, provider: Target['provider']): NeutralRequest {
  return provider.sameAs === request.origin.api ? asOwnRequest(request, provider) : request
}

/** Requires a reply to be asked for: a Messages request for none, which fills a cache, means nothing in other formats. Throws RouterError. */
function refuseEmptyReply({ origin: { api, body } }: NeutralRequest, target: Target): void {
  if (api !== 'messages' || body.max_tokens !== 0 || target.provider.sameAs === api) return
  const message = `'${targetId(target)}' cannot be called with 'max_tokens' 0: only providers of the Messages format fill their cache without a reply.`
  throw new RouterError('invalid_request', message, { param: 'max_tokens' })
}

/**
 * Returns a request that a plugin has changed with the blocks that its API alone has: a provider of this format understands those that the
 * client wrote itself.
 */
function asOwnRequest(request: NeutralRequest, { signer }: Target['provider']): NeutralRequest {
  const own = (part: Part): Part => {
    if (part.type === 'tool_result') return { ...part, parts: part.parts.map(own) }
    return part.type === 'opaque' && part.by === undefined ? { ...part, by: signer } : part
  }
  const messages = request.messages.map((message) => ({ ...message, parts: message.parts.map(own) }))
  // 0 asks for no reply at all.
  return { ...request, messages, ...(request.origin.body.max_tokens === 0 && { max_output_tokens: 0 }) }
}
