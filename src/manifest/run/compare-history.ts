import type { Part } from '../../core/parts.ts'
import type { Message } from '../../core/request.ts'

/** Checks whether the calls of every turn have their results right after it, and no two calls the same id: nothing has to be paired then. */
export function isPaired(messages: readonly Message[]): boolean {
  const known = new Set<string>()
  const open = new Set<string>()
  for (const { role, parts } of messages) {
    if (role === 'assistant' && open.size > 0) return false
    for (const part of parts) {
      if (part.type === 'tool_call') {
        if (known.has(part.id)) return false
        known.add(part.id)
        open.add(part.id)
      } else if (part.type === 'tool_result') {
        if (!open.delete(part.id)) return false
      } else if (role !== 'assistant' && open.size > 0) return false
    }
  }
  return open.size === 0
}

/** Checks whether two conversations have the same content, however their parts are distributed over messages. */
export function areAlike(a: readonly Message[], b: readonly Message[]): boolean {
  if (a === b) return true
  const [one, other] = [flattened(a), flattened(b)]
  return one.length === other.length && one.every((placed, index) => isSamePart(placed, other[index] as PlacedPart))
}

type PlacedPart = { role: Message['role']; part: Part }

function flattened(messages: readonly Message[]): PlacedPart[] {
  return messages.flatMap(({ role, parts }) => parts.map((part) => ({ role, part })))
}

function isSamePart(a: PlacedPart, b: PlacedPart): boolean {
  if (a.role !== b.role) return false
  if (a.part === b.part) return true
  if (a.part.type !== 'tool_result' || b.part.type !== 'tool_result') return false
  const [one, other] = [a.part, b.part]
  return one.id === other.id && (one.parts === other.parts || sameItems(one.parts, other.parts))
}

function sameItems(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index])
}
