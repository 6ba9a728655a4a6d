import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { NeutralRequest, Tool, ToolChoice, WebSearch } from '../../core/request.ts'
import { defined, filledText, flag, list, listOf, object, oneOf, optional, required, text } from '../check.ts'

/** What a body says about tools; the provider's own tools other than web search travel as extensions. */
export function readTools(body: JsonObject): { request: Partial<NeutralRequest>; extensions?: JsonObject } {
  const given = optional(body.tools, 'tools', list) ?? []
  const tools: Tool[] = []
  const others: Json[] = []
  let search: WebSearch | undefined
  for (const [index, item] of given.entries()) {
    const path = `tools[${index}]`
    const tool = object(item, path)
    const type = required(tool.type, `${path}.type`, 'the type of a tool', filledText)
    if (type === 'function' || type === 'custom') tools.push(readTool(tool, type, path))
    else if (type.startsWith('web_search')) search = readWebSearch(tool, path)
    else others.push(tool)
  }
  const choice = readChoice(body.tool_choice)
  const request = defined({
    tools: tools.length > 0 ? tools : undefined,
    web_search: search,
    tool_choice: choice.request,
    parallel_tool_calls: optional(body.parallel_tool_calls, 'parallel_tool_calls', flag),
  }) as Partial<NeutralRequest>
  const extensions = { ...(others.length > 0 && { tools: others }), ...choice.extensions }
  return { request, ...(Object.keys(extensions).length > 0 && { extensions }) }
}

function readTool(tool: JsonObject, kind: Tool['kind'], path: string): Tool {
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

/** A grammar stands in an object of its own, as in the other API of the same maker. */
function readFormat(format: JsonObject | undefined): JsonObject | undefined {
  if (format?.type !== 'grammar') return format
  const { type, ...grammar } = format
  return { type, grammar }
}

function readWebSearch(tool: JsonObject, path: string): WebSearch {
  const filters = optional(tool.filters, `${path}.filters`, object) ?? {}
  const location = optional(tool.user_location, `${path}.user_location`, object)
  const { type: _type, ...place } = location ?? {}
  const domains = (name: string) => optional(filters[name], `${path}.filters.${name}`, listOf(text))
  const size = `${path}.search_context_size`
  return defined({
    allowed_domains: domains('allowed_domains'),
    blocked_domains: domains('blocked_domains'),
    user_location: location ? (withoutNulls(place) as WebSearch['user_location']) : undefined,
    context_size: optional(tool.search_context_size, size, oneOf(['low', 'medium', 'high'] as const)),
  }) as WebSearch
}

function withoutNulls(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null))
}

function readChoice(value: Json | undefined): { request?: ToolChoice; extensions?: JsonObject } {
  if (value === undefined || value === null) return {}
  if (typeof value === 'string') {
    return { request: oneOf(['auto', 'none', 'required'] as const)(value, 'tool_choice') }
  }
  const choice = object(value, 'tool_choice')
  const type = required(choice.type, 'tool_choice.type', 'the type of a tool', filledText)
  if (type === 'function' || type === 'custom') {
    return { request: { name: required(choice.name, 'tool_choice.name', 'the name of a tool', filledText) } }
  }
  // A tool of the provider's own: only the provider knows what that means.
  if (type !== 'allowed_tools') return { extensions: { tool_choice: choice } }
  const mode = optional(choice.mode, 'tool_choice.mode', oneOf(['auto', 'required'] as const)) ?? 'auto'
  const tools = required(choice.tools, 'tool_choice.tools', 'an array of tools', list)
  const allowed = tools.flatMap((tool) => (isObject(tool) && typeof tool.name === 'string' ? [tool.name] : []))
  return { request: { allowed, mode } }
}
