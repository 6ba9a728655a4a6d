import type { MediaPart, Part, TextPart } from './parts.ts'
import type { NeutralRequest } from './request.ts'

/** Media types of texts, those of code and data among them. Office documents have `xml` in the middle of theirs. */
const texts = /^text\/|[/+](json|jsonl|x-ndjson|ndjson|xml|(x-)?yaml|csv|(x-)?javascript|typescript|(x-)?sh|sql|toml)$/i

/** Checks whether media of this type are text. */
export function isTextType(type: string | undefined): boolean {
  return type !== undefined && texts.test(type.split(';', 1)[0]?.trim() ?? '')
}

/** Returns the words of a text file, its title first. */
export function textOfFile({ filename, data = '' }: Pick<MediaPart, 'filename' | 'data'>): string {
  const text = Buffer.from(data, 'base64').toString('utf8')
  return filename ? `${filename}\n${text}` : text
}

/** The places where files of text become text: all, or only the results of tools. */
export type TextFilePlaces = 'all' | 'results'

/** Returns a request whose files of text are text, for providers that take no such files. The original is not changed. */
export function withTextFiles(request: NeutralRequest, places: TextFilePlaces): NeutralRequest {
  const change = (part: Part): Part => {
    if (part.type === 'tool_result' && part.parts.some(isTextFile)) return { ...part, parts: part.parts.map(asText) }
    return places === 'all' ? asText(part) : part
  }
  const isKept = (part: Part) => change(part) === part
  const { system } = request
  const isSame = request.messages.every(({ parts }) => parts.every(isKept)) && (system?.every(isKept) ?? true)
  if (isSame) return request
  const messages = request.messages.map((message) => ({ ...message, parts: message.parts.map(change) }))
  return { ...request, messages, ...(system && { system: system.map(change) }) }
}

function isTextFile(part: Part): part is MediaPart {
  return part.type === 'file' && part.data !== undefined && isTextType(part.media_type)
}

function asText(part: Part): Part {
  if (!isTextFile(part)) return part
  const text: TextPart = { type: 'text', text: textOfFile(part), ...(part.cache && { cache: part.cache }) }
  return text
}
