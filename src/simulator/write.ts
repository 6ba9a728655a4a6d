import type { Answer } from './answer.ts'
import type { Refusal, SimulatedRequest } from './request.ts'

/** What names a completion; `created` counts Unix seconds. */
export type Named = { id: string; created: number; model: string }

/** An answer as one `chat.completion`. */
export function completionOf(said: Answer, { n }: SimulatedRequest, named: Named): object {
  const { reasoning, refusal, text, calls, finish } = said
  const message = {
    role: 'assistant',
    content: text.length > 0 ? text.join('') : null,
    refusal: refusal.length > 0 ? refusal.join('') : null,
    ...(reasoning.length > 0 && { reasoning_content: reasoning.join('') }),
    annotations: [],
    ...(calls.length > 0 && { tool_calls: calls.map(callOf) }),
  }
  const choices = times(n).map((index) => ({ index, message, logprobs: null, finish_reason: finish }))
  return { ...named, object: 'chat.completion', choices, usage: usageOf(said, n), system_fingerprint: 'fp_simulator' }
}

/** An answer as the `chat.completion.chunk`s of a stream: one token each, the choices in turn. */
export function chunksOf(said: Answer, { n, includeUsage }: SimulatedRequest, named: Named): object[] {
  const deltas = deltasOf(said)
  const chunk = (choices: object[], usage: object | null = null) => ({
    ...named,
    object: 'chat.completion.chunk',
    choices,
    system_fingerprint: 'fp_simulator',
    ...(includeUsage && { usage }),
  })
  const pieces = deltas.flatMap((delta) =>
    times(n).map((index) => chunk([{ index, delta, logprobs: null, finish_reason: null }])),
  )
  const ends = times(n).map((index) => chunk([{ index, delta: {}, logprobs: null, finish_reason: said.finish }]))
  return [...pieces, ...ends, ...(includeUsage ? [chunk([], usageOf(said, n))] : [])]
}

function deltasOf({ reasoning, refusal, text, calls }: Answer): object[] {
  return [
    { role: 'assistant', content: calls.length > 0 ? null : '', refusal: null },
    ...reasoning.map((reasoning_content) => ({ reasoning_content })),
    ...refusal.map((refusal) => ({ refusal })),
    ...text.map((content) => ({ content })),
    ...calls.flatMap((call, index) => callDeltas(call, index)),
  ]
}

type Call = Answer['calls'][number]

/** The name first, then the arguments in two halves, as models write them bit by bit. */
function callDeltas(call: Call, index: number): object[] {
  const { arguments: args } = call
  const half = Math.ceil(args.length / 2)
  const pieces = [args.slice(0, half), args.slice(half)].filter((piece) => piece !== '')
  return [
    { tool_calls: [{ index, ...callOf({ ...call, arguments: '' }) }] },
    ...pieces.map((piece) => ({ tool_calls: [{ index, ...innerOf({ kind: call.kind, arguments: piece }) }] })),
  ]
}

function callOf({ id, kind, name, arguments: args }: Call): object {
  return { id, type: kind, ...innerOf({ kind, name, arguments: args }) }
}

function innerOf({ kind, name, arguments: text }: Pick<Call, 'kind' | 'arguments'> & { name?: string }): object {
  const named = name === undefined ? {} : { name }
  return kind === 'custom' ? { custom: { ...named, input: text } } : { function: { ...named, arguments: text } }
}

function usageOf({ usage: { prompt, completion, reasoning } }: Answer, n: number): object {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion * n,
    total_tokens: prompt + completion * n,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reasoning * n, audio_tokens: 0 },
  }
}

/** A refusal in the error shape of the API. */
export function errorOf({ status, message, param, code }: Refusal): object {
  const type = status >= 500 ? 'server_error' : status === 429 ? 'rate_limit_error' : 'invalid_request_error'
  return { error: { message, type, param, code } }
}

function times(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}
