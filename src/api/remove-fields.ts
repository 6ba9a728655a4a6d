import { isObject, type Json, type JsonObject } from '../core/json.ts'
import { isWebSearch } from './tools.ts'
import { type FieldNames, namesOf } from './wire-fields.ts'

/** Parts to remove from a body of one API so that nothing of a dropped field is left in it. */
type Removal = {
  /** Whole messages, items and content parts. */
  isDropped?: (node: JsonObject) => boolean
  /** Members of messages. */
  messages?: readonly string[]
  /** Paths of members of items and content parts, and of tool calls. */
  parts?: readonly string[]
  /** Items, parts and calls that are kept in another form. */
  edit?: (node: JsonObject) => JsonObject
  /** Whole tools. */
  tools?: (tool: JsonObject) => boolean
  /** Paths of members of tools. */
  toolMembers?: readonly string[]
  /** Paths from the top of the body. */
  paths?: readonly string[]
  /** Edits the top of the body where paths are not enough. */
  body?: (body: JsonObject) => JsonObject
}

/** Names of fields in one API, and the way to remove those whose names are not simply paths in the body. */
export type Removals = FieldNames & {
  /** Removals by neutral field. */
  removals: { readonly [field: string]: Removal }
  /** Members that hold the conversation and other lists of content parts. */
  lists: readonly string[]
}

/** Text for the model where nothing else is left of a message. */
const omitted = '(unsupported content omitted)'

/** A client's body without these neutral fields, and without a tool choice whose tool is gone. The body is not changed. */
export function bodyWithoutFields(body: JsonObject, fields: readonly string[], api: Removals): JsonObject {
  if (fields.length === 0) return body
  const removals = fields.map((field) => removalOf(field, api))
  let edited = removals.reduce((left, { paths = [], body: edit }) => {
    const shorter = paths.reduce(withoutPath, left)
    return edit ? edit(shorter) : shorter
  }, body)
  for (const name of api.lists) {
    const list = edited[name]
    if (Array.isArray(list) && removals.some(concernsParts))
      edited = { ...edited, [name]: editConversation(list, removals) }
  }
  return withoutDroppedChoice(withoutTools(edited, removals), body)
}

/** A web search is a field of its own, although clients ask for it among their tools. */
export function isNoSearch({ type }: JsonObject): boolean {
  return !isWebSearch(type)
}

/** A removal made for this field, or that of its parent applied to the member, or its names as paths. */
function removalOf(field: string, api: Removals): Removal {
  const { removals } = api
  const known = Object.hasOwn(removals, field) ? removals[field] : undefined
  if (known) return known
  const [first, second = '', third] = field.split('.')
  if (first !== 'parts') return { paths: namesOf(field, api) }
  const type = removals[`parts.${second}`]?.isDropped
  const member = third === undefined ? undefined : removals[`parts.${third}`]
  return type && member ? withinType(member, type) : {}
}

/** `parts.image.detail`: a removal for parts of one type. */
function withinType({ isDropped, parts = [], edit }: Removal, isType: (node: JsonObject) => boolean): Removal {
  const shortened = (node: JsonObject) => parts.reduce(withoutPath, node)
  return {
    ...(isDropped && { isDropped: (node) => isType(node) && isDropped(node) }),
    edit: (node) => (isType(node) ? (edit?.(shortened(node)) ?? shortened(node)) : node),
  }
}

function concernsParts({ isDropped, messages, parts, edit }: Removal): boolean {
  return Boolean(isDropped ?? messages ?? parts ?? edit)
}

/** A conversation never becomes empty. */
function editConversation(list: readonly Json[], removals: readonly Removal[]): Json[] {
  const left = editNodes(list, removals)
  return left.length > 0 || list.length === 0 ? left : [{ role: 'user', content: omitted }]
}

function editNodes(nodes: readonly Json[], removals: readonly Removal[]): Json[] {
  return nodes.flatMap((node): Json[] => {
    if (!isObject(node)) return [node]
    return removals.some(({ isDropped }) => isDropped?.(node)) ? [] : editNode(node, removals)
  })
}

/** Returns a message, item or part without its dropped fields; nothing when an assistant has nothing left. */
function editNode(node: JsonObject, removals: readonly Removal[]): JsonObject[] {
  const isMessage = node.role !== undefined
  const edited = removals.reduce((left, { messages = [], parts = [], edit }) => {
    const shorter = (isMessage ? messages : parts).reduce(withoutPath, left)
    return edit ? edit(shorter) : shorter
  }, node)
  const whole = editInside(edited, removals)
  return node.role === 'assistant' && !hasContent(whole) && hasContent(node) ? [] : [whole]
}

/** Edits lists inside a node; one that has lost all its parts is replaced by a text that states this. */
function editInside(node: JsonObject, removals: readonly Removal[]): JsonObject {
  const edited = { ...node }
  for (const name of ['content', 'output', 'tool_calls']) {
    const list = node[name]
    if (!Array.isArray(list) || list.length === 0) continue
    const left = editNodes(list, removals)
    if (left.length > 0) edited[name] = left
    else if (name === 'tool_calls') delete edited[name]
    else edited[name] = node.role === 'assistant' ? null : omitted
  }
  const { source } = node
  if (isObject(source) && Array.isArray(source.content)) edited.source = editInside(source, removals)
  return edited
}

const contentMembers = ['content', 'tool_calls', 'function_call', 'refusal', 'audio', 'images'].concat([
  'reasoning_content',
  'reasoning',
  'reasoning_details',
])

function hasContent(message: JsonObject): boolean {
  return contentMembers.some((name) => message[name] !== undefined && message[name] !== null && message[name] !== '')
}

function withoutTools(body: JsonObject, removals: readonly Removal[]): JsonObject {
  const { tools } = body
  if (!Array.isArray(tools) || !removals.some((one) => one.tools ?? one.toolMembers)) return body
  const members = removals.flatMap(({ toolMembers = [] }) => toolMembers)
  const left = tools.filter((tool) => !isObject(tool) || !removals.some((one) => one.tools?.(tool)))
  return { ...body, tools: left.map((tool) => (isObject(tool) ? members.reduce(withoutPath, tool) : tool)) }
}

/** `a.b` is a member of a member; in a list, the items of the type `b` or else that member of every item. */
function withoutPath(body: JsonObject, path: string): JsonObject {
  return withoutMember(body, path.split('.'))
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

function withoutItem(item: Json, path: readonly string[]): Json[] {
  if (item === path.join('.')) return []
  const [step = '', ...rest] = path
  const isMeant = isObject(item) && (item.type === step || (step === 'web_search' && isWebSearch(item.type)))
  if (isMeant && rest.length === 0) return []
  return [withoutInside(item, isMeant ? rest : path)]
}

/** An edited body without a choice of tools that are gone; providers refuse one, and any choice among no tools. */
function withoutDroppedChoice(edited: JsonObject, body: JsonObject): JsonObject {
  const before = toolsOf(body)
  const after = toolsOf(edited)
  if (before.length === after.length) return edited
  if (after.length === 0) {
    const {
      tools: _tools,
      tool_choice: _choice,
      function_call: _call,
      parallel_tool_calls: _parallel,
      ...rest
    } = edited
    return rest
  }
  const isLost = (pointer: Json) => {
    if (!isObject(pointer)) return false
    return before.some((tool) => isChosen(tool, pointer)) && !after.some((tool) => isChosen(tool, pointer))
  }
  const { tool_choice: choice, function_call: call, ...rest } = edited
  const left = withoutDropped(choice, isLost) ?? parallelSetting(choice)
  return {
    ...rest,
    ...(left !== undefined && { tool_choice: left }),
    ...(call !== undefined && !isLost(call) && { function_call: call }),
  }
}

/** Returns `tool_choice` as a dropped field when the body demands a call and the edited one no longer does. */
export function droppedChoice(body: JsonObject, edited: JsonObject, dropped: readonly string[]): string[] {
  const isLost = demands(body) && !demands(edited) && !dropped.includes('tool_choice')
  return isLost ? ['tool_choice'] : []
}

function demands({ tool_choice, function_call }: JsonObject): boolean {
  return [tool_choice, function_call].some((choice) => {
    if (!isObject(choice)) return choice === 'required' || choice === 'any'
    const { mode } = isObject(choice.allowed_tools) ? choice.allowed_tools : choice
    return choice.type !== 'auto' && choice.type !== 'none' && mode !== 'auto'
  })
}

function toolsOf({ tools, functions }: JsonObject): JsonObject[] {
  return [tools, functions].flatMap((list) => (Array.isArray(list) ? list.filter(isObject) : []))
}

/** A choice that is still possible; a list of allowed tools is narrowed to those that are left. */
function withoutDropped(choice: Json | undefined, isLost: (pointer: Json) => boolean): Json | undefined {
  if (!isObject(choice)) return choice
  if (choice.type !== 'allowed_tools') return isLost(choice) ? undefined : choice
  const { allowed_tools: nested } = choice
  const allowed = isObject(nested) ? nested : choice
  if (!Array.isArray(allowed.tools)) return choice
  const tools = allowed.tools.filter((pointer) => !isLost(pointer))
  if (tools.length === 0 && allowed.tools.length > 0) return undefined
  return isObject(nested) ? { ...choice, allowed_tools: { ...nested, tools } } : { ...choice, tools }
}

/** Returns the tool choice that only keeps calls from being parallel: in the Messages API the choice decides that as well. */
export function parallelSetting(choice: Json | undefined): Json | undefined {
  const alone = isObject(choice) && choice.disable_parallel_tool_use === true
  return alone ? { type: 'auto', disable_parallel_tool_use: true } : undefined
}

/** Checks whether a choice points at this tool: by its kind and name, or by its type alone. */
function isChosen(tool: JsonObject, pointer: JsonObject): boolean {
  const { type } = pointer
  if (type === 'function' || type === 'custom') {
    return nameOf(tool) === nameOf(pointer) && (tool.type ?? 'function') === type
  }
  // The Messages API and the deprecated functions choose by name alone.
  if (type === 'tool' || type === undefined) return nameOf(tool) === nameOf(pointer)
  if (isWebSearch(type)) return isWebSearch(tool.type)
  return tool.type === type && tool.server_label === pointer.server_label
}

function nameOf(tool: JsonObject): Json | undefined {
  const { function: called, custom } = tool
  if (isObject(called)) return called.name
  return isObject(custom) ? custom.name : tool.name
}
