import { setTimeout as wait } from 'node:timers/promises'
import type { Kit } from 'inference-router/plugin'
import { alertOf, nameOf, type State } from './thresholds.ts'
import type { Webhook } from './webhook.ts'

type Around = Pick<Kit, 'log' | 'values'> & { attempts: number; firstPauseMs?: number }

/** Notifies each webhook of each crossing once, whichever thread sees it first. */
export class Alarms {
  readonly #webhooks: readonly Webhook[]
  readonly #around: Around
  readonly #ending = new AbortController()
  /** Crossings that this thread need not ask about again. */
  readonly #told = new Set<string>()

  constructor(webhooks: readonly Webhook[], around: Around) {
    this.#webhooks = webhooks
    this.#around = around
  }

  async see(state: State): Promise<void> {
    await Promise.all(
      this.#webhooks.map(async (webhook) => {
        const name = `${webhook.id} ${nameOf(state)}`
        if (state.isCrossed) await this.#tell(webhook, name, state)
        else if (state.threshold.kind === 'balance_below') await this.#arm(name)
      }),
    )
  }

  /** Ends the plugin: alerts that fail are sent again immediately, and only once more. */
  close(): void {
    this.#ending.abort()
  }

  async #arm(name: string): Promise<void> {
    const { values } = this.#around
    this.#told.delete(name)
    if ((await values.get(name)) !== undefined) await values.delete(name)
  }

  async #tell(webhook: Webhook, name: string, state: State): Promise<void> {
    const { values, log } = this.#around
    const isBalance = state.threshold.kind === 'balance_below'
    if (this.#told.has(name) && !isBalance) return
    // Should this process end before the alert was sent, another one sends it.
    if (!(await values.add(name, true, claimMs))) return
    try {
      await this.#send(webhook, state)
      await values.set(name, true)
      if (this.#told.size >= mostRemembered) this.#told.clear()
      this.#told.add(name)
    } catch (err) {
      await values.delete(name)
      log.error(
        { err, webhook: webhook.id, owner: state.budget.id },
        'a webhook was not notified of a crossed threshold',
      )
    }
  }

  async #send(webhook: Webhook, state: State): Promise<void> {
    const { attempts, firstPauseMs = 1_000 } = this.#around
    const alert = alertOf(state)
    for (let attempt = 1; ; attempt++) {
      try {
        return await webhook.send(alert)
      } catch (thrown) {
        if (attempt >= attempts || this.#ending.signal.aborted) throw thrown
        await wait(firstPauseMs * 2 ** (attempt - 1), undefined, { signal: this.#ending.signal }).catch(() => {})
      }
    }
  }
}

/** Time for which a claim is valid: longer than all attempts take. */
const claimMs = 30 * 60_000
const mostRemembered = 10_000
