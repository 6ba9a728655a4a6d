import { isObject, type Json } from '../../core/json.ts'
import type { Part } from '../../core/parts.ts'
import { eventOfPart } from '../../core/reply-events.ts'

/** The event by which a stream says a whole part. */
export function partEvent(part?: Json): object | undefined {
  return isObject(part) ? eventOfPart(part as Part) : undefined
}

/** The text of a single block that holds nothing beside it, as a plain string, else the blocks. */
export function plainText(blocks?: Json): Json | undefined {
  const [block] = Array.isArray(blocks) && blocks.length === 1 ? blocks : []
  if (!isObject(block) || typeof block.text !== 'string') return blocks
  return Object.keys(block).every((member) => member === 'type' || member === 'text') ? block.text : blocks
}

/** A list in which neighbouring texts are one text. */
export function joinTexts(list?: Json): Json | undefined {
  if (!Array.isArray(list)) return list
  const joined: Json[] = []
  for (const item of list) {
    const last = joined.at(-1)
    if (typeof item === 'string' && typeof last === 'string') joined[joined.length - 1] = last + item
    else joined.push(item)
  }
  return joined
}
