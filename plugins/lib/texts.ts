import type { PluginRequest } from 'inference-router/plugin'
import { type Changes, type JsonValue, mapBlock, mapData, mapJsonText, mapValues } from './json-texts.ts'

/** The neutral form of a conversation, in the words of the contract. */
export type Chat = Extract<PluginRequest, { chat: unknown }>['chat']
export type OtherRequest = Exclude<PluginRequest, { chat: unknown }>
export type Part = Chat['messages'][number]['parts'][number]

/** The place of a text in a request; `block` is a part of a kind that is not known, or that only one provider reads. */
export type Origin = 'system' | 'user' | 'assistant' | 'tool_result' | 'block'

/** Change of a text, by its place. */
export type Change = (text: string, origin: Origin) => string

/** Returns a request with other texts in it, changed in their order: every text that a model reads of it, whatever its part is. */
export function mapRequest(request: PluginRequest, change: Change): PluginRequest {
  if (!('chat' in request)) return mapOther(request, change)
  const { chat } = request
  const { system, prediction, messages } = chat
  return {
    ...request,
    chat: {
      ...chat,
      ...(system && { system: mapParts(system, change, 'system') }),
      messages: messages.map((message) => ({ ...message, parts: mapParts(message.parts, change, message.role) })),
      ...(prediction && { prediction: mapBlock(prediction, changesAt(change, 'assistant')) as typeof prediction }),
    },
  }
}

function mapParts(parts: readonly Part[], change: Change, origin: Origin): Part[] {
  return parts.map((part) => mapRequestPart(part, change, origin))
}

function mapRequestPart(part: Part, change: Change, origin: Origin): Part {
  if (part.type === 'tool_result') return { ...part, parts: mapParts(part.parts, change, 'tool_result') }
  return mapPart(part, changesAt(change, isKnown(part) ? origin : 'block'))
}

function changesAt(change: Change, origin: Origin): Changes {
  const text = (given: string) => change(given, origin)
  return { text, json: (given) => mapJsonText(given, text) }
}

const known: ReadonlySet<string> = new Set([
  'text',
  'refusal',
  'reasoning',
  'tool_call',
  'search',
  'image',
  'audio',
  'video',
  'file',
] satisfies Part['type'][])

function isKnown({ type }: Part): boolean {
  return known.has(type)
}

/** Returns a part of a request or a reply with other texts in it. A part of another kind is taken for a text as a whole. */
export function mapPart(part: Part, changes: Changes): Part {
  const { text, json } = changes
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { ...part, text: text(part.text) }
    case 'reasoning':
      return {
        ...part,
        ...(part.text !== undefined && { text: text(part.text) }),
        ...(part.summary !== undefined && { summary: text(part.summary) }),
      }
    case 'tool_call':
      return { ...part, arguments: part.kind === 'custom' ? text(part.arguments) : json(part.arguments) }
    case 'tool_result':
      return { ...part, parts: part.parts.map((one) => mapPart(one, changes)) }
    case 'search': {
      const { query, results } = part
      const found = results === undefined ? undefined : (mapBlock(results, changes) as typeof results)
      return {
        ...part,
        ...(query !== undefined && { query: text(query) }),
        ...(found !== undefined && { results: found }),
      }
    }
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      return mapMedia(part, changes)
    default:
      return mapBlock(part, changes) as Part
  }
}

type Media = Extract<Part, { type: 'image' | 'audio' | 'video' | 'file' }>

/** Images and sound are data; a document that is a text, its name and a transcript are texts. */
function mapMedia(part: Media, changes: Changes): Media {
  const { data, media_type, filename, transcript } = part
  return {
    ...part,
    ...(data !== undefined && { data: mapData(data, media_type ?? 'application/octet-stream', changes) }),
    ...(filename !== undefined && { filename: changes.text(filename) }),
    ...(transcript !== undefined && { transcript: changes.text(transcript) }),
  }
}

/** Members of other operations that a model reads, or that are made from what it reads. */
const textMembers: { readonly [operation: string]: readonly string[] } = {
  embed: ['input'],
  complete: ['prompt', 'suffix'],
  rerank: ['query', 'documents'],
  moderate: ['input'],
  decide: ['input', 'questions'],
  image: ['prompt'],
  image_edit: ['prompt'],
  speech: ['input', 'instructions'],
  transcribe: ['prompt'],
}

function mapOther(request: OtherRequest, change: Change): OtherRequest {
  const fields = { ...request.fields }
  for (const name of textMembers[request.operation] ?? []) {
    const value: JsonValue | undefined = fields[name]
    if (value === undefined) continue
    const changes = changesAt(change, 'user')
    const map = request.operation === 'decide' ? mapBlock : mapValues
    fields[name] = map(value, changes) as (typeof fields)[string]
  }
  return { ...request, fields }
}
