import type { ComponentChildren } from 'preact'
import { duration, time, usd } from '../format.ts'
import { html } from '../html.ts'
import { toast } from './toast.ts'

/** Text that people or providers chose: of any length, in any direction. `lines` clips it, and the title has all. */
export function Name({ text, lines = 1, mono = false }: { text: string | undefined; lines?: 1 | 3; mono?: boolean }) {
  if (text === undefined || text === '') return html`<span class="quiet">–</span>`
  const title = text.length > 2_000 ? `${text.slice(0, 2_000)}…` : text
  return html`<bdi dir="auto" class=${`${lines === 1 ? 'clip' : 'clip-lines'}${mono ? ' mono' : ''}`} title=${title}>${text.slice(0, 12_000)}</bdi>`
}

/** An amount of US dollars; the title has all its digits. */
export function Money({ value, isExact = false }: { value: number | undefined; isExact?: boolean }) {
  return value === undefined ? null : html`<span class="number" title=${usd(value, true)}>${usd(value, isExact)}</span>`
}

/** A time where the reader is; the title has it in UTC. */
export function Time({ at }: { at: string | null | undefined }) {
  return at ? html`<time datetime=${at} title=${at}>${time(at)}</time>` : html`<span class="quiet">–</span>`
}

export function Duration({ ms }: { ms: number | undefined }) {
  return ms === undefined ? null : html`<span class="number" title=${`${ms} ms`}>${duration(ms)}</span>`
}

/** A word with a colour, which is never the only sign. */
export function Badge({
  kind = 'neutral',
  children,
}: {
  kind?: 'good' | 'bad' | 'warn' | 'neutral'
  children?: ComponentChildren
}) {
  return html`<span class=${`badge ${kind}`}>${children}</span>`
}

/** Shows how a call ended. */
export function Outcome({ outcome, code }: { outcome: string; code?: string | undefined }) {
  const kind =
    outcome === 'complete' ? 'good' : outcome === 'partial' ? 'warn' : code === 'client_gone' ? 'neutral' : 'bad'
  return html`<${Badge} kind=${kind}>${code ?? outcome}<//>`
}

/** A button that copies a text. */
export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      toast('Copied.')
    } catch {
      toast('The browser does not let this page copy: select the text and copy it yourself.', 'bad')
    }
  }
  return html`<button type="button" class="small" onClick=${copy}>${label}</button>`
}

/** An id that can be copied. */
export function Id({ id }: { id: string }) {
  return html`<span class="id"><code class="clip" title=${id}>${id}</code><${Copy} text=${id} label="Copy" /></span>`
}

/** Names with values, such as labels. */
export function Tags({ of }: { of: { readonly [name: string]: unknown } | undefined }) {
  const entries = Object.entries(of ?? {})
  if (entries.length === 0) return html`<span class="quiet">–</span>`
  return html`<span class="tags">${entries.slice(0, 50).map(([name, value]) => html`<span class="tag" key=${name}><${Name} text=${`${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`} /></span>`)}</span>`
}

/** JSON or other text as it is. */
export function Code({ text, label }: { text: string; label?: string }) {
  return html`<div class="code"><div class="code-head">${label && html`<span class="quiet">${label}</span>`}<${Copy} text=${text} /></div><pre tabindex="0"><code>${text.slice(0, 200_000)}</code></pre></div>`
}
