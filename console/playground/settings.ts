import { api } from '../api.ts'
import { html } from '../html.ts'
import { callableNames } from '../lists.ts'
import { useLoad } from '../load.ts'
import { Checkbox, Field, Select, TextArea } from '../parts/form.ts'
import { self } from '../session.ts'
import { type ApiName, apis, type Kind, kinds, type Settings } from './request.ts'

const efforts = [
  ['', 'Default'],
  ['low', 'Low'],
  ['medium', 'Medium'],
  ['high', 'High'],
] as const

export type SettingsProps = { settings: Settings; change(changes: Partial<Settings>): void }

/** The settings that come before the message: the kind of call, and who serves it. */
export function MainSettings({ settings, change, otherKey }: SettingsProps & { otherKey: { value: string } }) {
  const { kind } = settings
  const names = useLoad((signal) => namesOf(kind, signal), [kind])
  const mayCall = self.value?.permissions.completions === 'write'
  return html`
    <form class="form" aria-label="Call" onSubmit=${(event: Event) => event.preventDefault()}>
      ${!mayCall && html`<p class="note">The key that you are signed in with cannot call models: enter another one. It is not stored.</p><${Field} name="key" label="Key for calls" type="password" onInput=${(text: string) => (otherKey.value = text.trim())} />`}
      <${Select} name="kind" label="Kind" value=${kind} options=${kinds} onInput=${(chosen: Kind) => change({ kind: chosen, model: '', second: '' })} />
      <${Field} key=${`${kind} model`} name="model" label="Model" value=${settings.model} options=${names.data ?? []} placeholder=${placeholders[kind]} onInput=${(model: string) => change({ model: model.trim() })} />
      <${Field} key=${`${kind} second`} name="second" label="Second model" value=${settings.second} options=${names.data ?? []} onInput=${(second: string) => change({ second: second.trim() })} hint="Both get the same requests, side by side." />
      ${kind === 'chat' && html`<${Select} name="api" label="API" value=${settings.api} options=${apis} onInput=${(api: ApiName) => change({ api })} />`}
    </form>
  `
}

const placeholders: { readonly [kind in Kind]: string } = {
  chat: 'openai/gpt-5',
  image: 'openai/gpt-image-1',
  speech: 'openai/gpt-4o-mini-tts',
  embed: 'openai/text-embedding-3-small',
}

/** Returns the names that can be called for a kind. */
async function namesOf(kind: Kind, signal: AbortSignal): Promise<string[]> {
  if (kind === 'chat') return await callableNames(signal)
  const path = kind === 'embed' ? 'embedding' : kind
  const { data } = await api<{ data: { id: string }[] }>(`v1/models/${path}`, { signal })
  return data.map(({ id }) => id)
}

/** The settings of a conversation that are seldom changed. */
export function ChatSettings({ settings, change }: SettingsProps) {
  return html`
    <form class="form" aria-label="Settings" onSubmit=${(event: Event) => event.preventDefault()}>
      <${Checkbox} name="stream" label="Streamed" checked=${settings.isStreamed} onInput=${(isStreamed: boolean) => change({ isStreamed })} />
      <${TextArea} name="system" label="System prompt" rows=${3} value=${settings.system} onInput=${(system: string) => change({ system })} />
      <div class="row">
        <${Field} name="temperature" label="Temperature" type="number" min=${0} step="any" value=${settings.temperature} onInput=${(temperature: string) => change({ temperature })} />
        <${Field} name="most" label="Max tokens" type="number" min=${1} step=${1} value=${settings.most} onInput=${(most: string) => change({ most })} />
      </div>
      <${Select} name="effort" label="Reasoning" value=${settings.effort} options=${efforts} onInput=${(effort: string) => change({ effort })} />
      <${TextArea} name="tools" label="Tools" rows=${5} mono value=${settings.tools} onInput=${(tools: string) => change({ tools })} hint=${'A JSON array: [{"name": …, "description": …, "parameters": {…}}]'} />
    </form>
  `
}
