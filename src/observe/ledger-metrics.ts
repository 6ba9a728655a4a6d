import type { CallRecord } from '../core/call.ts'
import { CallMetrics, type CallMetricsSettings } from './call-metrics.ts'
import { type Family, Histogram } from './families.ts'

/** What is counted where rows are written: calls, and how long the disk takes. */
export class BookMetrics {
  readonly calls: CallMetrics
  readonly #commits = new Histogram(commitBounds)
  /** Counts a row of the ledger; without metrics it does nothing. */
  readonly count: (record: CallRecord) => void
  /** Counts rows of the ledger that are a JSON array. */
  readonly countText: CallMetrics['countText']

  constructor({ enabled, ...settings }: CallMetricsSettings & { enabled: boolean }) {
    this.calls = new CallMetrics(settings)
    this.count = enabled ? (record) => this.calls.count(record) : () => {}
    this.countText = enabled ? (text) => this.calls.countText(text) : () => {}
  }

  /** Rows are on disk after so many milliseconds. */
  readonly committed = (ms: number): void => {
    this.#commits.add(ms / 1_000)
  }

  commitFamily(): Family {
    const name = 'inference_router_ledger_commit_seconds'
    const help = 'How long it took until rows of the ledger were on disk.'
    return { name, help, type: 'histogram', samples: this.#commits.samples(name, {}) }
  }
}

const commitBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
