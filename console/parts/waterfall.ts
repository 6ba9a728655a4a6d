import { duration } from '../format.ts'
import { html } from '../html.ts'
import { Name, Outcome } from './text.ts'

/** An attempt at a target. Milliseconds: `at_ms` from the start of the call, the others from that of the attempt. */
export type Attempt = {
  attempt: number
  at_ms?: number
  model?: string
  outcome: string
  code?: string
  first_event_ms?: number
  duration_ms?: number
}
type TimedAttempt = Attempt & { at_ms: number; duration_ms: number }

/** Draws the attempts of a call on one scale of time; nothing where a time is not known, as in older calls. */
export function Waterfall({ attempts, total }: { attempts: readonly Attempt[]; total: number }) {
  if (attempts.length === 0 || !attempts.every(isTimed)) return null
  const timed = attempts.filter(isTimed)
  const end = Math.max(total, 1, ...timed.map(({ at_ms: at, duration_ms: took }) => at + took))
  const isStreamed = timed.some((attempt) => attempt.first_event_ms !== undefined)
  return html`<div class="waterfall" role="img" aria-label=${timed.map((one, index) => described(one, timed[index - 1])).join(' ')}>
    ${timed.map((attempt, index) => html`<${Bar} key=${index} attempt=${attempt} before=${timed[index - 1]} end=${end} />`)}
    <div class="axis"><span></span><span class="scale"><span>0</span><span>${duration(end / 2)}</span><span>${duration(end)}</span></span></div>
    <p class="legend">${legend(isStreamed).map(([kind, text]) => html`<span key=${kind}><span class=${`piece ${kind}`}></span> ${text}</span>`)}</p>
  </div>`
}

function legend(isStreamed: boolean): (readonly [kind: string, text: string])[] {
  return [
    ['wait', 'waiting'],
    ['first', isStreamed ? 'until the first token' : 'answering'],
    ...(isStreamed ? ([['rest', 'receiving']] as const) : []),
    ['failed', 'failed'],
  ]
}

function isTimed(attempt: Attempt): attempt is TimedAttempt {
  return attempt.at_ms !== undefined && attempt.duration_ms !== undefined
}

function Bar({ attempt, before, end }: { attempt: TimedAttempt; before: TimedAttempt | undefined; end: number }) {
  const { model, outcome, code, at_ms: at, duration_ms: took, first_event_ms: first = took } = attempt
  const waitedFrom = Math.min(endOf(before), at)
  const piece = (kind: string, from: number, ms: number) =>
    ms > 0 &&
    html`<span class=${`piece ${kind}`} style=${{ left: `${(100 * from) / end}%`, width: `${(100 * ms) / end}%` }}></span>`
  const hasFailed = outcome === 'failed'
  return html`<div class="attempt">
    <span class="what"><span class="quiet">${attempt.attempt}</span> <${Name} text=${model} /> <${Outcome} outcome=${outcome} code=${code} /></span>
    <span class="track">
      ${piece('wait', waitedFrom, at - waitedFrom)}
      ${piece(hasFailed ? 'failed' : 'first', at, hasFailed ? took : first)}
      ${!hasFailed && piece(outcome === 'complete' ? 'rest' : 'rest cut', at + first, took - first)}
    </span>
    <span class="took number">${duration(took)}</span>
  </div>`
}

function endOf(attempt: TimedAttempt | undefined): number {
  return attempt ? attempt.at_ms + attempt.duration_ms : 0
}

function described(attempt: TimedAttempt, before: TimedAttempt | undefined): string {
  const {
    attempt: number,
    model = 'no target',
    outcome,
    code,
    at_ms: at,
    duration_ms: took,
    first_event_ms: first,
  } = attempt
  const waited = Math.max(at - endOf(before), 0)
  const parts = [
    `began after ${duration(at)}`,
    ...(waited > 0 ? [`of which ${duration(waited)} waiting`] : []),
    ...(first === undefined ? [] : [`first token after ${duration(first)}`]),
    `took ${duration(took)}`,
    code ?? outcome,
  ]
  return `Attempt ${number}, ${model}: ${parts.join(', ')}.`
}
