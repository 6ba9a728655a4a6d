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
  readonly #byTarget = new WeakMap<Provider, Map<string, TargetCircuits>>()

  of(target: Target): TargetCircuits {
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

  /** Where unknown models are allowed, clients may invent names: those without failures need not be known. */
  forgetClosed(now: number, settings: HealthSettings): void {
    if (this.#known.size < mostCircuits) return
    for (const [key, { circuit }] of this.#known) {
      if (circuit.state(now, settings).kind === 'closed') this.#known.delete(key)
    }
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
