import { isObject, type Json, type JsonObject } from '../core/json.ts'

/** Returns a node in another form, or itself when nothing changes. */
type NodeEdit = (node: JsonObject) => JsonObject

/**
 * A body whose conversation (its messages, items and content parts, at any depth) has been edited. What does not change is
 * shared with the client's own body, which stays as it is.
 */
export function withEditedNodes(body: JsonObject, lists: readonly string[], edit: NodeEdit): JsonObject {
  let edited = body
  for (const name of lists) {
    const list = body[name]
    if (!Array.isArray(list)) continue
    const made = mapItems(list, (item) => (isObject(item) ? editNode(item, edit) : item))
    if (made !== list) edited = { ...edited, [name]: made }
  }
  return edited
}

/** The list with other items, or itself when all stay the same. */
export function mapItems(list: Json[], change: (item: Json) => Json): Json[] {
  let changed = list
  for (let index = 0; index < list.length; index++) {
    const item = list[index] as Json
    const made = change(item)
    if (made === item) continue
    if (changed === list) changed = [...list]
    changed[index] = made
  }
  return changed
}

/** The object with other members, or itself when all stay the same. */
function mapMembers(object: JsonObject, change: (value: Json, name: string) => Json): JsonObject {
  let changed = object
  for (const name in object) {
    const made = change(object[name] as Json, name)
    if (made !== object[name]) changed = { ...changed, [name]: made }
  }
  return changed
}

/** Members in which nodes hold other nodes. */
const inner = ['content', 'output']

function editNode(node: JsonObject, edit: NodeEdit): JsonObject {
  const edited = withEditedNodes(edit(node), inner, edit)
  // A document of the Messages API that is made of blocks.
  const { source } = edited
  if (!isObject(source)) return edited
  const made = withEditedNodes(source, inner, edit)
  return made === source ? edited : { ...edited, source: made }
}

/** Places where a body of one API has members of the API's own, which null leaves out; elsewhere null may be meaningful. */
export type OwnMembers = {
  lists: readonly string[]
  /** The types of messages, items, parts and tools whose members are the API's own; those without a type have own ones. */
  types: ReadonlySet<Json | undefined>
  /** Settings at the top whose members are the API's own. */
  settings: ReadonlySet<string>
}

/** Members that hold the client's JSON, output of a model, or nodes that are edited on their own. */
const others: ReadonlySet<string> = new Set(
  ['schema', 'parameters', 'input_schema', 'input', 'arguments', 'definition', 'metadata', 'logit_bias'].concat([
    'content',
    'output',
    'annotations',
    'citations',
    'logprobs',
    'reasoning_details',
    'replay_parts',
    'results',
  ]),
)

/** Returns a body without meaningless nulls: many servers refuse them. Unchanged parts are shared with the body. */
export function withoutNulls(body: JsonObject, { lists, types, settings }: OwnMembers): JsonObject {
  if (!holdsNull(body)) return body
  const clean = (node: JsonObject) =>
    (node.type ?? undefined) === undefined || types.has(node.type) ? cleanObject(node) : node
  const cleanTool = (tool: Json) => (isObject(tool) ? clean(tool) : tool)
  const edited = mapMembers(withoutNull(body), (value, name) => {
    if (name === 'tools' && Array.isArray(value)) return mapItems(value, cleanTool)
    return settings.has(name) ? cleanValue(value) : value
  })
  return withEditedNodes(edited, lists, clean)
}

/**
 * Checks for a null that would be left out. Nearly all bodies hold none: a walk that allocates nothing finds that out in a fraction of
 * the time.
 */
function holdsNull(value: JsonObject | Json[]): boolean {
  if (Array.isArray(value)) {
    for (const item of value) if (item === null || (typeof item === 'object' && holdsNull(item))) return true
    return false
  }
  for (const name in value) {
    const member = value[name]
    if (member === null ? !isKept(value, name) : typeof member === 'object' && holdsNull(member)) return true
  }
  return false
}

function cleanValue(value: Json): Json {
  if (Array.isArray(value)) return mapItems(value, cleanValue)
  return isObject(value) ? cleanObject(value) : value
}

function cleanObject(object: JsonObject): JsonObject {
  return mapMembers(withoutNull(object), (value, name) => (others.has(name) ? value : cleanValue(value)))
}

/** Checks whether a null must stay: the content of an assistant that only calls is null, and some servers require it to be sent. */
function isKept({ role }: JsonObject, name: string): boolean {
  return name === 'content' && role === 'assistant'
}

function withoutNull(object: JsonObject): JsonObject {
  const isNothing = (name: string) => object[name] === null && !isKept(object, name)
  if (!Object.keys(object).some(isNothing)) return object
  return Object.fromEntries(Object.entries(object).filter(([name]) => !isNothing(name))) as JsonObject
}
