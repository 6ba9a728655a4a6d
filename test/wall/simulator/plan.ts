import type { Answer, Asked } from './answer.ts'
import type { Failure, Format, StreamParts } from './format.ts'

/**
 * One thing that happens to a response: text is sent, time passes (milliseconds at factor 1), the connection breaks, or nothing
 * more comes until the gateway leaves. A response whose steps are over ends.
 */
export type Step = string | { wait: number } | 'cut' | 'silent'

/** What happens to a request: a response, in steps, or a connection that is reset before there is one. */
export type Plan = 'reset' | { status: number; headers: Record<string, string>; before?: Step[]; steps: Step[] }

/** A request as a fault sees it. */
export type Ask = {
  format: Format
  asked: Asked
  answer: Answer
  /** The events of the answer; absent where it is asked for as a whole. */
  stream: StreamParts | undefined
  /** How many requests for this model the same caller made before. */
  earlier: number
  /** How long ago the first of them came. Milliseconds at factor 1. */
  sinceFirst: number
  /** Whether other requests came over this connection before. */
  isReused: boolean
  /** The wait that a response names, with the factor of time. Seconds. */
  seconds(atFactor1: number): string
}

/** The same request with another answer. */
export function withAnswer(ask: Ask, answer: Answer): Ask {
  return { ...ask, answer, stream: ask.stream && ask.format.stream(answer, ask.asked) }
}

/** A healthy response. */
export function healthy(ask: Ask): Plan {
  return { ...begun(ask), steps: stepsOf(ask) }
}

/** A healthy response with other steps. */
export function withSteps(ask: Ask, steps: Step[], more: { before?: Step[] } = {}): Plan {
  return { ...begun(ask), ...more, steps }
}

/** All that a healthy response sends. */
export function stepsOf(ask: Ask): Step[] {
  if (!ask.stream) return [JSON.stringify(ask.format.whole(ask.answer))]
  const { opening, pieces, closing, finish, done } = ask.stream
  return [...opening, ...pieces, ...closing, ...finish, ...done]
}

/** What comes until so many tokens have been sent; of a whole answer, as large a share of its text. */
export function stepsUntil(ask: Ask, tokens: number): Step[] {
  if (ask.stream) return [...ask.stream.opening, ...ask.stream.pieces.slice(0, tokens)]
  const [text] = stepsOf(ask) as [string]
  return [text.slice(0, Math.floor((text.length * tokens) / ask.answer.pieces.length))]
}

/** A response without success. */
export function refusal({ format, seconds }: Ask, failure: Failure, retryAfter?: number): Plan {
  const { status, body } = format.error(failure)
  const headers = {
    'content-type': 'application/json',
    ...(retryAfter !== undefined && { 'retry-after': seconds(retryAfter) }),
    ...(status >= 300 && status < 400 && { location: '/elsewhere' }),
  }
  return { status, headers, steps: [JSON.stringify(body)] }
}

function begun({ stream }: Ask) {
  const type = stream ? 'text/event-stream; charset=utf-8' : 'application/json'
  return { status: 200, headers: { 'content-type': type, ...(stream && { 'cache-control': 'no-cache' }) } }
}
