import { randomUUID } from 'node:crypto'
import type { ClientApi } from '../api/client-api.ts'
import { RouterError } from '../core/errors.ts'
import type { FoldFacts } from '../core/fold.ts'
import type { JsonObject } from '../core/json.ts'
import type { NeutralRequest } from '../core/request.ts'
import { type Target, targetId } from '../manifest/target.ts'
import { patchRequest, targetFacts, usedLosses, writeRequest } from '../manifest/translate.ts'
import { type Answer, exchange } from '../upstream/call.ts'
import type { Door } from '../upstream/http-client.ts'
import { type CallMedia, inlineMedia } from '../upstream/inline.ts'
import type { PassedHeader } from '../upstream/post.ts'
import type { Turn } from './conversations.ts'
import type { Settlement } from './settlement.ts'

/** One client request. `signal` is aborted when the client leaves or the process stops. */
export type Call = {
  id: string
  face: ClientApi
  secret: string | undefined
  readBody(): Promise<unknown>
  /** A loss refuses the call instead of being reported. */
  strict: boolean
  /** Headers for a provider of the same format. */
  passed?: readonly PassedHeader[]
  /** The header that tags its row. */
  tags?: string | undefined
  signal: AbortSignal
}

/** What a call asks, and the row it will be. */
export type Asked = { call: Call; request: NeutralRequest; turn: Turn; settlement: Settlement }

/** Writes the request in the target's words and sends it; what the target cannot take is reported or refused. */
export async function ask(
  target: Target,
  { call, request, turn, settlement }: Asked,
  { door, media }: { door: Door; media: CallMedia },
): Promise<Answer> {
  const { face, signal } = call
  const { provider, model } = target
  const stream = request.stream === true
  const named = (fields: readonly string[]) => wireNames(face, fields, request.origin.body)
  const same = speaksSameFormat(target, face)
  let body: JsonObject
  if (same) {
    const losses = await usedLosses(provider, request, target)
    settlement.dropped = named(losses)
    body = await patchRequest(
      provider,
      face.editRequest(turn.bodyFor(provider), { model, stream, dropped: losses }),
      targetFacts(provider, target),
    )
  } else {
    const inlined = await inlineMedia(request, provider.chat?.history.inline_media, media)
    const written = await writeRequest(provider, inlined, target)
    settlement.dropped = named(written.dropped)
    body = written.body
  }
  if (call.strict && settlement.dropped.length > 0) throw lossRefused(settlement.dropped, target)
  const passed = same ? call.passed : undefined
  return await exchange(target, { body, stream, signal, fold: foldFacts(target), ...(passed && { passed }) }, door)
}

/** Whether a target speaks the client's own format: then bodies are edited, not rebuilt. */
export function speaksSameFormat({ provider }: Target, face: ClientApi): boolean {
  return provider.sameAs === face.api
}

/** What folding a target's answer needs to know. */
export function foldFacts({ provider }: Target): FoldFacts {
  return { maker: provider.maker, newId: randomUUID, now: () => Math.floor(Date.now() / 1_000) }
}

/** Neutral field names in the client's words, as far as the client used them. */
function wireNames(face: ClientApi, fields: readonly string[], body: JsonObject): string[] {
  const names = fields.flatMap((field) => {
    const known = face.wireNames(field)
    const used = known.filter((name) => body[name] !== undefined)
    return used.length > 0 ? used : known.slice(0, 1)
  })
  return [...new Set(names)]
}

function lossRefused(dropped: string[], target: Target): RouterError {
  const fields = dropped.join(', ')
  const message = `${targetId(target)} cannot take: ${fields}. Remove the fields, or send the request without x-router-strict.`
  return new RouterError('loss_refused', message, { param: dropped[0] ?? '' })
}
