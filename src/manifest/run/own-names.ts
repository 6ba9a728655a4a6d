import { isDeepStrictEqual } from 'node:util'
import { isObject, type JsonObject } from '../../core/json.ts'
import type { NeutralRequest, TargetFacts } from '../../core/request.ts'
import type { Provider } from '../provider.ts'
import { type ModelTarget, targetFacts } from '../target.ts'
import { mapRequest } from './translate.ts'

/** Request members under a provider's own names, where it speaks the client's format and clients have several names for the same. */
export type OwnFormatFields = {
  /** The members of the body that ask for reasoning, and to cache the whole prompt. */
  members: JsonObject
  /** The members of a content part that ask to cache the prompt up to it; undefined where no part can. */
  mark?: JsonObject
  /** The neutral names of the fields dropped from that. */
  dropped: string[]
}

/** Limits of a cache: there are few different values, and most calls repeat one of them. */
const maxKnown = 1_000
const maxKeyLength = 4_000
const known = new WeakMap<Provider, Map<string, Promise<OwnFormatFields>>>()

/** Returns the result of the request mapping for the reasoning and the cache hints of a request whose body is otherwise only edited. */
export async function ownFormatFields(
  provider: Provider,
  request: NeutralRequest,
  target: ModelTarget,
): Promise<OwnFormatFields> {
  const facts = targetFacts(provider, target)
  const wish = preferencesOf(request)
  const words = known.get(provider) ?? new Map<string, Promise<OwnFormatFields>>()
  known.set(provider, words)
  const key = JSON.stringify([target.model, target.is, facts, wish])
  const found = words.get(key)
  if (found) return await found
  const made = fieldsFor(provider, wish, target, facts)
  if (key.length > maxKeyLength) return await made
  if (words.size >= maxKnown) words.clear()
  words.set(key, made)
  // A mapping may fail for reasons that pass, such as its limit of time.
  made.catch(() => words.delete(key))
  return await made
}

type Preferences = Pick<NeutralRequest, 'reasoning' | 'cache' | 'extensions'>

function preferencesOf({ reasoning, cache, extensions = {} }: NeutralRequest): Preferences {
  const { reasoning: others, reasoning_effort: level } = extensions
  return {
    ...(reasoning && { reasoning }),
    ...(cache?.options?.type === 'ephemeral' && { cache: { options: cache.options } }),
    extensions: {
      ...(others !== undefined && { reasoning: others }),
      ...(level !== undefined && { reasoning_effort: level }),
    },
  }
}

async function fieldsFor(
  provider: Provider,
  wish: Preferences,
  target: ModelTarget,
  facts: TargetFacts,
): Promise<OwnFormatFields> {
  const { model } = target
  const hinted: NeutralRequest = {
    model,
    messages: [{ role: 'user', parts: [{ type: 'text', text: '-', cache: {} }] }],
    origin: { api: 'chat', body: {} },
  }
  const [plain, made] = (await Promise.all(
    [hinted, { ...hinted, ...wish }].map((one) => mapRequest(provider, one, target, facts)),
  )) as [Mapped, Mapped]
  const mark = markIn(plain.body)
  return {
    members: differences(plain.body, made.body),
    ...(mark && { mark }),
    dropped: made.dropped.filter((name) => !plain.dropped.includes(name)),
  }
}

type Mapped = Awaited<ReturnType<typeof mapRequest>>

function differences(plain: JsonObject, made: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(made).filter(([name, value]) => !isDeepStrictEqual(value, plain[name])))
}

/** The members of the only content part besides its text. */
function markIn({ messages }: JsonObject): JsonObject | undefined {
  const [message] = Array.isArray(messages) ? messages : []
  const [part] = isObject(message) && Array.isArray(message.content) ? message.content : []
  if (!isObject(part)) return undefined
  const { type: _type, text: _text, ...mark } = part
  return Object.keys(mark).length > 0 ? mark : undefined
}
