import type { RouterError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import type { RoutingRules } from '../core/routing/rules.ts'
import { withoutSecrets } from '../core/secrets.ts'
import { type Target, targetId } from '../manifest/target.ts'
import { failureClass } from './health/failure-class.ts'
import type { AttemptHandle } from './health/health.ts'
import { type Weights, weightOf } from './weights.ts'

/** The step at which a target, or a name, was left out. */
export type SkipStep =
  | 'allowed'
  | 'wished'
  | 'priced'
  | 'governed'
  | 'able'
  | 'fallbacks'
  | 'health'
  | 'capacity'
  | 'failover'

/** The rule by which a target has its place. */
type Rule = RoutingRules['sort'] | 'only' | 'sticky' | 'hash' | 'maker'

/** Targets in their order, and what decided it. */
export type Ordered = {
  rules: Pick<RoutingRules, 'sort' | 'sticky'>
  weights?: Weights | undefined
  /** Place of the name that led to each target, where there are several names. */
  rank?: ReadonlyMap<Target, number> | undefined
  /** The target that earlier calls of the conversation went to. */
  stays?: Target | undefined
  /** The targets that can read content which only its signer can. */
  bound?: readonly Target[] | undefined
  /** Returns the most that the call can cost at a target, in nano-USD. */
  costOf(target: Target): bigint | undefined
}

type Attempt = { target: Target; times: AttemptTimes; contentAt?: number; error?: RouterError }

/**
 * Explanation of why the targets of one call were asked or not, and of their results: for calls that ask. It names the models that the
 * caller may use, and counts those that it may not.
 */
export class Explanation {
  readonly #ownName: string | undefined
  readonly #now: () => number
  #began: number | undefined
  #skipped: { model: string; step: SkipStep; reason: string }[] = []
  #notAllowed = 0
  #order: JsonObject = {}
  readonly #attempts: Attempt[] = []
  #answeredBy: string | undefined

  /**
   * `ownName`: a name whose targets the caller may see, also those that it may not use. `now` is milliseconds of the monotonic
   * clock.
   */
  constructor({ ownName, now = () => performance.now() }: { ownName?: string; now?: () => number } = {}) {
    this.#ownName = ownName
    this.#now = now
  }

  /** Begins the search for targets of a call that began at this time; earlier results no longer count. */
  begin(at: number): void {
    this.#began = at
    this.#skipped = []
    this.#notAllowed = 0
    this.#order = {}
  }

  /** Excludes targets of a name that the caller may not use, or nobody can. */
  exclude(name: string, excluded: readonly { id: string; message: string }[]): void {
    if (name === this.#ownName) for (const { id, message } of excluded) this.skip(id, 'allowed', message)
    else this.#notAllowed += excluded.length
  }

  /** Records that a target or name is left out; the last reason for it counts. */
  skip(model: Target | string, step: SkipStep, reason: string): void {
    const name = nameOf(model)
    const known = this.#skipped.find((one) => one.model === name && one.step === step)
    if (known) known.reason = shown(reason)
    else if (this.#skipped.length < maxSkipped) this.#skipped.push({ model: name, step, reason: shown(reason) })
  }

  ordered(targets: readonly Target[], order: Ordered): void {
    const { sort, sticky } = order.rules
    const places = targets.map((target) =>
      placeOf(target, targets.length === 1 ? 'only' : ruleOf(target, order), order),
    )
    this.#order = { sort, sticky, targets: places }
  }

  failed(target: Target, times: AttemptTimes, error: RouterError): void {
    this.#attempts.push({ target, times, error })
  }

  /** Records that an attempt has its first content, or its whole answer; its attempt handle reports how it ends. */
  answered(target: Target, times: AttemptTimes, handle: AttemptHandle): AttemptHandle {
    const attempt: Attempt = { target, times, contentAt: this.#now() }
    this.#attempts.push(attempt)
    return {
      succeeded: () => handle.succeeded(),
      produced: (...tokens) => handle.produced?.(...tokens),
      failed: (error) => {
        attempt.error = error
        attempt.times = { ...times, ended: this.#now() }
        handle.failed(error)
      },
      ended: () => handle.ended(),
    }
  }

  /** Records that a plugin answered: no target is asked. */
  answeredByPlugin(name: string): void {
    this.#answeredBy = name
  }

  /** Returns the targets that a call would be sent to, in their order, and those that were left out. */
  plan(): JsonObject {
    return {
      ...this.#order,
      skipped: this.#skipped,
      ...(this.#notAllowed > 0 && { not_allowed: this.#notAllowed }),
    }
  }

  /** Returns the plan, the attempts and the times until now, in milliseconds since the call began. */
  told(): JsonObject {
    const began = this.#began ?? this.#now()
    const [first] = this.#attempts
    const contentAt = this.#attempts.find((attempt) => attempt.contentAt !== undefined)?.contentAt
    return {
      ...(this.#answeredBy === undefined ? this.plan() : { plugin: this.#answeredBy }),
      attempts: this.#attempts.map((attempt, index) => this.#attemptAt(index, attempt, began)),
      timings: {
        ...(first && { before_ms: Math.round(first.times.began - began) }),
        ...(contentAt !== undefined && { first_content_ms: Math.round(contentAt - began) }),
        total_ms: Math.round(this.#now() - began),
      },
    }
  }

  /** Returns the member `router` of an answer or an error. */
  facts(): JsonObject {
    return { attempts: this.#attempts.length, explain: this.told() }
  }

  /** Returns an error with the explanation, if targets were looked for; it may have one already. */
  addedTo(error: RouterError): RouterError {
    if (this.#began === undefined || error.router !== undefined) return error
    return error.with({ router: this.facts() })
  }

  #attemptAt(index: number, { target, times, contentAt, error }: Attempt, began: number): JsonObject {
    const [before, after] = [this.#attempts[index - 1], this.#attempts[index + 1]]
    const waited = times.began - (before?.times.ended ?? times.began)
    return {
      model: nameOf(target),
      started_ms: Math.round(times.began - began),
      waited_ms: Math.round(waited),
      ...(contentAt !== undefined && { first_content_ms: Math.round(contentAt - times.began) }),
      duration_ms: Math.round((times.ended ?? this.#now()) - times.began),
      status: error?.status ?? 200,
      ...(error?.providerStatus !== undefined && { provider_status: error.providerStatus }),
      ...(error && { code: error.providerCode ?? error.code, class: failureClass(error).name }),
      ...(after && { followed_by: after.target === target ? 'again' : 'next' }),
    }
  }
}

function ruleOf(target: Target, { rules, stays, bound }: Ordered): Rule {
  if (bound?.includes(target)) return 'maker'
  if (rules.sticky === 'hash' && stays) return 'hash'
  return target === stays ? 'sticky' : rules.sort
}

function placeOf(target: Target, by: Rule, { weights, rank, costOf }: Ordered): JsonObject {
  const place = rank?.get(target)
  const cost = by === 'price' ? costOf(target) : undefined
  return {
    model: nameOf(target),
    by,
    reason: by === 'price' && cost === undefined ? 'its price is unknown' : reasons[by],
    ...(place !== undefined && { name: place }),
    ...((by === 'weighted' || by === 'hash') && { weight: weightOf(target, weights) }),
    ...(cost !== undefined && { max_cost_usd: Number(cost) / 1e9 }),
  }
}

const reasons: { readonly [by in Rule]: string } = {
  order: 'in the listed order',
  weighted: 'at random, by weight',
  price: 'by the maximum cost of this request',
  latency: 'by the expected time to the first content',
  throughput: 'by the expected time per token',
  only: 'no other target remains',
  sticky: 'earlier calls like this one went there',
  hash: 'by a hash of the caller',
  maker: 'only its signer can read a part of the request',
}

/** Returns the name of a target or model. Where unknown models are allowed, it is any text that a client sent. */
function nameOf(model: Target | string): string {
  return withoutSecrets(typeof model === 'string' ? model : targetId(model))
}

function shown(reason: string): string {
  return withoutSecrets(reason).slice(0, maxReasonLength).toWellFormed()
}

const maxSkipped = 100
/** Characters. */
const maxReasonLength = 300

/** Beginning and end of an attempt, in milliseconds of the monotonic clock. */
export type AttemptTimes = { began: number; ended?: number }
