import { randomUUID } from 'node:crypto'
import type { Key } from './access/keys.ts'
import type { Face, ReplyFacts } from './api/face.ts'
import { asRouterError, RouterError } from './core/errors.ts'
import { Fold, type FoldFacts } from './core/fold.ts'
import type { JsonObject } from './core/json.ts'
import type { Reply } from './core/reply.ts'
import type { NeutralRequest } from './core/request.ts'
import { patchRequest, usedLosses, writeRequest } from './manifest/exchange.ts'
import { type Target, targetId } from './manifest/target.ts'
import { attempt } from './routing/attempts.ts'
import { type Directory, resolve } from './routing/resolve.ts'
import type { Seals } from './routing/seals.ts'
import { type Ledger, type Settled, Settlement } from './settlement.ts'
import type { State, Turn } from './state.ts'
import type { Door } from './upstream/door.ts'
import { type Answer, exchange } from './upstream/exchange.ts'
import { type CallMedia, inlineMedia, type MediaRoom, openCallMedia } from './upstream/inline.ts'
import type { PassedHeader } from './upstream/post.ts'

/** One client request. `signal` is aborted when the client leaves or the process stops. */
export type Call = {
  id: string
  face: Face
  secret: string | undefined
  readBody(): Promise<unknown>
  /** A loss refuses the call instead of being reported. */
  strict: boolean
  /** Headers for a provider of the same format. */
  passed?: readonly PassedHeader[]
  signal: AbortSignal
}

/** What the call passes through. */
export type Rooms = {
  authenticate(secret: string | undefined): Key
  directory: Directory
  door: Door
  media: MediaRoom
  ledger: Ledger
  seals: Seals
  state: State
}

/** What goes back to the client: a JSON text, or texts of server-sent events as they come. */
export type Outgoing = { headers: Record<string, string>; body: string | AsyncGenerator<string, void> }

/** What a call asks, and the row it will be. */
type Asked = { call: Call; request: NeutralRequest; turn: Turn; settlement: Settlement }

/** One call, from endpoint to reply. Every other file is a room on this line. */
export async function handle(call: Call, rooms: Rooms): Promise<Outgoing> {
  const key = rooms.authenticate(call.secret)
  const turn = rooms.state.open(call.face, key.organization, await call.readBody())
  const request = rooms.seals.restore(key.organization, turn.request)
  const targets = resolve(request.model, rooms.directory)
  const settlement = openSettlement(call, key, request, rooms.ledger)
  const asked: Asked = { call, request, turn, settlement }
  const { door } = rooms
  const media = openCallMedia(rooms.media, { param: call.face.wireNames('messages')[0] ?? '', signal: call.signal })
  try {
    const { answer } = await attempt(targets, (target, attempts) => {
      Object.assign(settlement, { target, attempts })
      return ask(target, asked, { door, media }).catch((thrown) => {
        if (!turn.forgot(thrown, target.provider)) throw thrown
        return ask(target, asked, { door, media })
      })
    })
    const keepSeals = (reply: Reply) => rooms.seals.keep(key.organization, reply)
    return answer.kind === 'whole'
      ? { headers: replyHeaders(settlement), body: await wholeReply(answer, asked, keepSeals) }
      : { headers: replyHeaders(settlement), body: streamedReply(answer, asked, keepSeals) }
  } catch (thrown) {
    const error = asRouterError(thrown)
    // A ledger that fails as well keeps the row for later: the client must hear of the first failure.
    await settlement.fail(error).catch(() => {})
    throw error
  }
}

function openSettlement(call: Call, key: Key, request: NeutralRequest, ledger: Ledger): Settlement {
  const { user, metadata } = request
  return new Settlement(
    {
      id: call.id,
      at: Date.now(),
      begun: performance.now(),
      organization: key.organization,
      key: key.id,
      api: call.face.api,
      operation: 'chat',
      requested: request.model,
      stream: request.stream === true,
      request,
      ...(user !== undefined && { user }),
      ...(metadata && { metadata }),
    },
    ledger,
  )
}

/** Writes the request in the target's words and sends it; what the target cannot take is reported or refused. */
async function ask(
  target: Target,
  { call, request, turn, settlement }: Asked,
  { door, media }: { door: Door; media: CallMedia },
) {
  const { face, signal } = call
  const { provider, model } = target
  const stream = request.stream === true
  const named = (fields: readonly string[]) => wireNames(face, fields, request.origin.body)
  const same = speaksSameFormat(target, face)
  let body: JsonObject
  if (same) {
    const losses = await usedLosses(provider, request, target)
    settlement.dropped = named(losses)
    body = await patchRequest(provider, face.editRequest(turn.bodyFor(provider), { model, stream, dropped: losses }))
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

async function wholeReply(
  answer: Answer & { kind: 'whole' },
  { call, request, turn, settlement }: Asked,
  keepSeals: (reply: Reply) => void,
): Promise<string> {
  const target = settlement.target as Target
  keepSeals(answer.reply)
  let text = ''
  await settlement.complete(answer.reply, (settled) => {
    const facts = replyFacts(request, call, settlement, settled)
    const written = speaksSameFormat(target, call.face)
      ? call.face.editReply(turn.named(answer.body), facts)
      : call.face.writeReply(answer.reply, facts)
    text = JSON.stringify(written)
    return turn.keep(written, text, target)
  })
  return text
}

/** The row is on disk before the last words go out; a reply that breaks never gets the words of a whole one. */
async function* streamedReply(
  answer: Answer & { kind: 'stream' },
  { call, request, turn, settlement }: Asked,
  keepSeals: (reply: Reply) => void,
): AsyncGenerator<string, void> {
  const target = settlement.target as Target
  const same = speaksSameFormat(target, call.face)
  const writer = call.face.openStream(request, { model: targetId(target), id: call.id })
  const fold = new Fold(foldFacts(target))
  try {
    for await (const batch of answer.batches) {
      settlement.firstEventMs ??= settlement.elapsed()
      let text = ''
      for (const { payload, events } of batch) {
        for (const event of events) {
          const told = fold.take(event)
          if (!same) text += writer.events(told)
        }
        if (same) text += writer.frame(turn.named(payload))
      }
      if (text) yield text
    }
    if (!fold.complete) throw cutStream(target)
    const last = same ? '' : writer.events(fold.end())
    const reply = fold.reply()
    keepSeals(reply)
    const settled = await settlement.complete(reply, (known) => {
      const whole = turn.keeps && writer.reply?.(replyFacts(request, call, settlement, known))
      return whole ? turn.keep(whole, JSON.stringify(whole), target) : undefined
    })
    yield last + writer.end(replyFacts(request, call, settlement, settled))
  } catch (thrown) {
    const error = asRouterError(thrown)
    // A ledger that fails as well keeps the row for later: the client must still hear of the break.
    await settlement.partial(fold.reply(), error).catch(() => {})
    if (error.code !== 'client_gone') yield writer.fail(error)
  } finally {
    // A client that left ends this generator at a yield: what has passed is still paid.
    await settlement.partial(fold.reply(), new RouterError('client_gone', 'The client left.'))
  }
}

function speaksSameFormat({ provider }: Target, face: Face): boolean {
  return provider.sameAs === face.api
}

function foldFacts({ provider }: Target): FoldFacts {
  return { maker: provider.maker, newId: randomUUID, now: () => Math.floor(Date.now() / 1_000) }
}

function replyFacts(request: NeutralRequest, call: Call, settlement: Settlement, { usage, cost }: Settled): ReplyFacts {
  const model = targetId(settlement.target as Target)
  return { model, usage, request, id: call.id, ...(!cost.unpriced && { costUsd: cost.nanoUsd / 1e9 }) }
}

function replyHeaders(settlement: Settlement): Record<string, string> {
  const headers: Record<string, string> = {
    'x-router-model': targetId(settlement.target as Target),
    'x-router-attempts': String(settlement.attempts),
  }
  if (settlement.dropped.length > 0) headers['x-router-dropped'] = settlement.dropped.join(',')
  return headers
}

/** Neutral field names in the client's words, as far as the client used them. */
function wireNames(face: Face, fields: readonly string[], body: JsonObject): string[] {
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

function cutStream({ provider }: Target): RouterError {
  const message = 'The provider ended its stream in the middle of the reply.'
  return new RouterError('provider_cut', message, { provider: provider.slug })
}
