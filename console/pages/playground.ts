import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { ask, errorIn, frames } from '../api.ts'
import { count, duration, usd } from '../format.ts'
import { html } from '../html.ts'
import { callableNames } from '../lists.ts'
import { useLoad } from '../load.ts'
import { Checkbox, Field, Select, TextArea } from '../parts/form.ts'
import { Failure, Page, Section } from '../parts/page.ts'
import { Code, Name } from '../parts/text.ts'
import type { PageProps } from '../place.ts'
import { type Answer, countsOf, emptyAnswer, take, whole } from '../playground/answer.ts'
import { codeFor, keyVariable, type Language, languageNames, languages } from '../playground/code.ts'
import { type ApiName, apis, bodyOf, paths, type Settings, type Turn } from '../playground/request.ts'
import { self } from '../session.ts'

/** Facts about an answer besides its text. */
type Facts = {
  firstMs?: number | undefined
  tookMs?: number | undefined
  status?: number
  headers: [string, string][]
  answer: Answer
}
type Said = { turn: Turn; facts?: Facts }

const efforts = [
  ['', 'Default'],
  ['low', 'Low'],
  ['medium', 'Medium'],
  ['high', 'High'],
] as const

/** A conversation with any model, by each of the three APIs. Nothing of it is kept. */
export default function Playground({ query }: PageProps) {
  const settings = useSignal<Settings>({
    api: 'chat',
    model: query.get('model') ?? '',
    system: '',
    temperature: '',
    most: '',
    effort: '',
    tools: '',
    isStreamed: true,
  })
  const said = useSignal<readonly Said[]>([])
  const error = useSignal<Error | undefined>(undefined)
  const running = useSignal<AbortController | undefined>(undefined)
  const otherKey = useSignal('')
  const change = (changes: Partial<Settings>) => (settings.value = { ...settings.value, ...changes })
  const turns = said.value.map(({ turn }) => turn)
  const open = openCalls(turns)

  const send = async (asked: readonly Said[]) => {
    error.value = undefined
    said.value = asked
    const aborted = new AbortController()
    running.value = aborted
    try {
      for await (const facts of answers(
        settings.value,
        asked.map(({ turn }) => turn),
        otherKey.value,
        aborted.signal,
      )) {
        const { text, calls } = facts.answer
        said.value = [...asked, { turn: { role: 'assistant', text, calls: calls.map((call) => ({ ...call })) }, facts }]
      }
    } catch (thrown) {
      if (!aborted.signal.aborted) error.value = thrown as Error
    }
    running.value = undefined
  }

  return html`
    <${Page} title="Playground" actions=${html`<button type="button" onClick=${() => {
      running.value?.abort()
      said.value = []
      error.value = undefined
    }}>New conversation</button>`}>
      <div class="columns settings-first">
        <${SettingsForm} settings=${settings.value} change=${change} otherKey=${otherKey} />
        <div>
          ${said.value.length === 0 && html`<p class="empty">No messages yet. Nothing is stored.</p>`}
          ${said.value.map((one, index) => html`<${OneTurn} key=${index} ...${one} />`)}
          ${error.value && html`<${Failure} error=${error.value} />`}
          ${
            open.length > 0 && !running.value
              ? html`<${Results} calls=${open} onSend=${(results: Turn[]) => void send([...said.value, ...results.map((turn) => ({ turn }))])} />`
              : html`<${Compose} running=${running.value} whyNot=${settings.value.model === '' ? 'Choose a model first.' : undefined} onSend=${(turn: Turn) => void send([...said.value, { turn }])} />`
          }
          <${SameCall} settings=${settings.value} turns=${turns.at(-1)?.role === 'assistant' ? turns.slice(0, -1) : turns} />
        </div>
      </div>
    <//>
  `
}

/** Returns the calls of the last answer, which it waits for the results of. */
function openCalls(turns: readonly Turn[]) {
  const last = turns.at(-1)
  return last?.role === 'assistant' ? last.calls : []
}

/** Yields an answer as it comes. Throws ApiError. */
async function* answers(
  settings: Settings,
  turns: readonly Turn[],
  otherKey: string,
  signal: AbortSignal,
): AsyncGenerator<Facts> {
  const { api, isStreamed } = settings
  const begun = performance.now()
  const since = () => performance.now() - begun
  const response = await ask(paths[api], {
    method: 'POST',
    body: bodyOf(settings, turns),
    signal,
    ...(otherKey && { as: otherKey }),
  })
  const headers = [...response.headers].filter(([name]) => /^x-r(outer|equest|atelimit)|^retry-after$/.test(name))
  if (!response.ok) throw await errorIn(response, otherKey === '')
  const facts: Facts = { status: response.status, headers, answer: emptyAnswer() }
  if (!isStreamed) {
    yield { ...facts, answer: whole(api, await response.json()), firstMs: since(), tookMs: since() }
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

function OneTurn({ turn, facts }: Said) {
  const who = { user: 'You', assistant: 'Model', tool: 'Result' }[turn.role]
  return html`
    <article class="turn" aria-label=${who}>
      <h3>${who}</h3>
      ${facts?.answer.reasoning && html`<details><summary>Reasoning</summary><p class="said quiet" dir="auto">${facts.answer.reasoning}</p></details>`}
      <p class="said" dir="auto">${turn.text}</p>
      ${turn.role === 'user' && turn.images.map((url, index) => html`<img key=${index} src=${url} alt="Sent with the message" />`)}
      ${turn.role === 'assistant' && turn.calls.map((call) => html`<${Code} key=${call.id} label=${`calls ${call.name}`} text=${call.arguments} />`)}
      ${facts?.answer.error && html`<${Failure} error=${new Error(facts.answer.error)} />`}
      ${facts && html`<${AnswerFacts} ...${facts} />`}
    </article>
  `
}

function AnswerFacts({ answer, firstMs, tookMs, headers }: Facts) {
  const { cost, input, output } = countsOf(answer)
  const told = [
    cost !== undefined && usd(cost),
    input !== undefined && `${count(input)} tokens in`,
    output !== undefined && `${count(output)} out`,
    firstMs !== undefined && `first token after ${duration(firstMs)}`,
    tookMs !== undefined && `took ${duration(tookMs)}`,
    answer.finish,
  ].filter(Boolean)
  return html`
    <p class="hint">${told.join(' · ')}</p>
    <details><summary class="hint">Headers and usage</summary><${Code} text=${`${headers.map(([name, value]) => `${name}: ${value}`).join('\n')}\n\n${JSON.stringify(answer.usage ?? {}, null, 2)}`} /></details>
  `
}

function Compose({
  running,
  whyNot,
  onSend,
}: {
  running: AbortController | undefined
  whyNot: string | undefined
  onSend(turn: Turn): void
}) {
  const text = useSignal('')
  const images = useSignal<readonly string[]>([])
  const files = useRef<HTMLInputElement>(null)
  const send = () => {
    if (running || whyNot || (text.value.trim() === '' && images.value.length === 0)) return
    onSend({ role: 'user', text: text.value, images: images.value })
    text.value = ''
    images.value = []
    if (files.current) files.current.value = ''
  }
  const read = async (event: Event) => {
    const chosen = [...((event.currentTarget as HTMLInputElement).files ?? [])]
    images.value = await Promise.all(chosen.map(dataUrl))
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send()
  }
  return html`
    <form class="form section" onSubmit=${(event: Event) => {
      event.preventDefault()
      send()
    }} onKeyDown=${onKey}>
      <${TextArea} name="message" label="Message" rows=${3} value=${text.value} onInput=${(typed: string) => (text.value = typed)} hint="Ctrl+Enter sends." />
      <div class="field"><label for="images">Images</label><input id="images" ref=${files} type="file" accept="image/*" multiple onChange=${read} /></div>
      <div class="buttons">
        ${running ? html`<button type="button" onClick=${() => running.abort()}>Stop</button>` : html`<button type="submit" class="primary" aria-disabled=${whyNot ? 'true' : undefined} title=${whyNot}>Send</button>`}
      </div>
    </form>
  `
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
function Results({ calls, onSend }: { calls: readonly { id: string; name: string }[]; onSend(results: Turn[]): void }) {
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

function SettingsForm({
  settings,
  change,
  otherKey,
}: {
  settings: Settings
  change(changes: Partial<Settings>): void
  otherKey: { value: string }
}) {
  const names = useLoad(callableNames)
  const mayCall = self.value?.permissions.completions === 'write'
  return html`
    <form class="form" aria-label="Settings" onSubmit=${(event: Event) => event.preventDefault()}>
      ${!mayCall && html`<p class="note">The key that you are signed in with cannot call models: enter another one. It is not stored.</p><${Field} name="key" label="Key for calls" type="password" onInput=${(text: string) => (otherKey.value = text.trim())} />`}
      <${Field} name="model" label="Model" value=${settings.model} options=${names.data ?? []} placeholder="openai/gpt-5" onInput=${(model: string) => change({ model: model.trim() })} />
      <${Select} name="api" label="API" value=${settings.api} options=${apis} onInput=${(api: ApiName) => change({ api })} />
      <${Checkbox} name="stream" label="Streamed" checked=${settings.isStreamed} onInput=${(isStreamed: boolean) => change({ isStreamed })} />
      <${TextArea} name="system" label="System prompt" rows=${3} value=${settings.system} onInput=${(system: string) => change({ system })} />
      <div class="row">
        <${Field} name="temperature" label="Temperature" type="number" min=${0} step="any" onInput=${(temperature: string) => change({ temperature })} />
        <${Field} name="most" label="Max tokens" type="number" min=${1} step=${1} onInput=${(most: string) => change({ most })} />
      </div>
      <${Select} name="effort" label="Reasoning" value=${settings.effort} options=${efforts} onInput=${(effort: string) => change({ effort })} />
      <${TextArea} name="tools" label="Tools" rows=${5} mono value=${settings.tools} onInput=${(tools: string) => change({ tools })} hint=${'A JSON array: [{"name": …, "description": …, "parameters": {…}}]'} />
    </form>
  `
}

/** The same call in other words. */
function SameCall({ settings, turns }: { settings: Settings; turns: readonly Turn[] }) {
  const language = useSignal<Language>('curl')
  const base = new URL('..', location.href.split('#')[0]).href.replace(/\/$/, '')
  let code: string
  try {
    const said = turns.length > 0 ? turns : [{ role: 'user', text: 'Hello', images: [] } as const]
    code = codeFor(
      language.value,
      settings.api,
      bodyOf({ ...settings, model: settings.model || 'demo/echo' }, said),
      base,
    )
  } catch (thrown) {
    code = (thrown as Error).message
  }
  return html`<${Section} title="The same call in code" actions=${html`<span role="group" aria-label="Language">${languages.map((one) => html`<button key=${one} type="button" class="small" aria-pressed=${one === language.value} onClick=${() => (language.value = one)}>${languageNames[one]}</button> `)}</span>`}>
    <p class="hint">The key comes from the environment variable <${Name} text=${keyVariable} mono />.</p>
    <${Code} text=${code} />
  <//>`
}
