import type { Need, Reserved } from '../../accounts/account.ts'
import type { AccountMemory } from '../../accounts/memory.ts'
import { type ErrorCode, type ErrorDetails, RouterError } from '../../core/errors.ts'
import type { RefusedCall } from '../../core/refused-call.ts'
import type { Sampling } from '../../core/trace.ts'
import type { JsonAnswer, JsonRequest, JsonRoute } from '../../http/types.ts'
import type { FileProblem, Problem } from '../../manifest/check/problem.ts'
import type { RowsText } from '../../money/ledger-entries.ts'
import type { LogLevels } from '../../observe/log.ts'
import type { WorkerFacts } from '../../observe/worker-metrics.ts'
import type { Finding } from '../../routing/findings.ts'
import type { RememberedSignatures } from '../../routing/signature-cache.ts'
import type { ChosenFiles } from '../../snapshot/snapshot.ts'

/** A RouterError as it travels between threads. */
export type SentError = { code: ErrorCode; message: string; details: ErrorDetails }

/**
 * A message from a worker to the main thread. Numbers identify what is answered: a message with rows as a whole; a `reserve` without one
 * asks for more in the background. Either side pulls the pieces of bodies.
 */
export type WorkerMessage =
  | { kind: 'rows'; id: number; rows: RowsText }
  | { kind: 'reserve'; id?: number; needs: readonly Need[] }
  | { kind: 'signatures'; remembered: RememberedSignatures }
  | { kind: 'log'; lines: string }
  | { kind: 'damaged'; message: string }
  | { kind: 'refused'; call: RefusedCall }
  | { kind: 'found'; findings: readonly Finding[] }
  | { kind: 'facts'; facts: WorkerFacts }
  | { kind: 'ask'; id: number; route: string; request: Omit<JsonRequest, 'readBody'> }
  | { kind: 'piece'; id: number; body?: unknown; error?: SentError }
  | { kind: 'pull'; id: number; isOver?: true }
  | { kind: 'prepared'; generation: number; problems: readonly Problem[] }
  | { kind: 'listening'; url: string }
  | { kind: 'stopped' }

/** A change in the store: a key, by its hash (or all), the rules of an organization, or why no row can be written. */
export type StoreChange = { key: Uint8Array | undefined } | { organization: string } | { failure: string | undefined }

/** A message from the main thread to a worker. A `stop` without a deadline lets the calls on open connections end. */
export type MainMessage =
  | { kind: 'settled'; ids: number[]; refused?: { index: number; error: SentError }[] }
  | { kind: 'reserved'; id: number; reserved?: Reserved; error?: SentError }
  | { kind: 'signatures'; remembered: RememberedSignatures }
  | { kind: 'found'; findings: readonly Finding[] }
  | { kind: 'changed'; change: StoreChange }
  | { kind: 'pull'; id: number }
  | { kind: 'answer'; id: number; answer?: Omit<JsonAnswer, 'body'>; streams?: boolean; error?: SentError }
  | { kind: 'piece'; id: number; text?: string; error?: SentError }
  | ({ kind: 'prepare'; generation: number } & ChosenFiles)
  | { kind: 'swap'; generation: number }
  | { kind: 'problems'; problems: readonly FileProblem[] }
  | { kind: 'open' }
  | { kind: 'settle' }
  | { kind: 'watchLoop' }
  | { kind: 'stop'; deadlineMs: number | undefined }

/** Setup of a worker. */
export type WorkerSetup = ChosenFiles & {
  configPath: string
  generation: number
  /** The problems of files that are not in use. */
  problems: readonly FileProblem[]
  cacheFolder: string | undefined
  env: NodeJS.ProcessEnv
  host: string
  port: number
  /** Whether the management API has the address of the calls. */
  servesManagement: boolean
  storeUrl: string
  logLevels: LogLevels
  sampling: Sampling
  keepAliveMs: number
  /** The number of workers that share the limits of calls at once. */
  workers: number
  /** The accounts that all threads share. */
  accounts: AccountMemory
}

/** The form of an error for another thread. */
export function sentError(error: RouterError): SentError {
  const { code, message, cause, ...details } = error
  const reason = cause instanceof Error ? cause : undefined
  return { code, message, details: { ...details, ...(reason && { cause: new Error(reason.message) }) } }
}

/** An error that another thread sent. */
export function receivedError({ code, message, details }: SentError): RouterError {
  return new RouterError(code, message, details)
}

/** How a route is named between threads. */
export function routeName({ method = 'get', path }: Pick<JsonRoute, 'method' | 'path'>): string {
  return `${method} ${path}`
}
