import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { ApiError } from '../api.ts'
import { html } from '../html.ts'
import { Failure } from './page.ts'

/** Texts of the fields of a form, by name. */
export type Values = { get(name: string): string; all(name: string): string[]; has(name: string): boolean }

export type FormProps = {
  /** Sends the values of the fields. An error that it throws is shown, at its field where that is known. */
  onSubmit(values: Values): Promise<void>
  submit: string
  onCancel?: (() => void) | undefined
  /** Reason why it cannot be sent. */
  whyNot?: string | undefined
  isDangerous?: boolean
  children?: ComponentChildren
}

/** The field that was wrong, and why, of the form around a field. */
type Wrong = { param: string | undefined; message: string }

/** Fields, and a button that sends them. An error stands at the field that it names. */
export function Form({ onSubmit, submit, onCancel, whyNot, isDangerous = false, children }: FormProps) {
  const error = useSignal<Error | undefined>(undefined)
  const isBusy = useSignal(false)
  const form = useRef<HTMLFormElement>(null)
  const id = useId()
  useEffect(() => markField(form.current, error.value, id))
  const send = async (event: SubmitEvent) => {
    event.preventDefault()
    if (isBusy.value || whyNot !== undefined) return
    isBusy.value = true
    error.value = undefined
    try {
      await onSubmit(valuesIn(event.currentTarget as HTMLFormElement))
    } catch (thrown) {
      error.value = thrown as Error
    }
    isBusy.value = false
  }
  return html`
    <form ref=${form} class="form" onSubmit=${send} novalidate=${false}>
      ${children}
      <div id=${`${id}-error`}>${error.value && html`<${Failure} error=${error.value} />`}</div>
      <div class="buttons">
        ${onCancel && html`<button type="button" onClick=${onCancel}>Cancel</button>`}
        <${Button} type="submit" kind=${isDangerous ? 'danger' : 'primary'} whyNot=${whyNot} isBusy=${isBusy.value}>${submit}<//>
      </div>
    </form>
  `
}

/** Marks the field that an error names as wrong, and describes it by the error. */
function markField(form: HTMLFormElement | null, error: Error | undefined, id: string): void {
  const wrong: Wrong | undefined = error && {
    param: error instanceof ApiError ? error.param : undefined,
    message: error.message,
  }
  for (const field of form?.querySelectorAll<HTMLElement>('[name]') ?? []) {
    const name = field.getAttribute('name') ?? ''
    const isWrong =
      wrong?.param !== undefined &&
      (wrong.param === name || wrong.param.startsWith(`${name}.`) || wrong.param.startsWith(`${name}[`))
    if (isWrong) {
      field.setAttribute('aria-invalid', 'true')
      field.setAttribute('aria-errormessage', `${id}-error`)
      field.focus()
    } else {
      field.removeAttribute('aria-invalid')
      field.removeAttribute('aria-errormessage')
    }
  }
}

function valuesIn(form: HTMLFormElement): Values {
  const data = new FormData(form)
  return {
    get: (name) => String(data.get(name) ?? '').trim(),
    all: (name) => data.getAll(name).map(String),
    has: (name) => data.has(name),
  }
}

export type FieldProps = {
  name: string
  label: string
  hint?: ComponentChildren
  value?: string | number | undefined
  type?: 'text' | 'number' | 'datetime-local' | 'date' | 'password' | 'search'
  required?: boolean
  placeholder?: string
  /** Suggestions for completion. */
  options?: readonly string[]
  min?: number
  step?: number | 'any'
  onInput?: (value: string) => void
  /** Called with a value that is complete: chosen, left, or confirmed. */
  onChange?: (value: string) => void
}

/** A line of text, or a number. */
export function Field({
  name,
  label,
  hint,
  value = '',
  type = 'text',
  options,
  onInput,
  onChange,
  ...more
}: FieldProps) {
  const id = useId()
  const input = ({ currentTarget }: Event) => {
    const { value: typed } = currentTarget as HTMLInputElement
    onInput?.(typed)
    // Nothing is as complete as what is offered.
    if (typed === '' || options?.includes(typed)) onChange?.(typed)
  }
  const change = (event: Event) => onChange?.((event.currentTarget as HTMLInputElement).value)
  const element = useRef<HTMLInputElement>(null)
  // What is written stays as it is until it is complete; then it is the name of what was found, or that of another address.
  useEffect(() => {
    if (onChange && element.current) element.current.value = String(value)
  }, [value])
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      <input ref=${element} id=${id} name=${name} type=${type} defaultValue=${String(value)} autocomplete="off" spellcheck="false" dir="auto"
        list=${options && `${id}-options`} aria-describedby=${hint ? `${id}-hint` : undefined} onInput=${(onInput ?? onChange) && input} onChange=${onChange && change} ...${more} />
      ${options && html`<datalist id=${`${id}-options`}>${options.slice(0, mostOptions).map((option) => html`<option key=${option} value=${option} />`)}</datalist>`}
      ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
    </div>
  `
}

/** Maximum number of options: browsers become slow with more. */
const mostOptions = 4_000

/** Text field of several lines. */
export function TextArea({
  name,
  label,
  hint,
  value = '',
  rows = 4,
  mono = false,
  onInput,
}: Pick<FieldProps, 'name' | 'label' | 'hint' | 'onInput'> & { value?: string; rows?: number; mono?: boolean }) {
  const id = useId()
  const input = (event: Event) => onInput?.((event.currentTarget as HTMLTextAreaElement).value)
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      <textarea id=${id} name=${name} rows=${rows} class=${mono ? 'mono' : ''} dir="auto" spellcheck=${!mono} value=${value} aria-describedby=${hint ? `${id}-hint` : undefined} onInput=${onInput && input}></textarea>
      ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
    </div>
  `
}

/** One of several values. */
export function Select({
  name,
  label,
  hint,
  value,
  options,
  onInput,
}: {
  name: string
  label: string
  hint?: ComponentChildren
  value?: string | undefined
  options: readonly (readonly [value: string, text: string])[]
  onInput?: (value: string) => void
}) {
  const id = useId()
  const input = (event: Event) => onInput?.((event.currentTarget as HTMLSelectElement).value)
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      <select id=${id} name=${name} aria-describedby=${hint ? `${id}-hint` : undefined} onInput=${onInput && input}>
        ${options.map(([one, text]) => html`<option key=${one} value=${one} selected=${one === value}>${text}</option>`)}
      </select>
      ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
    </div>
  `
}

export function Checkbox({
  name,
  label,
  hint,
  checked = false,
  onInput,
}: {
  name: string
  label: string
  hint?: ComponentChildren
  checked?: boolean
  onInput?: (checked: boolean) => void
}) {
  const id = useId()
  const input = (event: Event) => onInput?.((event.currentTarget as HTMLInputElement).checked)
  return html`
    <div class="field checkbox">
      <input id=${id} name=${name} type="checkbox" defaultChecked=${checked} aria-describedby=${hint ? `${id}-hint` : undefined} onInput=${onInput && input} />
      <label for=${id}>${label}</label>
      ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
    </div>
  `
}

export type ButtonProps = {
  onClick?: (() => void) | undefined
  type?: 'button' | 'submit'
  kind?: 'plain' | 'primary' | 'danger' | 'small' | 'link'
  /** Reason why it does nothing: it can still be focused, and shows the reason. */
  whyNot?: string | undefined
  isBusy?: boolean
  children?: ComponentChildren
}

/** A button that shows why it is disabled, if it is. */
export function Button({ onClick, type = 'button', kind = 'plain', whyNot, isBusy = false, children }: ButtonProps) {
  const id = useId()
  const isOff = whyNot !== undefined
  return html`<button type=${type} class=${kind} aria-disabled=${isOff || isBusy ? 'true' : undefined} title=${whyNot}
    aria-describedby=${isOff ? id : undefined} onClick=${isOff ? (event: Event) => event.preventDefault() : onClick}>${children}${isOff && html`<span class="sr-only" id=${id}>${whyNot}</span>`}</button>`
}
