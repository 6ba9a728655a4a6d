import type { Key } from '../access/keys.ts'
import { withLookups } from '../access/lookups.ts'
import type { OperationBody } from '../api/operation-api.ts'
import { asRouterError, RouterError, withoutStack } from '../core/errors.ts'
import { isRefusal, refusedCall } from '../core/refused-call.ts'
import { recordedTrace } from '../core/trace.ts'
import { streamsWhole } from '../manifest/provider.ts'
import type { MaybePromise } from '../plugin/contract.ts'
import { tryTargets } from '../routing/attempts.ts'
import { Explanation } from '../routing/explanation.ts'
import { servedModel } from '../routing/served-model.ts'
import type { Trial, Tried } from '../routing/types.ts'
import { isLong, yieldToEventLoop } from '../runtime/event-loop.ts'
import { andThen } from '../runtime/maybe-promise.ts'
import { openCallMedia } from '../upstream/files/inline.ts'
import { requireLedger, requireMoney } from './admission/accounts.ts'
import { providerMessages } from './admission/provider-message.ts'
import { freeSettlement, Settlement } from './admission/settlement.ts'
import { attemptClients, attemptOf } from './attempt/attempt.ts'
import type { AttemptResult, CallKind, GoOn, ReadingServices, Serving } from './call-kind.ts'
import { authenticate, revalidated } from './open/authenticate.ts'
import { callerOf, readAfterAdmission } from './open/read-after-admission.ts'
import { requireKnownFields } from './open/request-bounds.ts'
import { recordedFor } from './open/tags.ts'
import { orderedByPlugins } from './plugins/plugin-targets.ts'
import { pluginsFor, withPlugins } from './plugins/with-plugins.ts'
import { attemptHeaders, retiredTarget } from './reply/attempt-headers.ts'
import { earlyReply } from './reply/early-reply.ts'
import { giveUp, otherTargets } from './reply/other-targets.ts'
import { findTargets, routeForModel, targetNamed } from './targets/find-targets.ts'
import { orderTargets } from './targets/order-targets.ts'
import type {
  Admission,
  AdmittedCall,
  Applicant,
  BodyProgress,
  Call,
  CallResponse,
  CallStart,
  KeyWithRules,
  OpenedCall,
  ReadCall,
  Services,
} from './types.ts'

/**
 * Handles one call from the endpoint to the response: every kind of call takes these steps, in this order, and a kind says only what
 * differs. Rejects with RouterError.
 */
export function handleCall<Read extends ReadCall, Answer extends object>(
  call: Call,
  kind: CallKind<Read, Answer>,
  services: Services,
): Promise<CallResponse> {
  if (!call.explain) return openAndAnswer(call, kind, services)
  return explained(new Explanation(), (explanation) => openAndAnswer(call, kind, services, explanation))
}

async function openAndAnswer<Read extends ReadCall, Answer extends object>(
  call: Call,
  kind: CallKind<Read, Answer>,
  services: Services,
  explanation?: Explanation,
): Promise<CallResponse> {
  const authenticating = authenticate(call, services)
  const authenticated = authenticating instanceof Promise ? await authenticating : authenticating
  const onField = call.uploads ? await openUpload(call, { authenticated, kind, services, explanation }) : () => {}
  const body = await readAfterAdmission(authenticated, call, { gate: services.gate, onField })
  // No `await` between here and admission but for a key or rules that have to be read again, so each check stays valid. A slow upload must
  // not outlive its key.
  const checking = recheck(authenticated, kind, services)
  let current = checking instanceof Promise ? await checking : checking
  const reading = readRequest(body, { call, ...current, kind, services })
  const read = reading instanceof Promise ? await reading : reading
  if (reading instanceof Promise) current = await recheck(authenticated, kind, services)
  const start = startOf(call, { kind, key: current.key, read })
  const plugins = pluginsFor({ call, ...current, read, start }, kind, services)
  const opened: OpenedCall<Read> = { call, authenticated, ...current, read, start, explanation, plugins }
  try {
    return await withPlugins(opened, kind, { services, recheck, answer: (changed) => answer(changed, kind, services) })
  } catch (thrown) {
    if (isRefusal(thrown)) services.ledger.refused?.(refusedCall(start, thrown))
    throw thrown
  }
}

/** Checks again, after a wait, what may have changed meanwhile: the key, and that the call can be written to the ledger. */
function recheck(authenticated: Key, { isFree }: CallKind, services: Services): MaybePromise<KeyWithRules> {
  return andThen(revalidated(authenticated, services), (key) =>
    andThen(services.rulesOf(key.organization), (rules) => {
      // Before a stored response is looked up: it may still be in the write queue.
      if (!isFree) requireLedger(services.admission)
      return { key, rules }
    }),
  )
}

/**
 * Requires money before an upload is read, even if its model would turn out to be free: a caller without money cannot send one. Returns a
 * function that refuses a form as soon as it names a model that the key may not call.
 */
async function openUpload(
  call: Call,
  {
    authenticated: key,
    kind,
    services,
    explanation,
  }: { authenticated: Key; kind: CallKind; services: Services; explanation: Explanation | undefined },
): Promise<BodyProgress['onField']> {
  const caller = { key, rules: await services.rulesOf(key.organization) }
  if (!kind.isFree) await requireMoney({ ...caller, at: Date.now() }, services.admission)
  let hasOthers = false
  return (name: string, model: string) => {
    hasOthers ||= name === 'models' || name.startsWith('models[')
    if (name !== 'model' || model === '' || hasOthers) return
    try {
      routeForModel(caller, { model, kind, at: Date.now(), explanation }, services)
    } catch (thrown) {
      const start = startOf(call, { kind, key, read: { model, stream: false, described: {} } })
      services.ledger.refused?.(refusedCall(start, thrown))
      throw thrown
    }
  }
}

/** Reads a body as a request of its kind, within the bounds of this server. Throws RouterError 400. */
export function readRequest<Read extends ReadCall>(
  body: OperationBody,
  {
    call: { timeoutMs, signal },
    key,
    rules,
    kind,
    services,
  }: KeyWithRules & {
    call: Pick<Call, 'timeoutMs' | 'signal'>
    kind: CallKind<Read>
    services: ReadingServices & Pick<Services, 'maxUnknownFields' | 'maxValues'>
  },
): MaybePromise<Read> {
  const bounded = (read: Read) => {
    requireKnownFields(read, services.maxUnknownFields)
    kind.requireBounds?.(read, services)
    if (timeoutMs !== undefined) read.routing = { ...read.routing, totalMs: timeoutMs }
    return read
  }
  const reading = kind.read(body, { key, rules, services, signal })
  return 'json' in body && isLong(body.bytes ?? 0) ? inSteps(reading, bounded) : andThen(reading, bounded)
}

/** Takes a step after another one, and yields to the event loop after each: both look at all of a long request. */
async function inSteps<Read>(reading: MaybePromise<Read>, step: (read: Read) => Read): Promise<Read> {
  const read = await reading
  await yieldToEventLoop()
  step(read)
  await yieldToEventLoop()
  return read
}

/** Returns the facts of a call before any provider is called. */
function startOf(
  { id, requestId, trace, tags = {} }: Call,
  {
    kind: { api, operation },
    key,
    read,
  }: { kind: CallKind; key: Key; read: Pick<ReadCall, 'model' | 'stream' | 'described'> },
): CallStart {
  return {
    id,
    ...(requestId !== undefined && { requestId }),
    at: Date.now(),
    monotonicMs: performance.now(),
    organization: key.organization,
    key: key.id,
    keyName: key.name,
    ...(key.groupId !== null && { group: key.groupId }),
    api,
    operation,
    requested: read.model,
    stream: read.stream,
    ...(trace && { trace: recordedTrace(trace) }),
    ...recordedFor(read.described, tags),
  }
}

async function answer<Read extends ReadCall, Answer extends object>(
  opened: OpenedCall<Read>,
  kind: CallKind<Read, Answer>,
  services: Services,
): Promise<CallResponse> {
  const { call, start, explanation, plugins } = opened
  const admitting = admit(opened, kind, services)
  const { admission, ...applicant } = admitting instanceof Promise ? await admitting : admitting
  const media = openCallMedia(services.media, { param: kind.mediaParam, signal: call.signal })
  const nextClient = attemptClients(services.httpClient, call.trace)
  const admitted: AdmittedCall<Read> = { ...opened, ...applicant, admission, media, nextClient }
  const kept = { rules: applicant.rules, keepMs: services.keepErrorsMs }
  const providerMessage = providerMessages(() => kind.content(applicant.read), kept)
  const settlement = kind.isFree
    ? freeSettlement(start, admission)
    : new Settlement(start, { ledger: services.ledger, admission, explanation, plugins, providerMessage })
  if (isLong(admission.promptTokens * charactersPerToken)) await yieldToEventLoop()
  return await askTargets(admitted, settlement, { kind, services })
}

/** An estimate, to find out how long a prompt is. */
const charactersPerToken = 4

/**
 * Admits a call, in one synchronous step unless its accounts have to be read first; where only the bytes of its prompt do not fit, once
 * more when they have been counted as tokens.
 */
function admit<Read extends ReadCall>(
  opened: OpenedCall<Read>,
  kind: CallKind<Read>,
  services: Services,
): MaybePromise<Applicant<Read> & { admission: Admission }> {
  const { authenticated, read, start, explanation } = opened
  const apply = ({ key, rules }: KeyWithRules): MaybePromise<Applicant<Read>> =>
    withLookups((lookups) => {
      explanation?.begin(start.monotonicMs)
      return { ...findTargets({ key, rules, lookups }, opened, kind, services), read, at: start.at }
    })
  const admitNow = (applicant: Applicant<Read>, counted?: number) => {
    const admission = kind.reserve({ ...applicant, counted }, services.admission)
    if (!(admission instanceof Promise)) return { ...applicant, admission }
    return admission.then((reserved) => recheckedWith(applicant, reserved))
  }
  /** Checks again after a wait: the key may have been revoked. */
  const recheckedWith = async (applicant: Applicant<Read>, admission: Admission) => {
    try {
      return { ...applicant, ...(await recheck(authenticated, kind, services)), admission }
    } catch (thrown) {
      admission.settle(0n, 0)
      throw thrown
    }
  }
  const admitCounted = async (applicant: Applicant<Read>, thrown: unknown) => {
    const isExhausted = thrown instanceof RouterError && thrown.code === 'budget_exhausted'
    const texts = isExhausted ? await kind.countable?.(applicant, services.admission) : undefined
    const counted = texts && (await services.tokenizer.count(texts))
    if (counted === undefined) throw thrown
    return await admitNow(await apply(await recheck(authenticated, kind, services)), counted)
  }
  return andThen(apply(opened), (applicant) => {
    try {
      const admission = admitNow(applicant)
      if (!(admission instanceof Promise)) return admission
      return admission.catch((thrown) => admitCounted(applicant, thrown))
    } catch (thrown) {
      return admitCounted(applicant, thrown)
    }
  })
}

/** Asks the targets of an admitted call in their order, until one answers. */
async function askTargets<Read extends ReadCall, Answer extends object>(
  admitted: AdmittedCall<Read>,
  settlement: Settlement,
  { kind, services }: { kind: CallKind<Read, Answer>; services: Services },
): Promise<CallResponse> {
  const { call, read, key, route, admission, explanation, plugins } = admitted
  const { routing } = services
  const serving = kind.serve(admitted, services)
  const order = orderTargets(admitted, kind, routing)
  const find = (id: string) => targetNamed(id, admitted, kind, services)
  const ordering = plugins ? orderedByPlugins(order.targets, { plugins, settlement, admission, find }) : order.targets
  const trial: Trial<AttemptResult<Answer>> = {
    targets: ordering instanceof Promise ? await ordering : ordering,
    ...(order.kind && { kind: order.kind }),
    rules: route.rules,
    signal: call.signal,
    caller: callerOf(key),
    ...(serving.acts && { acts: true }),
    explanation,
    ...(serving.canTake && { canTake: serving.canTake }),
    attempt: attemptOf(admitted, serving, services),
    onFailed: (failed) => settlement.failAttempt(failed, failed.error),
  }
  const respond = async (trial: Trial<AttemptResult<Answer>>): Promise<CallResponse> => {
    const begunMs = performance.now()
    const tried = await tryTargets(trial, routing)
    if (!tried.error) order.served(tried.target)
    return await reply(tried, { trial, begunMs, admitted, settlement, serving, services, respond })
  }
  const { early, afterMs } = call.keepAlive
  const waits = early || route.rules.onCut === 'hold' || trial.targets.some(({ provider }) => streamsWhole(provider))
  if (!read.stream || !serving.failEvent || !waits) return await respond(trial)
  return await earlyReply(respond(trial), afterMs, { headers: admission.headers, fail: serving.failEvent })
}

/** Makes the response of a call whose attempts are over. Throws RouterError, with the same headers as a response. */
async function reply<Answer extends object>(
  tried: Tried<AttemptResult<Answer>>,
  context: {
    trial: Trial<AttemptResult<Answer>>
    begunMs: number
    admitted: AdmittedCall
    settlement: Settlement
    serving: Serving<Answer>
    services: Services
    respond(trial: Trial<AttemptResult<Answer>>): Promise<CallResponse>
  },
): Promise<CallResponse> {
  const { trial, begunMs, admitted, settlement, serving, services, respond } = context
  const served = tried.error
    ? undefined
    : servedModel(tried.target, serving.reportedModel(tried as Answer), services.directory)
  const retired = retiredTarget(tried.target)
  if (retired) services.onRetired?.(retired)
  const headers = { ...admitted.admission.headers, ...attemptHeaders(tried, served) }
  let response: CallResponse | GoOn | undefined
  try {
    if (tried.error) {
      const failing = settlement.fail(tried, tried.error)
      if (settlement.isReadingOn) admitted.call.outlive(failing)
      else await failing
      throw tried.error
    }
    const { target, attempts, dropped, times, handle, untried, overtime } = tried
    const others = otherTargets(trial, { target, attempts, untried }, { begunMs, respond })
    response = await serving.reply({
      ...{ target, attempts, dropped, times, handle, untried, overtime, served, headers, settlement, trial, begunMs },
      answer: tried as Answer,
      servedBy: (target, reported) => servedModel(target, reported, services.directory),
      mayRetry: () => others(wanted) !== undefined,
      giveUp: (received, thrown) => giveUp(received, thrown, { settlement, handle, others }),
    })
  } catch (thrown) {
    const failed = asRouterError(thrown).withHeaders(headers)
    // An answer has come: what its provider did for the caller must not be done again.
    const error = serving.acts && !tried.error ? failed.with({ mayHaveActed: true }) : failed
    throw admitted.explanation?.addedTo(error) ?? error
  } finally {
    // A stream ends its attempt itself.
    if (!tried.error && !(response && 'body' in response && typeof response.body !== 'string')) tried.handle.ended()
  }
  return typeof response === 'function' ? await response() : response
}

/** The error of an answer in place of which another one is wanted. */
const wanted = withoutStack(() => new RouterError('plugin_refused', 'Another answer is wanted.', { wantsOther: true }))

/** Answers a call that asks for an explanation; an error has it as well, once targets were looked for. Throws RouterError. */
export async function explained<Result>(
  explanation: Explanation,
  answer: (explanation: Explanation) => Promise<Result>,
): Promise<Result> {
  try {
    return await answer(explanation)
  } catch (thrown) {
    throw explanation.addedTo(asRouterError(thrown))
  }
}
