import type { Part } from './parts.ts'
import type { Reply } from './reply.ts'
import type { NeutralRequest } from './request.ts'

/** What a call said and was told, as JSON in the form of OpenTelemetry's conventions for generative AI. */
export type CallContents = { system?: string; input: string; output: string }

/** The contents of a call, each cut where it is very long. */
export function contentsOf({ system, messages }: NeutralRequest, { parts, finish }: Reply): CallContents {
  return {
    ...(system && { system: written(system.map(partOf)) }),
    input: written(messages.map(({ role, parts }) => ({ role, parts: parts.map(partOf) }))),
    output: written([{ role: 'assistant', parts: parts.map(partOf), finish_reason: finish }]),
  }
}

function written(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length <= longest ? text : text.slice(0, longest).toWellFormed()
}

/** More than collectors take. Characters. */
const longest = 64 * 1_024

/** Media are named, not repeated: they may be large. */
function partOf(part: Part): { type: string; [member: string]: unknown } {
  if (part.type === 'text' || part.type === 'refusal') return { type: 'text', content: part.text }
  if (part.type === 'reasoning') return { type: 'reasoning', content: part.text ?? part.summary ?? '' }
  if (part.type === 'tool_call') {
    const { id, name, arguments: said } = part
    return { type: 'tool_call', id, name, arguments: said }
  }
  if (part.type === 'tool_result') {
    return { type: 'tool_call_response', id: part.id, response: part.parts.map(partOf) }
  }
  if (part.type === 'search' || part.type === 'opaque') return { type: part.type }
  return { type: part.type, ...(part.media_type !== undefined && { mime_type: part.media_type }) }
}
