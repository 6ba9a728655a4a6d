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

/** Called for a part without a text that could be read: an image, sound, a file of another type or by its address. */
export type Unread = (what: string, origin: Origin) => void

/** Returns a request with other texts in it, changed in their order: every text that a model reads of it, whatever its part is. */
export function mapRequest(request: PluginRequest, changeText: Change, unread: Unread = () => {}): PluginRequest {
  const change: Reading = { text: changeText, unread }
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

type Reading = { text: Change; unread: Unread }

function mapParts(parts: readonly Part[], change: Reading, origin: Origin): Part[] {
  return parts.map((part) => mapRequestPart(part, change, origin))
}

function mapRequestPart(part: Part, change: Reading, origin: Origin): Part {
  if (part.type === 'tool_result') {
    const native = mapNative(part, changesAt(change, 'tool_result'))
    return { ...part, parts: mapParts(part.parts, change, 'tool_result'), ...native }
  }
  // What a search has found was written by others, like the results of any tool.
  if (part.type === 'search') return mapPart(part, changesAt(change, 'tool_result'))
  return mapPart(part, changesAt(change, isKnown(part) ? origin : 'block'))
}

function changesAt(change: Reading, origin: Origin): Changes {
  const text = (given: string) => change.text(given, origin)
  return { text, json: (given) => mapJsonText(given, text), unread: (what) => change.unread(what, origin) }
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
      return {
        ...part,
        arguments: part.kind === 'custom' ? text(part.arguments) : json(part.arguments),
        ...mapNative(part, changes),
      }
    case 'tool_result':
      return { ...part, parts: part.parts.map((one) => mapPart(one, changes)), ...mapNative(part, changes) }
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

type ToolPart = Extract<Part, { type: 'tool_call' | 'tool_result' }>

/** A call or result says the same once more as its client has sent it: providers of that API get this form. */
function mapNative({ native }: ToolPart, changes: Changes): Pick<ToolPart, 'native'> {
  return native ? { native: { ...native, body: mapBlock(native.body, changes) as typeof native.body } } : {}
}

type Media = Extract<Part, { type: 'image' | 'audio' | 'video' | 'file' }>

/** Images and sound are data; a document that is a text, its name and a transcript are texts. */
function mapMedia(part: Media, changes: Changes): Media {
  const { data, media_type, filename, transcript } = part
  if (data === undefined) changes.unread?.(`${part.type} by its address`)
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

/** Files of other operations, which no text says anything about. */
const mediaOf: { readonly [operation: string]: string } = { image_edit: 'image', transcribe: 'audio' }

function mapOther(request: OtherRequest, change: Reading): OtherRequest {
  const fields = { ...request.fields }
  const medium = mediaOf[request.operation]
  if (medium !== undefined) change.unread(medium, 'user')
  for (const name of textMembers[request.operation] ?? []) {
    const value: JsonValue | undefined = fields[name]
    if (value === undefined) continue
    const changes = changesAt(change, 'user')
    const map = request.operation === 'decide' ? mapBlock : mapValues
    fields[name] = map(value, changes) as (typeof fields)[string]
  }
  return { ...request, fields }
}

/** Returns the kinds of the parts that `mapRequest` finds no text in, at these places. */
export function unreadIn(request: PluginRequest, isRead: (origin: Origin) => boolean = () => true): string[] {
  const kinds = new Set<string>()
  mapRequest(
    request,
    (text) => text,
    (what, origin) => {
      if (isRead(origin) && kinds.size < maxKinds) kinds.add(what)
    },
  )
  return [...kinds]
}

const maxKinds = 10

/** Returns the parameter of a request that has its texts. */
export function paramOf(request: PluginRequest): string {
  if ('chat' in request) return 'messages'
  return ['prompt', 'input', 'suffix'].find((name) => name in request.fields) ?? 'prompt'
}
