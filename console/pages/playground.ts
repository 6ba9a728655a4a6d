import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { UnreachableError } from '../api.ts'
import { html } from '../html.ts'
import { Failure, Page, Section } from '../parts/page.ts'
import { Code, Name } from '../parts/text.ts'
import { type PageProps, to } from '../place.ts'
import { codeFor, keyVariable, type Language, languageNames, languages } from '../playground/code.ts'
import { Compose, Results } from '../playground/compose.ts'
import { Conversation, Turns } from '../playground/conversation.ts'
import { Operation, Run } from '../playground/operations.ts'
import { type Replay, replayOf } from '../playground/replay.ts'
import { bodyOf, noSettings, operationBody, type Settings, type Turn } from '../playground/request.ts'
import { ChatSettings, MainSettings } from '../playground/settings.ts'
import { returns } from '../reachable.ts'
import { readStored } from '../stored.ts'

/** Calls of any model: conversations by each of the three APIs, images, speech and embeddings, by one model or two. Nothing of it is kept. */
export default function Playground({ query }: PageProps) {
  const settings = useSignal<Settings>({ ...noSettings, model: query.get('model') ?? '' })
  const otherKey = useSignal('')
  const { current: conversations } = useRef([new Conversation(), new Conversation()] as const)
  const { current: runs } = useRef([new Run(), new Run()] as const)
  const change = (changes: Partial<Settings>) => (settings.value = { ...settings.value, ...changes })
  const begin = (turns: readonly Turn[] = []) => {
    for (const conversation of conversations) conversation.begin(turns)
    for (const run of runs) run.clear()
  }
  const replay = useReplay(query.get('replay'), (found) => {
    change(found.settings)
    begin(found.turns)
  })
  const { kind, model, second } = settings.value
  const models = second === '' ? [model] : [model, second]
  const whyNot = model === '' ? 'Choose a model first.' : undefined
  const area = (name: string, children: unknown) => html`<div class=${`playground-${name}`}>${children}</div>`
  return html`
    <${Page} title="Playground" actions=${html`<button type="button" onClick=${() => begin()}>${kind === 'chat' ? 'New conversation' : 'Clear'}</button>`}>
      <${ReplayNote} replay=${replay} />
      <div class="playground" key=${replay.id}>
        ${area('model', html`<${MainSettings} settings=${settings.value} change=${change} otherKey=${otherKey} />`)}
        ${area(
          'talk',
          kind === 'chat'
            ? html`<${Conversations} settings=${settings.value} models=${models} conversations=${conversations} otherKey=${otherKey.value} whyNot=${whyNot} />`
            : html`<${Operation} kind=${kind} settings=${settings.value} change=${change} whyNot=${whyNot} runs=${models.map((one, index) => ({ model: one, run: runs[index] }))} onSend=${() => {
                for (const [index, one] of models.entries())
                  void runs[index]?.start(kind, { ...settings.value, model: one }, otherKey.value)
              }} />`,
        )}
        ${kind === 'chat' && area('more', html`<${ChatSettings} settings=${settings.value} change=${change} />`)}
        ${area('code', html`<${SameCall} settings=${settings.value} turns=${conversations[0].turns} />`)}
      </div>
    <//>
  `
}

type Replaying = { id: string; found?: Replay; error?: Error }

/** Reads a stored request once, when the address names its call. */
function useReplay(id: string | null, onFound: (replay: Replay) => void): Replaying {
  const state = useSignal<Replaying>({ id: '' })
  // What was found stays; what could not be read while the router was gone is read when it is back.
  const round = state.value.error instanceof UnreachableError ? returns.value : 0
  useEffect(() => {
    if (id === null) return undefined
    const aborted = new AbortController()
    readStored(id, aborted.signal).then(
      (stored) => {
        if (aborted.signal.aborted) return
        try {
          const found = replayOf(stored)
          onFound(found)
          state.value = { id, found }
        } catch (thrown) {
          state.value = { id, error: thrown as Error }
        }
      },
      (thrown: Error) => {
        if (!aborted.signal.aborted) state.value = { id, error: thrown }
      },
    )
    return () => aborted.abort()
  }, [id, round])
  return state.value
}

function ReplayNote({ replay: { id, found, error } }: { replay: Replaying }) {
  if (error) return html`<${Failure} error=${error} />`
  if (!found) return null
  const { missing } = found
  return html`<p class="note">The stored request of <a href=${to(`calls/${encodeURIComponent(id)}`)}>a call</a>, with secrets replaced. Nothing is sent until you send it.${
    missing.length > 0 &&
    html` It is sent without: <bdi dir="auto">${missing.slice(0, 20).join('; ').slice(0, 500)}</bdi>.`
  }</p>`
}

function Conversations({
  settings,
  models,
  conversations,
  otherKey,
  whyNot,
}: {
  settings: Settings
  models: readonly string[]
  conversations: readonly Conversation[]
  otherKey: string
  whyNot: string | undefined
}) {
  const shown = models.map((model, index) => ({ model, conversation: conversations[index] as Conversation }))
  const send = (turns: readonly Turn[], to = shown) => {
    for (const { model, conversation } of to) void conversation.send({ ...settings, model }, turns, otherKey)
  }
  const stop = () => {
    for (const conversation of conversations) conversation.running.value?.abort()
  }
  useEffect(() => stop, [])
  const isSeveral = shown.length > 1
  const isOpen = shown.some(({ conversation }) => conversation.openCalls.length > 0)
  const isRunning = shown.some(({ conversation }) => conversation.running.value !== undefined)
  const unanswered = shown.filter(({ conversation }) => conversation.isUnanswered)
  const hasFailed = unanswered.some(({ conversation }) => conversation.error.value)
  return html`
    <div class=${isSeveral ? 'side-by-side' : ''}>
      ${shown.map(
        (one, index) => html`<section key=${index} aria-label=${isSeveral ? one.model : 'Conversation'}>
        ${isSeveral && html`<h2><${Name} text=${one.model} /></h2>`}
        <${Turns} of=${one.conversation} name=${isSeveral ? one.model : undefined} />
        ${one.conversation.openCalls.length > 0 && html`<${Results} calls=${one.conversation.openCalls} onSend=${(results: Turn[]) => send(results, [one])} />`}
      </section>`,
      )}
    </div>
    ${
      unanswered.length > 0 &&
      html`<div class="buttons"><button type="button" class="primary" aria-disabled=${whyNot ? 'true' : undefined} title=${whyNot} onClick=${() => whyNot || send([], unanswered)}>${hasFailed ? 'Send again' : 'Send the request'}</button></div>`
    }
    ${!isOpen && html`<${Compose} isRunning=${isRunning} onStop=${stop} whyNot=${whyNot} onSend=${(turn: Turn) => send([turn])} />`}
  `
}

/** The same call in other words. */
function SameCall({ settings, turns }: { settings: Settings; turns: readonly Turn[] }) {
  const language = useSignal<Language>('curl')
  const base = new URL('..', location.href.split('#')[0]).href.replace(/\/$/, '')
  return html`<${Section} title="The same call in code" actions=${html`<span role="group" aria-label="Language">${languages.map((one) => html`<button key=${one} type="button" class="small" aria-pressed=${one === language.value} onClick=${() => (language.value = one)}>${languageNames[one]}</button> `)}</span>`}>
    <p class="hint">The key comes from the environment variable <${Name} text=${keyVariable} mono />.</p>
    <${Code} text=${codeOf(language.value, settings, { turns, base })} />
  <//>`
}

function codeOf(
  language: Language,
  settings: Settings,
  { turns, base }: { turns: readonly Turn[]; base: string },
): string {
  const { kind, api, model } = settings
  try {
    if (kind !== 'chat')
      return codeFor(language, kind, operationBody(kind, { ...settings, prompt: settings.prompt || 'Hello' }), base)
    const asked = turns.at(-1)?.role === 'assistant' ? turns.slice(0, -1) : turns
    const shown = asked.length > 0 ? asked : [{ role: 'user', text: 'Hello', images: [] } as const]
    return codeFor(language, api, bodyOf({ ...settings, model: model || 'demo/echo' }, shown), base)
  } catch (thrown) {
    return (thrown as Error).message
  }
}
