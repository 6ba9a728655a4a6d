import type { OperationBytes } from '../../api/operation-api.ts'
import { asRouterError, RouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import { mergeUsage, type Usage } from '../../core/usage.ts'
import { withoutSecretsOf } from '../../upstream/auth/secrets.ts'
import type { OperationAnswer } from '../../upstream/operation-answer.ts'
import type { CallResponse } from '../types.ts'
import { type AnsweredOperation, bytesType, costHeader, measure } from './operation-facts.ts'

type Streamed = Exclude<OperationAnswer, { kind: 'whole' }>

/** Returns a response of bytes that arrive piece by piece. Their cost is reported where it does not depend on them. */
export function bytesResponse(answer: Streamed, answered: AnsweredOperation, api: OperationBytes): CallResponse {
  const { request } = answered.prepared
  const expected = { ...answered, measured: measure(answered, answer.usage ?? {}, undefined, true) }
  const cost = expected.measured.estimated ? {} : costHeader(answered.settlement.costOf(expected))
  const told = answer.kind === 'bytes' ? api.headers(answer.first, answer.mediaType, request) : {}
  return {
    headers: { ...answered.headers, ...cost, ...told },
    mediaType: bytesType,
    body: byteStream(answer, answered, api),
  }
}

/** Yields bytes as they arrive, except for the last one, which leaves when the row is on disk. */
async function* byteStream(
  answer: Streamed,
  answered: AnsweredOperation,
  api: OperationBytes,
): AsyncGenerator<Uint8Array, void> {
  const { settlement, target } = answered
  const state: Received = { usage: answer.usage ?? {}, known: {}, isSettled: false }
  let held: number | undefined
  try {
    for await (const piece of piecesOf(answer, answered, { api, state })) {
      state.firstEventMs ??= settlement.elapsed()
      state.known = api.collect(state.known, piece, answered.prepared.request)
      const last = piece.at(-1) as number
      const ready = withoutLast(piece, held)
      held = last
      if (ready.length > 0) yield ready
    }
    if (held === undefined) throw empty(answered)
    await settlement.complete(received(answered, state, true))
    state.isSettled = true
    yield Uint8Array.of(held)
  } catch (thrown) {
    const error = withoutSecretsOf(target.provider, asRouterError(thrown))
    answered.handle.failed(error)
    if (error.billed) state.usage = mergeUsage(state.usage, error.billed)
    if (!state.isSettled) await settlement.partial(received(answered, state, false), error)
    state.isSettled = true
    // The client sees that the response breaks off.
    throw error
  } finally {
    answered.handle.ended()
    if (!state.isSettled) {
      const error = new RouterError('client_gone', 'The client disconnected.')
      await settlement.partial(received(answered, state, false), error)
    }
  }
}

/** Progress of an answer that is being received. */
type Received = { usage: Usage; known: JsonObject; isSettled: boolean; firstEventMs?: number }

function received(answered: AnsweredOperation, { usage, known, firstEventMs }: Received, complete: boolean) {
  const measured = measure(answered, usage, known, complete)
  return { ...answered, measured, ...(firstEventMs !== undefined && { firstEventMs }) }
}

/**
 * Returns the byte that was held back and the piece without its last one, in the place of the piece: nothing is copied elsewhere, and
 * a piece stays one.
 */
function withoutLast(piece: Uint8Array, held: number | undefined): Uint8Array {
  if (held === undefined) return piece.subarray(0, -1)
  piece.copyWithin(1, 0, piece.length - 1)
  piece[0] = held
  return piece
}

/** Yields the pieces of an answer, none of them empty; those of events are decoded. */
async function* piecesOf(
  answer: Streamed,
  { target }: AnsweredOperation,
  { api, state }: { api: OperationBytes; state: Received },
): AsyncGenerator<Uint8Array, void> {
  if (answer.kind === 'bytes') {
    for await (const piece of answer.bytes) if (piece.length > 0) yield piece
    return
  }
  let hasEnded = false
  for await (const batch of answer.batches) {
    for (const { event, usage } of batch) {
      if (usage) state.usage = mergeUsage(state.usage, usage)
      const piece = event && api.ofEvent(event)
      if (piece === 'end') hasEnded = true
      else if (piece && piece.length > 0) yield piece
    }
  }
  if (hasEnded) return
  const { slug: provider } = target.provider
  throw new RouterError('provider_cut', 'The provider ended its stream in the middle.', { provider })
}

function empty({ target }: AnsweredOperation): RouterError {
  const { slug: provider } = target.provider
  return new RouterError('provider_unreadable', 'The provider sent an empty answer.', { provider })
}
