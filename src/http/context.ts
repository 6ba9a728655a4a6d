import type { Services } from '../call/types.ts'
import type { Sampling } from '../core/trace.ts'
import type { Log } from '../observe/log.ts'
import type { BodyLimits } from './bodies/request-body.ts'
import type { Origins } from './cors.ts'
import type { RunningRequests } from './running-requests.ts'

/** The process as the HTTP server sees it; functions are called for every request. */
export type ServerContext = {
  /** The services of the current snapshot. */
  services(): Services
  bodyLimits(): BodyLimits
  /** The origins whose web pages may use the service. */
  corsOrigins: Origins
  log: Log
  /** Hears of everything that is thrown while a request is handled. */
  onThrown?(thrown: unknown): void
  /** Hears what a call ended with that failed before its answer began. */
  onCallFailed?(thrown: unknown): void
  /** Which traces are recorded. */
  sampling: Sampling
  /** Whether new calls are refused. */
  stopping(): boolean
  running: RunningRequests
  /** How long a client may stall while it sends or reads. Milliseconds. */
  patienceMs: number
  /** How long a stream that has begun may be silent before a keep-alive is sent. Milliseconds. */
  keepAliveMs: number
  /** Whether a silent stream is begun before it is known how the call ends. */
  keepsAliveEarly(): boolean
}
