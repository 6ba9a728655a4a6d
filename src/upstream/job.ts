import { setTimeout } from 'node:timers/promises'
import { asRouterError, RouterError } from '../core/errors.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { Job } from '../manifest/operation.ts'
import { reportedFailureOf } from '../manifest/run/read-reply.ts'
import { runMapping } from '../manifest/run/run-mapping.ts'
import type { Target } from '../manifest/target.ts'
import { type AnswerBounds, parseObject, unreadable } from './answer-body.ts'
import type { HttpClient } from './http/types.ts'
import { reportedFailure } from './provider-error.ts'
import { sendRequest, textOf } from './provider-request.ts'

/** Options for waiting for a job. */
export type JobOptions = { signal: AbortSignal; bounds: AnswerBounds; httpClient: HttpClient }

/**
 * Returns the result of a job: asks for it at the pace that the manifest declares, until it is done, has failed or its time is over. A job
 * that is given up, or whose client leaves, is cancelled where the provider can do that. Throws RouterError.
 */
export async function resultOf(
  target: Target,
  job: Job,
  begun: JsonObject,
  { signal, ...options }: JobOptions,
): Promise<JsonObject> {
  const known = await doneIn(target, job, begun)
  if (known) return known
  const id = await idOf(target, job, begun)
  const deadline = performance.now() + job.withinMs
  let failures = 0
  try {
    for (let [waitMs, polls] = [job.everyMs, 0]; ; polls++) {
      if (polls === maxPolls) throw new Late(target.provider.slug)
      await pause(waitMs, deadline, target, signal)
      const answer = await ask(target, job, id, { signal, ...options }).catch((thrown) => {
        failures++
        const { retryAfterMs = 0 } = forgiven(thrown, failures, signal)
        waitMs = Math.max(job.everyMs * 2 ** failures, retryAfterMs)
      })
      if (!answer) continue
      failures = 0
      waitMs = job.everyMs
      const done = await doneIn(target, job, answer)
      if (done) return done
    }
  } catch (thrown) {
    if (signal.aborted || isLate(thrown) || failures >= maxFailures) cancel(target, job, id, options.httpClient)
    throw thrown
  }
}

/** Limit for manifests that state a long time and no pause between two questions. */
const maxPolls = 10_000

/** The failures in a row after which a job is given up; others pass, for the job goes on meanwhile. */
const maxFailures = 5

/** Returns a failure after which the job is asked for again. Throws a failure that another request cannot cure. */
function forgiven(thrown: unknown, failures: number, signal: AbortSignal): RouterError {
  const error = asRouterError(thrown)
  if (signal.aborted || failures >= maxFailures || !passing.has(error.code)) throw error
  return error
}

const passing: ReadonlySet<RouterError['code']> = new Set([
  'rate_limited',
  'provider_failed',
  'provider_overloaded',
  'provider_unreachable',
  'provider_timeout',
  'provider_cut',
])

async function ask(
  target: Target,
  { poll, hosts }: Job,
  id: string,
  { signal, bounds, httpClient }: JobOptions,
): Promise<JsonObject> {
  const sent = { method: 'GET' as const, ...addressOf(poll, id, hosts), accept: 'application/json', signal }
  const response = await sendRequest(target, sent, httpClient)
  return parseObject(target.provider, await textOf(target.provider, response, bounds.bytes), bounds)
}

/** Returns the address of a job: the id alone is a whole URL; elsewhere it is one segment of a path. */
function addressOf(
  template: string,
  id: string,
  hosts: Job['hosts'] = [],
): { path: string; hosts?: readonly string[] } {
  return template === '{id}' ? { path: id, hosts } : { path: template.replaceAll('{id}', encodeURIComponent(id)) }
}

async function idOf({ provider }: Target, { id: mapping }: Job, begun: JsonObject): Promise<string> {
  const id = await runMapping(provider, 'job.id', mapping, begun)
  if (typeof id === 'string' && id !== '' && id !== '.' && id !== '..') return id
  throw unreadable(provider, 'answered without the id of a job')
}

/** Returns the result, if an answer reports that the job is done; throws if it reports that it has failed. */
async function doneIn(
  { provider }: Target,
  { done, failed }: Job,
  answer: JsonObject,
): Promise<JsonObject | undefined> {
  const failure = failed && (await runMapping(provider, 'job.failed', failed, answer))
  const reported = isObject(failure) ? reportedFailureOf(failure) : undefined
  if (reported) throw reportedFailure(provider, reported)
  const result = await runMapping(provider, 'job.done', done, answer)
  if (isObject(result)) return result
  return result === true ? answer : undefined
}

/** Waits until the next question, at most to the deadline. Throws RouterError when that has come, or the client has left. */
async function pause(ms: number, deadline: number, { provider }: Target, signal: AbortSignal): Promise<void> {
  const left = deadline - performance.now()
  if (left <= 0) throw new Late(provider.slug)
  try {
    await setTimeout(Math.min(ms, left), undefined, { signal })
  } catch (thrown) {
    throw signal.aborted ? signal.reason : thrown
  }
}

class Late extends RouterError {
  constructor(provider: string) {
    super('provider_timeout', 'The provider did not finish within the time limit of its manifest.', { provider })
  }
}

function isLate(thrown: unknown): boolean {
  return thrown instanceof Late
}

/** Cancels a job that the first answer describes, where the provider can do that. */
export async function cancelJob(target: Target, job: Job, begun: JsonObject, httpClient: HttpClient): Promise<void> {
  if (job.cancel === undefined) return
  const id = await idOf(target, job, begun).catch(() => undefined)
  if (id !== undefined) cancel(target, job, id, httpClient)
}

/** Cancels a job; nobody waits for it. A provider that cannot be notified goes on. */
function cancel(target: Target, { cancel: path, hosts }: Job, id: string, httpClient: HttpClient): void {
  if (path === undefined) return
  const signal = AbortSignal.timeout(cancelMs)
  const sent = { ...addressOf(path, id, hosts), accept: 'application/json', body: {}, signal }
  sendRequest(target, sent, httpClient).then(
    (response) => response.discard(),
    () => {},
  )
}

/** Maximum time that a provider may take to accept a cancellation. */
const cancelMs = 5_000
