import { isObject, type Json } from '../core/json.ts'
import type { Part } from '../core/parts.ts'
import type { CheckedKind, CheckedText, PluginReply, ProviderEvent, StreamedEvent } from './contract.ts'

/**
 * A text that an event adds to an answer. Texts of one `channel` follow each other: they are the text of one part. Without a channel a text
 * is complete.
 */
export type AddedText = { kind: CheckedKind; text: string; channel?: string }

/** Returns everything in an event that a client could read. */
export function textsOfEvent(event: StreamedEvent): AddedText[] {
  if ('json' in event) return textsOfJson(event.json)
  const { at, text, refusal, reasoning, tool, citation, search, media, opaque, whole, extensions } = event
  const added: AddedText[] = []
  const grow = (kind: CheckedKind, text: string | undefined, name: string = kind) => {
    if (text) added.push({ kind, text, channel: `${name} ${at}` })
  }
  grow('text', text)
  grow('refusal', refusal)
  grow('reasoning', reasoning?.text)
  grow('reasoning', reasoning?.summary, 'summary')
  if (tool) {
    if (tool.name) added.push({ kind: 'tool_name', text: tool.name })
    if (typeof tool.arguments === 'string') grow('tool_arguments', tool.arguments)
    else if (tool.arguments) added.push({ kind: 'tool_arguments', text: JSON.stringify(tool.arguments) })
  }
  if (citation) added.push(...complete('citation', textsOfCitation(citation)))
  if (search) added.push(...complete('search', [search.query, ...stringsIn(search.results)]))
  if (media) added.push(...complete('transcript', [media.transcript]))
  if (opaque) added.push(...complete('other', stringsIn(opaque.body)))
  if (whole) added.push(...textsOfPart(whole))
  if (extensions) added.push(...complete('other', stringsIn(extensions)))
  return added
}

/** Returns everything in a whole answer that a client could read. */
export function textsOfReply(reply: PluginReply): CheckedText[] {
  const texts =
    'chat' in reply
      ? [...reply.chat.parts.flatMap(textsOfPart), ...complete('other', stringsIn(reply.chat.extensions))]
      : textsOfJson(reply.json)
  return texts.map(({ kind, text }) => ({ kind, text, before: '' }))
}

function textsOfPart(part: Part): AddedText[] {
  switch (part.type) {
    case 'text':
      return [
        ...complete('text', [part.text]),
        ...(part.citations ?? []).flatMap((citation) => complete('citation', textsOfCitation(citation))),
      ]
    case 'refusal':
      return complete('refusal', [part.text])
    case 'reasoning':
      return complete('reasoning', [part.text, part.summary])
    case 'tool_call':
      return [...complete('tool_name', [part.name]), ...complete('tool_arguments', [part.arguments])]
    case 'tool_result':
      return part.parts.flatMap(textsOfPart)
    case 'search':
      return complete('search', [part.query, ...stringsIn(part.results)])
    case 'opaque':
      return complete('other', stringsIn(part.body))
    default:
      return complete('transcript', [part.transcript])
  }
}

function textsOfCitation({ title, cited_text, url }: NonNullable<ProviderEvent['citation']>) {
  return [title, cited_text, url]
}

/** Texts of the answers and events of other operations: of completions and transcriptions by part, of all others as they come. */
function textsOfJson(json: { [name: string]: Json | undefined }): AddedText[] {
  const { choices, delta, type, ...others } = json
  const added: AddedText[] = []
  if (typeof delta === 'string') added.push({ kind: 'text', text: delta, channel: `delta ${type}` })
  else added.push(...complete('other', stringsIn(delta)))
  for (const choice of Array.isArray(choices) ? choices : []) {
    const { text, index, ...rest } = isObject(choice) ? choice : { text: choice, index: 0 }
    if (typeof text === 'string') added.push({ kind: 'text', text, channel: `choice ${index}` })
    added.push(...complete('other', stringsIn(rest)))
  }
  if (typeof others.text === 'string') {
    added.push(...complete('text', [others.text]))
    delete others.text
  }
  return [...added.filter(({ text }) => text !== ''), ...complete('other', stringsIn(others))]
}

function complete(kind: CheckedKind, texts: readonly (string | undefined)[]): AddedText[] {
  return texts.flatMap((text) => (text ? [{ kind, text }] : []))
}

/** Returns all strings in a value but those that are names, or media and sealed text in base64. */
function stringsIn(value: Json | undefined, found: string[] = []): string[] {
  if (typeof value === 'string') found.push(value)
  else if (Array.isArray(value)) {
    // Vectors are long, and are no texts.
    if (typeof value[0] !== 'number') for (const item of value) stringsIn(item, found)
  } else if (isObject(value)) {
    for (const [name, member] of Object.entries(value)) if (!isNoText(name, member)) stringsIn(member, found)
  }
  return found
}

function isNoText(name: string, value: Json | undefined): boolean {
  if (typeof value !== 'string') return false
  if (value.length <= maxName) return names.has(name)
  return binaries.has(name) && looksBinary.test(value.slice(0, maxName))
}

const names: ReadonlySet<string> = new Set([
  ...['id', 'object', 'type', 'model', 'status', 'finish_reason', 'language', 'system_fingerprint'],
])
const binaries: ReadonlySet<string> = new Set([
  ...['b64_json', 'audio', 'data', 'signature', 'encrypted_content', 'encrypted_index'],
])
const looksBinary = /^[\w+/=-]*$/
/** Characters. */
const maxName = 100
