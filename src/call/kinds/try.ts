import type { Key } from '../../access/keys.ts'
import { withLookups } from '../../access/lookups.ts'
import type { ClientApi } from '../../api/client-api.ts'
import { RouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { isPlainHeader } from '../../core/secrets.ts'
import { chatEndpoint } from '../../manifest/run/run-mapping.ts'
import type { ProviderRequest } from '../../manifest/run/translate.ts'
import type { Target } from '../../manifest/target.ts'
import type { SignatureCache } from '../../routing/signature-cache.ts'
import { defaultAnswerBounds } from '../../upstream/answer-body.ts'
import { shownCredential } from '../../upstream/auth/authorize.ts'
import { shownOf } from '../../upstream/auth/secrets.ts'
import type { CallMedia } from '../../upstream/files/inline.ts'
import type { HttpClient, HttpRequest } from '../../upstream/http/types.ts'
import { wholeBytes } from '../../upstream/outgoing-body.ts'
import { requestAnswer } from '../../upstream/provider-answer.ts'
import { speaksSameFormat, translationOf } from '../attempt/choose-translation.ts'
import { wireNames } from '../attempt/provider-call.ts'
import type { TargetedCall } from '../attempt/types.ts'
import type { CallKind } from '../call-kind.ts'
import { readRequest } from '../handle-call.ts'
import { openConversations, type StoredTurns, singleTurn } from '../open/conversations.ts'
import { restrictedTargets } from '../targets/restricted-targets.ts'
import type { Turn } from '../types.ts'
import type { ReadConversation } from './conversation.ts'
import type { ExplainServices } from './explain.ts'

/** A request to a provider as it would be sent: without secrets; `edited`: its body is the client's own, edited. */
export type TriedRequest = {
  method: string
  url: string
  headers: JsonObject
  body: JsonObject
  dropped: string[]
  edited: boolean
}

type Tried = {
  key: Key
  kind: CallKind<ReadConversation> & { clientApi: ClientApi }
  body: JsonObject
  targetFor(request: TargetedCall['request']): Target
}

/**
 * Shows the request that a provider would be sent for a conversation, by the steps of a real call. Nothing is sent or fetched, nothing is
 * read of stored conversations, and plugins do not see it. Throws RouterError.
 */
export async function tryRequest(
  { key, kind, body, targetFor }: Tried,
  {
    rulesOf,
    held,
    resources,
    ...bounds
  }: Pick<ExplainServices, 'rulesOf' | 'held' | 'resources' | 'maxUnknownFields' | 'maxValues'>,
): Promise<TriedRequest> {
  const conversations = openConversations(nothingStored)
  const services = { ...bounds, conversations, signatures: noSignatures }
  const { signal } = new AbortController()
  const rules = await rulesOf(key.organization)
  const read = await readRequest({ json: body }, { call: { signal }, key, rules, kind, services })
  const { request, turn } = read
  const { organization } = key
  const restricted = { ...kind.restricted(read), organization, held, account: resources, at: Date.now() }
  const [target] = await withLookups((lookups) => restrictedTargets([targetFor(request)], { ...restricted, lookups }))
  const clientApi = kind.clientApi
  const written = await writtenRequest(target, request, { clientApi, turn })
  const sent = await captured(target, written.body, request.stream === true)
  const shown = (text: string) => shownOf(target.provider, text)
  const own = Object.keys(target.provider.headers).filter((name) => !isPlainHeader(name))
  const ofManifest = new Set(own.flatMap((name) => [name, name.toLowerCase()]))
  return {
    method: sent.method ?? 'POST',
    url: shown(sent.url),
    headers: Object.fromEntries(
      Object.entries(sent.headers).map(([name, value]) => [name, ofManifest.has(name) ? '[secret]' : shown(value)]),
    ),
    body: JSON.parse(String(await wholeBytes(sent.body ?? '', Infinity))),
    dropped: wireNames(clientApi, written.dropped, request.origin.body),
    edited: speaksSameFormat(target, clientApi),
  }
}

/** Writes a request as a target would be sent it; without its turn it continues nothing. Throws RouterError. */
export async function writtenRequest(
  target: Target,
  request: NeutralRequest,
  { clientApi, turn = singleTurn(request, false) }: { clientApi: ClientApi; turn?: Turn },
): Promise<ProviderRequest> {
  const { signal } = new AbortController()
  const call: TargetedCall['call'] = { id: 'tried', clientApi, strict: false, signal, outlive() {} }
  const media = noFiles(clientApi.wireNames('messages')[0] ?? '')
  return await translationOf(target, {
    call,
    request,
    turn,
    media,
    answerBounds: defaultAnswerBounds,
    holds() {},
  }).request()
}

const noSignatures: Pick<SignatureCache, 'restore'> = { restore: (_, request) => request }

const nothingStored: StoredTurns = { responses: { find: async () => undefined, findByItem: async () => undefined } }

/** Returns no files: they are not fetched for a request that is not sent. */
function noFiles(param: string): CallMedia {
  return {
    param,
    fetchAll() {
      const message = 'The provider gets files as data, and nothing is fetched here: use data URLs instead of links.'
      throw new RouterError('invalid_request', message, { param })
    },
  }
}

/** Returns the request as it reaches the HTTP client, with a word in place of the credential. */
async function captured({ provider, ...target }: Target, body: JsonObject, stream: boolean): Promise<HttpRequest> {
  let sent: HttpRequest | undefined
  const httpClient: HttpClient = {
    async send(request) {
      sent = request
      throw notSent
    },
    async close() {},
  }
  const shown = { ...target, provider: { ...provider, auth: shownCredential(provider.auth) } }
  chatEndpoint(provider)
  const { signal } = new AbortController()
  const asked = requestAnswer(shown, { body, stream, signal, forwardedHeaders: [] }, httpClient)
  await asked.catch((thrown: unknown) => {
    if (thrown !== notSent) throw thrown
  })
  if (!sent) throw new Error('no request was made')
  return sent
}

const notSent = new Error('nothing is sent')
