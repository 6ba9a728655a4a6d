import type { Json, JsonObject } from '../../core/json.ts'
import type { ClientTool, NeutralRequest, Tool, ToolChoice, WebSearch } from '../../core/request.ts'
import { defined, filledText, flag, integer, list, listOf, object, optional, refuse, required, text } from '../check.ts'
import { cacheOf } from './parts.ts'

/** Tools, the choice among them and web search. Throws RouterError 400. */
export function readTools(body: JsonObject): Partial<NeutralRequest> {
  const given = optional(body.tools, 'tools', list) ?? []
  const tools: Tool[] = []
  let search: WebSearch | undefined
  for (const [index, item] of given.entries()) {
    const path = `tools[${index}]`
    const tool = object(item, path)
    const type = optional(tool.type, `${path}.type`, text) ?? 'custom'
    if (type === 'custom') tools.push(readTool(tool, path))
    else if (type.startsWith('web_search')) search = readWebSearch(tool, path)
    else tools.push({ kind: type, by: 'messages', definition: tool, ...cacheOf(tool) })
  }
  return defined({
    tools: tools.length > 0 ? tools : undefined,
    web_search: search,
    ...readChoice(body.tool_choice),
  })
}

function readTool(tool: JsonObject, path: string): ClientTool {
  return {
    kind: 'function',
    name: required(tool.name, `${path}.name`, 'the name of a tool', filledText),
    parameters: required(tool.input_schema, `${path}.input_schema`, 'a JSON schema', object),
    ...defined({
      description: optional(tool.description, `${path}.description`, text),
      strict: optional(tool.strict, `${path}.strict`, flag),
    }),
    ...cacheOf(tool),
  }
}

function readWebSearch(tool: JsonObject, path: string): WebSearch {
  const location = optional(tool.user_location, `${path}.user_location`, object)
  const { type: _type, ...place } = location ?? {}
  return defined({
    max_uses: optional(tool.max_uses, `${path}.max_uses`, integer(1)),
    allowed_domains: optional(tool.allowed_domains, `${path}.allowed_domains`, listOf(text)),
    blocked_domains: optional(tool.blocked_domains, `${path}.blocked_domains`, listOf(text)),
    user_location: location ? (place as WebSearch['user_location']) : undefined,
  }) as WebSearch
}

function readChoice(value: Json | undefined): Pick<NeutralRequest, 'tool_choice' | 'parallel_tool_calls'> {
  const choice = optional(value, 'tool_choice', object)
  if (!choice) return {}
  const type = required(choice.type, 'tool_choice.type', "'auto', 'any', 'tool' or 'none'", filledText)
  const alone = optional(choice.disable_parallel_tool_use, 'tool_choice.disable_parallel_tool_use', flag)
  return { tool_choice: choiceOf(type, choice), ...(alone && { parallel_tool_calls: false }) }
}

function choiceOf(type: string, choice: JsonObject): ToolChoice {
  if (type === 'auto' || type === 'none') return type
  if (type === 'any') return 'required'
  if (type === 'tool') return { name: required(choice.name, 'tool_choice.name', 'the name of a tool', filledText) }
  return refuse('tool_choice.type', "'auto', 'any', 'tool' or 'none'", type)
}
