import { RouterError } from '../../../src/core/errors.ts'
import { defaultHealth, defaultRouting, type RoutingRules } from '../../../src/core/routing/rules.ts'
import type { Usage } from '../../../src/core/usage.ts'
import { retryHeaders } from '../../../src/http/failures.ts'
import type { Provider } from '../../../src/manifest/provider.ts'
import type { Target } from '../../../src/manifest/target.ts'
import { tryTargets } from '../../../src/routing/attempts.ts'
import { callClass } from '../../../src/routing/measurements.ts'
import { openSharedState } from '../../../src/routing/shared-state.ts'
import type { AttemptLimits, Trial } from '../../../src/routing/types.ts'
import { errorFor } from '../../../src/upstream/provider-error.ts'
import type { Way } from './direct.ts'
import type { CallId, Decide, Mode, Outcome } from './provider.ts'
import type { Got } from './sdk.ts'
import type { VirtualTime } from './virtual-time.ts'

type Answer = Extract<Outcome, { kind: 'answer' | 'cut' }>
type Result =
  | { dropped: string[]; error?: undefined; answer: Answer }
  | { dropped: string[]; error: RouterError; sent: boolean }

/** `attempts`: all that were made of a call; `paid`: those of them that failed and were billed; `rows`: the rows that failed attempts got. */
export type RoutedWay = Way & { attempts: Map<string, number>; paid: Map<string, number>; rows: Map<string, number> }

type Options = { decide: Decide; mode: Mode; time: VirtualTime; targets: number; random: () => number }

/** Calls that go through the router's own routing, with default settings, to one provider or to a policy of two. */
export function routed({ decide, mode, time, targets: count, random }: Options): RoutedWay {
  const now = () => time.now
  const state = {
    ...openSharedState({ settings: () => defaultHealth, now, random }),
    now,
    random,
    pause: (ms: number, signal: AbortSignal) => time.sleep(ms, signal),
  }
  const [first = target(0), ...others] = Array.from({ length: count }, (_, index) => target(index))
  const rules: RoutingRules = count === 1 ? defaultRouting : { ...defaultRouting, totalMs: policyTotalMs }
  const way: RoutedWay = { asked: [], attempts: new Map(), paid: new Map(), rows: new Map(), call }

  function call(id: CallId): (signal: AbortSignal) => Promise<Got> {
    let number = 0
    return async (signal) => {
      const trial: Trial<Result> = {
        targets: [first, ...others],
        rules,
        signal,
        caller: { organization: 'one', key: 'one', isLow: false },
        kind: callClass('chat', mode === 'streamed', 100),
        attempt: async (target, limits) => {
          if (target === first) way.asked.push(time.now)
          countOne(way.attempts, id)
          const result = await attempt(target, decide(id, number++), { limits, mode, time, signal })
          if (result.error?.billed) countOne(way.paid, id)
          return result
        },
        onFailed: () => countOne(way.rows, id),
      }
      const tried = await tryTargets(trial, state)
      if (tried.error) {
        if (!tried.hasRows) countOne(way.rows, id)
        return { kind: 'error', status: tried.error.status, headers: retryHeaders(tried.error) }
      }
      const { answer, handle, target } = tried
      if (mode === 'streamed') await time.sleep(answer.lastMs - answer.firstMs)
      if (answer.kind === 'cut') handle.failed(failure('provider_cut', target))
      else handle.produced?.(60)
      handle.ended()
      return { kind: answer.kind === 'cut' ? 'broken answer' : 'answer' }
    }
  }
  return way
}

type Attempt = { limits: AttemptLimits; mode: Mode; time: VirtualTime; signal: AbortSignal }

/** Plays one attempt, within its limits. */
async function attempt(target: Target, outcome: Outcome, { limits, mode, time, signal }: Attempt): Promise<Result> {
  const { firstEventMs, wholeMs, totalMs } = target.provider.timeouts
  const own = mode === 'streamed' ? [firstEventMs, limits.firstEventMs] : [wholeMs, limits.wholeMs, limits.totalMs]
  const limitMs = Math.min(totalMs, ...own.filter((ms) => ms !== undefined))
  const comesAfterMs = timeOf(outcome, mode)
  const failed = (error: RouterError): Result => ({ dropped: [], error, sent: true })
  try {
    await time.sleep(Math.min(limitMs, comesAfterMs), signal)
  } catch {
    return failed(new RouterError('client_gone', 'The client has left.', { provider: target.provider.slug }))
  }
  if (comesAfterMs > limitMs) return failed(failure('provider_timeout', target))
  switch (outcome.kind) {
    case 'status':
      return failed(errorFor(target.provider, { ...outcome, text: '{"error": {"message": "No."}}' }))
    case 'reset':
      return failed(failure('provider_unreachable', target))
    case 'cut':
      if (mode === 'whole') return failed(failure('provider_cut', target, { output: 40 }))
      return { dropped: [], answer: outcome }
    case 'answer':
      return { dropped: [], answer: outcome }
    case 'silence':
      throw new Error('silence ends with its limit')
  }
}

function timeOf(outcome: Outcome, mode: Mode): number {
  if (outcome.kind === 'silence') return Number.POSITIVE_INFINITY
  if ('ms' in outcome) return outcome.ms
  return mode === 'whole' ? outcome.lastMs : outcome.firstMs
}

function failure(
  code: 'provider_cut' | 'provider_timeout' | 'provider_unreachable',
  { provider: { slug } }: Target,
  billed?: Usage,
): RouterError {
  return new RouterError(code, 'It failed.', { provider: slug, billed })
}

function target(index: number): Target {
  const slug = `provider-${index}`
  const timeouts = {
    connectMs: 10_000,
    firstEventMs: 600_000,
    betweenEventsMs: 60_000,
    wholeMs: 600_000,
    totalMs: 600_000,
  }
  const provider = {
    slug,
    baseUrl: `https://${slug}.example`,
    auth: { scheme: 'none' },
    errors: {},
    headers: {},
    timeouts,
  }
  return { provider: provider as unknown as Provider, model: 'm' }
}

const policyTotalMs = 300_000

function countOne(counts: Map<string, number>, { client, call }: CallId): void {
  const key = `${client} ${call}`
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
