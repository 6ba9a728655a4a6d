import { hash } from 'node:crypto'
import type { HealthSettings } from '../../core/routing/rules.ts'
import type { Provider } from '../../manifest/provider.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import { Circuit } from './circuit.ts'
import type { HealthScope } from './failure-class.ts'

/** Identity of a circuit; `key` is the same in every event loop and reveals no secret. */
export type CircuitName = { key: string; scope: HealthScope; name: string }

/**
 * A circuit, the code of the failure that was counted last, and the times of the last change that was sent to others and of the one with which
 * it last stopped to be closed.
 */
export type KnownCircuit = CircuitName & {
  circuit: Circuit
  changedAt: number
  reason?: string | undefined
  since?: number | undefined
}

/** The circuits that a call to a target goes through. */
export type TargetCircuits = readonly [address: KnownCircuit, credential: KnownCircuit, target: KnownCircuit]

/** The circuits of all targets, by names that stay the same when files are read again. */
export class Circuits {
  readonly #known = new Map<string, KnownCircuit>()
  #byTarget = new WeakMap<Provider, Map<string, TargetCircuits>>()

  /**
   * Returns the circuits of a target. Where unknown models are allowed, clients may invent names: when there are too many, those without
   * failures are forgotten, and the oldest ones of the others.
   */
  of(target: Target, now: number, settings: HealthSettings): TargetCircuits {
    this.#makeRoom(now, settings)
    const { provider, model } = target
    let models = this.#byTarget.get(provider)
    if (!models || models.size >= maxModels) {
      models = new Map()
      this.#byTarget.set(provider, models)
    }
    let circuits = models.get(model)
    if (!circuits) {
      const { slug, baseUrl, auth } = provider
      circuits = [
        // Providers may share an address, which is nothing to be shown.
        this.#find('address', slug, URL.parse(baseUrl)?.origin ?? baseUrl),
        // Another secret is another credential.
        this.#find('credential', slug, `${slug} ${hash('sha256', JSON.stringify(auth))}`),
        this.#find('target', targetId(target)),
      ]
      models.set(model, circuits)
    }
    return circuits
  }

  /** Returns a circuit that another event loop has named. */
  named(name: CircuitName, now: number, settings: HealthSettings): KnownCircuit {
    const known = this.#known.get(name.key)
    if (known) return known
    this.#makeRoom(now, settings)
    return this.#add(name)
  }

  all(): Iterable<KnownCircuit> {
    return this.#known.values()
  }

  #makeRoom(now: number, settings: HealthSettings): void {
    if (this.#known.size < maxCircuits) return
    const targets = [...this.#known].filter(([, { scope }]) => scope === 'target')
    const closed = targets.filter(([, { circuit }]) => circuit.state(now, settings).kind === 'closed')
    const others = targets.filter(([, { circuit }]) => circuit.state(now, settings).kind !== 'closed')
    const surplus = Math.max(0, others.length - maxCircuits / 2)
    for (const [key] of [...closed, ...others.slice(0, surplus)]) this.#known.delete(key)
    // An organization that has been forgotten begins anew.
    this.#byTarget = new WeakMap()
  }

  #find(scope: HealthScope, name: string, what = name): KnownCircuit {
    const key = `${scope} ${what}`
    return this.#known.get(key) ?? this.#add({ key, scope, name })
  }

  #add({ key, scope, name }: CircuitName): KnownCircuit {
    const added = { key, scope, name, circuit: new Circuit(), changedAt: 0 }
    this.#known.set(key, added)
    return added
  }
}

const maxModels = 1_000
const maxCircuits = 10_000
