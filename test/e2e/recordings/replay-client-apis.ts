import type { JsonObject } from '../../../src/core/json.ts'
import { violations } from '../../api/messagesSchema.ts'
import * as messages from '../../dialects/anthropic-messages-reader.ts'
import * as responses from '../../dialects/openai-responses-reader.ts'
import { eventViolations, responseViolations } from '../../dialects/responses-schema.ts'
import type { Recording } from '../../helpers/recordings.ts'
import type { Body } from './replay-answers.ts'
import { finishInChat } from './replay-client.ts'
import type { Expected } from './replay-types.ts'

/** The contents of a reply that every API has. */
export type ClientReply = {
  text: string
  reasoning: string
  calls: { id: string; name: string; arguments: unknown }[]
  citations: string[]
  finish: string
  usage: { [name: string]: number }
}

/** How the answers of a client API are read and judged. */
export type ClientApiReader = {
  read(text: string, stream: boolean): ClientReply
  /** The contents of the recording, as far as this API can express them. */
  expected(expected: Expected): ClientReply
  /** Why an answer failed, and whether it looks done all the same. */
  failure(text: string, stream: boolean): { message: unknown; done: boolean }
  /** The violations of the published schema in a reply. */
  wrong(text: string, stream: boolean): string[]
}

/** POST /v1/messages. */
export const messagesReader: ClientApiReader = {
  read(body, stream) {
    const facts = messages.readMessage(stream ? messages.assembled(streamRecording(body)) : JSON.parse(body))
    const text = facts.text.map(({ text }) => text).join('')
    return {
      // The reason of a refusal is beside the reply, and in it where the model itself gave one.
      text: facts.refusal.reduce((sum, why) => (sum.includes(why) ? sum : sum + why), text),
      reasoning: facts.reasoning.flatMap(({ text }) => text ?? []).join('\n\n'),
      calls: facts.calls.map(({ id, name, input }) => ({ id, name, arguments: input })),
      citations: facts.text.flatMap(({ citations }) => citations.flatMap(({ url }: Body) => url ?? [])),
      finish: finishInChat(facts.finish),
      usage: classes(facts.usage),
    }
  },
  expected(expected) {
    const meant = inCommon(expected)
    return {
      ...meant,
      calls: meant.calls.map((call) => ({ ...call, id: idHere(call.id) })),
      // Here a refusal is a reason to stop; to its provider it may be a reply like any other.
      finish: expected.reply.refusal && meant.finish === 'stop' ? 'content_filter' : meant.finish,
    }
  },
  failure(text, stream) {
    const last = stream ? responses.eventsIn(streamRecording(text)).at(-1) : JSON.parse(text)
    return { message: last.type === 'error' ? last.error.message : undefined, done: text.includes('message_stop') }
  },
  wrong(text, stream) {
    if (!stream) return violations('Message', withoutCost(JSON.parse(text)))
    const events = responses.eventsIn(streamRecording(text)).filter(({ type }) => type !== 'ping')
    return distinct(events.flatMap((event) => violations(messageEvents[event.type] ?? '', withoutCost(event))))
  },
}

const messageEvents: { [type: string]: string } = {
  message_start: 'RawMessageStartEvent',
  message_delta: 'RawMessageDeltaEvent',
  message_stop: 'RawMessageStopEvent',
  content_block_start: 'RawContentBlockStartEvent',
  content_block_delta: 'RawContentBlockDeltaEvent',
  content_block_stop: 'RawContentBlockStopEvent',
}

/** POST /v1/responses. */
export const responsesReader: ClientApiReader = {
  read(text, stream) {
    const facts = responses.readResponse(stream ? responses.streamedOf(streamRecording(text)) : JSON.parse(text))
    const deltas = stream ? responses.eventsIn(streamRecording(text)).filter(({ type }) => textEvents.has(type)) : []
    return {
      text: stream
        ? deltas.map(({ delta }) => delta).join('')
        : [...facts.text.map(({ text }) => text), ...facts.refusal].join(''),
      reasoning: facts.reasoning.flatMap(({ text, summary }) => text || summary || []).join('\n\n'),
      calls: facts.calls.map(({ id, name, arguments: text }) => ({ id, name, arguments: objectOf(text) })),
      citations: facts.text.flatMap(({ citations }) => citations.flatMap(({ url }: Body) => url || [])),
      finish: facts.finish,
      usage: classes(facts.usage),
    }
  },
  expected(expected) {
    const meant = inCommon(expected)
    return { ...meant, finish: finishHere(expected, meant.finish) }
  },
  failure(text, stream) {
    const last = stream ? responses.eventsIn(streamRecording(text)).at(-1) : JSON.parse(text)
    const failed = last.type === 'response.failed' ? last.response.error : stream ? undefined : last.error
    return { message: failed?.message, done: text.includes('"type":"response.completed"') }
  },
  wrong(text, stream) {
    if (!stream) return responseViolations(JSON.parse(text))
    return distinct(responses.eventsIn(streamRecording(text)).flatMap(eventViolations))
  },
}

const textEvents = new Set(['response.output_text.delta', 'response.refusal.delta'])

/** Stop reasons of Messages that Responses lacks: a refusal in words is a reply, and a pause is incomplete. */
function finishHere({ raw, reply }: Expected, meant: string): string {
  if (raw === 'refusal') return reply.refusal ? 'stop' : 'content_filter'
  return raw === 'pause_turn' ? 'length' : meant
}

/** The expected contents of a recording for every client. */
function inCommon({ reply, usage, transcript = '' }: Expected): ClientReply {
  return {
    // Where audio is not supported, its transcript is written.
    text: reply.text + reply.refusal + transcript,
    reasoning: reply.reasoning,
    calls: reply.calls.map((call) => ({ ...call, arguments: objectOf(call.arguments) })),
    citations: reply.citations.map(({ url }) => url),
    finish: reply.finish === 'function_call' ? 'tool_calls' : reply.finish,
    usage: classes(usage),
  }
}

/** Messages knows ids of letters, digits and two marks; others travel encoded. */
function idHere(id: string): string {
  return /^[\w-]+$|^made up$/.test(id) ? id : `toolu_router1_${Buffer.from(id).toString('base64url')}`
}

/** A stream as the readers of recordings take it. */
function streamRecording(sse: string): Recording {
  return { response: { status: 200, headers: {}, sse } } as Recording
}

/** Arguments by value; text that is not a JSON object is a member of one. */
function objectOf(given: unknown): unknown {
  if (typeof given !== 'string') return given
  try {
    const value: unknown = JSON.parse(given || '{}')
    return value !== null && typeof value === 'object' && !Array.isArray(value) ? value : { input: given }
  } catch {
    return { input: given }
  }
}

/** Tokens by the classes that all APIs distinguish; searches are counted by one of them only. */
function classes(usage: { [name: string]: number }): ClientReply['usage'] {
  const sum = (...names: string[]) => names.reduce((total, name) => total + (usage[name] ?? 0), 0)
  return {
    input: sum('input', 'input_audio', 'input_image'),
    cache_read: sum('cache_read'),
    cache_write: sum('cache_write_5m', 'cache_write_1h'),
    output: sum('output', 'output_audio', 'output_image', 'reasoning'),
  }
}

/** The cost is the router's, beside the counts of every API. */
function withoutCost(value: Body): JsonObject {
  const plain: Body = structuredClone(value)
  for (const usage of [plain.usage, plain.message?.usage]) if (usage) delete usage.cost
  if (plain.type === 'message_delta') delete plain.usage.cache_creation
  return plain
}

function distinct(list: readonly string[]): string[] {
  return [...new Set(list)]
}
