import {
  changedBlock,
  changedCitation,
  changedPart,
  maxBefore,
  type TextChange,
  type TextChanges,
} from './changed-reply.ts'
import type { ChatEvent, Part } from './types.ts'

/** The end of a text of a part that is held back, as far as it has arrived. */
type Held = { kind: Part['type']; at: ChatEvent['at']; member: Member; text: string; isCustom?: boolean }
type Member = 'text' | 'refusal' | 'reasoning.text' | 'reasoning.summary' | 'tool'

/** Changes the texts of one streamed conversation, wherever they are cut. */
export class ChangedStream {
  readonly #changes: TextChanges
  /** The end of what has gone out of each text. */
  readonly #before = new Map<string, string>()
  #held: Held[] = []
  #isMoved = false
  readonly #callIds = new Map<ChatEvent['at'], string>()
  /** Calls whose input is free text, by their keys. */
  readonly #custom = new Set<ChatEvent['at']>()

  constructor(changes: TextChanges) {
    this.#changes = changes
  }

  /** Returns the events that take the place of an event. */
  take(event: ChatEvent): ChatEvent[] {
    if (event.done) return [...this.#release(() => true), event]
    return partsOf(event).flatMap((one) => this.#takeOne(one))
  }

  /** Takes an event with one member of content at most. */
  #takeOne(event: ChatEvent): ChatEvent[] {
    const { text, refusal, reasoning, tool, citation, whole, at } = event
    if (text !== undefined) {
      return [
        ...this.#leave('text', at),
        ...kept({ ...event, text: this.#shown({ kind: 'text', at, member: 'text', text }) }),
      ]
    }
    if (refusal !== undefined) {
      const shown = this.#shown({ kind: 'refusal', at, member: 'refusal', text: refusal })
      return [...this.#leave('refusal', at), ...kept({ ...event, refusal: shown })]
    }
    if (reasoning) return this.#takeReasoning(event, reasoning)
    if (tool) return this.#takeTool(event, tool)
    if (whole) return this.#takeWhole(event, whole)
    if (citation) return [{ ...event, citation: changedCitation(citation, this.#changes.text, this.#isMoved) }]
    if (event.search) return [...this.#leave('search', at), this.#withSearch(event, event.search)]
    if (event.opaque) {
      const body = changedBlock(event.opaque.body, this.#changes)
      return [...this.#leave('opaque', at), { ...event, opaque: { body } }]
    }
    if (event.media) {
      const media = changedPart(event.media, this.#changes) as NonNullable<ChatEvent['media']>
      return [...this.#leave('opaque', at), { ...event, media }]
    }
    return [event]
  }

  #withSearch(event: ChatEvent, { query, results, ...others }: NonNullable<ChatEvent['search']>): ChatEvent {
    const shown = {
      ...(query !== undefined && { query: this.#changes.text.change(query) }),
      ...(results !== undefined && { results: changedBlock(results, this.#changes) }),
    }
    return { ...event, search: { ...others, ...shown } }
  }

  #takeReasoning(event: ChatEvent, reasoning: NonNullable<ChatEvent['reasoning']>): ChatEvent[] {
    const { at } = event
    const { text, summary, ...marks } = reasoning
    const shown = {
      ...(text !== undefined && { text: this.#shown({ kind: 'reasoning', at, member: 'reasoning.text', text }) }),
      ...(summary !== undefined && {
        summary: this.#shown({ kind: 'reasoning', at, member: 'reasoning.summary', text: summary }),
      }),
    }
    const left = this.#leave('reasoning', at)
    if (!marks.signature && !marks.encrypted) return [...left, { ...event, reasoning: { ...shown, ...marks } }]
    // A signed part is complete.
    const rest = this.#release(({ kind }) => kind === 'reasoning')
    const key = at === undefined ? {} : { at }
    return [...left, { ...key, reasoning: shown }, ...rest, { ...event, reasoning: marks }]
  }

  #takeTool(event: ChatEvent, tool: NonNullable<ChatEvent['tool']>): ChatEvent[] {
    const { at } = event
    const left = this.#leave('tool_call', at)
    if (this.#begins(tool, at)) {
      left.push(...this.#release((held) => held.kind === 'tool_call' && held.at === at))
      this.#custom.delete(at)
    }
    if (tool.id !== undefined) this.#callIds.set(at, tool.id)
    if (tool.kind === 'custom') this.#custom.add(at)
    const { arguments: given } = tool
    if (given === undefined) return [...left, event]
    const isCustom = this.#custom.has(at)
    const text = typeof given === 'string' ? given : JSON.stringify(given)
    const shown =
      typeof given === 'string'
        ? this.#shown({ kind: 'tool_call', at, member: 'tool', text, isCustom })
        : JSON.parse(this.#changes.json.change(text))
    return [...left, { ...event, tool: { ...tool, arguments: shown } }]
  }

  /** Checks whether another call begins: one with a name, and with another id if it has the key of one before. */
  #begins({ id, name }: NonNullable<ChatEvent['tool']>, at: ChatEvent['at']): boolean {
    if (!name) return false
    const known = this.#callIds.get(at)
    return at === undefined || (id !== undefined && known !== undefined && id !== known)
  }

  /** Takes a part that is repeated whole: it contains the text that was held back as well. */
  #takeWhole(event: ChatEvent, whole: Part): ChatEvent[] {
    this.#held = this.#held.filter(({ kind, at }) => kind !== whole.type || at !== event.at)
    return [...this.#leave(whole.type, event.at), { ...event, whole: changedPart(whole, this.#changes) }]
  }

  /** Returns the text with the part that was held back before it, as far as it is certain. */
  #shown(given: Held): string {
    const change = this.#changeOf(given)
    const index = this.#held.findIndex((held) => held.member === given.member && held.at === given.at)
    const earlier = index === -1 ? '' : (this.#held.splice(index, 1)[0]?.text ?? '')
    const text = earlier + given.text
    const key = `${given.member} ${given.at}`
    const before = this.#before.get(key) ?? ''
    const from = change.heldFrom(text, before)
    if (from < text.length) this.#held.push({ ...given, text: text.slice(from) })
    const certain = text.slice(0, from)
    const shown = change.change(certain, before)
    this.#before.set(key, (before + certain).slice(-maxBefore))
    if (given.kind === 'text' && shown !== certain) this.#isMoved = true
    return shown
  }

  #changeOf({ kind, isCustom }: Held): TextChange {
    return kind === 'tool_call' && !isCustom ? this.#changes.json : this.#changes.text
  }

  /** Ends the part before another one: the text that was held back is now complete. Calls with keys may still go on. */
  #leave(kind: Part['type'], at: ChatEvent['at']): ChatEvent[] {
    if (this.#held.length === 0) return []
    return this.#release((held) => {
      if (held.kind === kind && held.at === at) return false
      return held.kind !== 'tool_call' || held.at === undefined || held.at === at
    })
  }

  #release(isOver: (held: Held) => boolean): ChatEvent[] {
    const over = this.#held.filter(isOver)
    if (over.length === 0) return []
    this.#held = this.#held.filter((held) => !over.includes(held))
    return over.map((held) => {
      const before = this.#before.get(`${held.member} ${held.at}`)
      return eventOf({ ...held, text: this.#changeOf(held).change(held.text, before) })
    })
  }
}

function eventOf({ member, at, text }: Held): ChatEvent {
  const key = at === undefined ? {} : { at }
  if (member === 'tool') return { ...key, tool: { arguments: text } }
  if (member === 'reasoning.text') return { ...key, reasoning: { text } }
  if (member === 'reasoning.summary') return { ...key, reasoning: { summary: text } }
  return { ...key, [member]: text }
}

/** Returns an event for each content that it has, in the order in which it counts; the last one has all the rest. */
function partsOf(event: ChatEvent): ChatEvent[] {
  const present = contents.filter((name) => event[name] !== undefined)
  if (present.length < 2) return [event]
  const { at } = event
  const rest: ChatEvent = { ...event }
  const first = present.slice(0, -1).map((name): ChatEvent => {
    delete rest[name]
    const own: ChatEvent = { ...(at !== undefined && { at }), [name]: event[name] }
    if (name !== 'text' || event.signature === undefined) return own
    delete rest.signature
    return { ...own, signature: event.signature }
  })
  return [...first, rest]
}

const contents = ['text', 'refusal', 'reasoning', 'tool', 'citation', 'search', 'media', 'opaque', 'whole'] as const

/** Returns the event; nothing where it has only a text, and all of it is held back. */
function kept(event: ChatEvent): ChatEvent[] {
  const isEmpty = Object.entries(event).every(([name, value]) => name === 'at' || value === '')
  return isEmpty ? [] : [event]
}
