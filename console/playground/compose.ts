import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { html } from '../html.ts'
import { TextArea } from '../parts/form.ts'
import type { Turn } from './request.ts'

/** Asks for the next message. */
export function Compose({
  isRunning,
  onStop,
  whyNot,
  onSend,
}: {
  isRunning: boolean
  onStop(): void
  whyNot: string | undefined
  onSend(turn: Turn): void
}) {
  const text = useSignal('')
  const images = useSignal<readonly string[]>([])
  const files = useRef<HTMLInputElement>(null)
  const send = () => {
    if (isRunning || whyNot || (text.value.trim() === '' && images.value.length === 0)) return
    onSend({ role: 'user', text: text.value, images: images.value })
    text.value = ''
    images.value = []
    if (files.current) files.current.value = ''
  }
  const read = async (event: Event) => {
    const chosen = [...((event.currentTarget as HTMLInputElement).files ?? [])]
    images.value = await Promise.all(chosen.map(dataUrl))
  }
  return html`
    <form class="form section" ...${sending(send)}>
      <${TextArea} name="message" label="Message" rows=${3} value=${text.value} onInput=${(typed: string) => (text.value = typed)} hint="Ctrl+Enter sends." />
      <div class="field"><label for="images">Images</label><input id="images" ref=${files} type="file" accept="image/*" multiple onChange=${read} /></div>
      <${SendButtons} isRunning=${isRunning} onStop=${onStop} whyNot=${whyNot} text="Send" />
    </form>
  `
}

/** Returns the handlers of a form that is sent by its button or by Ctrl+Enter. */
export function sending(send: () => void) {
  return {
    onSubmit: (event: Event) => {
      event.preventDefault()
      send()
    },
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send()
    },
  }
}

/** The button that sends, or the one that stops what is running. */
export function SendButtons({
  isRunning,
  onStop,
  whyNot,
  text,
}: {
  isRunning: boolean
  onStop(): void
  whyNot: string | undefined
  text: string
}) {
  return html`<div class="buttons">${isRunning ? html`<button type="button" onClick=${onStop}>Stop</button>` : html`<button type="submit" class="primary" aria-disabled=${whyNot ? 'true' : undefined} title=${whyNot}>${text}</button>`}</div>`
}

function dataUrl(file: File): Promise<string> {
  const reader = new FileReader()
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  reader.onload = () => resolve(String(reader.result))
  reader.onerror = () => reject(reader.error)
  reader.readAsDataURL(file)
  return promise
}

/** Asks for the results of the tools. */
export function Results({
  calls,
  onSend,
}: {
  calls: readonly { id: string; name: string }[]
  onSend(results: Turn[]): void
}) {
  const submit = (event: Event) => {
    event.preventDefault()
    const data = new FormData(event.currentTarget as HTMLFormElement)
    onSend(calls.map(({ id }, index) => ({ role: 'tool', id, text: String(data.get(String(index))) })))
  }
  return html`<form class="form section" onSubmit=${submit}>
    ${calls.map(({ id, name }, index) => html`<${TextArea} key=${id} name=${String(index)} label=${`What ${name.slice(0, 80)} returned`} rows=${2} mono value="{}" />`)}
    <div class="buttons"><button type="submit" class="primary">Send the results</button></div>
  </form>`
}
