import { isDeepStrictEqual } from 'node:util'
import { isObject, type JsonObject } from '../core/json.ts'
import type { NeutralRequest } from '../core/request.ts'
import type { Provider } from './provider.ts'
import { type ModelTarget, targetFacts } from './target-facts.ts'
import { mapRequest } from './translate.ts'

/** What a provider of a client's own format is told in its own words, where clients have several. */
export type OwnWords = {
  /** The members of the body that ask for reasoning, and to cache the whole prompt. */
  members: JsonObject
  /** The members of a content part that ask to cache the prompt up to it; undefined where no part can. */
  mark?: JsonObject
  /** The neutral names of what is lost of that. */
  dropped: string[]
}

/** What the request mapping makes of the reasoning and the cache hints of a request, whose body is edited otherwise. */
export async function ownWords(provider: Provider, request: NeutralRequest, target: ModelTarget): Promise<OwnWords> {
  const facts = targetFacts(provider, target)
  const { reasoning, cache, extensions = {} } = request
  const options = cache?.options?.type === 'ephemeral' ? cache.options : undefined
  const others = Object.fromEntries(['reasoning', 'reasoning_effort'].map((name) => [name, extensions[name]]))
  const hinted: NeutralRequest = {
    model: request.model,
    messages: [{ role: 'user', parts: [{ type: 'text', text: '-', cache: {} }] }],
    origin: request.origin,
  }
  const asked: NeutralRequest = {
    ...hinted,
    ...(reasoning && { reasoning }),
    ...(options && { cache: { options } }),
    extensions: others,
  }
  const [plain, made] = (await Promise.all(
    [hinted, asked].map((one) => mapRequest(provider, one, target.model, facts)),
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
