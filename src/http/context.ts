import type { Services } from '../call/types.ts'
import type { Sampling } from '../core/trace.ts'
import type { Log } from '../observe/log.ts'
import type { BodyLimits } from './bodies/request-body.ts'
import type { Origins } from './cors.ts'
import type { RunningRequests } from './running-requests.ts'

/** The process as the HTTP server sees it; functions are called for every request. */
export type ServerContext = {
  /** Returns the services of the current snapshot. */
  services(): Services
  bodyLimits(): BodyLimits
  /** The origins whose web pages may use the service. */
  corsOrigins: Origins
  log: Log
  /** Called with everything that is thrown while a request is handled. */
  onThrown?(thrown: unknown): void
  /** Called with the error of a call that failed before its answer began. */
  onCallFailed?(thrown: unknown): void
  /** Sampling that decides which traces are recorded. */
  sampling: Sampling
  /** Returns true where new calls are refused. */
  stopping(): boolean
  running: RunningRequests
  /** Returns the maximum time for which a client may stall while it sends or reads. Milliseconds. */
  clientTimeoutMs(): number
  /** Returns how many bytes of a waiting answer a client takes in a second at least. */
  clientMinRate(): number
  /** Time for which a stream that has begun may be silent before a keep-alive is sent. Milliseconds. */
  keepAliveMs: number
  /** Returns true where a silent stream is begun before it is known how the call ends. */
  keepsAliveEarly(): boolean
}
