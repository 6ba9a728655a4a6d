import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { ClientTool, NeutralRequest, ToolChoice, WebSearch } from '../../core/request.ts'
import { defined, filledText, flag, list, listOf, object, oneOf, optional, required, text } from '../check.ts'
import { isWebSearch, readToolList, type ToolReader, userLocation } from '../tools.ts'

/** Tools, the tool choice and web search. Throws RouterError 400. */
export function readTools(body: JsonObject): Partial<NeutralRequest> {
  const { tools, web_search } = readToolList(body.tools, toolReader)
  return defined({
    tools: tools.length > 0 ? tools : undefined,
    web_search,
    tool_choice: optional(body.tool_choice, 'tool_choice', readChoice),
    parallel_tool_calls: optional(body.parallel_tool_calls, 'parallel_tool_calls', flag),
  })
}

const toolReader: ToolReader = {
  api: 'responses',
  typeOf: (tool, path) => required(tool.type, `${path}.type`, 'the type of a tool', filledText),
  clientTool(type, tool, path) {
    return type === 'function' || type === 'custom' ? readTool(tool, type, path) : undefined
  },
  webSearch: readWebSearch,
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

function readChoice(value: Json, path: string): ToolChoice {
  if (typeof value === 'string') return oneOf(['auto', 'none', 'required'])(value, path)
  const choice = object(value, path)
  const type = required(choice.type, `${path}.type`, 'the type of a tool', filledText)
  if (type === 'function' || type === 'custom') {
    return { name: required(choice.name, `${path}.name`, 'the name of a tool', filledText) }
  }
  const other: ToolChoice = {
    kind: isWebSearch(type) ? 'web_search' : type,
    by: 'responses',
    definition: choice,
  }
  if (type !== 'allowed_tools') return other
  const mode = optional(choice.mode, `${path}.mode`, oneOf(['auto', 'required'])) ?? 'auto'
  const tools = required(choice.tools, `${path}.tools`, 'an array of tools', list)
  const allowed = tools.flatMap((tool) => (isClientTool(tool) ? [tool.name] : []))
  // Provider tools have no names: a choice that allows one of them cannot be expressed by names alone.
  return allowed.length === tools.length ? { allowed, mode } : other
}

function isClientTool(tool: Json): tool is JsonObject & { name: string } {
  return isObject(tool) && (tool.type === 'function' || tool.type === 'custom') && typeof tool.name === 'string'
}
