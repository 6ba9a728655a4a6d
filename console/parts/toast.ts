import { signal } from '@preact/signals'
import { html } from '../html.ts'

type Toast = { id: number; text: string; kind: 'good' | 'bad' }

const shown = signal<readonly Toast[]>([])
let last = 0
const shownMs = 5_000

/** Shows that something has been done, or why not. */
export function toast(text: string, kind: Toast['kind'] = 'good'): void {
  const id = ++last
  shown.value = [...shown.value, { id, text, kind }]
  setTimeout(() => {
    shown.value = shown.value.filter((one) => one.id !== id)
  }, shownMs)
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">${shown.value.map(
    ({ id, text, kind }) => html`<p key=${id} class=${`toast ${kind}`}><bdi dir="auto">${text}</bdi></p>`,
  )}</div>`
}
