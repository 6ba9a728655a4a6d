import type { ProviderEvent } from './events.ts'
import type { Part } from './parts.ts'
import type { Reply } from './reply.ts'

/** A reply as a mapping gives it: everything but the parts may be missing. */
export type MappedReply = Partial<Omit<Reply, 'parts'>> & { parts?: Part[]; error?: ProviderEvent['error'] }

/** The events that fold to this reply, so that streamed and whole replies are read the same way. */
export function eventsOf(reply: MappedReply): ProviderEvent[] {
  const { parts, finish, finish_raw: raw, stop_sequence, error, ...facts } = reply
  const events: ProviderEvent[] = [facts as ProviderEvent]
  for (const [index, part] of (parts ?? []).entries()) events.push(...eventsOfPart(part, `part ${index}`))
  if (finish) {
    events.push({ finish, ...(raw !== undefined && { raw }), ...(stop_sequence !== undefined && { stop_sequence }) })
  }
  return events
}

function eventsOfPart(part: Part, at: string): ProviderEvent[] {
  switch (part.type) {
    case 'text': {
      const { text, signature, citations = [] } = part
      return [{ at, text, ...(signature && { signature }) }, ...citations.map((citation) => ({ at, citation }))]
    }
    case 'refusal':
      return [{ at, refusal: part.text }]
    case 'reasoning': {
      const { type, by, ...reasoning } = part
      return [{ at, reasoning }]
    }
    case 'tool_call': {
      const { type, by, ...tool } = part
      return [{ at, tool }]
    }
    case 'search': {
      const { type, by, ...search } = part
      return [{ at, search }]
    }
    case 'opaque':
      return [{ opaque: { body: part.body } }]
    case 'tool_result':
      return []
    default:
      return [{ media: part }]
  }
}
