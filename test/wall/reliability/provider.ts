import type { VirtualTime } from './virtual-time.ts'

/** Ways in which attempts fail. */
export const faults = ['500', '503', '529', '429', '429 with Retry-After', 'reset', 'timeout', 'cut'] as const
export type Fault = (typeof faults)[number]

export type Mode = 'streamed' | 'whole'

/** What an attempt comes to: an answer, an error response, a connection that breaks, or nothing at all. */
export type Outcome =
  | { kind: 'answer'; firstMs: number; lastMs: number }
  | { kind: 'cut'; firstMs: number; lastMs: number }
  | { kind: 'status'; status: number; headers: Record<string, string>; ms: number }
  | { kind: 'reset'; ms: number }
  | { kind: 'silence' }

/** Times in milliseconds. An answer that is not streamed comes when the last of a stream would. */
const answer = { firstMs: 500, lastMs: 2_000 } as const
const errorMs = 50
const resetMs = 20
const retryAfterSeconds = 2

/** Returns the outcome of an attempt that fails in this way, or does not. */
export function outcomeOf(fault: Fault, fails: boolean): Outcome {
  if (!fails) return { kind: 'answer', ...answer }
  if (fault === 'cut') return { kind: 'cut', firstMs: answer.firstMs, lastMs: 1_000 }
  if (fault === 'reset') return { kind: 'reset', ms: resetMs }
  if (fault === 'timeout') return { kind: 'silence' }
  const headers = fault === '429 with Retry-After' ? { 'retry-after': String(retryAfterSeconds) } : {}
  return { kind: 'status', status: Number.parseInt(fault, 10), headers: headers as Record<string, string>, ms: errorMs }
}

/** Decides what the nth attempt of a client's call comes to: the same for whoever makes it, and at whichever provider. */
export type Decide = (call: CallId, attempt: number) => Outcome

export type CallId = { client: number; call: number }

/** Attempts that fail at random, as often as `rate` says. */
export function failingAtRandom(fault: Fault, { rate, seed }: { rate: number; seed: number }): Decide {
  return ({ client, call }, attempt) => outcomeOf(fault, drawn([seed, client, call, attempt]) < rate)
}

/** Attempts that all fail until a time. */
export function failingUntil(fault: Fault, at: number, time: VirtualTime): Decide {
  return () => outcomeOf(fault, time.now < at)
}

/** A number from 0 to 1 for each list of integers. */
function drawn(numbers: readonly number[]): number {
  let mixed = 0x9e3779b9
  for (const number of numbers) {
    mixed = Math.imul(mixed ^ number, 0x85ebca6b)
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
    mixed ^= mixed >>> 16
  }
  return (mixed >>> 0) / 4_294_967_296
}
