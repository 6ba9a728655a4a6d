import { useSignal } from '@preact/signals'
import { html } from '../html.ts'
import { callableNames, linesOf } from '../lists.ts'
import { useLoad } from '../load.ts'
import { Field, TextArea, type Values } from './form.ts'
import { Name } from './text.ts'

/** Ids of models, a few of them at once. */
export function ModelList({ ids }: { ids: readonly string[] }) {
  if (ids.length === 0) return html`<span class="quiet">nothing</span>`
  const list = (some: readonly string[]) =>
    html`<ul>${some.map((id) => html`<li key=${id}><${Name} text=${id} mono /></li>`)}</ul>`
  if (ids.length <= few) return list(ids)
  return html`${list(ids.slice(0, few))}<details><summary>${ids.length - few} more</summary>${list(ids.slice(few))}</details>`
}

const few = 5

/** All models, or a list of them that is written with completion. */
export function ModelsField({ name, models }: { name: string; models: readonly string[] | null }) {
  const isLimited = useSignal(models !== null)
  const names = useLoad(callableNames)
  const text = useSignal((models ?? []).join('\n'))
  const add = (found: string) => {
    if (names.data?.includes(found) && !linesOf(text.value).includes(found))
      text.value = [...linesOf(text.value), found].join('\n')
  }
  const toggle = (event: Event) => (isLimited.value = (event.currentTarget as HTMLInputElement).checked)
  return html`
    <div class="field checkbox"><input id="is-limited" name=${`${name}-limited`} type="checkbox" checked=${isLimited.value} onInput=${toggle} /><label for="is-limited">Only these models</label></div>
    ${
      isLimited.value &&
      html`
      <${Field} name="add" label="Add a model, an alias or a policy" options=${names.data ?? []} onInput=${add} />
      <${TextArea} name=${name} label="Models" rows=${6} value=${text.value} onInput=${(typed: string) => (text.value = typed)} hint="One ID per line; openai/* stands for all models of a provider." />`
    }
  `
}

/** Returns the models that were written there; null for all. */
export function modelsIn(values: Values, name: string): string[] | null {
  return values.has(`${name}-limited`) ? linesOf(values.get(name)) : null
}
