import { isObject, parseJson } from '../../core/json.ts'
import type { Part, ToolResultPart } from '../../core/parts.ts'
import type { Message } from '../../core/request.ts'

/** Puts a word of the assistant between results of tools and what the user says next; media of a result are the user's as well. */
export function withAnswersToTools(messages: Message[]): Message[] {
  const isResult = ({ type }: Part) => type === 'tool_result'
  if (!messages.some(({ parts }) => parts.some(isResult))) return messages
  return messages.flatMap((message, index) => {
    if (!message.parts.some(isResult)) return [message]
    const results = message.parts.filter((part) => part.type === 'tool_result')
    const media = results.flatMap(mediaOf)
    const others = [...media, ...message.parts.filter((part) => !isResult(part))]
    const next = messages[index + 1]
    if (others.length === 0 && (next?.role !== 'user' || next.parts.some(isResult))) return [message]
    const plain = media.length === 0 ? results : results.map(withoutMedia)
    const rest = others.length === 0 ? [] : [{ ...message, parts: others }]
    return [{ ...message, parts: plain }, acknowledgement, ...rest]
  })
}

const acknowledgement: Message = { role: 'assistant', parts: [{ type: 'text', text: 'OK.' }] }

const mediaTypes: ReadonlySet<Part['type']> = new Set(['image', 'audio', 'file', 'video'])

/** The media of a result, after a text that says which result they belong to. */
function mediaOf({ id, parts }: ToolResultPart): Part[] {
  const media = parts.filter(({ type }) => mediaTypes.has(type))
  return media.length === 0 ? [] : [{ type: 'text', text: `Returned by the tool call ${id}:` }, ...media]
}

function withoutMedia(result: ToolResultPart): ToolResultPart {
  const parts = result.parts.filter(({ type }) => !mediaTypes.has(type))
  if (parts.length === result.parts.length) return result
  const shown: Part[] = parts.length > 0 ? parts : [{ type: 'text', text: 'The result follows in the next message.' }]
  return { ...result, parts: shown }
}

/** Moves the texts between the calls of a turn before the first of them; `turns` are the messages with those of a turn as one. */
export function withCallsTogether(messages: Message[], turns: Message[]): Message[] {
  const together = turns.map(withCallsLast)
  return together.some((turn, index) => turn !== turns[index]) ? together : messages
}

function withCallsLast(message: Message): Message {
  const { parts } = message
  const first = parts.findIndex(isCall)
  const last = parts.findLastIndex(isCall)
  const between = parts.slice(first, last).filter(isText)
  if (first < 0 || between.length === 0) return message
  const calls = parts.slice(first, last + 1).filter((part) => !isText(part))
  return { ...message, parts: [...parts.slice(0, first), ...between, ...calls, ...parts.slice(last + 1)] }
}

function isCall({ type }: Part): boolean {
  return type === 'tool_call'
}

function isText({ type }: Part): boolean {
  return type === 'text' || type === 'refusal'
}

/** Returns a message whose calls have objects in JSON as arguments. */
export function withJsonArguments(message: Message): Message {
  const isBroken = (part: Part) =>
    part.type === 'tool_call' && part.kind !== 'custom' && !isObject(parseJson(part.arguments))
  if (!message.parts.some(isBroken)) return message
  const parts = message.parts.map((part): Part => {
    if (part.type !== 'tool_call' || !isBroken(part)) return part
    return { ...part, arguments: part.arguments.trim() === '' ? '{}' : JSON.stringify({ input: part.arguments }) }
  })
  return { ...message, parts }
}

/** Returns a message whose failed results have no media: these follow all results. */
export function withMediaAfterErrors(message: Message): Message {
  const failed = message.parts.filter((part) => part.type === 'tool_result' && part.is_error === true)
  const media = (failed as ToolResultPart[]).flatMap(mediaOf)
  if (media.length === 0) return message
  const parts = message.parts.map((part) => (part.type === 'tool_result' && part.is_error ? withoutMedia(part) : part))
  const last = parts.findLastIndex(({ type }) => type === 'tool_result')
  return { ...message, parts: [...parts.slice(0, last + 1), ...media, ...parts.slice(last + 1)] }
}

/** Returns a list with other items, or the list itself where all stay the same. */
export function mapped<T>(items: T[], change: (item: T) => T): T[] {
  let changed: T[] | undefined
  for (const [index, item] of items.entries()) {
    const made = change(item)
    if (made === item) continue
    changed ??= [...items]
    changed[index] = made
  }
  return changed ?? items
}
