import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { Operation } from '../core/operation.ts'
import { isReferenceByItem, namesResource } from './resource-uses.ts'

/**
 * Returns the ids by which a provider keeps what it has put into a block or item of a reply. Only the places that the provider itself
 * fills are read: in others a tool server or the client could name what belongs to somebody else.
 */
export function idsOfItem(item: Json | undefined): string[] {
  if (!isObject(item)) return []
  const { type, id, container_id, environment, results, outputs, content, annotations, citations } = item
  const own = [container_id, isObject(environment) ? environment.container_id : undefined]
  if (typeof id === 'string' && isReferenceByItem(item)) own.push(id)
  if (type === 'file_search_call') own.push(...membersOf(results, 'file_id'))
  if (type === 'code_interpreter_call') own.push(...membersOf(outputs, 'file_id'))
  if (type === 'message') own.push(...(Array.isArray(content) ? content : []).flatMap(quotedIn))
  if (type === 'text' || type === 'tool_file' || type === 'container_upload')
    own.push(...quotedIn({ ...item, annotations, citations }))
  if (typeof type === 'string' && /code_execution_tool_result$/.test(type) && isObject(content))
    own.push(...membersOf(content.content, 'file_id'))
  return own.filter((one) => typeof one === 'string' && one !== '') as string[]
}

/** Returns the files that a part of a text, or its annotations, name. */
function quotedIn(part: Json): (Json | undefined)[] {
  if (!isObject(part)) return []
  const lists = [part.annotations, part.citations].filter((list) => Array.isArray(list) && list.length > 0)
  if (lists.length === 0) return part.file_id === undefined ? [] : [part.file_id]
  const quotes = (lists as Json[][]).flat().filter(isObject)
  const inner = quotes.flatMap((quote) => [
    quote.file_id,
    quote.container_id,
    isObject(quote.file) ? quote.file.id : undefined,
  ])
  return [part.file_id, ...inner]
}

function membersOf(list: Json | undefined, name: string): (Json | undefined)[] {
  return (Array.isArray(list) ? list : []).map((item) => (isObject(item) ? item[name] : undefined))
}

/**
 * Returns the ids by which a provider keeps what it has made for a call of these operations. The others give back texts of the client and
 * of models, with members of any name.
 */
export function idsOfAnswer(operation: Operation, answer: Json): string[] {
  const ids = new Set<string>()
  const collect = (value: Json | undefined, name: string): void => {
    if (ids.size >= maxReturned) return
    if (Array.isArray(value)) for (const item of value) collect(item, name)
    else if (isObject(value)) {
      if (makers.has(name) && typeof value.id === 'string') ids.add(value.id)
      for (const member in value) collect(value[member], member)
    } else if (typeof value === 'string' && value !== '' && value.length <= maxIdLength && namesResource(name))
      ids.add(value)
  }
  if (makingOperations.has(operation)) collect(answer, '')
  return [...ids]
}

const makingOperations: ReadonlySet<Operation> = new Set(['image', 'image_edit', 'speech'])
/** Members whose objects are things that a provider has made, each with an `id`. */
const makers: ReadonlySet<string> = new Set(['audio', 'voice', 'file', 'image'])
const [maxReturned, maxIdLength] = [100, 512]

/** Returns the same of a message of Chat Completions, or of a piece of one in a stream. */
export function idsOfMessage({ audio, annotations, content }: JsonObject): string[] {
  const spoken = isObject(audio) && typeof audio.id === 'string' && audio.id !== '' ? [audio.id] : []
  const parts = Array.isArray(content) ? content : []
  if (!Array.isArray(annotations) && parts.length === 0) return spoken
  return [...spoken, ...[{ type: 'text', annotations }, ...parts].flatMap(idsOfItem)]
}
