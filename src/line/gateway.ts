import type { Key } from '../access/keys.ts'
import type { Reply } from '../core/reply.ts'
import type { NeutralRequest } from '../core/request.ts'
import type { Target } from '../manifest/target.ts'
import { attempt } from '../routing/attempts.ts'
import { type Directory, resolve } from '../routing/resolve.ts'
import { servedModel } from '../routing/served-model.ts'
import type { SignatureCache } from '../routing/signature-cache.ts'
import type { OrganizationRules } from '../store/rules.ts'
import type { AnswerBounds } from '../upstream/answer-bounds.ts'
import type { HttpClient } from '../upstream/http-client.ts'
import { type CallMedia, type MediaServices, openCallMedia } from '../upstream/inline.ts'
import { type AdmissionServices, admit, requireLedger } from './admission.ts'
import type { Call, CallResponse } from './call.ts'
import { clientReply } from './client-reply.ts'
import type { Conversations } from './conversations.ts'
import { governedTargets } from './governed-targets.ts'
import type { HeldState } from './held-state.ts'
import { pricedTargets } from './priced-targets.ts'
import { callProvider } from './provider-call.ts'
import { type CallLedger, type CallStart, Settlement } from './settlement.ts'
import { recordedFor } from './tags.ts'
import { refuseManyUnknown } from './unknown-fields.ts'

/** The services a call depends on. */
export type Services = {
  authenticate(secret: string | undefined): Key
  revalidate(key: Key): Key
  rulesOf(organization: string): OrganizationRules
  directory: Directory
  admission: AdmissionServices
  httpClient: HttpClient
  media: MediaServices
  ledger: CallLedger
  signatures: SignatureCache
  conversations: Conversations
  /** The most fields of a request that its API does not have. */
  maxUnknownFields: number
  answerBounds: AnswerBounds
  held: HeldState
}

/** One call from the endpoint to the reply; the steps are in the other files of this folder. Throws RouterError. */
export async function handle(call: Call, services: Services): Promise<CallResponse> {
  const { directory, ledger, signatures, held } = services
  const authenticated = services.authenticate(call.secret)
  const body = await call.readBody()
  // No `await` between here and admission, so each check stays valid. A slow upload must not outlive its key.
  const key = services.revalidate(authenticated)
  // Before a stored response is looked up: the stored response may still be in the write queue.
  requireLedger(services.admission)
  const turn = services.conversations.open(call.clientApi, key.organization, body)
  refuseManyUnknown(turn.request, services.maxUnknownFields)
  const rules = services.rulesOf(key.organization)
  const request = signatures.restore(key.organization, turn.request)
  const allowed = resolve(request.model, directory, { rules, accessList: key.accessList }, 'chat')
  const start = startOf(call, key, request)
  const priced = pricedTargets(allowed, { key, rules, at: start.at })
  const { organization } = key
  const { mayStore } = turn
  const targets = governedTargets(priced, { ...request.origin, organization, mayStore, held, at: start.at })
  const admission = admit({ key, rules, request, targets, at: start.at }, services.admission)
  const holds = (provider: string, ids: readonly string[]) => held.remember(organization, provider, ids)
  const { answerBounds } = services
  const prepared = { call, request, turn, media: openMedia(call, services), answerBounds, admission, holds }
  const settlement = new Settlement(start, { ledger, admission })
  const attempted = await attempt(
    targets,
    (target) => callProvider(target, prepared, services.httpClient),
    (failed) => failed.error && settlement.failAttempt(failed, failed.error),
  )
  const remember = (reply: Reply) => signatures.remember(key.organization, reply)
  const servedBy = (target: Target, reported?: string) => servedModel(target, reported, directory)
  return await clientReply(attempted, { prepared, settlement, servedBy, remember, limitHeaders: admission.headers })
}

function openMedia({ clientApi, signal }: Call, { media }: Services): CallMedia {
  return openCallMedia(media, { param: clientApi.wireNames('messages')[0] ?? '', signal })
}

function startOf(call: Call, key: Key, request: NeutralRequest): CallStart {
  return {
    id: call.id,
    ...(call.requestId !== undefined && { requestId: call.requestId }),
    at: Date.now(),
    monotonicMs: performance.now(),
    organization: key.organization,
    key: key.id,
    ...(key.groupId !== null && { group: key.groupId }),
    api: call.clientApi.api,
    operation: 'chat',
    requested: request.model,
    stream: request.stream === true,
    ...recordedFor(request, call.tags ?? {}),
  }
}
