import { chat } from '../../api/chat/api.ts'
import { writtenRequest } from '../../call/kinds/try.ts'
import type { RouterError } from '../../core/errors.ts'
import { asRouterError } from '../../core/errors.ts'
import { Fold } from '../../core/fold.ts'
import type { JsonObject } from '../../core/json.ts'
import { parseJson } from '../../core/json.ts'
import type { ModelEntry } from '../../core/models/model.ts'
import type { Reply } from '../../core/reply.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { Usage } from '../../core/usage.ts'
import type { Provider } from '../../manifest/provider.ts'
import { chatEndpoint } from '../../manifest/run/run-mapping.ts'
import { servedBy, type Target } from '../../manifest/target.ts'
import { chargeOf } from '../../money/charge.ts'
import { unreadable } from '../../upstream/answer-body.ts'
import { withoutSecretsOf } from '../../upstream/auth/secrets.ts'
import type { HttpClient } from '../../upstream/http/types.ts'
import { type ProviderAnswer, requestAnswer } from '../../upstream/provider-answer.ts'
import { foldFacts, type StreamedAnswer } from '../../upstream/provider-stream.ts'
import { readersOf, unreadIn, usageFieldsIn } from './answer-members.ts'

/** Result of a real call to a target. Times are milliseconds; `skewMs` is how far this machine's clock is ahead of the provider's. */
export type LiveCall = {
  model: string
  streamed: boolean
  ms: number
  status?: number
  skewMs?: number
  error?: { code: string; message: string }
  /** The answer; missing where the call failed. */
  reply?: LiveReply
}

export type LiveReply = {
  text: string
  finish: string
  finish_raw?: string
  /** The model that served, in the provider's words. */
  served?: string
  /** Number of events of a stream. */
  events?: number
  /** The counts by class, as the router reads them, and their cost in USD; missing where no price is known. */
  usage: Usage
  usd?: number
  /** Numbers of the usage by their path in the answer. */
  usage_fields: { [path: string]: number }
  /** Members of the answer that no mapping reads. */
  unread: string[]
}

/** The most tokens that a live call asks for: some providers take no smaller limit. */
export const liveTokens = 16
const maxMs = 60_000

/** Asks a target for a few tokens, as a real call would, and reports what it answers. Never rejects. */
export async function liveCall(
  { provider, model, entry }: { provider: Provider; model: string; entry?: ModelEntry | undefined },
  { stream, client }: { stream: boolean; client: HttpClient },
): Promise<LiveCall> {
  const seen: Seen = { text: '' }
  const begunMs = performance.now()
  const facts = () => ({
    model: `${provider.slug}/${model}`,
    streamed: stream,
    ms: Math.round(performance.now() - begunMs),
    ...(seen.status !== undefined && { status: seen.status }),
    ...(seen.skewMs !== undefined && { skewMs: seen.skewMs }),
  })
  const request = requestFor(model, stream)
  const target: Target = { provider: servedBy(provider, model, { request, entry }), model, ...(entry && { entry }) }
  try {
    chatEndpoint(target.provider)
    const { body } = await writtenRequest(target, request, { clientApi: chat })
    const signal = AbortSignal.timeout(maxMs)
    const outgoing = { body, stream, signal, forwardedHeaders: [] }
    const answer = await requestAnswer(target, outgoing, recordingClient(client, seen))
    const reply = await readLive(target, answer, seen)
    return { ...facts(), reply }
  } catch (thrown) {
    return { ...facts(), error: errorOf(provider, asRouterError(thrown)) }
  }
}

function errorOf(provider: Provider, error: RouterError): { code: string; message: string } {
  const { code, message, forLog, cause } = withoutSecretsOf(provider, error)
  const reason = code === 'internal' && cause instanceof Error ? cause.message : forLog
  return { code, message: reason === undefined ? message : `${message} (${reason})` }
}

function requestFor(model: string, stream: boolean): NeutralRequest {
  const messages = [{ role: 'user', content: 'Reply with the word OK.' }]
  const own = stream ? { stream, stream_options: { include_usage: true } } : {}
  return chat.read({ model, messages, max_tokens: liveTokens, ...own })
}

async function readLive(target: Target, answer: ProviderAnswer, seen: Seen): Promise<LiveReply> {
  if (answer.kind === 'whole') {
    const payloads = [(parseJson(seen.text) ?? answer.body) as JsonObject]
    return describe(target, answer.reply, { payloads, streamed: false })
  }
  const { reply, payloads } = await readToEnd(target, answer)
  return { ...describe(target, reply, { payloads, streamed: true }), events: payloads.length }
}

async function readToEnd(
  target: Target,
  { batches }: StreamedAnswer,
): Promise<{ reply: Reply; payloads: JsonObject[] }> {
  const fold = new Fold(foldFacts(target.provider))
  const payloads: JsonObject[] = []
  for await (const batch of batches) {
    for (const { events, payload } of batch) {
      for (const event of events) fold.take(event)
      if (payload && payloads.length < maxPayloads) payloads.push(payload)
    }
  }
  if (!fold.complete) throw unreadable(target.provider, 'ended its stream without a finish reason or an end marker')
  fold.end()
  return { reply: fold.reply(), payloads }
}

const maxPayloads = 1_000

function describe(
  { provider, entry }: Target,
  { parts, finish, finish_raw, model, usage }: Reply,
  { payloads, streamed }: { payloads: readonly JsonObject[]; streamed: boolean },
): LiveReply {
  const text = parts.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('')
  const cost = chargeOf(usage, { entry, byReport: provider.reports?.has('cost') ?? false }, Date.now())
  return {
    text,
    finish,
    ...(finish_raw !== undefined && { finish_raw }),
    ...(model !== undefined && { served: model }),
    usage,
    ...(!cost.unpriced && { usd: cost.nanoUsd / 1e9 }),
    usage_fields: usageFieldsIn(payloads),
    unread: unreadIn(payloads, readersOf(chatEndpoint(provider), streamed)),
  }
}

/** Facts that the HTTP client has seen: the status, the clock of the provider and the beginning of the answer. */
type Seen = { text: string; status?: number; skewMs?: number }

function recordingClient(client: HttpClient, seen: Seen): HttpClient {
  return {
    ...client,
    base: client.base ?? client,
    async send(request) {
      const begunAt = Date.now()
      const response = await client.send(request)
      const date = Date.parse(String(response.headers.date))
      seen.status = response.status
      seen.text = ''
      // The header has whole seconds, and was written between these two moments.
      if (!Number.isNaN(date)) seen.skewMs = skewOf(date, begunAt, Date.now())
      return { ...response, bytes: copied(response.bytes, seen) }
    },
  }
}

/** Returns by how much a clock is ahead of a `Date` header that was made between two of its times; 0 where they can agree. */
export function skewOf(date: number, from: number, to: number): number {
  if (from > date + 1_000) return from - date - 1_000
  return to < date ? to - date : 0
}

async function* copied(bytes: AsyncIterable<Uint8Array>, seen: Seen): AsyncGenerator<Uint8Array, void> {
  const decoder = new TextDecoder()
  for await (const piece of bytes) {
    if (seen.text.length < maxText) seen.text += decoder.decode(piece, { stream: true })
    yield piece
  }
}

const maxText = 1_000_000
