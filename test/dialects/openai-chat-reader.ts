import { type Recording, recordedEvents } from '../helpers/recordings.ts'

// The independent reader of Chat Completions: the contents of a recording, read without the mappings.

// biome-ignore lint/suspicious/noExplicitAny: recorded bodies have the shape of their sender.
type Body = any

/** All providers with recordings in this format. */
export const speakers = [
  'openai-chat',
  'groq',
  'deepseek',
  'mistral',
  'openrouter',
  'xai',
  'together',
  'openai-compatible',
  'azure-openai',
  'perplexity',
]
/** The contents of a recorded reply. */
export type Facts = {
  id: string | undefined
  model: string | undefined
  text: string
  reasoning: string
  refusal: string
  calls: { id: string; name: string; arguments: string }[]
  signatures: string[]
  citations: { url: string; title: string; start: number; end: number }[]
  audio: string[]
  logprobs: number
  finish: string
  raw: string
  usage: { [name: string]: number }
}

/** Whether the recording is a stream. */
export function isStream({ response }: Recording): boolean {
  return response.sse !== undefined
}

/** The chunks of a recorded stream. */
export function chunksOf(recording: Recording): Body[] {
  return recordedEvents(recording)
    .filter(({ data }) => data !== '[DONE]')
    .map(({ data }) => JSON.parse(data))
}

/** The contents of a recorded reply, whole or streamed; of several choices, the first. */
export function readIndependently(recording: Recording): Facts {
  const chunks = isStream(recording) ? chunksOf(recording) : [recording.response.body]
  const choices: Body[] = chunks.flatMap(({ choices = [] }) => choices.filter(({ index }: Body) => !index))
  const contents: Body[] = choices.map(({ delta, message }) => (isStream(recording) ? delta : message) ?? {})
  const pieces = contents.flatMap(({ content }) =>
    typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []),
  )
  const details: Body[] = contents.flatMap(({ reasoning_details }) => reasoning_details ?? [])
  const finish = choices.map(({ finish_reason }) => finish_reason).findLast(Boolean)
  const calls = callsIn(contents, finish)
  const counted = chunks.map(({ usage, x_groq }) => usage ?? x_groq?.usage).findLast(Boolean)
  return {
    id: chunks.map(({ id }) => id).find(Boolean),
    model: chunks.map(({ model }) => model).findLast(Boolean),
    text: joinedText(pieces.filter(({ type }) => type === 'text')),
    reasoning: contents.map((message) => thoughtIn(message)).join(''),
    refusal: contents.map(({ refusal }) => refusal ?? '').join(''),
    calls,
    signatures: details.flatMap(({ signature, data }) => signature ?? data ?? []).filter(Boolean),
    citations: contents.flatMap(({ annotations }) =>
      (annotations ?? []).flatMap(({ url_citation: cited }: Body) =>
        cited ? { url: cited.url, title: cited.title, start: cited.start_index, end: cited.end_index } : [],
      ),
    ),
    audio: contents.flatMap(({ audio }) => audio?.data ?? []),
    logprobs: choices.flatMap(({ logprobs }) => logprobs?.content ?? []).length,
    finish: finish === 'function_call' ? 'tool_calls' : finish,
    raw: finish,
    usage: counted ? usageOf(counted, recording) : {},
  }
}

/** The transcript of the audio in a reply. */
export function transcriptOf(recording: Recording): string {
  const chunks = isStream(recording) ? chunksOf(recording) : [recording.response.body]
  const contents: Body[] = chunks.flatMap(({ choices = [] }) =>
    choices.map(({ delta, message }: Body) => delta ?? message),
  )
  return contents.map((message) => message?.audio?.transcript ?? '').join('')
}

/** The sources of Perplexity that the text cites by number, and their positions. */
export function marksIn(recording: Recording, text: string): Facts['citations'] {
  const chunks = isStream(recording) ? chunksOf(recording) : [recording.response.body]
  const { citations: urls, search_results: results = [] } = chunks.at(-1)
  return [...text.matchAll(/\[(\d+)\]/g)].map(({ 0: mark, 1: number, index }) => {
    const position = Number(number) - 1
    const start = [...text.slice(0, index)].length
    const range = chunks.every(({ choices: [choice] }) => choice.message) ? { start, end: start + mark.length } : {}
    return { url: urls[position], title: results[position]?.title ?? urls[position], start: 0, end: 0, ...range }
  })
}

function joinedText(pieces: Body[]): string {
  return pieces.map(({ text }) => text).join('')
}

function thoughtIn({ reasoning, reasoning_content, reasoning_details, content }: Body): string {
  if (Array.isArray(content)) return joinedText(content.flatMap(({ thinking = [] }) => thinking))
  const detailed = (reasoning_details ?? []).map(({ text, summary }: Body) => text ?? summary ?? '').join('')
  return reasoning_content || reasoning || detailed
}

/** Saying nothing means a call without arguments, unless the reply broke off. */
function callsIn(contents: Body[], finish: string): Facts['calls'] {
  const calls: Facts['calls'] = []
  for (const { tool_calls, function_call } of contents) {
    for (const [position, part] of (tool_calls ?? []).entries()) {
      calls[part.index ?? position] ??= { id: '', name: '', arguments: '' }
      const call = calls[part.index ?? position] as Facts['calls'][number]
      call.id ||= part.id ?? ''
      call.name ||= part.function.name ?? ''
      call.arguments += part.function.arguments ?? ''
    }
    if (function_call) calls.push({ id: 'made up', ...function_call })
  }
  if (finish !== 'length') for (const call of calls) call.arguments ||= '{}'
  return calls
}

/**
 * The providers that count reasoning beside the completion, and audio or cached tokens beside the prompt. Others do so without a sign of
 * it in their total: without a manifest that says so, a part that is more than its total is none, but for reasoning.
 */
const reasoningBeside = /^xai\/|^openai-compatible\/reasoning__vercel-gateway\.gemini/
const audioBeside = /^mistral\//
/** Only their manifest says so. */
export const cacheBeside = /^azure-openai\/(cache|structured|tool-loop)__azure\.grok/

function usageOf(counts: Body, { case: name }: Recording): Facts['usage'] {
  const { prompt_tokens_details: prompt = {}, completion_tokens_details: completion = {} } = counts
  const cached = prompt?.cached_tokens ?? counts.cached_tokens ?? 0
  const reasoned = completion?.reasoning_tokens ?? 0
  const thought = reasoned > counts.completion_tokens && !reasoningBeside.test(name) ? 0 : reasoned
  const [inputAudio, outputAudio] = [prompt?.audio_tokens ?? 0, completion?.audio_tokens ?? 0]
  const written = prompt?.cache_write_tokens ?? 0
  const usage = {
    input:
      counts.prompt_tokens -
      (cacheBeside.test(name) ? 0 : cached) -
      written -
      (audioBeside.test(name) ? 0 : inputAudio),
    cache_read: cached,
    cache_write_5m: written,
    input_audio: inputAudio,
    output: counts.completion_tokens - outputAudio - (reasoningBeside.test(name) ? 0 : thought),
    reasoning: thought,
    output_audio: outputAudio,
    // OpenAI's search models search once per call without reporting it.
    searches: counts.server_tool_use_details?.web_search_requests ?? (/-search-(api|preview)/.test(name) ? 1 : 0),
    seconds: counts.prompt_audio_seconds ?? 0,
    reported_cost: counts.cost?.total_cost ?? counts.cost ?? (counts.cost_in_usd_ticks ?? 0) / 1e10,
  }
  return nonZero(usage)
}

/** Counts without those that are zero and without how the call was served. */
export function nonZero(usage: object): Facts['usage'] {
  return Object.fromEntries(
    Object.entries(usage).filter(([name, count]) => name !== 'modes' && name !== 'corrected' && count !== 0),
  )
}

/** The chunks of a stream as the whole answer they amount to. */
export function joined(chunks: Body[]): Body {
  const whole: Body = { choices: [{ index: 0, message: {} }] }
  const { message } = whole.choices[0]
  for (const { choices = [], usage, x_groq, ...facts } of chunks) {
    for (const [name, value] of Object.entries(facts)) if (value && !(name === 'id' && whole.id)) whole[name] = value
    const counted = usage ?? x_groq?.usage
    if (counted) whole.usage = counted
    for (const { index, delta = {}, finish_reason, logprobs } of choices) {
      if (index) continue
      if (finish_reason) whole.choices[0].finish_reason = finish_reason
      if (logprobs) grow(whole.choices[0], { logprobs })
      grow(message, delta)
    }
  }
  return whole
}

function grow(into: Body, delta: Body): void {
  for (const [name, piece] of Object.entries<Body>(delta)) {
    if (piece === null || name === 'role') continue
    if (name === 'tool_calls' || name === 'reasoning_details')
      for (const item of piece) growItem(made(into, name, []), item)
    else if (Array.isArray(piece)) into[name] = [...(Array.isArray(into[name]) ? into[name] : []), ...piece]
    else if (typeof piece === 'object') grow(made(into, name, {}), piece)
    else if (typeof piece === 'string')
      into[name] = Array.isArray(into[name]) ? textAfter(into[name], piece) : (into[name] ?? '') + piece
  }
}

function growItem(items: Body[], { index = 0, ...piece }: Body): void {
  const same = items.find((item) => item.index === index && (item.type ?? piece.type) === (piece.type ?? item.type))
  if (!same) items.push({ index, ...piece })
  else
    for (const [name, value] of Object.entries<Body>(piece)) {
      if (['id', 'type', 'format'].includes(name)) same[name] ||= value
      else if (name === 'function') grow(made(same, name, {}), value)
      else same[name] = (same[name] ?? '') + (value ?? '')
    }
}

function made(into: Body, name: string, empty: object): Body {
  into[name] ??= empty
  return into[name]
}

function textAfter(pieces: Body[], text: string): Body[] {
  return text ? [...pieces, { type: 'text', text }] : pieces
}
