import type { ClientApi } from '../../api/client-api.ts'
import { type ResourceUse, resourceUses, resourceUsesInParts } from '../../api/resource-uses.ts'
import { readRouting, withFirstModel } from '../../api/router-fields.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { estimatePromptTokens } from '../../money/meter.ts'
import { SeenChat } from '../../plugin/call-view.ts'
import type { PluginRequest } from '../../plugin/contract.ts'
import { forChat } from '../../routing/names/resolve.ts'
import { andThen } from '../../runtime/maybe-promise.ts'
import type { PreparedCall } from '../attempt/types.ts'
import type { CallKind } from '../call-kind.ts'
import { refuseLargeArguments } from '../open/request-bounds.ts'
import { continuing } from '../targets/order-targets.ts'
import { withoutUnable } from '../targets/unable-targets.ts'
import type { AdmittedCall, ReadCall, Services, Turn } from '../types.ts'

/** A conversation that has been read. */
export type ReadConversation = ReadCall & { request: NeutralRequest; turn: Turn }

/** A kind of calls about conversations. */
export type ConversationKind<Answer extends object> = CallKind<ReadConversation, Answer> & { clientApi: ClientApi }

type Shared = Omit<ConversationKind<object>, 'operation' | 'reserve' | 'serve'>

/** Returns the part that all kinds of calls about a conversation in a client API share. */
export function conversationIn(clientApi: ClientApi): Shared {
  return {
    api: clientApi.api,
    clientApi,
    mediaParam: clientApi.wireNames('messages')[0] ?? '',
    read(body, { key, rules, services }) {
      const json = 'json' in body ? body.json : undefined
      const opening = services.conversations.open(clientApi, rules, withFirstModel(json))
      return andThen(opening, (turn) => {
        const request = services.signatures.restore(key, turn.request)
        return { ...readingOf(request), turn }
      })
    },
    requireBounds: ({ request }, { maxValues }) => refuseLargeArguments(request, clientApi, maxValues),
    purpose: (read, explanation) => {
      if (!read) throw new Error('conversations are not read from forms')
      return forChat(read.request, explanation)
    },
    promptTokens: ({ request }) => estimatePromptTokens(request),
    content: ({ request: { origin: _, ...request } }) => request,
    restricted({ request, turn: { mayStore } }) {
      const { api, body } = request.origin
      return { api, body, mayStore, resources: { body, uses: usesIn(request) } }
    },
    able(targets, { request }, { strict, explanation }) {
      const { targets: able, skipped } = withoutUnable(targets, { clientApi, strict, request })
      if (explanation) for (const { target, reason } of skipped) explanation.skip(target, 'able', reason)
      return able
    },
    ordering: ({ request, turn }) => ({
      request,
      generates: true,
      continues: (targets) => continuing(turn, request, targets),
    }),
    plugins: { given: ({ request }) => seenBy(request), changed },
  }
}

/** Finds what a conversation names that accounts at providers keep; threads and containers have rules of their own. */
function usesIn(request: NeutralRequest): ResourceUse[] {
  const { api, body } = request.origin
  const isOwnRule = (name: string) => api === 'messages' && name === 'thread'
  const inParts = resourceUsesInParts(request, api === 'responses' ? 'input' : 'messages')
  return [...resourceUses(body, isOwnRule), ...inParts]
}

function readingOf(request: NeutralRequest) {
  const { model, stream, user, metadata, extensions, origin } = request
  return {
    model,
    stream: stream === true,
    routing: readRouting(origin.body),
    described: { user, metadata, requesty: origin.body.requesty },
    unknownFields: extensions ? Object.keys(extensions) : [],
    body: () => origin.body,
    request,
  }
}

/** Returns a conversation as plugins see it. */
function seenBy(request: NeutralRequest): PluginRequest {
  return new SeenChat(() => {
    const { origin: _, ...chat } = request
    return chat
  })
}

/** Returns the conversation as plugins changed it. The way in which the caller wants to be answered stays. */
function changed(read: ReadConversation, asked: PluginRequest): ReadConversation {
  if (!('chat' in asked)) return read
  const { origin, unread, stream } = read.request
  const { stream: _, unread: __, ...chat } = asked.chat
  const kept = { origin, ...(unread && { unread }), ...(stream !== undefined && { stream }) }
  const request: NeutralRequest = { ...chat, ...kept }
  return { ...read, model: request.model, request }
}

/** Returns a conversation as it is translated for targets. */
export function preparedFor(
  admitted: AdmittedCall<ReadConversation>,
  clientApi: ClientApi,
  { held, answerBounds }: Pick<Services, 'held' | 'answerBounds'>,
): PreparedCall {
  const { call, read, key, strict, explanation, plugins, isRewritten, media, admission } = admitted
  const { request, turn } = read
  return {
    call: { ...call, clientApi, strict },
    ...{ request, turn, explanation, plugins, isRewritten, media, answerBounds, admission },
    holds: (provider, ids) => held.remember(key.organization, provider, ids),
  }
}
