import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import {
  type ClientTool,
  isProviderTool,
  type NeutralRequest,
  type Tool,
  type ToolChoice,
  type WebSearch,
} from '../../core/request.ts'
import {
  defined,
  filledText,
  flag,
  list,
  listOf,
  object,
  oneOf,
  onlyString,
  optional,
  required,
  text,
} from '../check.ts'
import { isWebSearch, readToolList, type ToolReader, userLocation } from '../tools.ts'
import { FunctionNames } from './function-names.ts'
import { joinedName, nativeTool } from './native-tools.ts'

/** The tools of a body, and the names of those that are offered as functions. */
export type OfferedTools = {
  fields: Partial<NeutralRequest>
  names: FunctionNames
  /** Paths of tools that only an edited body keeps: they are offered already. */
  unread: string[]
}

/** Tools, those among the input items included, the tool choice and web search. Throws RouterError 400. */
export function readTools(body: JsonObject): OfferedTools {
  const { tools: given, web_search } = readToolList(body.tools, toolReader)
  const names = new FunctionNames(given)
  const later = laterTools(body.input)
  const fresh = later.filter((tool) => isProviderTool(tool) || names.take(tool.name))
  const offered = [...given, ...fresh]
  const assigned = offered.map((tool) => names.assign(tool))
  const tools = assigned.flat()
  const isRepeated = fresh.length < later.length || assigned.some((made) => made.length === 0)
  const fields = defined({
    tools: tools.length > 0 ? tools : undefined,
    web_search,
    tool_choice: optional(body.tool_choice, 'tool_choice', (value, path) => readChoice(value, path, names)),
    parallel_tool_calls: optional(body.parallel_tool_calls, 'parallel_tool_calls', flag),
  })
  return { fields, names, unread: isRepeated ? ['tools'] : [] }
}

/** Tools that come with an item of the input: those that were added during the conversation, or that a search found. */
function laterTools(input: Json | undefined): Tool[] {
  if (!Array.isArray(input)) return []
  return input.flatMap((item, index) => {
    if (!isObject(item) || !isListOfTools(item)) return []
    return readToolList(item.tools, toolReader, `input[${index}].tools`).tools
  })
}

function isListOfTools({ type }: JsonObject): boolean {
  return type === 'additional_tools' || type === 'tool_search_output'
}

const toolReader: ToolReader = {
  api: 'responses',
  typeOf: (tool, path) => required(tool.type, `${path}.type`, 'the type of a tool', filledText),
  clientTool(type, tool, path) {
    return type === 'function' || type === 'custom' ? readTool(tool, type, path) : undefined
  },
  functions: functionsOf,
  webSearch: readWebSearch,
}

/** The functions that stand for a tool which the client runs, with the form in which it gets their calls. */
function functionsOf(type: string, tool: JsonObject, path: string): ClientTool[] | undefined {
  if (type === 'namespace') return functionsIn(tool, path)
  const native = nativeTool(type, tool)
  if (!native) return undefined
  return [{ kind: 'function', name: type, ...native.offer(tool), form: { kind: native.call, name: type } }]
}

function functionsIn(namespace: JsonObject, path: string): ClientTool[] {
  const name = required(namespace.name, `${path}.name`, 'the name of a namespace', filledText)
  const inside = optional(namespace.tools, `${path}.tools`, listOf(object)) ?? []
  return inside.flatMap((tool, index) => {
    const at = `${path}.tools[${index}]`
    const kind = optional(tool.type, `${at}.type`, text) ?? 'function'
    if (kind !== 'function' && kind !== 'custom') return []
    const read = readTool(tool, kind, at)
    const { description = onlyString(namespace.description) } = read
    const form = { kind, name: read.name, namespace: name }
    return [{ ...read, ...defined({ description }), name: joinedName(name, read.name), form }]
  })
}

function readTool(tool: JsonObject, kind: ClientTool['kind'], path: string): ClientTool {
  return {
    kind,
    name: required(tool.name, `${path}.name`, 'the name of a tool', filledText),
    ...defined({
      description: optional(tool.description, `${path}.description`, text),
      parameters: optional(tool.parameters, `${path}.parameters`, object),
      strict: optional(tool.strict, `${path}.strict`, flag),
      format: readFormat(optional(tool.format, `${path}.format`, object)),
    }),
  }
}

/** A grammar is nested in an object of its own, as in the Chat Completions API. */
function readFormat(format: JsonObject | undefined): JsonObject | undefined {
  if (format?.type !== 'grammar') return format
  const { type, ...grammar } = format
  return { type, grammar }
}

function readWebSearch(tool: JsonObject, path: string): WebSearch {
  const filters = optional(tool.filters, `${path}.filters`, object) ?? {}
  const domains = (name: string) => optional(filters[name], `${path}.filters.${name}`, listOf(text))
  const size = `${path}.search_context_size`
  return defined({
    allowed_domains: domains('allowed_domains'),
    blocked_domains: domains('blocked_domains'),
    user_location: optional(tool.user_location, `${path}.user_location`, userLocation),
    context_size: optional(tool.search_context_size, size, oneOf(['low', 'medium', 'high'])),
  })
}

function readChoice(value: Json, path: string, names: FunctionNames): ToolChoice {
  if (typeof value === 'string') return oneOf(['auto', 'none', 'required'])(value, path)
  const choice = object(value, path)
  const type = required(choice.type, `${path}.type`, 'the type of a tool', filledText)
  if (isClientTool(choice) && !names.ofForm(choice)) return { name: choice.name }
  if (type === 'function' || type === 'custom') required(choice.name, `${path}.name`, 'the name of a tool', filledText)
  const other = (allowed: string[], mode: 'auto' | 'required'): ToolChoice => ({
    kind: isWebSearch(type) ? 'web_search' : type,
    by: 'responses',
    definition: choice,
    ...(allowed.length > 0 && { functions: { allowed, mode } }),
  })
  if (type !== 'allowed_tools') return other(names.chosen(choice), 'required')
  const mode = optional(choice.mode, `${path}.mode`, oneOf(['auto', 'required'])) ?? 'auto'
  const tools = required(choice.tools, `${path}.tools`, 'an array of tools', list)
  const plain = tools.flatMap((tool) => (isClientTool(tool) && !names.ofForm(tool) ? [tool.name] : []))
  if (plain.length === tools.length) return { allowed: plain, mode }
  // Provider tools have no names: a choice that allows one of them cannot be expressed by names alone.
  return other(
    tools.flatMap((tool) => (isObject(tool) ? names.chosen(tool) : [])),
    mode,
  )
}

function isClientTool(tool: Json): tool is JsonObject & { name: string } {
  return isObject(tool) && (tool.type === 'function' || tool.type === 'custom') && typeof tool.name === 'string'
}
