import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import {
  type ClientTool,
  isProviderTool,
  type NeutralRequest,
  type Tool,
  type ToolChoice,
  type WebSearch,
} from '../../core/request.ts'
import { defined, filledText, flag, integer, listOf, object, optional, refuse, required, text } from '../check.ts'
import { isWebSearch, readToolList, type ToolReader, userLocation } from '../tools.ts'
import { clientFunctions } from './client-tools.ts'
import { cacheOf } from './parts.ts'

/** Tools, the tool choice and web search. Throws RouterError 400. */
export function readTools(body: JsonObject): Partial<NeutralRequest> {
  const { tools, web_search } = readToolList(body.tools, toolReader)
  return {
    ...defined({ tools: tools.length > 0 ? tools : undefined, web_search }),
    ...readChoice(body.tool_choice, tools, searchNames(body.tools)),
  }
}

const toolReader: ToolReader = {
  api: 'messages',
  typeOf: (tool, path) => optional(tool.type, `${path}.type`, text) ?? 'custom',
  clientTool: (type, tool, path) => (type === 'custom' ? readTool(tool, path) : undefined),
  functions: clientFunctions,
  webSearch: readWebSearch,
  cache: (tool) => cacheOf(tool).cache,
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
  }
}

function readWebSearch(tool: JsonObject, path: string): WebSearch {
  return defined({
    max_uses: optional(tool.max_uses, `${path}.max_uses`, integer(1)),
    allowed_domains: optional(tool.allowed_domains, `${path}.allowed_domains`, listOf(text)),
    blocked_domains: optional(tool.blocked_domains, `${path}.blocked_domains`, listOf(text)),
    user_location: optional(tool.user_location, `${path}.user_location`, userLocation),
  })
}

/** The names under which a choice may ask for a web search. */
function searchNames(tools: Json | undefined): readonly (Json | undefined)[] {
  const listed = Array.isArray(tools) ? tools.filter(isObject) : []
  return listed.filter(({ type }) => isWebSearch(type)).map(({ name }) => name)
}

function readChoice(
  value: Json | undefined,
  tools: readonly Tool[],
  searches: readonly (Json | undefined)[],
): Pick<NeutralRequest, 'tool_choice' | 'parallel_tool_calls'> {
  const choice = optional(value, 'tool_choice', object)
  if (!choice) return {}
  const type = required(choice.type, 'tool_choice.type', "'auto', 'any', 'tool' or 'none'", filledText)
  const alone = optional(choice.disable_parallel_tool_use, 'tool_choice.disable_parallel_tool_use', flag)
  return { tool_choice: choiceOf(type, choice, { tools, searches }), ...(alone && { parallel_tool_calls: false }) }
}

function choiceOf(
  type: string,
  choice: JsonObject,
  { tools, searches }: { tools: readonly Tool[]; searches: readonly (Json | undefined)[] },
): ToolChoice {
  if (type === 'auto' || type === 'none') return type
  if (type === 'any') return 'required'
  if (type !== 'tool') return refuse('tool_choice.type', "'auto', 'any', 'tool' or 'none'", type)
  const name = required(choice.name, 'tool_choice.name', 'the name of a tool', filledText)
  const provided = tools.filter(isProviderTool).find((tool) => tool.definition.name === name)
  if (searches.includes(name) && !tools.some((tool) => 'name' in tool && tool.name === name)) {
    return { kind: 'web_search', by: 'messages', definition: choice }
  }
  if (!provided) return { name }
  const functions = provided.functions && { allowed: [name], mode: 'required' as const }
  return { kind: type, by: 'messages', definition: choice, ...(functions && { functions }) }
}
