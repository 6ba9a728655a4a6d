import type { PluginReply } from 'inference-router/plugin'
import { mapBlock, mapJson } from '../lib/json-texts.ts'
import { mapPart } from '../lib/texts.ts'
import type { Restorer } from './restore.ts'
import type { JsonValue, Part } from './types.ts'

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

/** Returns a part of an answer with the values in it. */
export function restoredPart(part: Part, restorers: Restorers): Part {
  const restored = mapPart(part, changesBy(restorers))
  if (part.type !== 'text' || restored.type !== 'text' || !part.citations) return restored
  const isMoved = restored.text !== part.text
  return { ...restored, citations: part.citations.map((one) => restoredCitation(one, restorers.text, isMoved)) }
}

/** Returns a block that only its provider understands with the values in it. */
export function restoredBlock(block: JsonValue, restorers: Restorers): JsonValue {
  return mapBlock(block, changesBy(restorers)) as JsonValue
}

function changesBy({ text, json }: Restorers) {
  return { text: (given: string) => text.restore(given), json: (given: string) => json.restore(given) }
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
