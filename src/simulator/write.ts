import type { SimulatedReply } from './reply.ts'
import type { SimulatedError, SimulatedRequest } from './request.ts'

/** The members that all objects of one completion share; `created` counts Unix seconds. */
export type Head = { id: string; created: number; model: string }

/** A reply as one `chat.completion`. */
export function completionOf(reply: SimulatedReply, { n }: SimulatedRequest, head: Head): object {
  const { reasoning, refusal, text, calls, finish } = reply
  const message = {
    role: 'assistant',
    content: text.length > 0 ? text.join('') : null,
    refusal: refusal.length > 0 ? refusal.join('') : null,
    ...(reasoning.length > 0 && { reasoning_content: reasoning.join('') }),
    annotations: [],
    ...(calls.length > 0 && { tool_calls: calls.map(callOf) }),
  }
  const choices = times(n).map((index) => ({ index, message, logprobs: null, finish_reason: finish }))
  return { ...head, object: 'chat.completion', choices, usage: usageOf(reply, n), system_fingerprint: 'fp_simulator' }
}

/** A reply as the `chat.completion.chunk`s of a stream: one token each, the choices in turn. */
export function chunksOf(reply: SimulatedReply, { n, includeUsage }: SimulatedRequest, head: Head): object[] {
  const deltas = deltasOf(reply)
  const chunk = (choices: object[], usage: object | null = null) => ({
    ...head,
    object: 'chat.completion.chunk',
    choices,
    system_fingerprint: 'fp_simulator',
    ...(includeUsage && { usage }),
  })
  const pieces = deltas.flatMap((delta) =>
    times(n).map((index) => chunk([{ index, delta, logprobs: null, finish_reason: null }])),
  )
  const ends = times(n).map((index) => chunk([{ index, delta: {}, logprobs: null, finish_reason: reply.finish }]))
  return [...pieces, ...ends, ...(includeUsage ? [chunk([], usageOf(reply, n))] : [])]
}

function deltasOf({ reasoning, refusal, text, calls }: SimulatedReply): object[] {
  return [
    { role: 'assistant', content: calls.length > 0 ? null : '', refusal: null },
    ...reasoning.map((reasoning_content) => ({ reasoning_content })),
    ...refusal.map((refusal) => ({ refusal })),
    ...text.map((content) => ({ content })),
    ...calls.flatMap((call, index) => callDeltas(call, index)),
  ]
}

type Call = SimulatedReply['calls'][number]

/** The name first, then the arguments in two halves, as models stream them. */
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

function usageOf({ usage: { prompt, completion, reasoning } }: SimulatedReply, n: number): object {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion * n,
    total_tokens: prompt + completion * n,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reasoning * n, audio_tokens: 0 },
  }
}

/** An error in the API's format. */
export function errorOf({ status, message, param, code }: SimulatedError): object {
  const type = status >= 500 ? 'server_error' : status === 429 ? 'rate_limit_error' : 'invalid_request_error'
  return { error: { message, type, param, code } }
}

function times(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}
