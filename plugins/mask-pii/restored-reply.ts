import type { PluginReply } from 'inference-router/plugin'
import { mapJson } from './json-texts.ts'
import type { Restorer } from './restore.ts'
import type { Part } from './types.ts'

/** Functions that put values back into texts, and into texts that are JSON. */
export type Restorers = { text: Restorer; json: Restorer }

/** Returns an answer with the values in it. */
export function restoredReply(reply: PluginReply, restorers: Restorers): PluginReply {
  if ('chat' in reply) {
    const parts = reply.chat.parts.map((part) => restoredPart(part, restorers))
    return { ...reply, chat: { ...reply.chat, parts } }
  }
  const json = mapJson(reply.json, (text) => restorers.text.restore(text)) as typeof reply.json
  return { ...reply, json }
}

export function restoredPart(part: Part, { text, json }: Restorers): Part {
  switch (part.type) {
    case 'text': {
      const restored = text.restore(part.text)
      const citations = part.citations?.map((citation) => restoredCitation(citation, text, restored !== part.text))
      return { ...part, text: restored, ...(citations && { citations }) }
    }
    case 'refusal':
      return { ...part, text: text.restore(part.text) }
    case 'reasoning':
      return {
        ...part,
        ...(part.text !== undefined && { text: text.restore(part.text) }),
        ...(part.summary !== undefined && { summary: text.restore(part.summary) }),
      }
    case 'tool_call':
      return { ...part, arguments: (part.kind === 'custom' ? text : json).restore(part.arguments) }
    case 'search':
      return part.query === undefined ? part : { ...part, query: text.restore(part.query) }
    default:
      return part
  }
}

type Citation = NonNullable<Extract<Part, { type: 'text' }>['citations']>[number]

/** Adapts a citation: where a text has got longer or shorter, nobody knows any more which range of it is meant. */
export function restoredCitation({ start, end, ...citation }: Citation, text: Restorer, isMoved: boolean): Citation {
  return {
    ...citation,
    ...(citation.cited_text !== undefined && { cited_text: text.restore(citation.cited_text) }),
    ...(!isMoved && start !== undefined && { start }),
    ...(!isMoved && end !== undefined && { end }),
  }
}
