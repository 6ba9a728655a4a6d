import { filledText, optional } from '../../api/check.ts'
import type { ClientApi } from '../../api/client-api.ts'
import { isReference } from '../../api/foreign-signature.ts'
import { RouterError } from '../../core/errors.ts'
import { isObject, type Json, type JsonObject, valuesInSteps } from '../../core/json.ts'
import { isLongerThan, jsonPieces } from '../../core/json-pieces.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { dayMs } from '../../core/time.ts'
import type { Provider } from '../../manifest/provider.ts'
import { targetId } from '../../manifest/target.ts'
import { maxInOneStep, type YieldToOthers, yieldBetween } from '../../runtime/event-loop.ts'
import type { Store } from '../../store/open.ts'
import type { StoredResponse } from '../../store/responses.ts'
import type { Conversations, Turn } from '../types.ts'

/** Input items of one origin: an earlier response, or the client's present body. */
type Segment = { items: Json[]; from?: Pick<StoredResponse, 'model' | 'provider' | 'native'> }

/** Maximum number of turns, longer than any model's context: a bound on what one request loads. */
const maxTurns = 1_000
const maxCharacters = 32 * 1024 * 1024
const maxValues = 400_000

/** Store in which earlier turns are found. */
export type StoredTurns = { responses: Pick<Store['responses'], 'find' | 'findByItem'> }

/** Opens the conversations of a store. */
export function openConversations(store: StoredTurns): Conversations {
  return {
    open(clientApi, { id: organization, retention }, body) {
      const { stores: mayStore, days } = retention
      if (clientApi.api !== 'responses' || !isObject(body)) {
        return singleTurn(clientApi.read(mayStore ? body : storedNowhere(body)), mayStore)
      }
      const previous = optional(body.previous_response_id, 'previous_response_id', filledText)
      const stores = mayStore && body.store !== false
      // If the organization stores no responses here, the provider must not store them either.
      const origin = mayStore ? body : { ...body, store: false }
      const turnOf = (earlier: readonly Segment[], now: readonly Segment[]): Turn => {
        const resendTo = new Set<string>()
        return {
          request: withoutStore(readAll(clientApi, origin, [...earlier, ...now])),
          madeBy: [...earlier, ...now].findLast(({ from }) => from)?.from,
          bodyFor: (provider) => bodyFor(provider, origin, { earlier, now, resendTo }),
          lostFor: (provider) => lostFor(provider, { earlier, now, resendTo }),
          mustResend(error, { slug }) {
            if (resendTo.has(slug) || !isLostResponse(error)) return false
            resendTo.add(slug)
            return true
          },
          withPrevious: (payload) => (previous === undefined ? payload : withPreviousId(payload, previous)),
          stores,
          mayStore,
          responseToStore(response, text, { target, sameFormat, storesItself }) {
            const { id, status } = response
            if (!stores || typeof id !== 'string' || (status !== 'completed' && status !== 'incomplete'))
              return undefined
            const createdAt = Date.now()
            const { slug } = target.provider
            const stored = {
              id,
              organization,
              createdAt,
              expiresAt: createdAt + days * dayMs,
              previous: previous ?? null,
              model: targetId(target),
              provider: slug,
              native: sameFormat && storesItself,
              response: text,
            }
            // Items left out because the provider could not read them would not be readable later either.
            const items = now.flatMap((segment) => (sameFormat ? readableBy(slug, segment) : segment.items))
            if (!isLongerThan(items, maxInOneStep)) return { ...stored, input: JSON.stringify(items) }
            return sharedJson(items).then((input) => ({ ...stored, input }))
          },
        }
      }
      const items = itemsOf(body.input)
      if (previous === undefined && !items.some(isReference)) return turnOf([], items.map(ownItem))
      return continued(store, organization, { previous, items }).then(({ earlier, now }) => turnOf(earlier, now))
    },
  }
}

/** Returns the JSON text of items as UTF-8 in shared memory, written in steps between which other calls run. */
async function sharedJson(items: Json[]): Promise<Uint8Array> {
  const yieldToOthers = yieldBetween()
  const pieces = await jsonPieces(items, yieldToOthers)
  const bytes = Buffer.from(new SharedArrayBuffer(pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0)))
  let at = 0
  for (const piece of pieces) {
    at += bytes.write(piece, at)
    await yieldToOthers()
  }
  return bytes
}

/** Returns a body that no provider may store, whatever it asks for. */
function storedNowhere(body: unknown): unknown {
  return isObject(body) && body.store === true ? { ...body, store: false } : body
}

/** Returns a call of an API without conversations by id. */
export function singleTurn(request: NeutralRequest, mayStore: boolean): Turn {
  return {
    request,
    mayStore,
    bodyFor: () => request.origin.body,
    mustResend: () => false,
    withPrevious: (payload) => payload,
    stores: false,
    responseToStore: () => undefined,
  }
}

function ownItem(item: Json): Segment {
  return { items: [item] }
}

/**
 * Returns the turns up to a response, and the items of an input with its references replaced. Yields to the event loop: a short request may
 * lead to megabytes.
 */
async function continued(
  store: StoredTurns,
  organization: string,
  { previous, items }: { previous: string | undefined; items: readonly Json[] },
): Promise<{ earlier: Segment[]; now: Segment[] }> {
  const yieldToOthers = yieldBetween()
  const earlier = previous === undefined ? [] : await turnsUpTo(store, organization, { last: previous, yieldToOthers })
  return { earlier, now: await resolved(store, organization, { items, yieldToOthers }) }
}

/** Returns the turns up to a response, the oldest first. */
async function turnsUpTo(
  store: StoredTurns,
  organization: string,
  { last, yieldToOthers }: { last: string; yieldToOthers: YieldToOthers },
): Promise<Segment[]> {
  const turns: StoredResponse[] = []
  let characters = 0
  for (let id: string | null = last; id !== null; ) {
    await yieldToOthers()
    const turn: StoredResponse = (await store.responses.find(organization, id)) ?? missing(id)
    characters += turn.input.length + turn.response.length
    if (turns.length === maxTurns || characters > maxCharacters) throw tooLong()
    turns.push(turn)
    id = turn.previous
  }
  if (characters > 2 * maxValues) await requireFewValues(turns, yieldToOthers)
  const segments: Segment[] = []
  for (const turn of turns.reverse()) {
    await yieldToOthers()
    const input = JSON.parse(turn.input)
    await yieldToOthers()
    segments.push({ from: turn, items: [...input, ...outputOf(turn)] })
  }
  return segments
}

/** Counts the JSON values of turns before any of them is parsed. Throws RouterError 400 for too many. */
async function requireFewValues(turns: readonly StoredResponse[], yieldToOthers: YieldToOthers): Promise<void> {
  let values = 0
  for (const { input, response } of turns) {
    for (const text of [input, response]) {
      await yieldToOthers()
      values += await valuesInSteps(text, yieldToOthers)
      if (values > maxValues) throw tooLong()
    }
  }
}

function outputOf({ response }: StoredResponse): Json[] {
  const { output } = JSON.parse(response)
  return Array.isArray(output) ? output : []
}

function missing(id: string): never {
  const message = `Previous response with id '${id.slice(0, maxShownLength)}' not found: it was not stored, was deleted, has expired, or is not yours. Send the conversation as input.`
  throw new RouterError('previous_response_not_found', message, { param: 'previous_response_id' })
}

/** Characters of a client's id that a message repeats. */
const maxShownLength = 100

function tooLong(): RouterError {
  const message = `The conversation before previous_response_id is longer than ${maxTurns} turns, ${maxCharacters} characters or ${maxValues} values. Send a shorter one as input.`
  return new RouterError('invalid_request', message, { param: 'previous_response_id' })
}

/** Returns items with references to others replaced by those. */
async function resolved(
  store: StoredTurns,
  organization: string,
  { items, yieldToOthers }: { items: readonly Json[]; yieldToOthers: YieldToOthers },
): Promise<Segment[]> {
  const known = new Map<Json | undefined, Segment>()
  const segments: Segment[] = []
  let responses = 0
  let characters = 0
  for (const [index, item] of items.entries()) {
    if (!isReference(item)) {
      segments.push(ownItem(item))
      continue
    }
    if (!known.has(item.id)) {
      await yieldToOthers()
      const from = typeof item.id === 'string' ? await store.responses.findByItem(organization, item.id) : undefined
      responses++
      characters += from?.response.length ?? 0
      if (responses > maxTurns || characters > maxCharacters) throw tooManyReferences()
      for (const stored of from ? outputOf(from) : [])
        if (from && isObject(stored)) known.set(stored.id, { from, items: [stored] })
    }
    segments.push(known.get(item.id) ?? missingItem(item.id, index))
  }
  return segments
}

function tooManyReferences(): RouterError {
  const message = `The items that the input refers to are of more than ${maxTurns} responses, or of more than ${maxCharacters} characters. Send the items themselves.`
  return new RouterError('invalid_request', message, { param: 'input' })
}

function missingItem(id: Json | undefined, index: number): never {
  const message = `Item with id '${id}' not found: its response was not stored, was deleted, has expired, or is not yours. Send the item itself.`
  throw new RouterError('invalid_request', message, { param: `input[${index}].id` })
}

/** Returns the items of an input; plain text is a user message. */
function itemsOf(input: Json | undefined): Json[] {
  if (Array.isArray(input)) return input
  if (typeof input !== 'string') return []
  return [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: input }] }]
}

function readAll(clientApi: ClientApi, body: JsonObject, segments: readonly Segment[]): NeutralRequest {
  if (isPlain(body, segments)) return clientApi.read(body)
  const input = segments.flatMap(({ items }) => items)
  try {
    return { ...clientApi.read({ ...body, input }), origin: { api: clientApi.api, body } }
  } catch (thrown) {
    // An error must name the position in the client's own input, not in the combined one.
    if (Array.isArray(body.input)) clientApi.read(body)
    throw thrown
  }
}

/** Checks whether an input needs nothing from the store; an invalid one is left to the reader to refuse. */
function isPlain({ input }: JsonObject, segments: readonly Segment[]): boolean {
  const readable = input === undefined || input === null || typeof input === 'string' || Array.isArray(input)
  return !readable || segments.every(({ from }) => !from)
}

/** Removes the request to store: responses are stored here, so providers of other formats need not store them. */
function withoutStore({ store, ...request }: NeutralRequest): NeutralRequest {
  return store === false ? { ...request, store } : request
}

type Segments = { earlier: readonly Segment[]; now: readonly Segment[]; resendTo: ReadonlySet<string> }

function bodyFor({ slug }: Provider, body: JsonObject, segments: Segments): JsonObject {
  if (hasAll(slug, segments)) return body
  const { earlier, now, resendTo } = segments
  const { previous_response_id: _, ...rest } = body
  return { ...rest, input: [...earlier, ...now].flatMap((segment) => readableBy(slug, segment, resendTo.has(slug))) }
}

/** Returns the losses of reasoning that only its signer can read. */
function lostFor({ slug }: Provider, segments: Segments): string[] {
  if (hasAll(slug, segments)) return []
  const { earlier, now, resendTo } = segments
  const isLost = (segment: Segment) => readableBy(slug, segment, resendTo.has(slug)).length < segment.items.length
  return [...earlier, ...now].some(isLost) ? ['parts.reasoning'] : []
}

/** Checks whether a provider has stored everything that an input continues. */
function hasAll(slug: string, { earlier, now, resendTo }: Segments): boolean {
  return [...earlier.slice(-1), ...now].every(({ from }) => {
    return !from || (!resendTo.has(slug) && from.native && from.provider === slug)
  })
}

/** Returns the items that a provider can read: reasoning only where it was made, and is encrypted or stored there. */
function readableBy(slug: string, { items, from }: Segment, resend = false): Json[] {
  if (!from) return items
  return items.filter((item) => {
    if (!isObject(item) || item.type !== 'reasoning') return true
    return from.provider === slug && ((from.native && !resend) || typeof item.encrypted_content === 'string')
  })
}

/** Checks whether a provider reports that a response, which it stored according to our records, is missing. */
function isLostResponse({ provider, providerCode }: RouterError): boolean {
  return provider !== undefined && providerCode === 'previous_response_not_found'
}

function withPreviousId(payload: JsonObject, previous: string): JsonObject {
  if (payload.object === 'response') return { ...payload, previous_response_id: previous }
  return isObject(payload.response) ? { ...payload, response: withPreviousId(payload.response, previous) } : payload
}
