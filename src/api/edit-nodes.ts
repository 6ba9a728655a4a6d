import { isObject, type Json, type JsonObject } from '../core/json.ts'

/** Returns a node in another form, or itself when nothing changes. */
export type NodeEdit = (node: JsonObject) => JsonObject

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
export function mapMembers(object: JsonObject, change: (value: Json, name: string) => Json): JsonObject {
  let changed = object
  for (const name in object) {
    const made = change(object[name] as Json, name)
    if (made !== object[name]) changed = { ...changed, [name]: made }
  }
  return changed
}

/** Where nodes hold others. */
const inner = ['content', 'output']

function editNode(node: JsonObject, edit: NodeEdit): JsonObject {
  const edited = withEditedNodes(edit(node), inner, edit)
  // A document of the Messages API that is made of blocks.
  const { source } = edited
  if (!isObject(source)) return edited
  const made = withEditedNodes(source, inner, edit)
  return made === source ? edited : { ...edited, source: made }
}
