import type { Usage } from '../../../src/core/usage.ts'
import type { Body } from './replay-answers.ts'

/** The content of a reply for a client of Chat Completions, in one form for all providers. */
export type ReplyFacts = {
  text: string
  reasoning: string
  refusal: string
  /** `arguments`: the text as it came, or its value where the wire has no text. */
  calls: { id: string; name: string; arguments: unknown }[]
  signatures: string[]
  citations: { url: string; title: string; start: number; end: number }[]
  searches: { query: unknown; results: unknown }[]
  opaque: unknown[]
  /** Base64 of audio and images. */
  media: string[]
  /** Tokens whose probabilities are given. */
  logprobs: number
  finish: string
}

/** A reply without content. */
export const emptyReply: ReplyFacts = {
  text: '',
  reasoning: '',
  refusal: '',
  calls: [],
  signatures: [],
  citations: [],
  searches: [],
  opaque: [],
  media: [],
  logprobs: 0,
  finish: '',
}

/** How a client of Chat Completions learns why a reply ended. */
export function finishInChat(finish: string): string {
  return { refusal: 'content_filter', pause: 'stop' }[finish] ?? finish
}

/** Counts by disjoint class, none of them zero; `cache_write` is the sum of writes. */
export type Counts = { [name: string]: number }

/** The chunks of a stream, and whether it ended as a success. */
export function chunksIn(text: string): { chunks: Body[]; done: boolean } {
  const data = text
    .split('\n\n')
    .filter(Boolean)
    .map((frame) => frame.replace(/^data: /, ''))
  return {
    chunks: data.filter((one) => one !== '[DONE]').map((one) => JSON.parse(one)),
    done: data.at(-1) === '[DONE]',
  }
}

/** The whole reply that a client puts together from chunks. */
export function gathered(chunks: readonly Body[]): Body {
  const message: Body = {}
  const choice: Body = { index: 0, message }
  const whole: Body = { choices: [choice] }
  for (const { choices, usage, ...facts } of chunks) {
    Object.assign(whole, facts, usage && { usage })
    for (const { index, delta, logprobs, ...ending } of choices) {
      if (index !== 0) continue
      grow(message, delta)
      if (logprobs) grow(choice, { logprobs })
      for (const [name, value] of Object.entries(ending)) if (value !== null) choice[name] = value
    }
  }
  return whole
}

/** The content of a whole reply; `textual`: tool arguments are compared letter by letter. */
export function factsOf({ choices }: Body, textual: boolean): ReplyFacts {
  const { message, finish_reason, logprobs } = choices.find(({ index }: Body) => index === 0)
  const details: Body[] = message.reasoning_details ?? []
  const replayed: Body[] = (message.replay_parts ?? []).map(({ part }: Body) => part)
  const calls: Body[] = message.tool_calls ?? []
  return {
    text: message.content ?? '',
    reasoning: message.reasoning_content || message.reasoning || detailed(details),
    refusal: message.refusal ?? '',
    calls: [
      ...calls.map(({ id, function: called, custom }) => ({
        id,
        name: (called ?? custom).name,
        arguments: custom?.input ?? (textual ? called.arguments : JSON.parse(called.arguments)),
      })),
      ...(message.function_call ? [{ id: 'made up', ...message.function_call }] : []),
    ],
    signatures: [
      ...details.flatMap(({ signature, data }) => signature || data || []),
      ...calls.flatMap(({ extra_content = {} }) =>
        Object.values<Body>(extra_content).map(({ thought_signature }) => thought_signature),
      ),
    ].sort(),
    citations: (message.annotations ?? []).flatMap(({ url_citation: cited }: Body) =>
      cited ? { url: cited.url, title: cited.title, start: cited.start_index, end: cited.end_index } : [],
    ),
    searches: replayed.filter(({ type }) => type === 'search').map(({ query, results }) => ({ query, results })),
    opaque: replayed.filter(({ type }) => type === 'opaque').map(({ body }) => body),
    media: [
      ...(message.audio ? [message.audio.data] : []),
      ...(message.images ?? []).map(({ image_url }: Body) => image_url.url.replace(/^data:[^,]*,/, '')),
    ],
    logprobs: logprobs?.content?.length ?? 0,
    finish: finish_reason,
  }
}

/** Usage in the totals of Chat Completions as disjoint classes. */
export function countsIn(usage: Body): Counts {
  const prompt = usage.prompt_tokens_details ?? {}
  const completion = usage.completion_tokens_details ?? {}
  const { cached_tokens = 0, cache_write_tokens = 0, audio_tokens: audioIn = 0, image_tokens: seen = 0 } = prompt
  const { reasoning_tokens = 0, audio_tokens: audioOut = 0, image_tokens: drawn = 0 } = completion
  return nonZero({
    input: usage.prompt_tokens - cached_tokens - cache_write_tokens - audioIn - seen,
    cache_read: cached_tokens,
    cache_write: cache_write_tokens,
    input_audio: audioIn,
    input_image: seen,
    output: usage.completion_tokens - reasoning_tokens - audioOut - drawn,
    reasoning: reasoning_tokens,
    output_audio: audioOut,
    output_image: drawn,
    searches: usage.server_tool_use_details?.web_search_requests ?? 0,
  })
}

/** Neutral classes with the writes summed up, without those that are zero, nor how the call was served. */
export function countsOf({ modes, ...usage }: { [name: string]: number } | Usage): Counts {
  const { cache_write_5m = 0, cache_write_1h = 0, reported_cost, ...others } = usage as Counts
  return nonZero({ ...others, cache_write: cache_write_5m + cache_write_1h })
}

/** The sum of all classes that count tokens. */
export function tokensIn(counts: Counts): number {
  const { searches, file_searches, seconds, containers, drawing_input, drawing_output, ...tokens } = counts
  return Object.values(tokens).reduce((sum, count) => sum + count, 0)
}

function nonZero(counts: Counts): Counts {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0))
}

function detailed(details: readonly Body[]): string {
  return details.map(({ text, summary }) => text ?? summary ?? '').join('')
}

/** Texts are joined, lists grow, numbered items grow in their place, anything else is replaced. */
function grow(into: Body, delta: Body): void {
  for (const [name, piece] of Object.entries<Body>(delta)) {
    if (piece === null || piece === undefined) continue
    if (name === 'tool_calls') for (const call of piece) growCall(into, call)
    else if (Array.isArray(piece)) into[name] = [...(into[name] ?? []), ...piece]
    else if (typeof piece === 'object') {
      into[name] ??= {}
      grow(into[name], piece)
    } else if (replaced.has(name)) into[name] = piece
    else into[name] = typeof piece === 'string' ? (into[name] ?? '') + piece : piece
  }
}

const replaced = new Set(['role', 'id', 'type'])

function growCall(into: Body, { index, ...piece }: Body): void {
  into.tool_calls ??= []
  into.tool_calls[index] ??= {}
  grow(into.tool_calls[index], piece)
}
