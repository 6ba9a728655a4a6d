import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { html } from '../html.ts'
import { Form } from './form.ts'
import { Copy } from './text.ts'

/** A dialog in front of the page, for as long as it is part of it. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string
  onClose: () => void
  children?: ComponentChildren
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    // The focus goes back where it was.
    const before = document.activeElement as HTMLElement | null
    dialog.current?.showModal()
    // Not the button that closes it, which comes first.
    dialog.current?.querySelector<HTMLElement>(firstField)?.focus()
    return () => before?.focus()
  }, [])
  return html`
    <dialog ref=${dialog} aria-labelledby=${id} onCancel=${(event: Event) => {
      event.preventDefault()
      onClose()
    }}>
      <div class="dialog-head"><h2 id=${id}>${title}</h2><button type="button" class="small" aria-label="Close" onClick=${onClose}>✕</button></div>
      ${children}
    </dialog>
  `
}

/** The element that has the focus when a dialog opens: its first field, or else its own button. */
const firstField =
  ':is(input, select, textarea):not([type="hidden"], [type="checkbox"]), .buttons .primary, .buttons button'

/** Asks before something is done that cannot be undone. */
export function Confirm({
  title,
  submit,
  onConfirm,
  onClose,
  children,
}: {
  title: string
  submit: string
  onConfirm(): Promise<void>
  onClose(): void
  children?: ComponentChildren
}) {
  const confirm = async () => {
    await onConfirm()
    onClose()
  }
  return html`<${Dialog} title=${title} onClose=${onClose}><${Form} submit=${submit} isDangerous onCancel=${onClose} onSubmit=${confirm}>${children}<//><//>`
}

/** A secret, shown only now. */
export function Secret({ title, secret, onClose }: { title: string; secret: string; onClose(): void }) {
  return html`
    <${Dialog} title=${title} onClose=${onClose}>
      <p>Copy the key now: it is displayed only once, and the router stores no copy of it.</p>
      <p class="secret"><code>${secret}</code> <${Copy} text=${secret} label="Copy the key" /></p>
      <div class="buttons"><button type="button" class="primary" onClick=${onClose}>Done</button></div>
    <//>
  `
}
