import { type Signal, signal } from '@preact/signals'
import { ask, errorIn, frames, received } from '../api.ts'
import { count, duration, usd } from '../format.ts'
import { html } from '../html.ts'
import { Failure } from '../parts/page.ts'
import { Code } from '../parts/text.ts'
import { type Answer, countsOf, emptyAnswer, take, whole } from './answer.ts'
import { bodyOf, paths, type Settings, type ToolCall, type Turn } from './request.ts'

/** Facts about an answer besides its text. */
type Facts = {
  firstMs?: number | undefined
  tookMs?: number | undefined
  headers: [string, string][]
  answer: Answer
}
type Entry = { turn: Turn; facts?: Facts }

/** A conversation with one model; with two models side by side there are two. Nothing of it is kept. */
export class Conversation {
  readonly entries: Signal<readonly Entry[]> = signal([])
  readonly error: Signal<Error | undefined> = signal(undefined)
  readonly running: Signal<AbortController | undefined> = signal(undefined)

  get turns(): Turn[] {
    return this.entries.value.map(({ turn }) => turn)
  }

  /** Returns the calls of the last answer, which it waits for the results of. */
  get openCalls(): readonly ToolCall[] {
    const last = this.entries.value.at(-1)?.turn
    return last?.role === 'assistant' && !this.running.value && !this.error.value ? last.calls : []
  }

  /** Checks whether the answer to the last turn is missing or incomplete. */
  get isUnanswered(): boolean {
    const last = this.entries.value.at(-1)?.turn
    const isMissing = last !== undefined && (last.role !== 'assistant' || this.error.value !== undefined)
    return isMissing && !this.running.value
  }

  begin(turns: readonly Turn[]): void {
    this.running.value?.abort()
    this.entries.value = turns.map((turn) => ({ turn }))
    this.error.value = undefined
  }

  /** Adds turns and asks for the next one; without any, an answer that is incomplete is requested again. */
  async send(settings: Settings, added: readonly Turn[], otherKey: string): Promise<void> {
    const isAgain = added.length === 0 && this.entries.value.at(-1)?.turn.role === 'assistant'
    const before = isAgain ? this.entries.value.slice(0, -1) : this.entries.value
    const asked = [...before, ...added.map((turn) => ({ turn }))]
    this.error.value = undefined
    this.entries.value = asked
    const aborted = new AbortController()
    this.running.value = aborted
    try {
      for await (const facts of answers(settings, this.turns, { otherKey, signal: aborted.signal })) {
        const { text, calls } = facts.answer
        this.entries.value = [
          ...asked,
          { turn: { role: 'assistant', text, calls: calls.map((call) => ({ ...call })) }, facts },
        ]
      }
    } catch (thrown) {
      if (!aborted.signal.aborted) this.error.value = thrown as Error
    }
    if (this.running.value === aborted) this.running.value = undefined
  }
}

/** Yields an answer as it comes. Throws ApiError. */
async function* answers(
  settings: Settings,
  turns: readonly Turn[],
  { otherKey, signal }: { otherKey: string; signal: AbortSignal },
): AsyncGenerator<Facts> {
  const { api, isStreamed } = settings
  const begun = performance.now()
  const since = () => performance.now() - begun
  const body = bodyOf(settings, turns)
  const response = await ask(paths[api], { method: 'POST', body, signal, ...(otherKey && { as: otherKey }) })
  if (!response.ok) throw await errorIn(response, otherKey === '')
  const facts: Facts = { headers: shownHeaders(response), answer: emptyAnswer() }
  if (!isStreamed) {
    yield { ...facts, answer: whole(api, await received(response.json())), firstMs: since(), tookMs: since() }
    return
  }
  let firstMs: number | undefined
  for await (const { data } of frames(response)) {
    take(api, facts.answer, data)
    const { text, reasoning, calls } = facts.answer
    if (text !== '' || reasoning !== '' || calls.length > 0) firstMs ??= since()
    yield { ...facts, firstMs }
  }
  yield { ...facts, firstMs, tookMs: since() }
}

/** Returns the headers that the router itself has added. */
export function shownHeaders({ headers }: Response): [string, string][] {
  return [...headers].filter(([name]) => /^x-r(outer|equest|atelimit)|^retry-after$/.test(name))
}

/** The turns of a conversation; `name` is the model, where there are two side by side. */
export function Turns({ of: { entries, error }, name }: { of: Conversation; name?: string | undefined }) {
  return html`
    ${entries.value.length === 0 && html`<p class="empty">No messages yet. Nothing is stored.</p>`}
    ${entries.value.map((one, index) => html`<${OneTurn} key=${index} ...${one} name=${name} />`)}
    ${error.value && html`<${Failure} error=${error.value} />`}
  `
}

function OneTurn({ turn, facts, name }: Entry & { name?: string | undefined }) {
  const who = { user: 'You', assistant: 'Model', tool: 'Result' }[turn.role]
  return html`
    <article class="turn" aria-label=${name === undefined ? who : `${who}, ${name}`}>
      <h3>${who}</h3>
      ${facts?.answer.reasoning && html`<details><summary>Reasoning</summary><p class="message-text quiet" dir="auto">${facts.answer.reasoning}</p></details>`}
      <p class="message-text" dir="auto">${turn.text}</p>
      ${turn.role === 'user' && turn.images.map((url, index) => html`<img key=${index} src=${url} alt="Sent with the message" />`)}
      ${turn.role === 'assistant' && turn.calls.map((call) => html`<${Code} key=${call.id} label=${`calls ${call.name}`} text=${call.arguments} />`)}
      ${facts?.answer.error && html`<${Failure} error=${new Error(facts.answer.error)} />`}
      ${facts && html`<${AnswerFacts} ...${facts} />`}
    </article>
  `
}

function AnswerFacts({ answer, firstMs, tookMs, headers }: Facts) {
  const { cost, input, output } = countsOf(answer)
  const facts = [
    cost !== undefined && usd(cost),
    input !== undefined && `${count(input)} tokens in`,
    output !== undefined && `${count(output)} out`,
    firstMs !== undefined && `first token after ${duration(firstMs)}`,
    tookMs !== undefined && `took ${duration(tookMs)}`,
    answer.finish && `finish reason: ${answer.finish}`,
  ].filter(Boolean)
  return html`
    <p class="hint">${facts.join(' · ')}</p>
    <details><summary class="hint">Headers and usage</summary><${Code} text=${`${headersText(headers)}\n\n${JSON.stringify(answer.usage ?? {}, null, 2)}`} /></details>
  `
}

export function headersText(headers: readonly (readonly [string, string])[]): string {
  return headers.map(([name, value]) => `${name}: ${value}`).join('\n')
}
