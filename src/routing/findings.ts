import type { CircuitFacts } from './health/circuit.ts'
import type { CircuitName } from './health/circuits.ts'

/** The state of a circuit; without facts it is closed. */
export type CircuitFinding = CircuitName & {
  kind: 'circuit'
  at: number
  reason: string | undefined
  /** Time at which it last stopped to be closed. */
  since?: number | undefined
  facts: CircuitFacts | undefined
}

/** A call that had no other target began although the circuit is open: the pace of such calls is one for all event loops. */
export type PacedFinding = CircuitName & { kind: 'paced'; at: number }

/** The target that a key is kept at. */
export type KeptFinding = { kind: 'kept'; at: number; key: string; target: string; until: number }

/** Measurements of a target since the last report, by the name of its gauge: the last time, the largest value, and the mean. */
export type SpeedFinding = {
  kind: 'speed'
  at: number
  target: string
  gauge: string
  count: number
  most: number
  mean: number
}

/**
 * Facts about providers that one event loop has found out and shares with the others. Times are milliseconds of the clock that they share.
 */
export type Finding = CircuitFinding | PacedFinding | KeptFinding | SpeedFinding

/** Returns the time of a finding, which is later than the one it follows, also where the clock shows the same. */
export function timeAfter(before: number, now: number): number {
  return Math.max(now, before + minMs)
}

const minMs = 0.001

/** `performance.now()` begins with the thread, the system's monotonic clock does not. */
const clockOffset = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** Returns the milliseconds of a monotonic clock that all threads and processes of a machine share. */
export function sharedClock(): number {
  return performance.now() + clockOffset
}
