import { callForms, inClientForm, TextArguments } from '../core/client-functions.ts'
import type { StreamEvent } from '../core/events.ts'
import { parseJson } from '../core/json.ts'
import type { CallForm, Part, ToolCallPart } from '../core/parts.ts'
import type { Reply } from '../core/reply.ts'
import type { NeutralRequest } from '../core/request.ts'

/** Returns a reply in which calls of functions that stand for other tools have the form that the client knows. */
export function replyInClientForm(reply: Reply, request: Pick<NeutralRequest, 'tools'> | undefined): Reply {
  const forms = callForms(request ?? {})
  if (forms.size === 0 || !reply.parts.some((part) => formOf(part, forms))) return reply
  const parts = reply.parts.map((part) => {
    const form = formOf(part, forms)
    return form ? inClientForm(part as ToolCallPart, form) : part
  })
  return { ...reply, parts }
}

function formOf(part: Part, forms: ReadonlyMap<string, CallForm>): CallForm | undefined {
  return part.type === 'tool_call' ? forms.get(part.name) : undefined
}

/** Returns a function that changes the events of a stream as `replyInClientForm` changes a whole reply. */
export function eventsInClientForm(
  request: Pick<NeutralRequest, 'tools'>,
): (events: readonly StreamEvent[]) => readonly StreamEvent[] {
  const forms = callForms(request)
  if (forms.size === 0) return (events) => events
  const calls = new CallForms(forms)
  return (events) => events.flatMap((event) => calls.take(event))
}

/** The calls of one stream that the client gets in another form, by the index of their part. */
class CallForms {
  readonly #forms: ReadonlyMap<string, CallForm>
  readonly #texts = new Map<number, TextArguments>()
  /** Calls that closed before all of their arguments had come. */
  readonly #waiting: Extract<StreamEvent, { type: 'close' }>[] = []

  constructor(forms: ReadonlyMap<string, CallForm>) {
    this.#forms = forms
  }

  take(event: StreamEvent): StreamEvent[] {
    if (event.type === 'open') return [this.#open(event)]
    if (event.type === 'close') return isWhole(event.part) ? this.#close(event) : this.#wait(event)
    if (event.type === 'finish' || event.type === 'usage') {
      return [...this.#waiting.splice(0).flatMap((closed) => this.#close(closed)), event]
    }
    if (event.type !== 'delta' || event.part !== 'tool_call') return [event]
    const text = this.#texts.get(event.index)
    if (!text) return [event]
    const grown = text.take(event.arguments ?? '')
    return grown ? [{ ...event, arguments: grown }] : []
  }

  #open(event: Extract<StreamEvent, { type: 'open' }>): StreamEvent {
    const { index, part } = event
    const form = formOf(part, this.#forms)
    if (!form || part.type !== 'tool_call') return event
    if (form.kind === 'custom' && part.kind !== 'custom') this.#texts.set(index, new TextArguments())
    return { ...event, part: { ...inClientForm(part, form), arguments: '' } }
  }

  #wait(event: Extract<StreamEvent, { type: 'close' }>): StreamEvent[] {
    if (!formOf(event.part, this.#forms)) return [event]
    this.#waiting.push(event)
    return []
  }

  #close(event: Extract<StreamEvent, { type: 'close' }>): StreamEvent[] {
    const { index, part } = event
    const form = formOf(part, this.#forms)
    if (!form || part.type !== 'tool_call') return [event]
    const closed = inClientForm(part, form)
    const rest = this.#texts.get(index)?.end(closed.arguments)
    const grown: StreamEvent[] = rest ? [{ type: 'delta', index, part: 'tool_call', arguments: rest }] : []
    return [...grown, { ...event, part: closed }]
  }
}

/** Checks whether a part is whole. Calls may close because another part begins, and grow further. */
function isWhole(part: Part): boolean {
  return part.type !== 'tool_call' || (part.kind !== 'custom' && parseJson(part.arguments) !== undefined)
}
