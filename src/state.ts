import { filledText, optional } from './api/check.ts'
import type { Face } from './api/face.ts'
import { RouterError } from './core/errors.ts'
import { isObject, type Json, type JsonObject } from './core/json.ts'
import type { NeutralRequest } from './core/request.ts'
import type { Provider } from './manifest/provider.ts'
import { type Target, targetId } from './manifest/target.ts'
import type { Store } from './store/open.ts'
import type { StoredResponse } from './store/responses.ts'

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
  /** A reply or event of a provider of the same format, naming the response that the client went on from. */
  named(payload: JsonObject): JsonObject
  /** Whether `keep` wants to see the whole response. */
  keeps: boolean
  /** The row of a response, `text` being its JSON; undefined when it did not come to its end. */
  keep(response: JsonObject, text: string, target: Target): StoredResponse | undefined
}

/** An earlier turn: what was said and answered, and by whom. */
type Earlier = Pick<StoredResponse, 'provider' | 'native'> & { items: Json[] }

/** More turns than any model remembers, and characters of them than any takes: a bound on what one request loads. */
const mostTurns = 1_000
const mostCharacters = 32 * 1024 * 1024

const dayMs = 24 * 60 * 60 * 1_000

/** Opens the conversations of a store. */
export function openState(store: Pick<Store, 'responses' | 'organizations'>): State {
  return {
    open(face, organization, body) {
      if (face.api !== 'responses' || !isObject(body)) return singleTurn(face.read(body))
      const previous = optional(body.previous_response_id, 'previous_response_id', filledText)
      const parent = previous === undefined ? undefined : findPrevious(store, organization, previous)
      const earlier = parent ? turnsUpTo(store, parent) : []
      const { keeps, days } = store.organizations.retention(organization)
      const stored = keeps && body.store !== false
      // Who wants nothing kept does not want it kept elsewhere either.
      const origin = keeps ? body : { ...body, store: false }
      return {
        request: withoutKeeping(readAfter(face, origin, earlier)),
        bodyFor: (provider) => bodyFor(provider, face, origin, parent, earlier),
        named: (payload) => (previous === undefined ? payload : named(payload, previous)),
        keeps: stored,
        keep(response, text, target) {
          const { id, status, store: keptThere } = response
          if (!stored || typeof id !== 'string' || (status !== 'completed' && status !== 'incomplete')) return undefined
          const createdAt = Date.now()
          return {
            id,
            organization,
            createdAt,
            expiresAt: createdAt + days * dayMs,
            previous: previous ?? null,
            model: targetId(target),
            provider: target.provider.slug,
            native: target.provider.sameAs === face.api && keptThere === true,
            input: JSON.stringify(itemsOf(body.input)),
            response: text,
          }
        },
      }
    },
  }
}

/** The items of an input; a text is what the user says. */
export function itemsOf(input: Json | undefined): Json[] {
  if (Array.isArray(input)) return input
  if (typeof input !== 'string') return []
  return [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: input }] }]
}

/** A call of an API without conversations by id. */
function singleTurn(request: NeutralRequest): Turn {
  return {
    request,
    bodyFor: () => request.origin.body,
    named: (payload) => payload,
    keeps: false,
    keep: () => undefined,
  }
}

function findPrevious(store: Pick<Store, 'responses'>, organization: string, id: string): StoredResponse {
  const found = store.responses.find(organization, id)
  if (found) return found
  const message = `Previous response with id '${id}' not found: it was not stored, was deleted, has expired, or is not yours. Send the conversation as input.`
  throw new RouterError('previous_response_not_found', message, { param: 'previous_response_id' })
}

/** The turns up to a response, the oldest first. */
function turnsUpTo(store: Pick<Store, 'responses'>, last: StoredResponse): Earlier[] {
  const turns: Earlier[] = []
  let characters = 0
  for (let turn: StoredResponse | undefined = last; turn; ) {
    characters += turn.input.length + turn.response.length
    if (turns.length === mostTurns || characters > mostCharacters) throw tooLong()
    const { provider, native } = turn
    const { output } = JSON.parse(turn.response)
    turns.push({ provider, native, items: [...JSON.parse(turn.input), ...(Array.isArray(output) ? output : [])] })
    turn = turn.previous === null ? undefined : findPrevious(store, turn.organization, turn.previous)
  }
  return turns.reverse()
}

function tooLong(): RouterError {
  const message = `The conversation before previous_response_id is longer than ${mostTurns} turns or ${mostCharacters} characters. Send a shorter one as input.`
  return new RouterError('invalid_request', message, { param: 'previous_response_id' })
}

function readAfter(face: Face, body: JsonObject, earlier: readonly Earlier[]): NeutralRequest {
  if (earlier.length === 0) return face.read(body)
  const input = after(
    earlier.flatMap(({ items }) => items),
    body.input,
  )
  try {
    return { ...face.read({ ...body, input }), origin: { api: face.api, body } }
  } catch (thrown) {
    // A mistake of the client's is told at the place where the client made it.
    if (Array.isArray(body.input)) face.read(body)
    throw thrown
  }
}

/** An input after earlier items; one that is no input at all is left for the reader to refuse. */
function after(items: readonly Json[], input: Json | undefined): Json {
  if (typeof input === 'string' || Array.isArray(input)) return [...items, ...itemsOf(input)]
  return input ?? [...items]
}

/** What this router keeps need not be kept by providers of other formats. */
function withoutKeeping({ store, ...request }: NeutralRequest): NeutralRequest {
  return store === false ? { ...request, store } : request
}

function bodyFor(
  { slug, sameAs }: Provider,
  face: Face,
  body: JsonObject,
  parent: StoredResponse | undefined,
  earlier: readonly Earlier[],
): JsonObject {
  if (!parent || (sameAs === face.api && parent.native && parent.provider === slug)) return body
  const { previous_response_id: _, ...rest } = body
  const items = earlier.flatMap((turn) => turn.items.filter((item) => isReadableBy(slug, item, turn)))
  return { ...rest, input: after(items, body.input) }
}

/** Reasoning is readable only where it was made, sealed or kept there. */
function isReadableBy(slug: string, item: Json, { provider, native }: Earlier): boolean {
  if (!isObject(item) || item.type !== 'reasoning') return true
  return provider === slug && (native || typeof item.encrypted_content === 'string')
}

function named(payload: JsonObject, previous: string): JsonObject {
  if (payload.object === 'response') return { ...payload, previous_response_id: previous }
  return isObject(payload.response) ? { ...payload, response: named(payload.response, previous) } : payload
}
