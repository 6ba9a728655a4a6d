import type { HealthSettings } from '../core/routing-rules.ts'
import type { Provider } from '../manifest/provider.ts'
import { type Target, targetId } from '../manifest/target.ts'
import { Circuit } from './circuit.ts'
import type { HealthScope } from './failure-class.ts'

/** A circuit, what it is of, and the code of the failure that was counted last. */
export type KnownCircuit = { scope: HealthScope; name: string; circuit: Circuit; reason?: string | undefined }

/** The circuits that a call to a target goes through. */
export type TargetCircuits = readonly [address: KnownCircuit, credential: KnownCircuit, target: KnownCircuit]

/** The circuits of all targets, by names that stay the same when files are read again. */
export class Circuits {
  readonly #known = new Map<string, KnownCircuit>()
  #byTarget = new WeakMap<Provider, Map<string, TargetCircuits>>()

  /**
   * Where unknown models are allowed, clients may invent names: when there are too many, those without failures are forgotten, and the
   * oldest ones of the others.
   */
  of(target: Target, now: number, settings: HealthSettings): TargetCircuits {
    if (this.#known.size >= mostCircuits) this.#forget(now, settings)
    const { provider, model } = target
    let models = this.#byTarget.get(provider)
    if (!models || models.size >= mostModels) {
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
        this.#find('credential', slug, `${slug} ${JSON.stringify(auth)}`),
        this.#find('target', targetId(target)),
      ]
      models.set(model, circuits)
    }
    return circuits
  }

  all(): Iterable<KnownCircuit> {
    return this.#known.values()
  }

  #forget(now: number, settings: HealthSettings): void {
    const targets = [...this.#known].filter(([, { scope }]) => scope === 'target')
    const closed = targets.filter(([, { circuit }]) => circuit.state(now, settings).kind === 'closed')
    const others = targets.filter(([, { circuit }]) => circuit.state(now, settings).kind !== 'closed')
    const surplus = Math.max(0, others.length - mostCircuits / 2)
    for (const [key] of [...closed, ...others.slice(0, surplus)]) this.#known.delete(key)
    // Who has been forgotten begins anew.
    this.#byTarget = new WeakMap()
  }

  #find(scope: HealthScope, name: string, what = name): KnownCircuit {
    const key = `${scope} ${what}`
    let found = this.#known.get(key)
    if (!found) {
      found = { scope, name, circuit: new Circuit() }
      this.#known.set(key, found)
    }
    return found
  }
}

const mostModels = 1_000
const mostCircuits = 10_000
