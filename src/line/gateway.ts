import type { Key } from '../access/keys.ts'
import { readRouting, withFirstModel } from '../api/routing-fields.ts'
import { isRefusal, refusedCall } from '../core/refused-call.ts'
import type { NeutralRequest } from '../core/request.ts'
import type { RoutingRequest } from '../core/routing-request.ts'
import { recordedTrace } from '../core/trace.ts'
import { isLong, nextTurn } from '../core/turn.ts'
import { withLoans } from '../lending/with-loans.ts'
import type { CallPlugins } from '../plugin/call-plugins.ts'
import { Explanation } from '../routing/explanation.ts'
import type { Gate } from '../routing/gate.ts'
import type { Directory, Route, Targets } from '../routing/resolve.ts'
import type { SignatureCache } from '../routing/signature-cache.ts'
import type { RoutingState } from '../routing/trial.ts'
import type { OrganizationRules } from '../store/rules.ts'
import type { Tokenizer } from '../tokenizer/tokenizer.ts'
import type { AnswerBounds } from '../upstream/answer-bounds.ts'
import type { HttpClient } from '../upstream/http-client.ts'
import { type CallMedia, type MediaServices, openCallMedia } from '../upstream/inline.ts'
import { type Admission, type AdmissionRequest, type AdmissionServices, admit, requireLedger } from './admission.ts'
import { answerCall } from './answer-call.ts'
import type { Call, CallResponse, PreparedCall } from './call.ts'
import { refuseLargeArguments } from './call-arguments.ts'
import type { Conversations, Turn } from './conversations.ts'
import { countedPrompt } from './counted-prompt.ts'
import { eligibleTargets } from './eligible.ts'
import { explained } from './explained.ts'
import type { HeldState } from './held-state.ts'
import { readInTurn } from './let-in.ts'
import { pluginsOf, type RouterPlugins } from './plugins-of-call.ts'
import { type CallLedger, type CallStart, Settlement } from './settlement.ts'
import { recordedFor } from './tags.ts'
import { refuseManyUnknown } from './unknown-fields.ts'
import { isSeen, withPlugins } from './with-plugins.ts'

/** The services a call depends on. */
export type Services = {
  authenticate(secret: string | undefined): Key
  revalidate(key: Key): Key
  rulesOf(organization: string): OrganizationRules
  directory: Directory
  admission: AdmissionServices
  tokenizer: Tokenizer
  httpClient: HttpClient
  /** How many calls may run at once. */
  gate: Gate
  /** What is known of the health of targets. */
  routing: RoutingState
  media: MediaServices
  ledger: CallLedger
  signatures: SignatureCache
  conversations: Conversations
  /** The most fields of a request that its API does not have. */
  maxUnknownFields: number
  /** The most values that a request may hold; in the arguments of its calls there may be as many again. */
  maxValues: number
  answerBounds: AnswerBounds
  held: HeldState
  /** Missing where there are none. */
  plugins?: RouterPlugins
}

/** One call from the endpoint to the reply. Throws RouterError. */
export function handle(call: Call, services: Services): Promise<CallResponse> {
  if (!call.explain) return serve(call, services)
  return explained(new Explanation(), (asked) => serve(call, services, asked))
}

/** The steps of a call, which are in the other files of this folder. */
async function serve(call: Call, services: Services, explanation?: Explanation): Promise<CallResponse> {
  const authenticated = services.authenticate(call.secret)
  const body = await readInTurn(authenticated, call, services)
  // No `await` between here and admission, so each check stays valid. A slow upload must not outlive its key.
  const key = services.revalidate(authenticated)
  // Before a stored response is looked up: the stored response may still be in the write queue.
  requireLedger(services.admission)
  const turn = services.conversations.open(call.clientApi, key.organization, withFirstModel(body))
  refuseManyUnknown(turn.request, services.maxUnknownFields)
  refuseLargeArguments(turn.request, call.clientApi, services.maxValues)
  const request = services.signatures.restore(key, turn.request)
  const start = startOf(call, key, request)
  const routing = readRouting(request.origin.body, call.timeoutMs)
  const { headers, signal } = call
  const plugins = pluginsOf(start, { key, headers, signal, body: () => request.origin.body }, services)
  const opened: OpenedCall = { call, authenticated, key, turn, request, routing, start, explanation, plugins }
  try {
    if (!isSeen(opened)) return await answer(opened, services)
    return await withPlugins(opened, services, (changed) => answer(changed, services))
  } catch (thrown) {
    if (isRefusal(thrown)) services.ledger.refused?.(refusedCall(start, thrown))
    throw thrown
  }
}

/** A call that has been read. */
export type OpenedCall = {
  call: Call
  /** The key as it was before the body was read, and after. */
  authenticated: Key
  key: Key
  turn: Turn
  request: NeutralRequest
  /** What the request says of how it is routed. */
  routing: RoutingRequest | undefined
  start: CallStart
  explanation: Explanation | undefined
  /** Those that see it. */
  plugins: CallPlugins | undefined
  /** A plugin has changed the request. */
  isRewritten?: boolean
  /** Only targets in the EU may serve it. */
  inEurope?: boolean
}

async function answer(opened: OpenedCall, services: Services): Promise<CallResponse> {
  const { call, key, authenticated, turn, request, routing: asked, start, explanation, plugins, isRewritten } = opened
  const { at } = start
  const { clientApi, strict } = call
  const apply = (caller: Key): Applicant => {
    explanation?.begin(start.monotonicMs)
    const conversation = { clientApi, strict, request, turn, asked, at, inEurope: opened.inEurope }
    const { key, rules, targets, route } = eligibleTargets(caller, conversation, services, explanation)
    return { key, rules, targets, route, request, at }
  }
  const admitting = admitted(apply, { key, authenticated }, services)
  const { admission, targets, route } = admitting instanceof Promise ? await admitting : admitting
  const holds = (provider: string, ids: readonly string[]) => services.held.remember(key.organization, provider, ids)
  const media = openMedia(call, services)
  const prepared: PreparedCall = {
    call: route.strict ? { ...call, strict: true } : call,
    request,
    turn,
    explanation,
    plugins,
    isRewritten,
    media,
    answerBounds: services.answerBounds,
    admission,
    holds,
  }
  const settlement = new Settlement(start, { ledger: services.ledger, admission, explanation, plugins })
  if (isLong(admission.promptTokens * charactersPerToken)) await nextTurn()
  return await answerCall({ prepared, settlement, key, route, targets }, services)
}

/** A call as it may be admitted now. */
type Applicant = AdmissionRequest & { targets: Targets; route: Omit<Route, 'targets'> }
type Admitted = { admission: Admission } & Pick<Applicant, 'targets' | 'route'>

/**
 * Admits a call, at once where this event loop has been lent enough; where only the bytes of its prompt do not fit, once
 * more when they have been counted as tokens.
 */
function admitted(
  apply: (key: Key) => Applicant,
  { key, authenticated }: { key: Key; authenticated: Key },
  services: Services,
): Admitted | Promise<Admitted> {
  let applicant = apply(key)
  const admitNow = (counted?: number) =>
    withLoans((isRetry) => {
      if (isRetry || counted !== undefined) {
        // What was checked before the wait may have changed.
        applicant = apply(services.revalidate(authenticated))
        requireLedger(services.admission)
      }
      const { targets, route } = applicant
      return { admission: admit({ ...applicant, counted }, services.admission), targets, route }
    })
  const admitCounted = async (thrown: unknown) => {
    const counted = await countedPrompt(thrown, applicant, services)
    if (counted === undefined) throw thrown
    return await admitNow(counted)
  }
  try {
    const admission = admitNow()
    return admission instanceof Promise ? admission.catch(admitCounted) : admission
  } catch (thrown) {
    return admitCounted(thrown)
  }
}

/** About so many, to know how long a prompt is. */
const charactersPerToken = 4

function openMedia({ clientApi, signal }: Call, { media }: Services): CallMedia {
  return openCallMedia(media, { param: clientApi.wireNames('messages')[0] ?? '', signal })
}

/** The facts of a call before any provider is called. */
export function startOf(call: Call, key: Key, request: NeutralRequest): CallStart {
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
    ...(call.trace && { trace: recordedTrace(call.trace) }),
    ...recordedFor({ ...request, requesty: request.origin.body.requesty }, call.tags ?? {}),
  }
}
