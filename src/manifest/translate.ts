import { RouterError } from '../core/errors.ts'
import type { ProviderEvent, ProviderFailure } from '../core/events.ts'
import { type FoldFacts, fold } from '../core/fold.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { ModelEntry } from '../core/model.ts'
import type { Part } from '../core/parts.ts'
import { repairHistory } from '../core/repair-history.ts'
import type { Reply } from '../core/reply.ts'
import { eventsOf, type MappedReply } from '../core/reply-events.ts'
import type { NeutralRequest, TargetFacts } from '../core/request.ts'
import { type Mapping, MappingError } from '../mapping/mapping.ts'
import { declaredLosses, foreignOpaque, lostExtensions, withoutUnmapped } from './losses.ts'
import type { ChatEndpoint, Provider } from './provider.ts'

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
  // Conditions see what the mapping sees, or the two would not agree on what is lost.
  const input = mappingInput(repairHistory(request, chat.history), model, facts)
  const met = await declaredLosses(chat, request, (when, field) => run(provider, `losses.${field}`, when, input))
  const declared = met.filter((field) => field !== 'extensions')
  const dropped = [...declared, ...foreignOpaque(request, facts.maker), ...lostExtensions(chat, met, request)]
  const left = withoutUnmapped(chat, met, request)
  const repaired = left === request ? input : mappingInput(repairHistory(left, chat.history), model, facts)
  const body = object(provider, 'request', await run(provider, 'request', chat.request, repaired))
  return { body: await patchRequest(provider, body), dropped: [...new Set(dropped)] }
}

/**
 * The declared losses that a request meets when its body is edited instead of rebuilt; unknown fields survive that. What
 * a dialect's own mapping cannot say is in the client's body all the same; only Chat is spoken with many words that not
 * every provider of the format knows, and the dialect names them.
 */
export async function usedLosses(provider: Provider, request: NeutralRequest, target?: ModelTarget): Promise<string[]> {
  const chosen = target ?? { model: request.model }
  const input = mappingInput(request, chosen.model, targetFacts(provider, chosen))
  const ask = (when: Mapping, field: string) => run(provider, `losses.${field}`, when, input)
  const chat = chatOf(provider)
  const losses = provider.sameAs === 'chat' ? chat.losses : chat.losses.filter(({ unmapped }) => unmapped)
  const met = await declaredLosses({ ...chat, losses }, request, ask)
  return met.filter((field) => field !== 'extensions')
}

/** A body of the provider's format as this provider wants it: the manifest's `patch.request`, else unchanged. */
export async function patchRequest(provider: Provider, body: JsonObject): Promise<JsonObject> {
  const { request } = chatOf(provider).patch
  return request ? object(provider, 'patch.request', await run(provider, 'patch.request', request, body)) : body
}

/** What a whole answer means. Throws RouterError `provider_unreadable` when the mapping can make nothing of it. */
export async function readReply(provider: Provider, answer: JsonObject, facts: FoldFacts): Promise<Read> {
  const { patch, reply: mapping } = chatOf(provider)
  const body = patch.reply
    ? object(provider, 'patch.reply', await run(provider, 'patch.reply', patch.reply, answer))
    : answer
  const mapped = object(provider, 'reply', await run(provider, 'reply', mapping, body))
  const reply = fold(eventsOf(wellFormed(mapped)), facts)
  return { body, reply, ...(isObject(mapped.error) && { error: mapped.error as ProviderFailure }) }
}

/** What one event of a stream means; synchronous when its mapping is. Throws RouterError `provider_unreadable`. */
export function readEvent(
  provider: Provider,
  name: string | undefined,
  payload: JsonObject,
): ProviderEvent[] | Promise<ProviderEvent[]> {
  const frame = readFrame(provider, name, payload)
  return frame instanceof Promise ? frame.then(({ events }) => events) : frame.events
}

/** As `readEvent`, with the event's JSON as `patch.event` left it. */
export function readFrame(
  provider: Provider,
  name: string | undefined,
  payload: JsonObject,
): ReadFrame | Promise<ReadFrame> {
  const { patch, events } = chatOf(provider)
  const mapping = (name !== undefined && events.get(name)) || events.get('*')
  if (!patch.event) return meaningOf(provider, name, mapping, payload)
  return after(run(provider, 'patch.event', patch.event, payload), (patched) =>
    meaningOf(provider, name, mapping, object(provider, 'patch.event', patched)),
  )
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
  payload: JsonObject,
): ReadFrame | Promise<ReadFrame> {
  if (!mapping) return { payload, events: [] }
  const what = `events.${name ?? '*'}`
  return after(run(provider, what, mapping, payload), (result) => ({ payload, events: listed(provider, what, result) }))
}

function listed(provider: Provider, what: string, result: unknown): ProviderEvent[] {
  if (result === undefined || result === null) return []
  if (!Array.isArray(result)) return [object(provider, what, result) as ProviderEvent]
  return result.map((event) => object(provider, what, event) as ProviderEvent)
}

/** JSONata gives the one match of a path as it is, and leaves out an empty list. */
function wellFormed(mapped: JsonObject): MappedReply {
  const { parts } = mapped
  const list = parts === undefined || parts === null ? [] : [parts].flat()
  return { ...mapped, parts: list as unknown as Part[] }
}

function run(provider: Provider, what: string, mapping: Mapping, input: unknown): unknown | Promise<unknown> {
  try {
    const result = mapping.run(input)
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
