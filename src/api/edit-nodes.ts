import { isObject, type Json, type JsonObject } from '../core/json.ts'

/** Returns a node in another form, or itself when nothing changes. */
export type NodeEdit = (node: JsonObject) => JsonObject

/**
 * A body whose conversation (its messages, items and content parts, at any depth) has been edited. What does not change is
 * shared with the client's own body, which stays as it is.
 */
export function withEditedNodes(body: JsonObject, lists: readonly string[], edit: NodeEdit): JsonObject {
  return withEditedLists(body, lists, edit)
}

/** Where nodes hold others. */
const inner = ['content', 'output']

function withEditedLists(node: JsonObject, names: readonly string[], edit: NodeEdit): JsonObject {
  let edited = node
  for (const name of names) {
    const list = node[name]
    if (!Array.isArray(list)) continue
    const made = editList(list, edit)
    if (made !== list) edited = { ...edited, [name]: made }
  }
  return edited
}

function editList(list: Json[], edit: NodeEdit): Json[] {
  let edited = list
  for (const [index, item] of list.entries()) {
    if (!isObject(item)) continue
    const made = editNode(item, edit)
    if (made === item) continue
    if (edited === list) edited = [...list]
    edited[index] = made
  }
  return edited
}

function editNode(node: JsonObject, edit: NodeEdit): JsonObject {
  const edited = withEditedLists(edit(node), inner, edit)
  // A document of the Messages API that is made of blocks.
  const { source } = edited
  if (!isObject(source)) return edited
  const made = withEditedLists(source, inner, edit)
  return made === source ? edited : { ...edited, source: made }
}
