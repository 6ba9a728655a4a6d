import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { CacheHint, Citation, MediaPart, Part, SearchPart, TextPart, ToolResultPart } from '../../core/parts.ts'
import { defined, filledText, flag, list, object, optional, refuse, required, text } from '../check.ts'
import { type ForeignSignature, readForeignSignature } from '../foreign-signature.ts'
import { address, base64 } from '../media-address.ts'
import { readCallId } from './reply-members.ts'
import { readQuery, readResults } from './searches.ts'
import { memberName } from './toolsets.ts'

/** The content of a message or tool result: a text, or blocks. Throws RouterError 400 that names the block. */
export function readContent(content: Json | undefined, path: string, names: ReadonlyMap<string, string>): Part[] {
  const given = required(content, path, 'a string or an array of content blocks', (value) => value)
  if (typeof given === 'string') return [{ type: 'text', text: given }]
  if (!Array.isArray(given)) refuse(path, 'a string or an array of content blocks', given)
  const parts: Part[] = []
  const signatures: ForeignSignature[] = []
  for (const [index, block] of given.entries()) {
    const read = readBlock(object(block, `${path}[${index}]`), `${path}[${index}]`, names)
    for (const part of read) {
      if ('foreign' in part && part.foreign.text === -1) parts.push(emptyText(part.foreign))
      else if ('foreign' in part) signatures.push(part.foreign)
      else if (part.type === 'search') joinSearch(parts, part)
      else parts.push(part)
    }
  }
  return signatures.length > 0 ? withSignatures(parts, signatures) : parts
}

/** The parts of a block, or a signature on one of the parts before it. */
type Read = (Part | { foreign: ForeignSignature })[]
type Reader = (block: JsonObject, path: string, names: ReadonlyMap<string, string>) => Read

const readers: { readonly [type: string]: Reader } = {
  text: (block, path) => [readText(block, path)],
  image: (block, path) => [{ ...readSource('image', block.source, `${path}.source`), ...cacheOf(block) }],
  document: readDocument,
  search_result: (block, path) => readSearchResult(block, path),
  tool_reference: (block, path) => [readReference(block, path)],
  browser_state: (block) => [readBrowserState(block)],
  tool_use: (block, path) => [
    {
      type: 'tool_call',
      id: readCallId(required(block.id, `${path}.id`, 'the id of the call', filledText)),
      name: calledName(block, path),
      arguments: JSON.stringify(required(block.input ?? {}, `${path}.input`, 'an object', object)),
      ...cacheOf(block),
    },
  ],
  tool_result: (block, path, names) => [readToolResult(block, path, names)],
  thinking: (block, path) => readThinking(block, path),
  redacted_thinking: (block) => readRedacted(block),
  server_tool_use: (block) =>
    block.name === 'web_search' ? [readQuery(block.id, block.input)] : [{ type: 'opaque', body: block }],
  web_search_tool_result: (block) => [readResults(block.tool_use_id, block.content)],
}

/** Checks whether a block is passed on unread. */
export function isOpaque({ type, name }: JsonObject): boolean {
  if (type === 'server_tool_use') return name !== 'web_search'
  return typeof type === 'string' && !Object.hasOwn(readers, type)
}

function readBlock(block: JsonObject, path: string, names: ReadonlyMap<string, string>): Read {
  const type = required(block.type, `${path}.type`, 'the type of a content block', filledText)
  const reader = Object.hasOwn(readers, type) ? readers[type] : undefined
  return reader ? reader(block, path, names) : [{ type: 'opaque', body: block }]
}

function readText(block: JsonObject, path: string): TextPart {
  const citations = optional(block.citations, `${path}.citations`, (value) => (Array.isArray(value) ? value : []))
  const cited = (citations ?? []).flatMap((citation) => (isObject(citation) ? [readCitation(citation)] : []))
  return {
    type: 'text',
    text: required(block.text, `${path}.text`, 'a string', text),
    ...(cited.length > 0 && { citations: cited }),
    ...cacheOf(block),
  }
}

function readCitation({ url, title, cited_text, document_title }: JsonObject): Citation {
  const filled = (value: Json | undefined) => (typeof value === 'string' && value !== '' ? value : undefined)
  return defined({ url: filled(url), title: filled(title) ?? filled(document_title), cited_text: filled(cited_text) })
}

function readSource(type: MediaPart['type'], source: Json | undefined, path: string): MediaPart {
  const given = required(source, path, 'an object with a type', object)
  const kind = required(given.type, `${path}.type`, "'base64', 'url' or 'file'", filledText)
  if (kind === 'url') return { type, url: required(given.url, `${path}.url`, 'an address', address) }
  if (kind === 'file')
    return { type, file_id: required(given.file_id, `${path}.file_id`, 'the id of a file', filledText) }
  if (kind !== 'base64') refuse(`${path}.type`, "'base64', 'url' or 'file'", kind)
  return {
    type,
    data: required(given.data, `${path}.data`, 'base64 text', base64),
    media_type: required(given.media_type, `${path}.media_type`, 'a media type', filledText),
  }
}

function readDocument(block: JsonObject, path: string, names: ReadonlyMap<string, string>): Read {
  const source = required(block.source, `${path}.source`, 'an object with a type', object)
  const title = optional(block.title, `${path}.title`, text)
  const context = optional(block.context, `${path}.context`, text)
  // The context of a document is meant for the model to read, like the document itself.
  const about: Part[] = context ? [{ type: 'text', text: context }] : []
  const named = { ...(title !== undefined && { filename: title }), ...cacheOf(block) }
  if (source.type === 'text') {
    const data = Buffer.from(required(source.data, `${path}.source.data`, 'a string', text)).toString('base64')
    return [...about, { type: 'file', data, media_type: 'text/plain', ...named }]
  }
  if (source.type === 'content') return [...about, ...readContent(source.content, `${path}.source.content`, names)]
  return [...about, { ...readSource('file', source, `${path}.source`), ...named }]
}

/** A search result from the client becomes text with its source. */
function readSearchResult(block: JsonObject, path: string): Part[] {
  const heading = [block.title, block.source].filter((value) => typeof value === 'string' && value !== '').join(' — ')
  const content = optional(block.content, `${path}.content`, list) ?? []
  const texts = content.flatMap((item) => (isObject(item) && typeof item.text === 'string' ? [item.text] : []))
  return [{ type: 'text', text: [heading, ...texts].filter(Boolean).join('\n'), ...cacheOf(block) }]
}

function readToolResult(block: JsonObject, path: string, names: ReadonlyMap<string, string>): ToolResultPart {
  const id = readCallId(required(block.tool_use_id, `${path}.tool_use_id`, 'the id of a call', filledText))
  const name = names.get(id)
  const isError = optional(block.is_error, `${path}.is_error`, flag)
  const empty = block.content === undefined || block.content === null
  return {
    type: 'tool_result',
    id,
    ...(name !== undefined && { name }),
    parts: empty ? [] : readContent(block.content, `${path}.content`, names),
    ...(isError && { is_error: true }),
    ...cacheOf(block),
  }
}

/** A tool that a search of the client has found: it is among the tools, and other models read its name. */
function readReference(block: JsonObject, path: string): TextPart {
  const name = required(block.tool_name, `${path}.tool_name`, 'the name of a tool', filledText)
  return { type: 'text', text: `Tool found, which can be called now: ${name}`, ...cacheOf(block) }
}

/** The name of a called tool; for a member of a toolset that of the function which stands for it. */
function calledName({ name, toolset_name: toolset }: JsonObject, path: string): string {
  const own = required(name, `${path}.name`, 'the name of a tool', filledText)
  const toolsetName = optional(toolset, `${path}.toolset_name`, filledText)
  return toolsetName === undefined ? own : memberName(toolsetName, own)
}

/** Returns the state of a browser after a call, as other models read it. */
function readBrowserState(block: JsonObject): TextPart {
  const { tabs = [], state_changes } = block
  return { type: 'text', text: JSON.stringify({ tabs, ...defined({ state_changes }) }), ...cacheOf(block) }
}

function readThinking(block: JsonObject, path: string): Read {
  const thinking = required(block.thinking, `${path}.thinking`, 'a string', text)
  const foreign = readForeignSignature(block.signature)
  if (foreign) {
    const { call: _call, text: _text, body: _body, ...members } = foreign
    if (members.summary === '') return [{ type: 'reasoning', ...members, summary: thinking }]
    return [{ type: 'reasoning', ...(thinking && { text: thinking }), ...members }]
  }
  const signature = typeof block.signature === 'string' && block.signature !== '' ? block.signature : undefined
  return [{ type: 'reasoning', text: thinking, ...(signature !== undefined && { signature }) }]
}

function readRedacted({ data }: JsonObject): Read {
  const foreign = readForeignSignature(data)
  if (!foreign) return [{ type: 'reasoning', encrypted: typeof data === 'string' ? data : '' }]
  const { call, text: position, body, ...members } = foreign
  if (body !== undefined) return [{ type: 'opaque', body, ...(members.by !== undefined && { by: members.by }) }]
  return call !== undefined || position !== undefined ? [{ foreign }] : [{ type: 'reasoning', ...members }]
}

/** A search and its results are two blocks but one part; some providers give no ids. */
function joinSearch(parts: Part[], part: SearchPart): void {
  const same = parts.find((one) => one.type === 'search' && one.status === undefined && one.id === part.id)
  if (same) Object.assign(same, part)
  else parts.push(part)
}

/** The parts with signatures that had blocks of their own put back on the calls and texts that they belong to. */
function withSignatures(parts: Part[], signatures: readonly ForeignSignature[]): Part[] {
  // Positions count blocks of text, and an empty text has none.
  const texts = parts.filter((part) => part.type === 'text' && (part.text !== '' || part.citations))
  return parts.map((part) => {
    const found = signatures.find(({ call, text: position }) => {
      return part.type === 'tool_call' ? call === part.id : part.type === 'text' && position === texts.indexOf(part)
    })
    if (!found) return part
    return { ...part, ...defined({ signature: found.signature, by: found.by }) } as Part
  })
}

/** An empty text that has a signature. */
function emptyText({ signature, by }: ForeignSignature): TextPart {
  return { type: 'text', text: '', ...defined({ signature, by }) }
}

/** The cache hint of a block or tool. */
export function cacheOf({ cache_control: control }: JsonObject): { cache?: CacheHint } {
  if (!isObject(control)) return {}
  const { ttl } = control
  return { cache: ttl === '1h' || ttl === '5m' ? { ttl } : {} }
}
