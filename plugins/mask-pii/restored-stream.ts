import type { Restorer } from './restore.ts'
import { type Restorers, restoredBlock, restoredCitation, restoredPart } from './restored-reply.ts'
import type { ChatEvent, Part } from './types.ts'

/** A text of a part that may end within a placeholder, as far as it has arrived. */
type Held = { kind: Part['type']; at: ChatEvent['at']; member: Member; text: string; isCustom?: boolean }
type Member = 'text' | 'refusal' | 'reasoning.text' | 'reasoning.summary' | 'tool'

/** Puts the values back into one streamed conversation, wherever its texts are cut. */
export class RestoredStream {
  readonly #restorers: Restorers
  #held: Held[] = []
  #isMoved = false
  readonly #callIds = new Map<ChatEvent['at'], string>()
  /** Calls whose input is free text, by their keys. */
  readonly #custom = new Set<ChatEvent['at']>()

  constructor(restorers: Restorers) {
    this.#restorers = restorers
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
    if (citation) return [{ ...event, citation: restoredCitation(citation, this.#restorers.text, this.#isMoved) }]
    if (event.search) return [...this.#leave('search', at), this.#withSearch(event, event.search)]
    if (event.opaque) {
      const body = restoredBlock(event.opaque.body, this.#restorers)
      return [...this.#leave('opaque', at), { ...event, opaque: { body } }]
    }
    return [...(event.media ? this.#leave('opaque', at) : []), event]
  }

  #withSearch(event: ChatEvent, { query, results, ...others }: NonNullable<ChatEvent['search']>): ChatEvent {
    const shown = {
      ...(query !== undefined && { query: this.#restorers.text.restore(query) }),
      ...(results !== undefined && { results: restoredBlock(results, this.#restorers) }),
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
        : JSON.parse(this.#restorers.json.restore(text))
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
    return [...this.#leave(whole.type, event.at), { ...event, whole: restoredPart(whole, this.#restorers) }]
  }

  /** Returns the text with the part that was held back before it, as far as it is certain. */
  #shown(given: Held): string {
    const restorer = this.#restorerOf(given)
    const index = this.#held.findIndex((held) => held.member === given.member && held.at === given.at)
    const before = index === -1 ? '' : (this.#held.splice(index, 1)[0]?.text ?? '')
    const text = before + given.text
    const from = restorer.heldFrom(text)
    if (from < text.length) this.#held.push({ ...given, text: text.slice(from) })
    const certain = text.slice(0, from)
    const shown = restorer.restore(certain)
    if (given.kind === 'text' && shown !== certain) this.#isMoved = true
    return shown
  }

  #restorerOf({ kind, isCustom }: Held): Restorer {
    return kind === 'tool_call' && !isCustom ? this.#restorers.json : this.#restorers.text
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
    return over.map(eventOf)
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
