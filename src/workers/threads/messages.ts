import { type ErrorCode, type ErrorDetails, RouterError } from '../../core/errors.ts'
import type { RefusedCall } from '../../core/refused-call.ts'
import type { Sampling } from '../../core/trace.ts'
import type { JsonAnswer, JsonRequest, JsonRoute } from '../../http/types.ts'
import type { Answer, Held, Need, Use } from '../../lending/account.ts'
import type { FileProblem, Problem } from '../../manifest/check/problem.ts'
import type { LogLevels } from '../../observe/log.ts'
import type { WorkerFacts } from '../../observe/worker-metrics.ts'
import type { Finding } from '../../routing/findings.ts'
import type { RememberedSignatures } from '../../routing/signature-cache.ts'
import type { ChosenFiles } from '../../snapshot/snapshot.ts'
import type { SentRows } from './sent-rows.ts'

/** A RouterError as it travels between threads. */
export type SentError = { code: ErrorCode; message: string; details: ErrorDetails }

/** What a line tells the books. Numbers identify what is answered: a message with rows as a whole. */
export type Said =
  | { kind: 'rows'; id: number; rows: SentRows }
  | { kind: 'uses'; uses: Use[] }
  | { kind: 'lend'; id: number; needs: readonly Need[] }
  | { kind: 'giveBack'; account: string; amount: bigint; closes: boolean }
  | { kind: 'held'; id: number; held: Held[] }
  | { kind: 'signatures'; remembered: RememberedSignatures }
  | { kind: 'log'; lines: string }
  | { kind: 'damaged'; message: string }
  | { kind: 'refused'; call: RefusedCall }
  | { kind: 'found'; findings: readonly Finding[] }
  | { kind: 'facts'; facts: WorkerFacts }
  | { kind: 'ask'; id: number; route: string; request: Omit<JsonRequest, 'readBody'> }
  | { kind: 'body'; id: number; body?: unknown; error?: SentError }
  | { kind: 'pull'; id: number }
  | { kind: 'drop'; id: number }
  | { kind: 'prepared'; generation: number; problems: readonly Problem[] }
  | { kind: 'listening'; url: string }
  | { kind: 'stopped' }

/** What the books tell a line. */
export type Told =
  | { kind: 'settled'; ids: number[] }
  | { kind: 'unsettled'; id: number; refused: { index: number; error: SentError }[] }
  | { kind: 'lent'; id: number; answer: Answer | Error }
  | { kind: 'recall'; id: number; accounts: readonly string[] }
  | { kind: 'signatures'; remembered: RememberedSignatures }
  | { kind: 'found'; findings: readonly Finding[] }
  | { kind: 'key'; hash: Uint8Array | undefined }
  | { kind: 'organization'; id: string }
  | { kind: 'failure'; failure: string | undefined }
  | { kind: 'readBody'; id: number }
  | { kind: 'answer'; id: number; answer?: Omit<JsonAnswer, 'body'>; streams?: boolean; error?: SentError }
  | { kind: 'piece'; id: number; text?: string; error?: SentError }
  | ({ kind: 'prepare'; generation: number } & ChosenFiles)
  | { kind: 'swap'; generation: number }
  | { kind: 'problems'; problems: readonly FileProblem[] }
  | { kind: 'open' }
  | { kind: 'settle' }
  | { kind: 'watchLoop' }
  | { kind: 'retire' }
  | { kind: 'stop'; deadlineMs: number }

/** How a line starts. */
export type LineSetup = ChosenFiles & {
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
  /** How many lines share the limits of calls at once. */
  workers: number
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
