import { filledText, optional } from '../api/check.ts'
import type { Face } from '../api/client-api.ts'
import { RouterError } from '../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { NeutralRequest } from '../core/request.ts'
import { dayMs } from '../core/time.ts'
import type { Provider } from '../manifest/provider.ts'
import { type Target, targetId } from '../manifest/target.ts'
import type { Store } from '../store/open.ts'
import type { StoredResponse } from '../store/responses.ts'

/** Conversations that go on by the id of a response, on any model. */
export type State = {
  /**
   * What a body asks, with all that was said before it. Throws RouterError 400: the body cannot be read, or the response
   * it goes on from is not there.
   */
  open(face: Face, organization: string, body: unknown): Turn
}

/** One turn of a conversation. */
export type Turn = {
  /** Its messages begin with those of the turns before; its origin is the client's own body. */
  request: NeutralRequest
  /** The client's body for a provider of the same format: the earlier turns are in it unless that provider has them. */
  bodyFor(provider: Provider): JsonObject
  /** Whether a provider failed because it lost what it kept: from now on its body has everything in it. Once for each. */
  forgot(failure: unknown, provider: Provider): boolean
  /** A reply or event of a provider of the same format, naming the response that the client went on from. */
  named(payload: JsonObject): JsonObject
  /** Whether `keep` wants to see the whole response. */
  keeps: boolean
  /** The row of a response, `text` being its JSON; undefined when it did not come to its end. */
  keep(response: JsonObject, text: string, target: Target): StoredResponse | undefined
}

/** Items of an input and who keeps them: those of an earlier turn, of one that is named, or what the client sent now. */
type Stretch = { items: Json[]; from?: Pick<StoredResponse, 'provider' | 'native'> }

/** More turns than any model remembers, and characters of them than any takes: a bound on what one request loads. */
const mostTurns = 1_000
const mostCharacters = 32 * 1024 * 1024

/** Opens the conversations of a store. */
export function openState(store: Pick<Store, 'responses' | 'organizations'>): State {
  return {
    open(face, organization, body) {
      if (face.api !== 'responses' || !isObject(body)) return singleTurn(face.read(body))
      const previous = optional(body.previous_response_id, 'previous_response_id', filledText)
      const earlier = previous === undefined ? [] : turnsUpTo(store, organization, previous)
      const now = resolved(store, organization, body.input)
      const { keeps, days } = store.organizations.retention(organization)
      const forgetful = new Set<string>()
      const stored = keeps && body.store !== false
      // Who wants nothing kept does not want it kept elsewhere either.
      const origin = keeps ? body : { ...body, store: false }
      return {
        request: withoutKeeping(readAll(face, origin, [...earlier, ...now])),
        bodyFor: (provider) => bodyFor(provider, face, origin, { earlier, now, forgetful }),
        forgot(failure, { slug }) {
          if (forgetful.has(slug) || !isLoss(failure)) return false
          forgetful.add(slug)
          return true
        },
        named: (payload) => (previous === undefined ? payload : named(payload, previous)),
        keeps: stored,
        keep(response, text, target) {
          const { id, status, store: keptThere } = response
          if (!stored || typeof id !== 'string' || (status !== 'completed' && status !== 'incomplete')) return undefined
          const createdAt = Date.now()
          const { slug, sameAs } = target.provider
          const isSame = sameAs === face.api
          return {
            id,
            organization,
            createdAt,
            expiresAt: createdAt + days * dayMs,
            previous: previous ?? null,
            model: targetId(target),
            provider: slug,
            native: isSame && keptThere === true,
            // What was left out because the provider could not read it, it cannot read later either.
            input: JSON.stringify(now.flatMap((stretch) => (isSame ? readableBy(slug, stretch) : stretch.items))),
            response: text,
          }
        },
      }
    },
  }
}

/** A call of an API without conversations by id. */
function singleTurn(request: NeutralRequest): Turn {
  return {
    request,
    bodyFor: () => request.origin.body,
    forgot: () => false,
    named: (payload) => payload,
    keeps: false,
    keep: () => undefined,
  }
}

/** The turns up to a response, the oldest first. */
function turnsUpTo(store: Pick<Store, 'responses'>, organization: string, last: string): Stretch[] {
  const turns: Stretch[] = []
  let characters = 0
  for (let id: string | null = last; id !== null; ) {
    const turn: StoredResponse = store.responses.find(organization, id) ?? missing(id)
    characters += turn.input.length + turn.response.length
    if (turns.length === mostTurns || characters > mostCharacters) throw tooLong()
    turns.push({ from: turn, items: [...JSON.parse(turn.input), ...outputOf(turn)] })
    id = turn.previous
  }
  return turns.reverse()
}

function outputOf({ response }: StoredResponse): Json[] {
  const { output } = JSON.parse(response)
  return Array.isArray(output) ? output : []
}

function missing(id: string): never {
  const message = `Previous response with id '${id}' not found: it was not stored, was deleted, has expired, or is not yours. Send the conversation as input.`
  throw new RouterError('previous_response_not_found', message, { param: 'previous_response_id' })
}

function tooLong(): RouterError {
  const message = `The conversation before previous_response_id is longer than ${mostTurns} turns or ${mostCharacters} characters. Send a shorter one as input.`
  return new RouterError('invalid_request', message, { param: 'previous_response_id' })
}

/** An input with the items themselves where it only names them. */
function resolved(store: Pick<Store, 'responses'>, organization: string, input: Json | undefined): Stretch[] {
  const known = new Map<Json | undefined, Stretch>()
  return itemsOf(input).map((item, index) => {
    if (!isReference(item)) return { items: [item] }
    const found = known.get(item.id)
    if (found) return found
    const from = typeof item.id === 'string' ? store.responses.findByItem(organization, item.id) : undefined
    for (const kept of from ? outputOf(from) : [])
      if (from && isObject(kept)) known.set(kept.id, { from, items: [kept] })
    return known.get(item.id) ?? missingItem(item.id, index)
  })
}

function isReference(item: Json): item is JsonObject {
  if (!isObject(item)) return false
  return item.type === 'item_reference' || (typeof item.id === 'string' && Object.keys(item).length === 1)
}

function missingItem(id: Json | undefined, index: number): never {
  const message = `Item with id '${id}' not found: its response was not stored, was deleted, has expired, or is not yours. Send the item itself.`
  throw new RouterError('invalid_request', message, { param: `input[${index}].id` })
}

/** The items of an input; a text is what the user says. */
function itemsOf(input: Json | undefined): Json[] {
  if (Array.isArray(input)) return input
  if (typeof input !== 'string') return []
  return [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: input }] }]
}

function readAll(face: Face, body: JsonObject, stretches: readonly Stretch[]): NeutralRequest {
  if (isPlain(body, stretches)) return face.read(body)
  const input = stretches.flatMap(({ items }) => items)
  try {
    return { ...face.read({ ...body, input }), origin: { api: face.api, body } }
  } catch (thrown) {
    // A mistake of the client's is told at the place where the client made it.
    if (Array.isArray(body.input)) face.read(body)
    throw thrown
  }
}

/** Whether an input is all there; one that is no input at all is left for the reader to refuse. */
function isPlain({ input }: JsonObject, stretches: readonly Stretch[]): boolean {
  const readable = input === undefined || input === null || typeof input === 'string' || Array.isArray(input)
  return !readable || stretches.every(({ from }) => !from)
}

/** What this router keeps need not be kept by providers of other formats. */
function withoutKeeping({ store, ...request }: NeutralRequest): NeutralRequest {
  return store === false ? { ...request, store } : request
}

function bodyFor(
  { slug, sameAs }: Provider,
  face: Face,
  body: JsonObject,
  { earlier, now, forgetful }: { earlier: readonly Stretch[]; now: readonly Stretch[]; forgetful: ReadonlySet<string> },
): JsonObject {
  const forgot = forgetful.has(slug)
  const has = ({ from }: Stretch) => !from || (!forgot && sameAs === face.api && from.native && from.provider === slug)
  if ([...earlier.slice(-1), ...now].every(has)) return body
  const { previous_response_id: _, ...rest } = body
  return { ...rest, input: [...earlier, ...now].flatMap((stretch) => readableBy(slug, stretch, forgot)) }
}

/** Reasoning is readable only where it was made, sealed or kept there. */
function readableBy(slug: string, { items, from }: Stretch, forgot = false): Json[] {
  if (!from) return items
  return items.filter((item) => {
    if (!isObject(item) || item.type !== 'reasoning') return true
    return from.provider === slug && ((from.native && !forgot) || typeof item.encrypted_content === 'string')
  })
}

/** Whether a provider says that it has no such response, which this router knows it had. */
function isLoss(failure: unknown): boolean {
  if (!(failure instanceof RouterError) || failure.provider === undefined) return false
  return failure.providerCode === 'previous_response_not_found'
}

function named(payload: JsonObject, previous: string): JsonObject {
  if (payload.object === 'response') return { ...payload, previous_response_id: previous }
  return isObject(payload.response) ? { ...payload, response: named(payload.response, previous) } : payload
}
