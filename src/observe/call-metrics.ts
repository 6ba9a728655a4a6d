import type { CallRecord } from '../core/call.ts'
import { completionTokens, promptTokens, type Usage, type UsageClass, usageClasses } from '../core/usage.ts'
import { type Family, Histogram, type Labels, other, type Sample } from './families.ts'

/** Label that metrics have only where the operator asks for it. */
type ExtraLabel = 'organization' | 'key' | 'group'

/** Settings of the metrics of calls: the maximum number of label sets of a metric, and its extra labels. */
export type CallMetricsSettings = { series: number; labels: readonly ExtraLabel[] }

/**
 * Metrics of the ledger's rows: calls and their attempts, their usage, cost and duration. Every row is counted in one place
 * and adds to two objects, so that nothing is computed until somebody asks.
 */
export class CallMetrics {
  readonly #labels: readonly ExtraLabel[]
  readonly #calls: Series<CallCounts>
  readonly #models: Series<ModelCounts>
  /** Rows as text that are not counted yet, and their length. */
  #texts: string[] = []
  #uncounted = 0

  constructor({ series, labels }: CallMetricsSettings) {
    this.#labels = labels
    this.#calls = new Series(series, () => ({ calls: 0 }))
    this.#models = new Series(series, () => new ModelCounts())
  }

  /** Counts a row of the ledger. */
  count(record: CallRecord): void {
    const { calls, model } = this.#of(record)
    calls.calls++
    model.add(record)
  }

  /** Counts rows of the ledger that are a JSON array: many at once, or when somebody asks, which takes less than each text by itself. */
  countText(text: string): void {
    this.#texts.push(text)
    this.#uncounted += text.length
    if (this.#uncounted >= maxUncounted) this.#countTexts()
  }

  #countTexts(): void {
    for (const text of this.#texts) for (const record of JSON.parse(text)) this.count(record)
    this.#texts = []
    this.#uncounted = 0
  }

  #of(row: CallRecord): { calls: CallCounts; model: ModelCounts } {
    const { provider, model, api, operation, outcome, error = '', failure = '', attemptOf } = row
    const extra = this.#labels.length > 0 ? this.#extra(row) : none
    const calls = this.#calls.of(
      `${callKey(row)}\n${extra.text}`,
      (isOther) => ({
        kind: attemptOf === undefined ? 'call' : 'attempt',
        api,
        operation,
        provider: isOther ? other : provider,
        model: isOther ? other : model,
        outcome,
        code: error,
        failure,
        ...(isOther ? withoutValues(extra.labels) : extra.labels),
      }),
      withoutModel(row),
    )
    const counts = this.#models.of(
      `${provider}\n${model}\n${operation}\n${extra.text}`,
      (isOther) => ({
        operation,
        provider: isOther ? other : provider,
        model: isOther ? other : model,
        ...(isOther ? withoutValues(extra.labels) : extra.labels),
      }),
      operation,
    )
    return { calls, model: counts }
  }

  families(): Family[] {
    this.#countTexts()
    const calls = [...this.#calls.all()]
    const models = [...this.#models.all()]
    return [
      {
        name: 'inference_router_calls_total',
        help: 'Calls that reached a provider, as in the ledger, by outcome.',
        type: 'counter',
        samples: summed(
          calls.flatMap(({ labels: { kind, failure: _, ...labels }, counts }) =>
            kind === 'call' ? { labels, value: counts.calls } : [],
          ),
        ),
      },
      {
        name: 'inference_router_attempts_total',
        help: 'Attempts at targets, by class of failure; a call that succeeds at once has one attempt.',
        type: 'counter',
        samples: summed(
          calls.map(({ labels: { provider = '', model = '', code = '', failure = '' }, counts }) => ({
            labels: { provider, model, failure: failure || code },
            value: counts.calls,
          })),
        ),
      },
      {
        name: 'inference_router_cost_usd_total',
        help: 'US dollars charged, for all attempts.',
        type: 'counter',
        samples: models.map(({ labels, counts }) => ({ labels, value: counts.nanoUsd / 1e9 })),
      },
      {
        name: 'inference_router_unpriced_calls_total',
        help: 'Calls at no cost because no price of their model is known, such as those to models that no catalog lists.',
        type: 'counter',
        samples: models.map(({ labels, counts }) => ({ labels, value: counts.unpriced })),
      },
      {
        name: 'inference_router_tokens_total',
        help: 'Usage of calls, for all attempts, by priced class: tokens, images, seconds, characters or searches.',
        type: 'counter',
        samples: models.flatMap(({ labels, counts }) =>
          Object.entries(counts.used).map(([type, value]) => ({ labels: { ...labels, class: type }, value })),
        ),
      },
      histogram(models, 'gen_ai_server_request_duration_seconds', {
        help: 'Time from the arrival of a call to its end.',
        of: ({ duration }) => [[duration, {}]],
      }),
      histogram(models, 'gen_ai_server_time_to_first_token_seconds', {
        help: 'Time from the arrival of a streamed call to its first content.',
        of: ({ first }) => [[first, {}]],
      }),
      histogram(models, 'gen_ai_server_time_per_output_token_seconds', {
        help: 'Time per token after the first one of a stream.',
        of: ({ perToken }) => [[perToken, {}]],
      }),
      histogram(models, 'gen_ai_client_token_usage', {
        help: 'Tokens of a call, by direction.',
        of: ({ input, output }) => [
          [input, { gen_ai_token_type: 'input' }],
          [output, { gen_ai_token_type: 'output' }],
        ],
      }),
    ]
  }

  #extra(record: CallRecord): { text: string; labels: Labels } {
    const values = this.#labels.map((name) => [name, record[name] ?? ''] as const)
    return { text: values.map(([, value]) => value).join('\n'), labels: Object.fromEntries(values) }
  }
}

/** Maximum characters that are not counted yet: about a millisecond of work, however much clients write into their rows. */
const maxUncounted = 128 * 1024

/** Returns the label sets of calls, without their extra labels, as one text. */
function callKey(row: CallRecord): string {
  return `${row.provider}\n${row.model}\n${withoutModel(row)}`
}

/** Returns the label values that are still kept apart for calls whose model is not. */
function withoutModel({ api, operation, outcome, error, failure, attemptOf }: CallRecord): string {
  return `${api}\n${operation}\n${outcome}\n${error ?? ''}\n${failure ?? ''}\n${attemptOf === undefined}`
}

const none: { text: string; labels: Labels } = { text: '', labels: {} }

function withoutValues(labels: Labels): Labels {
  return Object.fromEntries(Object.keys(labels).map((name) => [name, other]))
}

type CallCounts = { calls: number }

/** Objects by label set, so many at most: later ones are counted together. */
class Series<Counts> {
  readonly #max: number
  readonly #make: () => Counts
  readonly #known = new Map<string, { labels: Labels; counts: Counts }>()
  readonly #others = new Map<string, { labels: Labels; counts: Counts }>()

  constructor(most: number, make: () => Counts) {
    this.#max = most
    this.#make = make
  }

  /** Returns the counts of a label set. `rest` is the remaining part of its key where there are too many. */
  of(key: string, labels: (isOther: boolean) => Labels, rest: string): Counts {
    const known = this.#known.get(key)
    if (known) return known.counts
    const isOther = this.#known.size >= this.#max
    const [series, name] = isOther ? [this.#others, rest] : [this.#known, key]
    let found = series.get(name)
    if (!found) {
      found = { labels: labels(isOther), counts: this.#make() }
      series.set(name, found)
    }
    return found.counts
  }

  *all(): Iterable<{ labels: Labels; counts: Counts }> {
    yield* this.#known.values()
    yield* this.#others.values()
  }
}

/** Adds up samples whose labels are the same as one. */
function summed(samples: readonly Sample[]): Sample[] {
  const found = new Map<string, Sample>()
  for (const { labels, value } of samples) {
    const key = Object.values(labels).join('\n')
    const known = found.get(key)
    if (known) known.value += value
    else found.set(key, { labels, value })
  }
  return [...found.values()]
}

type Part = [Histogram, Labels]

/** Returns a histogram in the words of OpenTelemetry's conventions for generative AI. */
function histogram(
  models: readonly { labels: Labels; counts: ModelCounts }[],
  name: string,
  { help, of }: { help: string; of: (counts: ModelCounts) => Part[] },
): Family {
  const samples = models.flatMap(({ labels: { operation = '', provider = '', model = '', ...extra }, counts }) => {
    const named = {
      gen_ai_operation_name: operation,
      gen_ai_provider_name: provider,
      gen_ai_request_model: model,
      ...extra,
    }
    return of(counts).flatMap(([one, own]) => (one.count === 0 ? [] : one.samples(name, { ...named, ...own })))
  })
  return { name, help, type: 'histogram', samples }
}

type Used = { [name in UsageClass]?: number }

/** Sums of the calls of one model. */
class ModelCounts {
  nanoUsd = 0
  unpriced = 0
  readonly used: Used = {}
  readonly duration = new Histogram(durationBounds)
  readonly first = new Histogram(firstBounds)
  readonly perToken = new Histogram(perTokenBounds)
  readonly input = new Histogram(tokenBounds)
  readonly output = new Histogram(tokenBounds)

  add({ attemptOf, usage, cost, durationMs, firstEventMs, outcome }: CallRecord): void {
    this.nanoUsd += cost.nanoUsd
    this.#addUsed(usage)
    if (attemptOf !== undefined) return
    if (cost.unpriced) this.unpriced++
    this.duration.add(durationMs / 1_000)
    const output = completionTokens(usage)
    this.input.add(promptTokens(usage))
    this.output.add(output)
    if (firstEventMs === undefined) return
    this.first.add(firstEventMs / 1_000)
    if (outcome === 'complete' && output > 1) this.perToken.add((durationMs - firstEventMs) / (output - 1) / 1_000)
  }

  #addUsed(usage: Usage): void {
    for (const name in usage) {
      if (isClass(name)) this.used[name] = (this.used[name] ?? 0) + (usage[name] ?? 0)
    }
  }
}

const classes: ReadonlySet<string> = new Set(usageClasses)

function isClass(name: string): name is UsageClass {
  return classes.has(name)
}

/** The bounds that OpenTelemetry recommends; seconds and tokens. A call may take longer than a minute. */
const durationBounds = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68,
]
const firstBounds = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40]
const perTokenBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]
const tokenBounds = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304]

/** Metrics that are counted where rows are written: calls, and the time that the disk takes. */
export class LedgerMetrics {
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
    const help = 'Time until rows of the ledger were on disk.'
    return { name, help, type: 'histogram', samples: this.#commits.samples(name, {}) }
  }
}

const commitBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
