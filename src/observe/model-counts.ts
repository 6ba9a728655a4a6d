import type { CallRecord } from '../core/call.ts'
import { completionTokens, promptTokens, type Usage, type UsageClass, usageClasses } from '../core/usage.ts'
import { Histogram } from './families.ts'

type Used = { [name in UsageClass]?: number }

/** What the calls of one model add up to. */
export class ModelCounts {
  nanoUsd = 0
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
