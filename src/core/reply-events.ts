import type { ProviderEvent } from './events.ts'
import type { Part } from './parts.ts'
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
  return events
}

/** A whole part as events: the citations of a text come after it. */
export function eventsOfPart(part: Part): ProviderEvent[] {
  const citations = part.type === 'text' ? (part.citations ?? []) : []
  return [eventOfPart(part), ...citations.map((citation) => ({ citation }))]
}

/** The event by which a stream says a whole part; the citations of a text are events of their own. */
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
