import type { ProviderEvent, ProviderFailure } from '../../core/events.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { NeutralRequest, TargetFacts } from '../../core/request.ts'
import { withoutRestoredReasoning, withReasoningFor } from '../../core/restored-reasoning.ts'
import { type TextFilePlaces, withTextFiles } from '../../core/text-files.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import { andThen } from '../../runtime/maybe-promise.ts'
import type { ChatEndpoint, Provider } from '../provider.ts'
import { familyRules, type ModelTarget, type Target, targetFacts } from '../target.ts'
import { unenforcedGrammar, withFunctions } from './client-functions.ts'
import type { ClientNames } from './fit-names.ts'
import { type Fitting, fitRequest } from './fit-request.ts'
import {
  demandsTool,
  inferredUnsupported,
  supportedOnly,
  supportFor,
  takesPart,
  withoutIdleChoice,
} from './inferred-support.ts'
import { isPresent, readFinish, readUsage, reportedFailureOf } from './read-reply.ts'
import { runReading } from './read-usage.ts'
import { chatEndpoint, requireObject, runMapping, unreadable } from './run-mapping.ts'
import {
  declaredUnsupported,
  demanding,
  distinctNames,
  foreignOpaque,
  namesInRequest,
  requestWithoutFields,
  stillUsed,
  type UnsupportedRule,
} from './unsupported.ts'

/**
 * A provider's JSON for a request, the neutral names of the dropped fields, and the client's names of the tools that have others there.
 */
export type ProviderRequest = { body: JsonObject; dropped: string[]; names?: ClientNames }

/** One event of a provider's stream after `patch.event`, and the neutral events. */
export type ReadFrame = { payload: JsonObject; events: ProviderEvent[] }

/** Translates a request for a provider: unsupported fields removed, history repaired, mapped, patched. Throws RouterError. */
export async function writeRequest(
  provider: Provider,
  request: NeutralRequest,
  target: ModelTarget,
): Promise<ProviderRequest> {
  return await writeFor(provider, request, target, targetFacts(provider, target))
}

/** Writes a request like `writeRequest`, with the facts about the model given. */
export async function writeFor(
  provider: Provider,
  request: NeutralRequest,
  target: ModelTarget,
  facts: TargetFacts,
): Promise<ProviderRequest> {
  const { body, dropped, names } = await mapRequest(provider, request, target, facts)
  return {
    ...(names && { names }),
    body: await patchRequest(provider, body, facts),
    dropped: distinctNames([...dropped, ...unreadNames(request)]),
  }
}

/** Writes a request like `writeFor`, before the manifest's `patch.request`. */
export async function mapRequest(
  provider: Provider,
  whole: NeutralRequest,
  target: ModelTarget,
  facts: TargetFacts,
): Promise<ProviderRequest> {
  const { model } = target
  const chat = chatEndpoint(provider)
  const given = withTextsFor({ ...target, provider }, withReasoningFor(whole, facts.signer))
  const { mapping, sections } = chat.request
  let own: object | undefined
  const inputOf = (made: NeutralRequest) => {
    if (made !== given) return mappingInput(made, model, facts)
    own ??= mappingInput(given, model, facts)
    return own
  }
  const declaring = declaredFor(provider, given, facts, () => inputOf(given))
  const allDeclared = declaring instanceof Promise ? await declaring : declaring
  const support = supportFor(chat.request.support, allDeclared, provider.sameAs)
  const request = withFunctions(given, support)
  const declared = stillUsed(allDeclared, request)
  const supported = withoutIdleChoice(
    requestWithoutFields(supportedOnly(request, support, facts.signer), declared),
    support,
  )
  const rules = familyRules(provider, target)
  const fitted = fitRequest(supported, { rules, traits: facts.traits, edited: false })
  const input = inputOf(fitted.request)
  const running = runMapping(provider, 'request', mapping, input)
  const result = requireObject(provider, 'request', running instanceof Promise ? await running : running)
  const lost = [
    ...declared,
    ...inferredUnsupported(request, support),
    ...unenforcedGrammar(given, support),
    ...foreignOpaque(request, facts.signer),
    ...fitted.lost,
    ...(demandsTool(request) && !demandsTool(supported) ? ['tool_choice'] : []),
  ]
  const reported = namesInRequest(namesIn(result.dropped), request)
  return {
    body: joinSections(provider, sections, result),
    dropped: demanding(distinctNames([...lost, ...reported]), request),
    ...(fitted.names.size > 0 && { names: fitted.names }),
  }
}

/** Fits a request whose body is edited instead of translated, without its dropped fields, to the limits of its target. Throws RouterError. */
export function fitEdited(
  provider: Provider,
  request: NeutralRequest,
  { dropped, target }: { dropped: readonly string[]; target: ModelTarget },
): Fitting {
  const { traits } = targetFacts(provider, target)
  const rules = familyRules(provider, target)
  const left = requestWithoutFields(withoutRestoredReasoning(request), dropped)
  return fitRequest(left, { rules, traits, edited: true })
}

/** Returns a request whose files of text are text where a target takes no such files. */
export function withTextsFor(target: Target, request: NeutralRequest): NeutralRequest {
  const places = textFilePlaces(target)
  return places === undefined ? request : withTextFiles(request, places)
}

/** Returns the places where files of text become text for a target; undefined where there are none. */
export function textFilePlaces(target: Target): TextFilePlaces | undefined {
  if (!takesPart(chatEndpoint(target.provider), 'file')) return 'all'
  const { text_files: rule } = familyRules(target.provider, target).history
  return rule === 'keep' ? undefined : rule
}

/** Returns the dropped fields of a request whose body is edited instead of translated: only declared ones, everything else survives. */
export function unsupportedInRequest(
  provider: Provider,
  request: NeutralRequest,
  target?: ModelTarget,
): string[] | Promise<string[]> {
  const chosen = target ?? { model: request.model }
  const facts = targetFacts(provider, chosen)
  const sent = withTextsFor({ ...chosen, provider }, withoutRestoredReasoning(request))
  return declaredFor(provider, sent, facts, () => mappingInput(sent, chosen.model, facts))
}

/**
 * Returns the unsupported fields that the manifest declares, and those that the model lacks. `input` is made only for fields with a
 * condition.
 */
function declaredFor(
  provider: Provider,
  request: NeutralRequest,
  { lacks }: TargetFacts,
  input: () => unknown,
): string[] | Promise<string[]> {
  let made: unknown
  return declaredUnsupported(unsupportedFor(chatEndpoint(provider), lacks), request, (when, field) => {
    made ??= input()
    return runMapping(provider, `unsupported.${field}`, when, made)
  })
}

/** The unsupported fields of an endpoint for models that lack the same, made once: the list of what a model lacks belongs to its entry. */
const unsupportedByModel = new WeakMap<ChatEndpoint, WeakMap<readonly string[], readonly UnsupportedRule[]>>()

function unsupportedFor(chat: ChatEndpoint, lacks: readonly string[] | undefined): readonly UnsupportedRule[] {
  if (!lacks) return chat.unsupported
  const known = unsupportedByModel.get(chat) ?? new WeakMap<readonly string[], readonly UnsupportedRule[]>()
  unsupportedByModel.set(chat, known)
  let losses = known.get(lacks)
  if (!losses) {
    losses = [...chat.unsupported, ...lacks.map((field) => ({ field }))]
    known.set(lacks, losses)
  }
  return losses
}

/** Merges the sections into one body; a section that is not an object becomes the member with its name. */
function joinSections(provider: Provider, sections: readonly string[], result: JsonObject): JsonObject {
  const body: JsonObject = {}
  for (const section of sections) {
    const value = result[section]
    if (value === undefined) continue
    if (isObject(value)) Object.assign(body, value)
    else body[section] = value
  }
  if (Object.keys(body).length === 0) throw unreadable(provider, 'request', 'returned nothing')
  return body
}

/** Unread members have the client's own names, as extensions do. */
function unreadNames({ unread = [] }: NeutralRequest): string[] {
  return unread.map((path) => `extensions.${path}`)
}

function namesIn(dropped: Json | undefined): string[] {
  return [dropped].flat(2).filter((name) => typeof name === 'string')
}

/** A body after `patch.base`, which is a dialect's, and the manifest's `patch.request`, as far as there are any. */
export function patchRequest(
  provider: Provider,
  body: JsonObject,
  target: TargetFacts,
): JsonObject | Promise<JsonObject> {
  const { base, request } = chatEndpoint(provider).patch
  const patched = (given: JsonObject, name: string, mapping: Mapping | undefined) =>
    mapping
      ? andThen(runMapping(provider, name, mapping, given, { target }), (made) => requireObject(provider, name, made))
      : given
  return andThen(patched(body, 'patch.base', base), (based) => patched(based, 'patch.request', request))
}

/** Translates one event of a stream; synchronous if its mapping is compiled. Throws RouterError `provider_unreadable`. */
export function readEvent(
  provider: Provider,
  name: string | undefined,
  data: JsonObject | string,
  target: TargetFacts,
): ProviderEvent[] | Promise<ProviderEvent[]> {
  const frame = readFrame(provider, name, data, target)
  return frame instanceof Promise ? frame.then(({ events }) => events) : frame.events
}

/** Reads an event like `readEvent`, and returns its JSON after `patch.event` as well. */
export function readFrame(
  provider: Provider,
  name: string | undefined,
  data: JsonObject | string,
  target: TargetFacts,
): ReadFrame | Promise<ReadFrame> {
  const { patch, events } = chatEndpoint(provider)
  const mapping = (name !== undefined && events.get(name)) || events.get('*')
  if (!patch.event || typeof data === 'string') return readMapped(provider, name, mapping, data)
  return andThen(runReading(provider, 'patch.event', patch.event, data, { target }), (patched) =>
    readMapped(provider, name, mapping, requireObject(provider, 'patch.event', patched)),
  )
}

/** Reads the failure that an HTTP error body reports, where the manifest defines how. */
export async function readFailure(provider: Provider, body: Json): Promise<ProviderFailure | undefined> {
  const mapping = provider.failure
  if (!mapping) return undefined
  const failure = await runMapping(provider, 'failure', mapping, body)
  return isObject(failure) ? reportedFailureOf(failure) : undefined
}

/** The input of a request mapping: the neutral request without the client's own JSON. */
function mappingInput({ origin, unread, ...request }: NeutralRequest, model: string, target: TargetFacts) {
  request.model = model
  return Object.assign(request, { target })
}

function readMapped(
  provider: Provider,
  name: string | undefined,
  mapping: Mapping | undefined,
  data: JsonObject | string,
): ReadFrame | Promise<ReadFrame> {
  const payload = typeof data === 'string' ? { data } : data
  if (!mapping) return { payload, events: [] }
  const what = `events.${name ?? '*'}`
  return andThen(runReading(provider, what, mapping, data), (result) =>
    andThen(translateEvents(provider, listed(provider, what, result)), (events) => ({ payload, events })),
  )
}

/** Events with neutral `finish` and `usage`. */
function translateEvents(provider: Provider, events: JsonObject[]): ProviderEvent[] | Promise<ProviderEvent[]> {
  let made: (ProviderEvent | Promise<ProviderEvent>)[] | undefined
  let waiting = false
  for (let index = 0; index < events.length; index++) {
    const event = events[index] as JsonObject
    if (!isPresent(event.finish) && !isPresent(event.usage) && event.error === undefined) continue
    made ??= [...events] as ProviderEvent[]
    const known = translateEvent(provider, event)
    waiting ||= known instanceof Promise
    made[index] = known
  }
  if (!made) return events as ProviderEvent[]
  return waiting ? Promise.all(made).then(withCountsLast) : withCountsLast(made as ProviderEvent[])
}

/** Returns the events of one frame with its counts behind them: they cover what the frame says. */
function withCountsLast(events: ProviderEvent[]): ProviderEvent[] {
  const first = events.findIndex(({ usage }) => isPresent(usage))
  if (first < 0 || first === events.length - 1) return events
  const counts = events.flatMap(({ usage }) => (usage ? [{ usage }] : []))
  return [...events.map(({ usage: _, ...event }) => event), ...counts]
}

function translateEvent(provider: Provider, event: JsonObject): ProviderEvent | Promise<ProviderEvent> {
  const known = { ...event } as ProviderEvent & JsonObject
  if (isPresent(event.finish)) {
    const { finish, finish_raw } = readFinish(provider, event.finish, event.raw)
    if (finish) known.finish = finish
    if (finish_raw !== undefined) known.raw = finish_raw
  }
  if (event.error !== undefined) {
    const error = reportedFailureOf(event.error)
    if (error) known.error = error
    else delete known.error
  }
  if (!isPresent(event.usage)) return known
  return andThen(readUsage(provider, event.usage), (counts) => {
    known.usage = counts
    return known
  })
}

function listed(provider: Provider, what: string, result: unknown): JsonObject[] {
  if (result === undefined || result === null) return []
  if (!Array.isArray(result)) return [requireObject(provider, what, result)]
  return result.map((event) => requireObject(provider, what, event))
}

/**
 * The output limit in the body for a target, in tokens: the largest where there are several, the model's own where there is none.
 * Undefined when the manifest does not state where it is in a body.
 */
export function sentLength({ provider, entry }: Target, body: JsonObject): number | undefined {
  const paths = provider.chat?.outputLimits
  if (!paths) return undefined
  const own = entry?.max_output_tokens ?? entry?.context_window ?? 0
  let most = -1
  for (const path of paths) {
    const limit = memberAt(body, path)
    if (typeof limit === 'number' && limit > most) most = limit
  }
  return most < 0 ? own : Math.min(most, own || most)
}

function memberAt(body: JsonObject, path: readonly string[]): Json | undefined {
  let value: Json | undefined = body
  for (const name of path) value = isObject(value) ? value[name] : undefined
  return value
}
