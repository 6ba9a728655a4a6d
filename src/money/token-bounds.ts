import type { TokenBounds } from './meter.ts'

/** Bounds whose highest reported figure, in US dollars, is computed only where a provider reports one: few do. */
export class PricedTokenBounds implements TokenBounds {
  readonly prompt: number
  readonly output: number
  readonly #reportedUsd: () => number

  constructor(prompt: number, output: number, reportedUsd: () => number) {
    this.prompt = prompt
    this.output = output
    this.#reportedUsd = reportedUsd
  }

  get reportedUsd(): number {
    return this.#reportedUsd()
  }
}
