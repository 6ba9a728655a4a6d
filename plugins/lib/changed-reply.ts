import type { PluginReply } from 'inference-router/plugin'
import { mapBlock, mapJson } from './json-texts.ts'
import { mapPart } from './texts.ts'
import type { JsonValue, Part } from './types.ts'

/**
 * A change of texts that may arrive in pieces. `before` is the end of what has gone out of the same text; `heldFrom` is the place from which
 * more of a text has to be known before it can be changed.
 */
export type TextChange = {
  change(text: string, before?: string): string
  heldFrom(text: string, before?: string): number
}

/** Characters of a text that has gone out which are known when the rest of it is changed. */
export const maxBefore = 200

/** Changes of texts, and of texts that are JSON. */
export type TextChanges = { text: TextChange; json: TextChange }

/** Returns an answer with changed texts. */
export function changedReply(reply: PluginReply, changes: TextChanges): PluginReply {
  if ('chat' in reply) {
    const parts = reply.chat.parts.map((part) => changedPart(part, changes))
    return { ...reply, chat: { ...reply.chat, parts } }
  }
  const json = mapJson(reply.json, (text) => changes.text.change(text)) as typeof reply.json
  return { ...reply, json }
}

/** Returns a part of an answer with changed texts. */
export function changedPart(part: Part, changes: TextChanges): Part {
  const changed = mapPart(part, changesBy(changes))
  if (part.type !== 'text' || changed.type !== 'text' || !part.citations) return changed
  const isMoved = changed.text !== part.text
  return { ...changed, citations: part.citations.map((one) => changedCitation(one, changes.text, isMoved)) }
}

/** Returns a block that only its provider understands with changed texts. */
export function changedBlock(block: JsonValue, changes: TextChanges): JsonValue {
  return mapBlock(block, changesBy(changes)) as JsonValue
}

function changesBy({ text, json }: TextChanges) {
  return { text: (given: string) => text.change(given), json: (given: string) => json.change(given) }
}

type Citation = NonNullable<Extract<Part, { type: 'text' }>['citations']>[number]

/** Adapts a citation: where a text has got longer or shorter, nobody knows any more which range of it is meant. */
export function changedCitation(citation: Citation, text: Pick<TextChange, 'change'>, isMoved: boolean): Citation {
  const { start, end, url, title, cited_text, ...others } = citation
  return {
    ...others,
    ...(url !== undefined && { url: text.change(url) }),
    ...(title !== undefined && { title: text.change(title) }),
    ...(cited_text !== undefined && { cited_text: text.change(cited_text) }),
    ...(!isMoved && start !== undefined && { start }),
    ...(!isMoved && end !== undefined && { end }),
  }
}
