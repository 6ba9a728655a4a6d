import type { ClientApi } from '../../api/client-api.ts'
import type { JsonObject } from '../../core/json.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { Target } from '../../manifest/target.ts'
import type { CallMedia } from '../../upstream/inline.ts'
import type { Turn } from '../open/conversations.ts'
import { translatedRequest } from './other-format.ts'
import { editedRequest } from './same-format.ts'

/** A conversation that a provider of the client's format does something else with than going on with it. */
export type AskedConversation = {
  call: { clientApi: ClientApi }
  request: NeutralRequest
  turn: Pick<Turn, 'bodyFor'>
  media: CallMedia
  /** A plugin has changed the request. */
  isRewritten?: boolean | undefined
}

/** The provider's body: the client's own, edited, unless a plugin has changed what it says. Throws RouterError. */
export async function conversationBody(target: Target, asked: AskedConversation): Promise<JsonObject> {
  const { call, request, turn, media, isRewritten } = asked
  if (isRewritten) return (await translatedRequest(target, { ...request, stream: false }, media)).body
  const whole = { body: turn.bodyFor(target.provider), stream: false, losses: [] }
  return (await editedRequest(target, call.clientApi, whole)).body
}
