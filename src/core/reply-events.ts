import type { ProviderEvent } from './events.ts'
import type { Part, ReasoningPart } from './parts.ts'
import type { Reply } from './reply.ts'

/** A reply as a mapping gives it: everything but the parts may be missing. */
export type MappedReply = Partial<Omit<Reply, 'parts'>> & { parts?: Part[]; error?: ProviderEvent['error'] }

/** The events that fold to this reply, so that streamed and whole replies are read the same way. */
export function eventsOf(reply: MappedReply): ProviderEvent[] {
  const { parts, finish, finish_raw: raw, stop_sequence, error, ...facts } = reply
  const events: ProviderEvent[] = [facts as ProviderEvent]
  for (const [index, part] of (parts ?? []).entries()) {
    const at = `part ${index}`
    for (const event of eventsOfPart(part)) events.push({ at, ...event })
  }
  if (finish) {
    events.push({ finish, ...(raw !== undefined && { raw }), ...(stop_sequence !== undefined && { stop_sequence }) })
  }
  // Once more, behind the content: the counts of a whole reply cover all of it.
  if (facts.usage && events.length > 1) events.push({ usage: facts.usage })
  return events
}

/** A whole part as events: the citations of a text come after it. */
function eventsOfPart(part: Part): ProviderEvent[] {
  const citations = part.type === 'text' ? (part.citations ?? []) : []
  return [eventOfPart(part), ...citations.map((citation) => ({ citation }))]
}

/** Returns the event by which a stream sends a whole part; the citations of a text are events of their own. */
export function eventOfPart(part: Part): ProviderEvent {
  switch (part.type) {
    case 'text':
      return { text: part.text, ...(part.signature && { signature: part.signature }) }
    case 'refusal':
      return { refusal: part.text }
    case 'reasoning': {
      const { type, by, ...reasoning } = part
      return { reasoning }
    }
    case 'tool_call': {
      const { type, by, ...tool } = part
      return { tool }
    }
    case 'search': {
      const { type, by, ...search } = part
      return { search }
    }
    case 'opaque':
      return { opaque: { body: part.body } }
    case 'tool_result':
      return {}
    default:
      return { media: part }
  }
}

/**
 * Returns the events for what has not come yet of a part that its provider repeats whole. Where the repetition differs, the text already
 * sent stays: clients have read it.
 */
export function remainderOfPart(whole: Part, come: Part | undefined, at: ProviderEvent['at']): ProviderEvent[] {
  const key = at === undefined ? {} : { at }
  if (!come || whole.type === 'search') return eventsOfPart(whole).map((event) => ({ ...key, ...event }))
  if (whole.type === 'text' && come.type === 'text') {
    const signature = come.signature === undefined && whole.signature ? { signature: whole.signature } : {}
    const citations = come.citations ? [] : (whole.citations ?? [])
    const grown = { ...key, text: remainder(whole.text, come.text), ...signature }
    return [grown, ...citations.map((citation) => ({ ...key, citation }))]
  }
  if (whole.type === 'refusal' && come.type === 'refusal')
    return [{ ...key, refusal: remainder(whole.text, come.text) }]
  if (whole.type === 'reasoning' && come.type === 'reasoning')
    return [{ ...key, reasoning: remainderOfReasoning(whole, come) }]
  if (whole.type === 'tool_call' && come.type === 'tool_call') {
    return [{ ...key, tool: { arguments: remainder(whole.arguments, come.arguments) } }]
  }
  return []
}

/** Texts as far as they are missing, and the id and the signatures that are: providers make new ones for a repetition. */
function remainderOfReasoning({ type, by, text = '', summary = '', ...marks }: ReasoningPart, come: ReasoningPart) {
  const missing = Object.entries(marks).filter(([name]) => come[name as keyof ReasoningPart] === undefined)
  return { ...Object.fromEntries(missing), text: remainder(text, come.text), summary: remainder(summary, come.summary) }
}

function remainder(whole: string, come = ''): string {
  return whole.startsWith(come) ? whole.slice(come.length) : ''
}
