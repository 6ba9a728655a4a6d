import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError } from '../api.ts'
import { count } from '../format.ts'
import { html } from '../html.ts'
import { to } from '../place.ts'
import { whyNot } from '../session.ts'
import {
  mediaText,
  readStored,
  type Stored,
  type StoredChat,
  type StoredMessage,
  type StoredPart,
  textIn,
} from '../stored.ts'
import { Button } from './form.ts'
import { Empty, Failure, Section } from './page.ts'
import { Badge, Code } from './text.ts'

/** The prompt and the answer of a call, which are read when somebody asks for them: each reading is in the audit log. */
export function CallContent({ id }: { id: string }) {
  const stored = useSignal<Stored | undefined>(undefined)
  const error = useSignal<Error | undefined>(undefined)
  const isReading = useSignal(false)
  const shown = useRef<HTMLDivElement>(null)
  const why = whyNot('content', 'read')
  const read = async () => {
    if (isReading.value) return
    isReading.value = true
    error.value = undefined
    try {
      stored.value = await readStored(id)
    } catch (thrown) {
      error.value = thrown as Error
    }
    isReading.value = false
  }
  useEffect(() => {
    if (stored.value) shown.current?.focus()
  }, [stored.value])
  const nothing = error.value instanceof ApiError && error.value.status === 404
  const actions = stored.value
    ? stored.value.request && html`<a href=${to('playground', { replay: id })}>Replay in the playground</a>`
    : html`<${Button} whyNot=${why} isBusy=${isReading.value} onClick=${() => void read()}>Show content<//>`
  return html`<${Section} title="Content" actions=${actions}>
    ${!stored.value && !error.value && html`<p class="quiet">What the plugin log-payloads has stored of this call, if it has. Each reading is in the audit log.</p>`}
    ${nothing ? html`<${Empty}>Nothing is stored of this call.<//>` : error.value && html`<${Failure} error=${error.value} />`}
    ${stored.value && html`<div ref=${shown} tabindex="-1" class="content" role="region" aria-label="Stored content"><${StoredContent} stored=${stored.value} /></div>`}
  <//>`
}

function StoredContent({ stored: { operation, request, reply, omitted_bytes: omitted } }: { stored: Stored }) {
  const isChat = request?.messages !== undefined || reply?.parts !== undefined
  return html`
    ${omitted !== undefined && html`<p class="note">${count(omitted)} bytes were too long to be stored.</p>`}
    ${isChat ? html`<${Conversation} request=${request} />` : request && html`<${Code} label=${`Request (${operation})`} text=${JSON.stringify(request, null, 2)} />`}
    ${isChat && reply?.parts ? html`<${Message} who="Answer" parts=${reply.parts} />` : reply && html`<${Code} label="Reply" text=${JSON.stringify(reply, null, 2)} />`}
    ${!reply && html`<p class="quiet">The answer is not stored.</p>`}
  `
}

const speakers = { user: 'User', assistant: 'Model', system: 'System' } as const

function Conversation({ request }: { request: StoredChat | null }) {
  if (!request) return html`<p class="quiet">The request is not stored.</p>`
  const { system = [], messages = [], ...parameters } = request
  return html`
    ${system.length > 0 && html`<${Message} who="System" parts=${system} />`}
    ${messages.map(({ role, parts }: StoredMessage, index: number) => html`<${Message} key=${index} who=${areResults(parts) ? 'Tool' : (speakers[role] ?? role)} parts=${parts} />`)}
    <details class="values"><summary>Parameters</summary><${Code} text=${JSON.stringify(parameters, null, 2)} /></details>
  `
}

/** Checks whether a message consists of results of tools alone. */
function areResults(parts: readonly StoredPart[]): boolean {
  return parts.length > 0 && parts.every(({ type }) => type === 'tool_result')
}

function Message({ who, parts }: { who: string; parts: readonly StoredPart[] }) {
  return html`<article class="turn" aria-label=${who}><h3>${who}</h3>${parts.map((part, index) => html`<${Part} key=${index} part=${part} />`)}</article>`
}

function Part({ part }: { part: StoredPart }) {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return html`<p class="message-text" dir="auto">${textIn(part)}</p>`
    case 'reasoning':
      return html`<details><summary>Reasoning</summary><p class="message-text quiet" dir="auto">${textIn(part) || textIn(part, 'summary')}</p></details>`
    case 'tool_call':
      return html`<${Code} label=${`calls ${textIn(part, 'name')}`} text=${textIn(part, 'arguments')} />`
    case 'tool_result': {
      const parts = (Array.isArray(part.parts) ? part.parts : []) as StoredPart[]
      return html`<div><${Badge}>result of a tool<//> ${parts.map((one, index) => html`<${Part} key=${index} part=${one} />`)}</div>`
    }
    case 'image':
    case 'audio':
    case 'file':
    case 'video':
      return html`<p class="quiet"><bdi dir="auto">${mediaText(part)}</bdi></p>`
    default:
      return html`<${Code} label=${part.type} text=${JSON.stringify(part, null, 2)} />`
  }
}
