import type { ProviderFailure } from '../../core/events.ts'
import { type FoldFacts, fold } from '../../core/fold.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Part } from '../../core/parts.ts'
import { type Finish, isFinish, type Reply } from '../../core/reply.ts'
import { eventsOf, type MappedReply } from '../../core/reply-events.ts'
import type { TargetFacts } from '../../core/request.ts'
import { completionTokens, mergeUsage, type ReportedUsage, type Usage } from '../../core/usage.ts'
import { type Mapping, narrowMapping } from '../../mapping/mapping.ts'
import { type PathTree, whole } from '../../mapping/mentions.ts'
import { andThen } from '../../runtime/maybe-promise.ts'
import type { Provider } from '../provider.ts'
import { readCounts, runReading } from './read-usage.ts'
import { chatEndpoint, requireObject } from './run-mapping.ts'

/**
 * A provider's whole response after `patch.reply`, the neutral reply, and the failure that it reports. `whole` reads all of a
 * reply that was read in part; it throws RouterError `provider_unreadable`.
 */
export type ProviderReply = { body: JsonObject; reply: Reply; whole?: () => Reply; error?: ProviderFailure }

type Reading = ProviderReply | Promise<ProviderReply>

/** Translates a whole response. Throws RouterError `provider_unreadable` when its mapping fails. */
export async function readReply(
  provider: Provider,
  answer: JsonObject,
  facts: FoldFacts,
  target: TargetFacts,
): Promise<ProviderReply> {
  return await andThen(patchReply(provider, answer, target), (body) => readWhole(provider, body, facts))
}

/**
 * Reads a reply like `readReply`, where the client gets the provider's own body: only what the call itself needs is read. The parts are
 * left out, unless they are remembered (calls), change what can be billed (tools of the provider), or must be counted.
 */
export function readMetered(provider: Provider, answer: JsonObject, facts: FoldFacts, target: TargetFacts): Reading {
  const all = chatEndpoint(provider).reply
  const some = meteredOf(all)
  return andThen(patchReply(provider, answer, target), (body) =>
    andThen(runReading(provider, 'reply', some, body), (result) => {
      const mapped = requireObject(provider, 'reply', result)
      return andThen(isPresent(mapped.usage) ? readUsage(provider, mapped.usage) : {}, (reported): Reading => {
        const usage = mergeUsage({}, reported)
        const error = reportedFailureOf(mapped.error)
        const isEnough = error || (completionTokens(usage) > 0 && !readsParts(mapped))
        if (!isEnough) return readWhole(provider, body, facts)
        const reply = meteredReply(provider, { ...mapped, usage }, facts)
        if (error) return { body, reply, error }
        // One that needs a promise cannot be narrowed: it has read everything.
        const said = () =>
          some === all ? mapped : requireObject(provider, 'reply', runReading(provider, 'reply', all, body))
        return { body, reply, whole: () => ({ ...foldedReply(provider, said(), reported, facts), ...keptOf(reply) }) }
      })
    }),
  )
}

/** Returns the members that stay as they were first read: ids and times are generated where the provider sends none. */
function keptOf({ id, created, usage }: Reply): Pick<Reply, 'id' | 'created' | 'usage'> {
  return { id, created, usage }
}

function patchReply(provider: Provider, answer: JsonObject, target: TargetFacts): JsonObject | Promise<JsonObject> {
  const { reply } = chatEndpoint(provider).patch
  if (!reply) return answer
  return andThen(runReading(provider, 'patch.reply', reply, answer, { target }), (body) =>
    requireObject(provider, 'patch.reply', body),
  )
}

function readWhole(provider: Provider, body: JsonObject, facts: FoldFacts): Reading {
  return andThen(runReading(provider, 'reply', chatEndpoint(provider).reply, body), (result) => {
    const mapped = requireObject(provider, 'reply', result)
    return andThen(isPresent(mapped.usage) ? readUsage(provider, mapped.usage) : undefined, (usage) => {
      const reply = foldedReply(provider, mapped, usage, facts)
      const error = reportedFailureOf(mapped.error)
      return error ? { body, reply, error } : { body, reply }
    })
  })
}

function foldedReply(provider: Provider, mapped: JsonObject, usage: Usage | undefined, facts: FoldFacts): Reply {
  const { finish, finish_raw } = readFinish(provider, mapped.finish, mapped.finish_raw)
  const said = { ...mapped, parts: partsOf(mapped), finish, finish_raw, usage }
  return fold(eventsOf(said as unknown as MappedReply), facts)
}

/** Members of a reply that matter to a call: whether it failed, who served it, why it ended, and what it is billed. */
const metered: PathTree = new Map<string, PathTree>([
  ...['id', 'model', 'created', 'finish', 'finish_raw', 'usage', 'error'].map((name) => [name, whole] as const),
  ['parts', new Map([['type', whole]])],
])

const narrowed = new WeakMap<Mapping, Mapping>()

function meteredOf(mapping: Mapping): Mapping {
  let made = narrowed.get(mapping)
  if (!made) {
    made = narrowMapping(mapping, metered)
    narrowed.set(mapping, made)
  }
  return made
}

const readParts: ReadonlySet<unknown> = new Set<Part['type']>(['tool_call', 'search', 'opaque'])

function readsParts({ parts }: JsonObject): boolean {
  const isRead = (part: Json | undefined) => isObject(part) && readParts.has(part.type)
  return Array.isArray(parts) ? parts.some(isRead) : isRead(parts)
}

function meteredReply(
  provider: Provider,
  { id, model, created, finish, finish_raw, usage }: JsonObject & Pick<Reply, 'usage'>,
  facts: FoldFacts,
): Reply {
  const ending = readFinish(provider, finish, finish_raw)
  const reply: Reply = {
    id: (id && String(id)) || facts.newId(),
    created: (created as number) || facts.now(),
    parts: [],
    finish: ending.finish ?? 'error',
    usage,
  }
  if (model) reply.model = model as string
  if (ending.finish && ending.finish_raw !== undefined) reply.finish_raw = ending.finish_raw
  return reply
}

/** The neutral finish reason for a provider's own; `error` for one that the manifest does not list. */
export function finishOf(provider: Provider, reason: string): Finish {
  const { finish } = chatEndpoint(provider)
  if (finish) return finish[reason] ?? finish['*'] ?? 'error'
  return isFinish(reason) ? reason : 'error'
}

/** The neutral finish reason, and the provider's own. */
export function readFinish(
  provider: Provider,
  reason: Json | undefined,
  raw: Json | undefined,
): { finish?: Finish; finish_raw?: string } {
  if (!isPresent(reason)) return {}
  const providerReason = raw ?? (chatEndpoint(provider).finish && reason)
  return {
    finish: finishOf(provider, String(reason)),
    ...(isPresent(providerReason) && { finish_raw: String(providerReason) }),
  }
}

/** Checks whether a mapping returned a value. */
export function isPresent(value: Json | undefined): value is Json {
  return value !== undefined && value !== null
}

/** JSONata unwraps lists of one item, and leaves out empty ones. */
function partsOf({ parts }: JsonObject): Part[] {
  return [parts].flat().filter(isObject) as unknown as Part[]
}

/** Reads a provider's usage as counts by class; what is not an object counts nothing. */
export function readUsage(provider: Provider, usage: Json): ReportedUsage | Promise<ReportedUsage> {
  return readCounts(provider, chatEndpoint(provider).usage, usage)
}

/** The usage in an answer that cannot be read as a whole, in the places where formats have it; undefined when there is none. */
export async function usageIn(provider: Provider, answer: JsonObject): Promise<Usage | undefined> {
  const reported = [answer.usage, answer.usageMetadata].find(isObject)
  return reported && mergeUsage({}, await readUsage(provider, reported))
}

/** The failure that a mapping gives as `error`, regardless of its shape; undefined when there is none. */
export function reportedFailureOf(error: unknown): ProviderFailure | undefined {
  if (error === undefined || error === null || error === false) return undefined
  if (typeof error === 'string') return { message: error || unspecified }
  if (!isObject(error)) return { code: String(error), message: unspecified }
  const { status, code, message, param, retryable } = error
  return {
    ...(typeof status === 'number' && { status }),
    ...(code !== undefined &&
      code !== null && { code: typeof code === 'object' ? JSON.stringify(code) : String(code) }),
    message: messageOf(message),
    ...(typeof param === 'string' && param !== '' && { param }),
    ...(typeof retryable === 'boolean' && { retryable }),
  }
}

const unspecified = 'The provider reported an error.'

function messageOf(message: unknown): string {
  if (typeof message === 'string') return message || unspecified
  return message === undefined || message === null ? unspecified : JSON.stringify(message)
}
