import { codePoints } from '../../core/citations.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Part, ReasoningPart, ToolCallPart } from '../../core/parts.ts'
import { defined, list, onlyString, optional, text } from '../check.ts'
import { isReference } from '../foreign-signature.ts'

/**
 * Parts that a message of this API has no field for, written so that a client that echoes the message returns them:
 * - `reasoning_details`, a form that gateways share: `{type: reasoning.text | .summary | .encrypted, text | summary |
 *   data, signature?, id?, format, index}`; `format` is the provider of the signature. A signature on text is a
 *   `reasoning.encrypted` whose `signed_length` counts the code points that it signs.
 * - `replay_parts`, our own: `{index, part}` with provider-run searches and blocks that only their provider understands.
 * In both, `after` counts what precedes them: code points of the content, and tool calls.
 */
export function foreignPartsOf(parts: readonly Part[]): {
  reasoning_details?: JsonObject[]
  replay_parts?: JsonObject[]
} {
  if (parts.every(isNative)) return {}
  const details: JsonObject[] = []
  const replay: JsonObject[] = []
  const passed = { content: 0, tool_calls: 0 }
  for (const [index, part] of parts.entries()) {
    const place = { index, after: { ...passed } }
    if (part.type === 'reasoning') details.push(...detailsOf(part).map((detail) => ({ ...detail, ...place })))
    else if (part.type === 'tool_call') passed.tool_calls++
    else if (part.type === 'text') {
      const length = codePoints(part.text)
      if (part.signature) details.push({ ...encrypted(part.signature, part.by), ...place, signed_length: length })
      passed.content += length
    } else if (!ownFields.has(part.type)) replay.push({ ...place, part: part as JsonObject })
  }
  return {
    ...(details.length > 0 && { reasoning_details: details }),
    ...(replay.length > 0 && { replay_parts: replay }),
  }
}

/** Checks whether a part is fully expressed by fields that this API has itself. */
function isNative(part: Part): boolean {
  if (part.type === 'text') return part.signature === undefined
  return part.type !== 'reasoning' && (part.type === 'tool_call' || ownFields.has(part.type))
}

/** A message's parts with its foreign parts put back in their places. Throws RouterError 400. */
export function withForeignParts(
  { spoken, calls }: { spoken: readonly Part[]; calls: readonly ToolCallPart[] },
  message: JsonObject,
  path: string,
): Part[] {
  if (foreignFields.every((name) => message[name] === undefined)) return [...spoken, ...calls]
  const details = optional(message.reasoning_details, `${path}.reasoning_details`, list) ?? []
  const replay = optional(message.replay_parts, `${path}.replay_parts`, list) ?? []
  const reasoning = joined(details.flatMap((detail) => readDetail(detail) ?? []))
  const blocks = [...reasoning, ...replay.flatMap((block) => readReplay(block) ?? [])]
  if (!blocks.some(({ part }) => part?.type === 'reasoning')) blocks.unshift(...plainReasoning(message, path))
  return arranged(
    spoken,
    calls,
    blocks.sort((one, other) => one.index - other.index),
  )
}

const foreignFields = ['reasoning_details', 'replay_parts', 'reasoning_content', 'reasoning']

/** Checks whether this router wrote a reasoning detail: those of others have no `after`. */
export function isForeignDetail(detail: Json | undefined): boolean {
  return isObject(detail) && isObject(detail.after)
}

/** Parts that have a field of their own in a message. */
const ownFields: ReadonlySet<Part['type']> = new Set(['refusal', 'image', 'audio'])

function detailsOf({ text, summary, signature, encrypted, id, by }: ReasoningPart): JsonObject[] {
  const from = defined({ id, format: by })
  const found: JsonObject[] = []
  if (text || signature) found.push({ type: 'reasoning.text', text: text ?? '', ...defined({ signature }), ...from })
  if (summary) found.push({ type: 'reasoning.summary', summary, ...from })
  if (encrypted) found.push({ type: 'reasoning.encrypted', data: encrypted, ...from })
  if (found.length === 0 && id) found.push({ type: 'reasoning.summary', summary: '', ...from })
  return found
}

function encrypted(signature: string, by: string | undefined): JsonObject {
  return { type: 'reasoning.encrypted', data: signature, ...defined({ format: by }) }
}

/** A foreign part, or a signature on the text that follows its place. */
type Block = {
  index: number
  content: number
  calls: number
  part?: Part
  signed?: { length: number; signature: string; by?: string }
}

function readDetail(detail: Json): Block | undefined {
  if (!isObject(detail)) return undefined
  // Histories of earlier versions call it `seals`.
  const { type, format, signed_length: length = detail.seals } = detail
  const by = filled(format)
  if (type === 'reasoning.encrypted' && isForeignDetail(detail) && typeof length === 'number') {
    const signed = { length, signature: filled(detail.data) ?? '', ...defined({ by }) }
    return { ...placeOf(detail), signed }
  }
  const members = defined({
    text: type === 'reasoning.text' ? filled(detail.text) : undefined,
    signature: type === 'reasoning.text' ? filled(detail.signature) : undefined,
    summary: type === 'reasoning.summary' ? filled(detail.summary) : undefined,
    encrypted: type === 'reasoning.encrypted' ? filled(detail.data) : undefined,
    id: filled(detail.id),
  })
  if (Object.keys(members).length === 0) return undefined
  return { ...placeOf(detail), part: { type: 'reasoning', ...members, ...defined({ by }) } }
}

function readReplay(block: Json): Block | undefined {
  if (!isObject(block) || !isObject(block.part)) return undefined
  const part = readPart(block.part)
  return part && { ...placeOf(block), part }
}

/** Clients can change these parts: members of the wrong type are ignored, and references to what a provider holds. */
function readPart(part: JsonObject): Part | undefined {
  const { type, id, query, status, results, body, url, data, media_type, file_id, filename } = part
  const by = defined({ by: onlyString(part.by) })
  if (type === 'opaque') return body === undefined || isReference(body) ? undefined : { type, body, ...by }
  if (type === 'search') {
    const members = { id: onlyString(id), query: onlyString(query), status: onlyString(status), results }
    return { type, ...defined(members), ...by }
  }
  if (type !== 'file' && type !== 'video') return undefined
  const source = { url: onlyString(url), data: onlyString(data), file_id: onlyString(file_id) }
  return { type, ...defined({ ...source, media_type: onlyString(media_type), filename: onlyString(filename) }) }
}

/** A block without `after` was written by someone else and belongs in front. */
function placeOf({ index, after }: JsonObject): Pick<Block, 'index' | 'content' | 'calls'> {
  const { content, tool_calls } = isObject(after) ? after : {}
  return { index: count(index), content: count(content), calls: count(tool_calls) }
}

function count(value: Json | undefined): number {
  return typeof value === 'number' && value > 0 ? value : 0
}

function filled(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Details of the same index are one part: its members one by one, or deltas that a client collected without joining them. */
function joined(blocks: readonly Block[]): Block[] {
  const whole: Block[] = []
  for (const block of blocks) {
    const last = whole.at(-1)
    if (last && isSamePart(last, block)) joinInto(last.part as ReasoningPart, block.part as ReasoningPart)
    else whole.push(block)
  }
  return whole
}

function isSamePart(one: Block, other: Block): boolean {
  if (one.part?.type !== 'reasoning' || other.part?.type !== 'reasoning' || one.index !== other.index) return false
  const sameId = !one.part.id || !other.part.id || one.part.id === other.part.id
  return sameId && one.part.by === other.part.by
}

function joinInto(part: ReasoningPart, { text, summary, type: _type, ...signatures }: ReasoningPart): void {
  if (text) part.text = (part.text ?? '') + text
  if (summary) part.summary = (part.summary ?? '') + summary
  Object.assign(part, signatures)
}

/** Reasoning that is plain text only, under either of its two common names. */
function plainReasoning(message: JsonObject, path: string): Block[] {
  const reasoning =
    optional(message.reasoning_content, `${path}.reasoning_content`, text) ||
    optional(message.reasoning, `${path}.reasoning`, text)
  return reasoning ? [{ index: 0, content: 0, calls: 0, part: { type: 'reasoning', text: reasoning } }] : []
}

function arranged(spoken: readonly Part[], calls: readonly ToolCallPart[], blocks: readonly Block[]): Part[] {
  const parts: Part[] = []
  let rest = [...spoken]
  let passed = 0
  let called = 0
  for (const { content, calls: before, part, signed } of blocks) {
    const [front, back] = split(rest, content - passed)
    parts.push(...front, ...calls.slice(called, before))
    passed = Math.max(passed, content)
    called = Math.max(called, before)
    rest = back
    if (part) parts.push(part)
    if (!signed) continue
    const { length, ...signature } = signed
    const [under, after] = split(rest, length)
    parts.push({
      type: 'text',
      text: under.map((piece) => (piece.type === 'text' ? piece.text : '')).join(''),
      ...signature,
    })
    passed += length
    rest = after
  }
  return [...parts, ...rest, ...calls.slice(called)]
}

/** Parts up to a number of code points of text, and the parts from there. */
function split(parts: readonly Part[], length: number): [Part[], Part[]] {
  let left = length
  for (const [index, part] of parts.entries()) {
    if (left <= 0) return [parts.slice(0, index), parts.slice(index)]
    if (part.type !== 'text') continue
    const size = codePoints(part.text)
    if (size > left) {
      const points = [...part.text]
      const front = { ...part, text: points.slice(0, left).join('') }
      const back = { ...part, text: points.slice(left).join('') }
      return [
        [...parts.slice(0, index), front],
        [back, ...parts.slice(index + 1)],
      ]
    }
    left -= size
  }
  return [[...parts], []]
}
