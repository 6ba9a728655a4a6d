import type { RouterError } from '../../core/errors.ts'
import type { HealthSettings } from '../../core/routing/rules.ts'
import type { Target } from '../../manifest/target.ts'
import { type CircuitFinding, type PacedFinding, timeAfter } from '../findings.ts'
import type { Circuit, CircuitState } from './circuit.ts'
import { Circuits, type KnownCircuit, type TargetCircuits } from './circuits.ts'
import { failureClass, type HealthScope } from './failure-class.ts'

/** One attempt that was let through. */
export type AttemptHandle = {
  /** Called when its answer has begun. */
  succeeded(): void
  /** Counts a failure, where its class counts: before the answer, or one that breaks off. */
  failed(error: RouterError): void
  /** Called when its answer is complete and has so many tokens, by the provider's count or by an estimate. */
  produced?(tokens: number, isEstimated?: boolean): void
  /** Called when the call has ended, in any case. */
  ended(): void
}

/** Time for which a target takes no calls, in milliseconds. `isBusy`: the target says so itself, without a failure. */
export type ClosedFor = { ms: number; isBusy: boolean }

/**
 * An address, credential or target that is not closed; `since` and `until` are Unix milliseconds, `organization` is the only one that it
 * concerns.
 */
export type TargetOutage = {
  scope: HealthScope
  name: string
  state: CircuitState['kind']
  organization?: string
  since?: number
  until?: number
  reason?: string
}

export type HealthOptions = {
  settings(): HealthSettings
  /** Milliseconds of a monotonic clock, the same one for all event loops that share findings. */
  now?: () => number
  random?: () => number
  /** Called with credentials that a provider refuses, once until they are accepted again. */
  onRefused?: (slug: string, error: RouterError) => void
  /** Called with each circuit that has changed, and each call that the pace has let through, but not with single failures. */
  onFound?: (finding: CircuitFinding | PacedFinding) => void
}

/**
 * Health of providers as their answers show it: of addresses, credentials and targets. It survives reloads. Failures that calls of only one
 * organization have met affect that one alone, the `caller`: its requests may be the reason.
 */
export class Health {
  readonly #circuits = new Circuits()
  readonly #settings: () => HealthSettings
  readonly #now: () => number
  readonly #random: () => number
  readonly #onRefused: NonNullable<HealthOptions['onRefused']>
  readonly #onFound: NonNullable<HealthOptions['onFound']>

  constructor({
    settings,
    now = () => performance.now(),
    random = Math.random,
    onRefused = () => {},
    onFound = () => {},
  }: HealthOptions) {
    this.#settings = settings
    this.#now = now
    this.#random = random
    this.#onRefused = onRefused
    this.#onFound = onFound
  }

  /**
   * Checks whether a target takes calls now. One that may have recovered is tried with a call that has another target; one that recovers
   * takes a share of such calls.
   */
  isOpen(target: Target, hasOthers: boolean, caller?: string): boolean {
    const now = this.#now()
    const settings = this.#settings()
    for (const { circuit } of this.#circuits.of(target, now, settings)) {
      const state = circuit.state(now, settings, caller)
      if ('until' in state) return false
      if (state.kind === 'half_open' && !(hasOthers && circuit.isFree)) return false
      if (state.kind === 'recovering' && hasOthers && this.#random() >= state.share) return false
    }
    return true
  }

  /** Returns the time for which a target takes no calls; undefined while it takes some. */
  closedFor(target: Target, caller?: string): ClosedFor | undefined {
    const now = this.#now()
    const settings = this.#settings()
    let closed: ClosedFor | undefined
    for (const { circuit } of this.#circuits.of(target, now, settings)) {
      const state = circuit.state(now, settings, caller)
      if (!('until' in state)) continue
      const isBusy = state.kind === 'paused' && closed?.isBusy !== false
      closed = { ms: Math.max(state.until - now, closed?.ms ?? 0), isBusy }
    }
    return closed
  }

  /**
   * Begins an attempt at a target that is open; at one that is not, it is a trial, of which there is one at a time: undefined while another
   * attempt tries it.
   */
  enter(target: Target, caller?: string): AttemptHandle | undefined {
    const now = this.#now()
    const settings = this.#settings()
    const circuits = this.#circuits.of(target, now, settings)
    let trials: Circuit[] | undefined
    for (const { circuit } of circuits) {
      const { kind } = circuit.state(now, settings, caller)
      if (kind === 'closed' || kind === 'recovering') continue
      if (!circuit.isFree) return undefined
      trials = [...(trials ?? []), circuit]
    }
    for (const circuit of trials ?? []) circuit.beginTrial()
    return this.#handle(circuits, trials, caller)
  }

  /**
   * Begins an attempt of a call that has no other target, also at a target that is not open: undefined where its calls all fail, and too
   * many others try it.
   */
  enterAsLastResort(target: Target, caller?: string): AttemptHandle | undefined {
    const now = this.#now()
    const settings = this.#settings()
    const circuits = this.#circuits.of(target, now, settings)
    if (circuits.some(({ circuit }) => circuit.lastResortMs(now, settings, caller) > 0)) return undefined
    const trials: Circuit[] = []
    for (const { circuit, key, scope, name } of circuits) {
      const how = circuit.beginLastResort(now, settings, caller)
      if (how === 'trial') trials.push(circuit)
      else if (how === 'paced') this.#onFound({ kind: 'paced', at: now, key, scope, name })
    }
    return this.#handle(circuits, trials, caller)
  }

  /** Returns the time until a call that has no other target may begin at this one. Milliseconds. */
  lastResortMs(target: Target, caller?: string): number {
    const now = this.#now()
    const settings = this.#settings()
    const circuits = this.#circuits.of(target, now, settings)
    return Math.max(...circuits.map(({ circuit }) => circuit.lastResortMs(now, settings, caller)))
  }

  /** Checks whether the last calls to a target have all failed, or it said that it takes none: nothing is repeated there. */
  isDown(target: Target, caller?: string): boolean {
    const now = this.#now()
    const settings = this.#settings()
    return this.#circuits.of(target, now, settings).some(({ circuit }) => circuit.isDown(now, settings, caller))
  }

  /** Records that a target says it takes no calls for so many milliseconds, from anybody. */
  exhausted(target: Target, ms: number): void {
    const now = this.#now()
    const [, , known] = this.#circuits.of(target, now, this.#settings())
    const before = standOf(known)
    known.circuit.pause(ms, now)
    known.reason = 'rate_limited'
    this.#notifyChange(known, before, now)
  }

  /** Adopts a finding of another event loop; the later of two findings counts. */
  merge(finding: CircuitFinding): void {
    const known = this.#circuits.named(finding, this.#now(), this.#settings())
    if (finding.at <= known.changedAt) return
    known.circuit.merge(finding.facts)
    known.reason = finding.reason
    known.since = finding.since
    known.changedAt = finding.at
  }

  /** Adopts a call of another event loop that the pace has let through. */
  mergePaced(finding: PacedFinding): void {
    const now = this.#now()
    this.#circuits.named(finding, now, this.#settings()).circuit.takePace(now)
  }

  /** Returns the circuits that are not closed, for an event loop that knows nothing yet. */
  findings(): CircuitFinding[] {
    return [...this.#circuits.all()].filter(({ circuit }) => circuit.facts !== undefined).map(findingOf)
  }

  /** Returns everything that does not take all calls, for operators. */
  degraded(): TargetOutage[] {
    const now = this.#now()
    const settings = this.#settings()
    const found: TargetOutage[] = []
    const timeOf = (at: number) => Math.round(Date.now() + at - now)
    for (const { scope, name, circuit, reason, since } of this.#circuits.all()) {
      const state = circuit.state(now, settings)
      if (state.kind === 'closed') continue
      const until = 'until' in state ? { until: timeOf(state.until) } : {}
      const { only: organization } = circuit
      const facts = { ...(organization !== undefined && { organization }), ...(reason !== undefined && { reason }) }
      const begun = since === undefined ? {} : { since: timeOf(since) }
      found.push({ scope, name, state: state.kind, ...begun, ...until, ...facts })
    }
    return found
  }

  #handle(circuits: TargetCircuits, trials: Circuit[] | undefined, caller: string | undefined): AttemptHandle {
    let isOver = false
    const ended = () => {
      if (!isOver) for (const circuit of trials ?? []) circuit.endTrial()
      isOver = true
    }
    return {
      succeeded: () => {
        ended()
        const now = this.#now()
        const settings = this.#settings()
        for (const known of circuits) {
          const before = standOf(known)
          known.circuit.succeeded(now, settings, caller)
          if (known.circuit.only === undefined) known.reason = undefined
          this.#notifyChange(known, before, now)
        }
      },
      failed: (error) => {
        ended()
        this.#count(circuits, error, caller)
      },
      ended,
    }
  }

  #count(circuits: TargetCircuits, error: RouterError, caller: string | undefined): void {
    const { health } = failureClass(error)
    if (!health) return
    const now = this.#now()
    const settings = this.#settings()
    for (const known of circuits) {
      if (known.scope !== health.scope) continue
      const { circuit, name, reason } = known
      const before = standOf(known)
      if (health.closes === 'until_told') circuit.pause(error.retryAfterMs ?? unstatedPauseMs, now, caller)
      else if (health.closes === 'long') circuit.openFor(longMs, now, caller)
      else circuit.failed(now, settings, this.#random, caller)
      if (health.scope === 'credential' && reason === undefined) this.#onRefused(name, error)
      known.reason = error.code
      this.#notifyChange(known, before, now)
    }
  }

  #notifyChange(known: KnownCircuit, before: Stand, now: number): void {
    const { revision, reason } = standOf(known)
    if (revision === before.revision && (reason === before.reason || known.circuit.facts === undefined)) return
    known.changedAt = timeAfter(known.changedAt, now)
    if (before.isClosed) known.since = now
    this.#onFound(findingOf(known))
  }
}

type Stand = { revision: number; isClosed: boolean; reason: string | undefined }

function standOf({ circuit, reason }: KnownCircuit): Stand {
  return { revision: circuit.revision, isClosed: circuit.isClosed, reason }
}

function findingOf({ key, scope, name, circuit, reason, since, changedAt: at }: KnownCircuit): CircuitFinding {
  return { kind: 'circuit', at, key, scope, name, reason, since, facts: circuit.facts }
}

/** Open time for credentials that are refused, quotas that are used up, models that are gone. */
const longMs = 300_000
/** Pause for a provider that is busy and does not say how long. */
const unstatedPauseMs = 1_000
