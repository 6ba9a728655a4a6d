import type { CallRecord } from '../../core/call.ts'
import type { CallsUnderWay } from '../../observe/worker-metrics.ts'

/** Counts the admitted calls of one event loop that are not settled yet, by organization. */
export class InFlightCalls {
  readonly #running = new Map<string, CallsUnderWay>()

  /** Counts a call. Returns the function that ends it, to be called once. */
  readonly begin = ({ organization, stream }: Pick<CallRecord, 'organization' | 'stream'>): (() => void) => {
    this.#add(organization, 1, stream ? 1 : 0)
    return () => this.#add(organization, -1, stream ? -1 : 0)
  }

  readonly of = (organization: string): CallsUnderWay => ({ ...(this.#running.get(organization) ?? none) })

  all(): { [organization: string]: CallsUnderWay } {
    return Object.fromEntries(this.#running)
  }

  #add(organization: string, calls: number, streams: number): void {
    const found = this.#running.get(organization)
    if (!found) this.#running.set(organization, { calls, streams })
    else if (found.calls + calls === 0) this.#running.delete(organization)
    else {
      found.calls += calls
      found.streams += streams
    }
  }
}

const none: CallsUnderWay = { calls: 0, streams: 0 }
