import { expect } from 'vitest'
import * as messages from '../../dialects/anthropic-messages-reader.ts'
import * as gemini from '../../dialects/gemini-reader.ts'
import * as chat from '../../dialects/openai-chat-reader.ts'
import { type Recording, recordedEvents } from '../../helpers/recordings.ts'
import { type Body, isStreamed, streamOf, wholeOf } from './replay-answers.ts'
import { emptyReply, finishInChat } from './replay-client.ts'
import { fromCohere, fromConverse, fromOllama, fromResponses, placed } from './replay-expected-others.ts'
import type { Expected } from './replay-types.ts'

/** Reads a recording with the reader of its format. */
export function expectedOf(recording: Recording): Expected {
  return (readers[recording.dialect] ?? fromChat)(recording)
}

/** Ids that the router made are not in the recording. */
export function asRecordedId({ reply }: Expected) {
  return <Call extends { id: string }>(call: Call, index: number): Call => {
    if (reply.calls[index]?.id !== 'made up') return call
    expect(call.id).toMatch(/^call_\w{24}$|^made up$/)
    return { ...call, id: 'made up' }
  }
}

/** How a provider's error is reported: the status, the type, and whether it rejected the router's key. */
export function refusalOf({ case: name, response }: Recording): { status: number; type: string; refusesKey: boolean } {
  // Google and xAI send 400 for a wrong key.
  const refusesKey =
    [401, 403].includes(response.status) || /^gemini\/error-400__google|^openai-responses\/error-400__xai/.test(name)
  if (refusesKey || response.status >= 500) return { status: 502, type: 'api_error', refusesKey }
  if (response.status === 429) return { status: 429, type: 'rate_limit_error', refusesKey }
  // Models are deployments of the account: an unknown one is reported.
  if (response.status === 404) return { status: 404, type: 'not_found_error', refusesKey }
  return { status: 400, type: 'invalid_request_error', refusesKey }
}

const readers: { [dialect: string]: (recording: Recording) => Expected } = {
  'anthropic-messages': fromMessages,
  gemini: fromGemini,
  'bedrock-converse': fromConverse,
  'cohere-v2': fromCohere,
  ollama: fromOllama,
  'openai-responses': fromResponses,
  perplexity: fromPerplexity,
}

function fromChat(recording: Recording): Expected {
  const facts = chat.readIndependently(recording)
  const { text, reasoning, refusal, calls, signatures, citations, audio, logprobs, raw, usage, id } = facts
  const counted = lastUsage(recording)
  return {
    reply: {
      ...emptyReply,
      text,
      reasoning,
      refusal,
      calls,
      signatures: signatures.toSorted(),
      citations,
      media: audio,
      logprobs,
      finish: raw,
    },
    id,
    raw: undefined,
    stop: undefined,
    usage,
    total: counted?.total_tokens,
    transcript: chat.transcriptOf(recording),
    otherWay: isStreamed(recording)
      ? wholeOf(asWhole(chat.chunksOf(recording)))
      : streamOf([{ data: asChunk(recording.response.body) }], 'data: [DONE]\n\n'),
  }
}

/** Sources are beside the reply, whose text cites them by number; every call is a search. */
function fromPerplexity(recording: Recording): Expected {
  const expected = fromChat(recording)
  const { reply, usage } = expected
  return {
    ...expected,
    reply: { ...reply, citations: chat.marksIn(recording, reply.text) },
    usage: { ...usage, searches: 1 },
    // A whole reply has the positions of its marks; not every stream does.
    ...(!isStreamed(recording) && { otherWay: streamOf([{ data: withMessage(recording.response.body) }]) }),
    ...(isStreamed(recording) && {
      replyOtherWay: { ...reply, citations: chat.marksIn(asWholeOf(recording), reply.text) },
    }),
  }
}

/** A chunk that repeats earlier content. */
function withMessage(whole: Body): Body {
  const { choices, ...facts } = asChunk(whole)
  return { ...facts, choices: choices.map((choice: Body) => ({ ...choice, message: choice.delta })) }
}

function asWholeOf(recording: Recording): Recording {
  return { ...recording, response: { status: 200, headers: {}, body: asWhole(chat.chunksOf(recording)) } }
}

/** The usage a provider of Chat Completions sent last; Groq has a place of its own for it. */
export function lastUsage(recording: Recording): Body {
  const bodies = isStreamed(recording) ? chat.chunksOf(recording) : [recording.response.body]
  return bodies.map(({ usage, x_groq }) => usage ?? x_groq?.usage).findLast(Boolean)
}

function asWhole(chunks: Body[]): Body {
  const { created = 0 } = chunks[0]
  const whole = chat.joined(chunks)
  for (const { logprobs } of whole.choices) if (logprobs) logprobs.refusal ??= null
  return { created, ...whole, object: 'chat.completion' }
}

function asChunk({ choices, ...facts }: Body): Body {
  return {
    ...facts,
    object: 'chat.completion.chunk',
    choices: choices.map(({ message, ...choice }: Body) => {
      const calls = message.tool_calls?.map((call: Body, index: number) => ({ index, ...call }))
      return { ...choice, delta: { ...message, tool_calls: calls } }
    }),
  }
}

function fromMessages(recording: Recording): Expected {
  const message = messages.assembled(recording)
  const facts = messages.readMessage(message)
  const { usage } = message
  const compacted = (usage.iterations ?? []).filter(({ type }: Body) => type === 'compaction')
  return {
    reply: {
      ...emptyReply,
      text: facts.text.map(({ text }) => text).join(''),
      reasoning: facts.reasoning.flatMap(({ text }) => text ?? []).join('\n\n'),
      refusal: facts.refusal.join(''),
      calls: facts.calls.map(({ id, name, input }) => ({ id, name, arguments: input })),
      signatures: facts.reasoning.flatMap(({ signature, encrypted }) => signature || encrypted || []).sort(),
      citations: placed(facts.text),
      searches: facts.searches.map(({ query, results }) => ({ query, results })),
      opaque: facts.opaque,
      finish: finishInChat(facts.finish),
    },
    id: facts.id,
    raw: facts.raw,
    stop: facts.stop,
    usage: facts.usage,
    total: [usage, ...compacted].reduce((sum, one) => sum + tokensOf(one), 0),
    otherWay: isStreamed(recording) ? wholeOf(message) : streamOf(messages.framesOf(message)),
  }
}

function tokensOf(usage: Body): number {
  const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens } = usage
  return input_tokens + (cache_read_input_tokens ?? 0) + (cache_creation_input_tokens ?? 0) + output_tokens
}

function fromGemini(recording: Recording): Expected {
  const chunks = gemini.chunksOf(recording)
  const facts = gemini.readIndependently(chunks)
  return {
    reply: {
      ...emptyReply,
      text: facts.text,
      reasoning: facts.reasoning,
      calls: facts.calls.map(({ name, arguments: args, id }) => ({ id: id ?? 'made up', name, arguments: args })),
      signatures: facts.signatures.toSorted(),
      citations: facts.citations.map(({ url = '', title = url, start = 0, end = 0 }) => ({ url, title, start, end })),
      searches: facts.searches.map((query) => ({ query, results: undefined })),
      opaque: facts.opaque,
      media: facts.media.flatMap(({ data }) => data ?? []),
      logprobs: facts.logprobs.length,
      finish: facts.finish,
    },
    id: facts.id,
    raw: facts.raw,
    stop: undefined,
    usage: facts.usage,
    total: chunks.at(-1).usageMetadata?.totalTokenCount,
    otherWay: isStreamed(recording)
      ? wholeOf(gemini.joined(chunks))
      : streamOf(recordedEvents({ ...recording, response: { ...recording.response, body: chunks } })),
  }
}
