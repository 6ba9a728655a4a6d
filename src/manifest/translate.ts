import { RouterError } from '../core/errors.ts'
import type { ProviderEvent, ProviderFailure } from '../core/events.ts'
import { type FoldFacts, fold } from '../core/fold.ts'
import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { ModelEntry } from '../core/model.ts'
import type { Part } from '../core/parts.ts'
import { repairHistory } from '../core/repair-history.ts'
import { type Finish, isFinish, type Reply } from '../core/reply.ts'
import { eventsOf, type MappedReply } from '../core/reply-events.ts'
import type { NeutralRequest, TargetFacts } from '../core/request.ts'
import type { ReportedUsage } from '../core/usage.ts'
import { type Mapping, MappingError, type Variables } from '../mapping/mapping.ts'
import { declaredLosses, distinctNames, foreignOpaque, usedNames, withoutFields } from './losses.ts'
import type { ChatEndpoint, Provider } from './provider.ts'
import { notTaken, onlyTaken, takenFor } from './inferred-losses.ts'

/** The model a request goes to; no entry means the catalog does not know it. */
export type ModelTarget = { model: string; entry?: ModelEntry }

/** A provider's JSON for a request, and the neutral names of what it cannot take (an unknown field: its wire name). */
export type Written = { body: JsonObject; dropped: string[] }

/** A provider's whole answer: as the patch left it, what it means, and the failure it reports inside. */
export type Read = { body: JsonObject; reply: Reply; error?: ProviderFailure }

/** One event of a provider's stream: as the patch left it, and what it means. */
export type ReadFrame = { payload: JsonObject; events: ProviderEvent[] }

/** Writes a request in the provider's words: history repaired, mapped, patched. Throws RouterError. */
export async function writeRequest(provider: Provider, request: NeutralRequest, target: ModelTarget): Promise<Written> {
  return await writeFor(provider, request, target.model, targetFacts(provider, target))
}

/** As `writeRequest`, with the facts about the model given. */
export async function writeFor(
  provider: Provider,
  request: NeutralRequest,
  model: string,
  facts: TargetFacts,
): Promise<Written> {
  const chat = chatOf(provider)
  const { mapping, sections } = chat.request
  const declared = await declaredFor(provider, request, mappingInput(request, model, facts))
  const taken = takenFor(chat.request.taken, declared, provider.sameAs)
  const left = withoutFields(onlyTaken(request, taken), declared)
  const input = mappingInput(repairHistory(left, chat.history), model, facts)
  const result = object(provider, 'request', await run(provider, 'request', mapping, input))
  const lost = [...declared, ...notTaken(request, taken), ...foreignOpaque(request, facts.maker)]
  const reported = usedNames(namesIn(result.dropped), request)
  const body = await patchRequest(provider, joinSections(provider, sections, result), facts)
  return { body, dropped: distinctNames([...lost, ...reported]) }
}

/** The declared losses that a request meets when its body is edited instead of rebuilt: all else survives that. */
export async function usedLosses(provider: Provider, request: NeutralRequest, target?: ModelTarget): Promise<string[]> {
  const chosen = target ?? { model: request.model }
  return await declaredFor(provider, request, mappingInput(request, chosen.model, targetFacts(provider, chosen)))
}

async function declaredFor(provider: Provider, request: NeutralRequest, input: unknown): Promise<string[]> {
  const { losses } = chatOf(provider)
  return await declaredLosses(losses, request, (when, field) => run(provider, `losses.${field}`, when, input))
}

/** One body of all sections, in their order: a section that gives no object is the member that it is named after. */
function joinSections(provider: Provider, sections: readonly string[], result: JsonObject): JsonObject {
  const body: JsonObject = {}
  for (const section of sections) {
    const value = result[section]
    if (value === undefined) continue
    if (isObject(value)) Object.assign(body, value)
    else body[section] = value
  }
  if (Object.keys(body).length === 0) throw unreadable(provider, 'request', 'gave nothing')
  return body
}

function namesIn(dropped: Json | undefined): string[] {
  return [dropped].flat(2).filter((name) => typeof name === 'string')
}

/** A body of the provider's format as this provider wants it: the manifest's `patch.request`, else unchanged. */
export async function patchRequest(provider: Provider, body: JsonObject, target: TargetFacts): Promise<JsonObject> {
  const { request } = chatOf(provider).patch
  return request
    ? object(provider, 'patch.request', await run(provider, 'patch.request', request, body, { target }))
    : body
}

/** The meaning of a whole answer. Throws RouterError `provider_unreadable` when the mapping can make nothing of it. */
export async function readReply(
  provider: Provider,
  answer: JsonObject,
  facts: FoldFacts,
  target: TargetFacts,
): Promise<Read> {
  const { patch, reply: mapping } = chatOf(provider)
  const body = patch.reply
    ? object(provider, 'patch.reply', await run(provider, 'patch.reply', patch.reply, answer, { target }))
    : answer
  const mapped = object(provider, 'reply', await run(provider, 'reply', mapping, body))
  const { finish, finish_raw, usage, ...rest } = mapped
  const reply = fold(
    eventsOf({
      ...wellFormed(rest),
      ...finishIn(provider, finish, finish_raw),
      ...(isPresent(usage) && { usage: await readUsage(provider, usage) }),
    }),
    facts,
  )
  return { body, reply, ...(isObject(mapped.error) && { error: mapped.error as ProviderFailure }) }
}

/** The meaning of one event of a stream; synchronous when its mapping is. Throws RouterError `provider_unreadable`. */
export function readEvent(
  provider: Provider,
  name: string | undefined,
  data: JsonObject | string,
  target: TargetFacts,
): ProviderEvent[] | Promise<ProviderEvent[]> {
  const frame = readFrame(provider, name, data, target)
  return frame instanceof Promise ? frame.then(({ events }) => events) : frame.events
}

/** As `readEvent`, with the event's JSON as `patch.event` left it. */
export function readFrame(
  provider: Provider,
  name: string | undefined,
  data: JsonObject | string,
  target: TargetFacts,
): ReadFrame | Promise<ReadFrame> {
  const { patch, events } = chatOf(provider)
  const mapping = (name !== undefined && events.get(name)) || events.get('*')
  if (!patch.event || typeof data === 'string') return meaningOf(provider, name, mapping, data)
  return after(run(provider, 'patch.event', patch.event, data, { target }), (patched) =>
    meaningOf(provider, name, mapping, object(provider, 'patch.event', patched)),
  )
}

/** The reason for the end of a reply, of the provider's own word for it; `error` for words that the manifest does not list. */
export function finishOf(provider: Provider, word: string): Finish {
  const { finish } = chatOf(provider)
  if (finish) return finish[word] ?? finish['*'] ?? 'error'
  return isFinish(word) ? word : 'error'
}

/** What is known of the model a request goes to. */
export function targetFacts(provider: Provider, { model, entry }: ModelTarget): TargetFacts {
  const { max_output_tokens, context_window } = entry ?? {}
  return {
    maker: provider.maker,
    ...(max_output_tokens !== undefined && { max_output_tokens }),
    ...(context_window !== undefined && { context_window }),
    traits: traitsOf(provider, model),
  }
}

/** Clients may name any model where unknown ones pass: more than this many are not remembered. */
const rememberedModels = 1_000
const traitsByModel = new WeakMap<Provider, Map<string, TargetFacts['traits']>>()

function traitsOf(provider: Provider, model: string): TargetFacts['traits'] {
  const known = traitsByModel.get(provider) ?? new Map<string, TargetFacts['traits']>()
  let traits = known.get(model)
  if (traits) return traits
  const matching = provider.traits.filter(({ match }) => match.test(model))
  traits = Object.freeze(Object.assign({}, ...matching.map(({ facts }) => facts)))
  if (known.size >= rememberedModels) known.clear()
  traitsByModel.set(provider, known.set(model, traits as TargetFacts['traits']))
  return traits as TargetFacts['traits']
}

/** What a mapping sees: the neutral request alone, never the client's own JSON. */
function mappingInput({ origin, ...request }: NeutralRequest, model: string, target: TargetFacts) {
  return { ...request, model, target }
}

function meaningOf(
  provider: Provider,
  name: string | undefined,
  mapping: Mapping | undefined,
  data: JsonObject | string,
): ReadFrame | Promise<ReadFrame> {
  const payload = typeof data === 'string' ? { data } : data
  if (!mapping) return { payload, events: [] }
  const what = `events.${name ?? '*'}`
  return after(run(provider, what, mapping, data), (result) =>
    after(translated(provider, listed(provider, what, result)), (events) => ({ payload, events })),
  )
}

/** Events with their `finish` and `usage` in our words. */
function translated(provider: Provider, events: JsonObject[]): ProviderEvent[] | Promise<ProviderEvent[]> {
  let made: (ProviderEvent | Promise<ProviderEvent>)[] | undefined
  let waiting = false
  for (let index = 0; index < events.length; index++) {
    const event = events[index] as JsonObject
    if (!isPresent(event.finish) && !isPresent(event.usage)) continue
    made ??= [...events] as ProviderEvent[]
    const known = translatedEvent(provider, event)
    waiting ||= known instanceof Promise
    made[index] = known
  }
  return waiting && made ? Promise.all(made) : ((made ?? events) as ProviderEvent[])
}

function translatedEvent(provider: Provider, event: JsonObject): ProviderEvent | Promise<ProviderEvent> {
  const known = { ...event } as ProviderEvent & JsonObject
  if (isPresent(event.finish)) {
    const { finish, finish_raw } = finishIn(provider, event.finish, event.raw)
    if (finish) known.finish = finish
    if (finish_raw !== undefined) known.raw = finish_raw
  }
  if (!isPresent(event.usage)) return known
  return after(readUsage(provider, event.usage), (counts) => {
    known.usage = counts
    return known
  })
}

/** Why a reply ended, in our words and in the provider's. */
function finishIn(
  provider: Provider,
  word: Json | undefined,
  raw: Json | undefined,
): { finish?: Finish; finish_raw?: string } {
  if (!isPresent(word)) return {}
  const theirs = raw ?? (chatOf(provider).finish && word)
  return { finish: finishOf(provider, String(word)), ...(isPresent(theirs) && { finish_raw: String(theirs) }) }
}

/** A provider's usage object in our classes; what is no object counts nothing. */
function readUsage(provider: Provider, usage: Json): ReportedUsage | Promise<ReportedUsage> {
  const { usage: mapping } = chatOf(provider)
  if (!mapping) return (isObject(usage) ? usage : {}) as ReportedUsage
  return after(run(provider, 'usage', mapping, usage), (counts) => (isObject(counts) ? counts : {}) as ReportedUsage)
}

function isPresent(value: Json | undefined): value is Json {
  return value !== undefined && value !== null
}

function listed(provider: Provider, what: string, result: unknown): JsonObject[] {
  if (result === undefined || result === null) return []
  if (!Array.isArray(result)) return [object(provider, what, result)]
  return result.map((event) => object(provider, what, event))
}

/** JSONata gives the one match of a path as it is, and leaves out an empty list. */
function wellFormed(mapped: JsonObject): MappedReply {
  const { parts } = mapped
  const list = parts === undefined || parts === null ? [] : [parts].flat()
  return { ...mapped, parts: list as unknown as Part[] }
}

function run(
  provider: Provider,
  what: string,
  mapping: Mapping,
  input: unknown,
  variables?: Variables,
): unknown | Promise<unknown> {
  try {
    const result = mapping.run(input, variables)
    return result instanceof Promise ? result.catch((error) => fail(provider, what, error, mapping)) : result
  } catch (error) {
    return fail(provider, what, error, mapping)
  }
}

function after<T, R>(value: T | Promise<T>, then: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(then) : then(value)
}

function object(provider: Provider, what: string, result: unknown): JsonObject {
  if (isObject(result)) return result
  const made = result === undefined ? 'nothing' : (JSON.stringify(result) ?? typeof result).slice(0, 100)
  throw unreadable(provider, what, `gave ${made} instead of an object`)
}

/** The mapping that failed behind a RouterError, and where in its text; undefined when it was something else. */
export function failedMapping(error: unknown): { mapping: Mapping; position: number | undefined } | undefined {
  const cause = error instanceof RouterError ? error.cause : undefined
  const mapping = cause instanceof MappingError ? culprits.get(cause) : undefined
  return mapping && { mapping, position: (cause as MappingError).position }
}

const culprits = new WeakMap<object, Mapping>()

function fail(provider: Provider, what: string, error: unknown, mapping: Mapping): never {
  if (error instanceof MappingError) culprits.set(error, mapping)
  throw unreadable(provider, what, `failed: ${(error as Error).message}`, error)
}

function unreadable({ slug }: Provider, what: string, happened: string, cause?: unknown): RouterError {
  const writing = what.endsWith('request') || what.startsWith('losses.')
  const side = writing ? 'The request could not be written for' : 'The answer could not be read of'
  const message = `${side} ${slug}: the mapping \`${what}\` ${happened.replace(/\.$/, '')}.`
  return new RouterError('provider_unreadable', message, { provider: slug, ...(cause !== undefined && { cause }) })
}

function chatOf(provider: Provider): ChatEndpoint {
  if (!provider.chat) throw new RouterError('model_not_found', `The provider '${provider.slug}' has no chat models.`)
  return provider.chat
}
