import { type Signal, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, ask, errorIn, received } from '../api.ts'
import { count, duration, usd } from '../format.ts'
import { html } from '../html.ts'
import { Field, Select, TextArea } from '../parts/form.ts'
import { Failure, Spinner } from '../parts/page.ts'
import { Table } from '../parts/table.ts'
import { Code, Name } from '../parts/text.ts'
import { SendButtons, sending } from './compose.ts'
import { headersText, shownHeaders } from './conversation.ts'
import { formats, type OperationKind, operationBody, paths, type Settings } from './request.ts'
import type { SettingsProps } from './settings.ts'

/** Result of a call: images by their addresses, a sound, or vectors with the texts that they stand for. */
type Result = {
  images?: string[]
  sound?: string
  vectors?: { text: string; vector: number[] }[]
  cost?: number | undefined
  tookMs: number
  headers: [string, string][]
}

/** One call of a model that makes images, speech or embeddings. */
export class Run {
  readonly result: Signal<Result | undefined> = signal(undefined)
  readonly error: Signal<Error | undefined> = signal(undefined)
  readonly running: Signal<AbortController | undefined> = signal(undefined)

  async start(kind: OperationKind, settings: Settings, otherKey: string): Promise<void> {
    this.clear()
    const aborted = new AbortController()
    this.running.value = aborted
    try {
      this.result.value = await resultOf(kind, settings, { otherKey, signal: aborted.signal })
    } catch (thrown) {
      if (!aborted.signal.aborted) this.error.value = thrown as Error
    }
    if (this.running.value === aborted) this.running.value = undefined
  }

  clear(): void {
    this.running.value?.abort()
    const { sound } = this.result.value ?? {}
    if (sound) URL.revokeObjectURL(sound)
    this.result.value = undefined
    this.error.value = undefined
  }
}

async function resultOf(
  kind: OperationKind,
  settings: Settings,
  { otherKey, signal }: { otherKey: string; signal: AbortSignal },
): Promise<Result> {
  const begun = performance.now()
  const body = operationBody(kind, settings)
  const response = await ask(paths[kind], { method: 'POST', body, signal, ...(otherKey && { as: otherKey }) })
  if (!response.ok) throw await errorIn(response, otherKey === '')
  const headers = shownHeaders(response)
  const made = kind === 'speech' ? await soundIn(response, settings) : madeIn(await received(response.json()), settings)
  const tookMs = performance.now() - begun
  return { ...made, cost: made.cost ?? (await costOf(response, signal)), tookMs, headers }
}

async function soundIn(response: Response, { format }: Settings): Promise<Pick<Result, 'sound' | 'cost'>> {
  const type = `audio/${response.headers.get('x-router-audio-format') ?? (format || 'mpeg')}`
  const cost = response.headers.get('x-router-cost')
  const sound = new Blob([await received(response.arrayBuffer())], { type: type.replace('mp3', 'mpeg') })
  return { sound: URL.createObjectURL(sound), ...(cost !== null && { cost: Number(cost) }) }
}

type Made = {
  data: { b64_json?: string; url?: string; embedding?: number[] }[]
  output_format?: string
  usage?: { cost?: number }
}

function madeIn({ data, output_format: format = 'png', usage }: Made, settings: Settings) {
  const texts = textsIn(settings)
  const images = data.flatMap(({ b64_json: bytes, url }) => {
    const address = bytes === undefined ? url : `data:image/${format};base64,${bytes}`
    return address !== undefined && /^(data:image\/|https?:)/.test(address) ? [address] : []
  })
  const vectors = data.flatMap(({ embedding }, index) =>
    embedding === undefined ? [] : [{ text: texts[index] ?? '', vector: embedding }],
  )
  return { ...(images.length > 0 && { images }), ...(vectors.length > 0 && { vectors }), cost: usage?.cost }
}

function textsIn({ prompt }: Settings): string[] {
  return prompt.split('\n').filter((line) => line.trim() !== '')
}

/** Returns the cost that the ledger has for a call whose answer does not say it. */
async function costOf(response: Response, signal: AbortSignal): Promise<number | undefined> {
  const id = response.headers.get('x-request-id') ?? ''
  const found = api<{ cost: number }>(`v1/manage/calls/${encodeURIComponent(id)}`, { signal })
  return (await found.catch(() => undefined))?.cost
}

const prompts: { readonly [kind in OperationKind]: readonly [label: string, hint: string] } = {
  image: ['Prompt', 'Ctrl+Enter sends.'],
  speech: ['Text', 'Ctrl+Enter sends.'],
  embed: ['Texts', 'One per line. Ctrl+Enter sends.'],
}

/** Asks for the prompt, and shows what the models have made of it. */
export function Operation({
  kind,
  settings,
  change,
  runs,
  onSend,
  whyNot,
}: SettingsProps & {
  kind: OperationKind
  runs: readonly { model: string; run: Run }[]
  onSend(): void
  whyNot: string | undefined
}) {
  const stop = () => {
    for (const { run } of runs) run.running.value?.abort()
  }
  const clear = () => {
    for (const { run } of runs) run.clear()
  }
  useEffect(() => clear, [kind])
  const isRunning = runs.some(({ run }) => run.running.value !== undefined)
  const [label, hint] = prompts[kind]
  const send = () => {
    if (!isRunning && !whyNot && settings.prompt.trim() !== '') onSend()
  }
  return html`
    <form class="form" ...${sending(send)}>
      <${TextArea} name="prompt" label=${label} rows=${3} value=${settings.prompt} onInput=${(prompt: string) => change({ prompt })} hint=${hint} />
      <div class="row">
        ${kind === 'image' && html`<${Field} name="size" label="Size" value=${settings.size} placeholder="1024x1024" onInput=${(size: string) => change({ size: size.trim() })} />`}
        ${kind === 'speech' && html`<${Field} name="voice" label="Voice" value=${settings.voice} placeholder="alloy" onInput=${(voice: string) => change({ voice: voice.trim() })} />`}
        ${kind === 'speech' && html`<${Select} name="format" label="Format" value=${settings.format} options=${formats} onInput=${(format: string) => change({ format })} />`}
        ${kind === 'embed' && html`<${Field} name="dimensions" label="Dimensions" type="number" min=${1} step=${1} value=${settings.dimensions} onInput=${(dimensions: string) => change({ dimensions })} />`}
      </div>
      <${SendButtons} isRunning=${isRunning} onStop=${stop} whyNot=${whyNot} text="Send" />
    </form>
    <div class=${runs.length > 1 ? 'side-by-side' : ''}>
      ${runs.map(({ model, run }, index) => html`<section key=${index} class="section" aria-label=${model}>${runs.length > 1 && html`<h2><${Name} text=${model} /></h2>`}<${Outcome} run=${run} prompt=${settings.prompt} /></section>`)}
    </div>
  `
}

function Outcome({ run: { result, error, running }, prompt }: { run: Run; prompt: string }) {
  if (error.value) return html`<${Failure} error=${error.value} />`
  if (running.value) return html`<${Spinner} />`
  if (!result.value) return html`<p class="empty">No result yet. Nothing is stored.</p>`
  const { images = [], sound, vectors, cost, tookMs, headers } = result.value
  const facts = [cost !== undefined && usd(cost), `took ${duration(tookMs)}`].filter(Boolean)
  return html`
    <article class="turn" aria-label="Result">
      ${images.map((url, index) => (url.startsWith('data:') ? html`<img key=${index} src=${url} alt=${prompt.slice(0, 200)} />` : html`<a key=${index} href=${url}>${url}</a>`))}
      ${sound && html`<audio controls src=${sound} aria-label="The speech"></audio>`}
      ${vectors && html`<${Vectors} vectors=${vectors} />`}
      <p class="hint">${facts.join(' · ')}</p>
      <details><summary class="hint">Headers</summary><${Code} text=${headersText(headers)} /></details>
    </article>
  `
}

type Vector = NonNullable<Result['vectors']>[number]

function Vectors({ vectors }: { vectors: readonly Vector[] }) {
  const [first] = vectors
  return html`<${Table} label="Embeddings" rows=${vectors} keyOf=${(one: Vector) => String(vectors.indexOf(one))} columns=${[
    { head: 'Text', cell: ({ text }: Vector) => html`<${Name} text=${text} />` },
    { head: 'Dimensions', isNumber: true, cell: ({ vector }: Vector) => count(vector.length) },
    {
      head: 'Similarity to the first',
      isNumber: true,
      cell: ({ vector }: Vector) => cosine(first?.vector ?? [], vector).toFixed(3),
    },
    {
      head: 'Begins with',
      isMinor: true,
      cell: ({ vector }: Vector) =>
        vector
          .slice(0, 3)
          .map((one) => one.toFixed(4))
          .join(', '),
    },
  ]} />`
}

function cosine(one: readonly number[], other: readonly number[]): number {
  const product = (left: readonly number[], right: readonly number[]) =>
    left.reduce((sum, value, index) => sum + value * (right[index] ?? 0), 0)
  return product(one, other) / (Math.sqrt(product(one, one)) * Math.sqrt(product(other, other)) || 1)
}
