import { isObject, type Json, type JsonObject } from '../core/json.ts'
import { isWebSearch } from './tools.ts'

/**
 * A client's body without these neutral fields. Parts of messages stay: without them a message would mean something else.
 * The body itself is not changed.
 */
export function withoutFields(
  body: JsonObject,
  fields: readonly string[],
  wireNames: (field: string) => readonly string[],
): JsonObject {
  const names = fields.filter((field) => !field.startsWith('parts.')).flatMap(wireNames)
  return names.reduce(withoutPath, body)
}

/** Without tools there is no tool choice either: providers refuse a choice among no tools. */
export function withoutIdleChoice(edited: JsonObject, { tools }: JsonObject): JsonObject {
  if (!Array.isArray(tools) || (Array.isArray(edited.tools) && edited.tools.length > 0)) return edited
  const { tools: _tools, tool_choice: _choice, parallel_tool_calls: _parallel, ...others } = edited
  return others
}

/** `a.b` is a member of a member; in a list, the items of the type `b` or else that member of every item. */
function withoutPath(body: JsonObject, path: string): JsonObject {
  return withoutIdleChoice(withoutMember(body, path.split('.')), body)
}

function withoutMember(object: JsonObject, [step = '', ...rest]: readonly string[]): JsonObject {
  const { [step]: member, ...others } = object
  if (member === undefined) return object
  return rest.length === 0 ? others : { ...others, [step]: withoutInside(member, rest) }
}

function withoutInside(value: Json, path: readonly string[]): Json {
  if (isObject(value)) return withoutMember(value, path)
  return Array.isArray(value) ? value.flatMap((item) => withoutItem(item, path)) : value
}

function withoutItem(item: Json, [step = '', ...rest]: readonly string[]): Json[] {
  const isMeant = isObject(item) && (item.type === step || (step === 'web_search' && isWebSearch(item.type)))
  if (isMeant && rest.length === 0) return []
  return [withoutInside(item, isMeant ? rest : [step, ...rest])]
}
