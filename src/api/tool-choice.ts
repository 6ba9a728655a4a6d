import { isObject, type Json, type JsonObject } from '../core/json.ts'
import { isWebSearch } from './tools.ts'

/** An edited body without a choice of tools that are gone; providers refuse one, and any choice among no tools. */
export function withoutLostChoice(edited: JsonObject, body: JsonObject): JsonObject {
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
  const left = withoutLost(choice, isLost) ?? parallelWish(choice)
  return {
    ...rest,
    ...(left !== undefined && { tool_choice: left }),
    ...(call !== undefined && !isLost(call) && { function_call: call }),
  }
}

/** `tool_choice` as a lost field, when the body demands a call and the edited one no longer does. */
export function lostChoice(body: JsonObject, edited: JsonObject, dropped: readonly string[]): string[] {
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
function withoutLost(choice: Json | undefined, isLost: (pointer: Json) => boolean): Json | undefined {
  if (!isObject(choice)) return choice
  if (choice.type !== 'allowed_tools') return isLost(choice) ? undefined : choice
  const { allowed_tools: nested } = choice
  const allowed = isObject(nested) ? nested : choice
  if (!Array.isArray(allowed.tools)) return choice
  const tools = allowed.tools.filter((pointer) => !isLost(pointer))
  if (tools.length === 0 && allowed.tools.length > 0) return undefined
  return isObject(nested) ? { ...choice, allowed_tools: { ...nested, tools } } : { ...choice, tools }
}

/** In the Messages API the choice says as well whether calls may be parallel. */
export function parallelWish(choice: Json | undefined): Json | undefined {
  const alone = isObject(choice) && choice.disable_parallel_tool_use === true
  return alone ? { type: 'auto', disable_parallel_tool_use: true } : undefined
}

/** Whether a choice points at this tool: by its kind and name, or by its type alone. */
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
