import type { MaybePromise } from './contract.ts'
import type { PluginFaults } from './faults.ts'
import { within } from './within.ts'

/** Runs `record` hooks after their calls, so many at a time: those of more calls wait, and of too many they are left out. */
export class PluginRecords {
  readonly #faults: PluginFaults
  readonly #waiting: (() => MaybePromise<unknown>)[] = []
  #running = 0
  #isScheduled = false
  #idle: (() => void)[] = []

  constructor(faults: PluginFaults) {
    this.#faults = faults
  }

  /** Adds a call to record: `run` calls the hooks of these plugins, and never throws nor rejects. */
  add(
    { call, plugins }: { call: string; plugins: readonly { name: string }[] },
    run: () => MaybePromise<unknown>,
  ): void {
    if (this.#waiting.length >= maxWaiting) {
      const err = new Error(`the records of ${maxWaiting} calls are waiting already`)
      for (const { name } of plugins) this.#faults.saw(name, 'record', 'left_out', { call, err })
      return
    }
    this.#waiting.push(run)
    this.#schedule()
  }

  /** Resolves when everything is recorded, or after this time. */
  async idle(mostMs: number): Promise<void> {
    if (this.#running === 0 && this.#waiting.length === 0) return
    const idle = new Promise<void>((resolve) => this.#idle.push(resolve))
    await within(idle, mostMs, 'plugins are still recording').catch(() => {})
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    // The client gets its answer first.
    setImmediate(() => {
      this.#isScheduled = false
      this.#runWaiting()
    })
  }

  #runWaiting(): void {
    for (const run of this.#waiting.splice(0, maxAtOnce - this.#running)) {
      this.#running++
      const running = run()
      if (running instanceof Promise) void running.then(() => this.#ended())
      else this.#ended()
    }
  }

  #ended(): void {
    this.#running--
    if (this.#waiting.length > 0) this.#schedule()
    else if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }
}

const maxAtOnce = 100
const maxWaiting = 10_000
