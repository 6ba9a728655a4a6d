/** The values of a label. */
export type Labels = { readonly [name: string]: string }

/** One line of the exposition; `name` where it is not that of its family, as of the buckets of a histogram. */
export type Sample = { name?: string; labels: Labels; value: number }

/** A metric with all its label sets, as Prometheus calls it. Names of counters end with `_total`. */
export type Family = {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  samples: Sample[]
}

/** Returns a gauge or a counter without labels. */
export function single(type: 'counter' | 'gauge', name: string, help: string, value: number): Family {
  return { type, name, help, samples: [{ labels: {}, value }] }
}

/**
 * Returns a counter or gauge with so many label sets at most: the others are added up as one, whose labels are all `other`. Names of
 * models, which clients may invent, are among labels.
 */
export function bounded(family: Family, most: number): Family {
  if (family.samples.length <= most) return family
  const rest = family.samples.slice(most)
  const labels = Object.fromEntries(Object.keys(rest[0]?.labels ?? {}).map((name) => [name, other]))
  const value = rest.reduce((sum, sample) => sum + sample.value, 0)
  return { ...family, samples: [...family.samples.slice(0, most), { labels, value }] }
}

/** Returns a text that identifies a label set of a metric. */
export function sampleKey(name: string, labels: Labels): string {
  return JSON.stringify([name, labels])
}

/** The label value for the label sets beyond the limit, which are counted together. */
export const other = 'other'

/** Counts values by upper bounds, as a histogram of Prometheus does. */
export class Histogram {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Array(bounds.length + 1).fill(0)
  }

  get count(): number {
    return this.#counts.reduce((sum, own) => sum + own, 0)
  }

  add(value: number): void {
    let at = 0
    while (at < this.#bounds.length && value > (this.#bounds[at] as number)) at++
    ;(this.#counts[at] as number)++
    this.#sum += value
  }

  /** Returns cumulative buckets, the sum and the count. */
  samples(name: string, labels: Labels): Sample[] {
    let count = 0
    const buckets = this.#counts.map((own, at): Sample => {
      count += own
      const le = at < this.#bounds.length ? String(this.#bounds[at]) : '+Inf'
      return { name: `${name}_bucket`, labels: { ...labels, le }, value: count }
    })
    return [
      ...buckets,
      { name: `${name}_sum`, labels, value: this.#sum },
      { name: `${name}_count`, labels, value: count },
    ]
  }
}
