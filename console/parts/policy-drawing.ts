import { percent } from '../format.ts'
import { html } from '../html.ts'
import { Name } from './text.ts'

export type Target = string | { target: string; weight?: number }

/** The order of the targets of a policy in words, by its `sort`. */
const orders: { readonly [sort: string]: string } = {
  order: 'In this order; the next one takes over when one fails:',
  weighted: 'Split by weight; the others take over when one fails:',
  price: 'Cheapest for the request first:',
  latency: 'Fastest first token first:',
  throughput: 'Most tokens per second first:',
}

/** Draws the targets of a policy: their shares of the calls where they are chosen by weight, or their places. */
export function PolicyDrawing({ targets, sort = 'order' }: { targets: readonly Target[]; sort?: string | undefined }) {
  const shares = sort === 'weighted' ? sharesOf(targets) : undefined
  const isListed = sort === 'order' || sort === 'weighted'
  return html`<div class="policy">
    ${targets.length > 1 && html`<p class="hint">${orders[sort] ?? sort}</p>`}
    ${shares && html`<div class="shares" aria-hidden="true">${shares.map((share, index) => html`<span key=${index} class=${colourOf(index)} style=${{ width: `${share * 100}%` }}></span>`)}</div>`}
    <ol>${targets.map(
      (target, index) =>
        html`<li key=${index}><span class=${`place ${shares ? colourOf(index) : ''}`} aria-hidden="true">${shares || !isListed ? '' : index + 1}</span><${Name} text=${idOf(target)} mono />${shares && html` <span class="number">${percent(shares[index] ?? 0)}</span>`}</li>`,
    )}</ol>
  </div>`
}

function colourOf(index: number): string {
  return `series-${(index % 6) + 1}`
}

function idOf(target: Target): string {
  return typeof target === 'string' ? target : target.target
}

/** Returns the parts of the calls that targets get while none fails. */
function sharesOf(targets: readonly Target[]): number[] {
  const weights = targets.map((target) => (typeof target === 'string' ? 1 : (target.weight ?? 1)))
  const sum = weights.reduce((total, weight) => total + weight, 0)
  return weights.map((weight) => (sum > 0 ? weight / sum : 0))
}
