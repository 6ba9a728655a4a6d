import type { Key } from '../access/keys.ts'
import { asRouterError } from '../core/errors.ts'
import type { Reply } from '../core/reply.ts'
import type { NeutralRequest } from '../core/request.ts'
import { attempt } from '../routing/attempts.ts'
import { type Directory, resolve } from '../routing/resolve.ts'
import type { Seals } from '../routing/signature-cache.ts'
import type { OrganizationRules } from '../store/rules.ts'
import type { Door } from '../upstream/http-client.ts'
import { type MediaRoom, openCallMedia } from '../upstream/inline.ts'
import { type AdmissionRooms, admit, requireLedger } from './admission.ts'
import { replyHeaders, streamedReply, wholeReply } from './client-reply.ts'
import type { State } from './conversations.ts'
import { type Asked, ask, type Call } from './provider-call.ts'
import { type Ledger, type Opening, Settlement } from './settlement.ts'
import { taggedMetadata } from './tags.ts'

/** What the call passes through. */
export type Rooms = {
  authenticate(secret: string | undefined): Key
  again(key: Key): Key
  rulesOf(organization: string): OrganizationRules
  directory: Directory
  admission: AdmissionRooms
  door: Door
  media: MediaRoom
  ledger: Ledger
  seals: Seals
  state: State
}

/** What goes back to the client: a JSON text, or texts of server-sent events as they come. */
export type Outgoing = { headers: Readonly<Record<string, string>>; body: string | AsyncGenerator<string, void> }

/** One call, from endpoint to reply. Every other file is a room on this line. */
export async function handle(call: Call, rooms: Rooms): Promise<Outgoing> {
  const shown = rooms.authenticate(call.secret)
  // Before the body is read, and before a response that is not written yet is found missing.
  requireLedger(rooms.admission)
  const body = await call.readBody()
  // A slow body must not outlive its key.
  const key = rooms.again(shown)
  const turn = rooms.state.open(call.face, key.organization, body)
  const rules = rooms.rulesOf(key.organization)
  const request = rooms.seals.restore(key.organization, turn.request)
  const targets = resolve(request.model, rooms.directory, { rules, accessList: key.accessList })
  const opening = openingOf(call, key, request)
  const admission = admit({ key, rules, request, targets, at: opening.at }, rooms.admission)
  const settlement = new Settlement(opening, { ledger: rooms.ledger, admission })
  try {
    const asked: Asked = { call, request, turn, settlement }
    const { door } = rooms
    const media = openCallMedia(rooms.media, { param: call.face.wireNames('messages')[0] ?? '', signal: call.signal })
    const { answer } = await attempt(targets, (target, attempts) => {
      Object.assign(settlement, { target, attempts })
      return ask(target, asked, { door, media }).catch((thrown) => {
        if (!turn.forgot(thrown, target.provider)) throw thrown
        return ask(target, asked, { door, media })
      })
    })
    const keepSeals = (reply: Reply) => rooms.seals.keep(key.organization, reply)
    return answer.kind === 'whole'
      ? { headers: replyHeaders(settlement), body: await wholeReply(answer, asked, keepSeals) }
      : { headers: replyHeaders(settlement), body: streamedReply(answer, asked, keepSeals) }
  } catch (thrown) {
    const error = asRouterError(thrown)
    // A ledger that fails as well keeps the row for later: the client must hear of the first failure.
    await settlement.fail(error).catch(() => {})
    throw error.withHeaders(replyHeaders(settlement))
  }
}

function openingOf(call: Call, key: Key, request: NeutralRequest): Opening {
  const { user } = request
  const metadata = taggedMetadata(request.metadata, call.tags)
  return {
    id: call.id,
    at: Date.now(),
    begun: performance.now(),
    organization: key.organization,
    key: key.id,
    ...(key.groupId !== null && { group: key.groupId }),
    api: call.face.api,
    operation: 'chat',
    requested: request.model,
    stream: request.stream === true,
    request,
    ...(user !== undefined && { user }),
    ...(metadata && { metadata }),
  }
}
