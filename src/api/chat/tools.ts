import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { ClientTool, NeutralRequest, ToolChoice, WebSearch } from '../../core/request.ts'
import {
  defined,
  filledText,
  flag,
  integer,
  listOf,
  object,
  oneOf,
  optional,
  refuse,
  required,
  text,
} from '../check.ts'
import { isWebSearch, readToolList, type ToolReader, userLocation } from '../tools.ts'
import { cacheHint } from './parts.ts'

/** Tools, the tool choice and web search, in their present and their deprecated form. Throws RouterError 400. */
export function readTools(body: JsonObject): Pick<NeutralRequest, 'tools' | 'tool_choice' | 'web_search'> {
  const { tools: present, web_search: search } = readToolList(body.tools, toolReader)
  const legacy = optional(body.functions, 'functions', listOf(legacyFunction)) ?? []
  const tools = [...present, ...legacy]
  const options = optional(body.web_search_options, 'web_search_options', searchOptions)
  const choice = optional(body.tool_choice, 'tool_choice', toolChoice)
  const legacyChoice = optional(body.function_call, 'function_call', functionChoice)
  return defined({
    tools: tools.length > 0 ? tools : undefined,
    tool_choice: choice ?? legacyChoice,
    web_search: search || options ? { ...options, ...search } : undefined,
  })
}

const toolReader: ToolReader = {
  api: 'chat',
  typeOf(tool, path) {
    const implied = isObject(tool.function) ? 'function' : undefined
    return required(tool.type ?? implied, `${path}.type`, "'function', 'custom' or 'web_search'", filledText)
  },
  clientTool(type, tool, path) {
    if (type === 'function') return functionTool(tool, path)
    return type === 'custom' ? customTool(tool, path) : undefined
  },
  webSearch,
  cache: cacheHint,
}

function functionTool(entry: JsonObject, path: string): ClientTool {
  const at = `${path}.function`
  return legacyFunction(required(entry.function, at, 'an object with a name and parameters', object), at)
}

function legacyFunction(value: Json, path: string): ClientTool {
  const { name, description, parameters, strict } = object(value, path)
  return {
    kind: 'function',
    name: required(name, `${path}.name`, 'the name of the function', filledText),
    ...defined({
      description: optional(description, `${path}.description`, text),
      parameters: optional(parameters, `${path}.parameters`, object),
      strict: optional(strict, `${path}.strict`, flag),
    }),
  }
}

function customTool(entry: JsonObject, path: string): ClientTool {
  const at = `${path}.custom`
  const { name, description, format } = required(entry.custom, at, 'an object with a name', object)
  return {
    kind: 'custom',
    name: required(name, `${at}.name`, 'the name of the tool', filledText),
    ...defined({
      description: optional(description, `${at}.description`, text),
      format: optional(format, `${at}.format`, object),
    }),
  }
}

/** Options are flat, under `parameters` or under `filters`, depending on whose documentation the client follows. */
function webSearch(entry: JsonObject, path: string): WebSearch {
  const nested = optional(entry.parameters, `${path}.parameters`, object)
  const at = nested ? `${path}.parameters` : path
  const options = nested ?? entry
  const filters = optional(options.filters, `${at}.filters`, object) ?? {}
  const domains = listOf(filledText)
  const blocked = options.blocked_domains ?? options.excluded_domains ?? filters.blocked_domains
  return {
    ...searchOptions(options, at),
    ...defined({
      max_uses: optional(options.max_uses, `${at}.max_uses`, integer(1)),
      allowed_domains: optional(options.allowed_domains ?? filters.allowed_domains, `${at}.allowed_domains`, domains),
      blocked_domains: optional(blocked, `${at}.blocked_domains`, domains),
    }),
  }
}

function searchOptions(value: Json, path: string): WebSearch {
  const { search_context_size, user_location } = object(value, path)
  return defined({
    context_size: optional(search_context_size, `${path}.search_context_size`, oneOf(['low', 'medium', 'high'])),
    user_location: optional(user_location, `${path}.user_location`, userLocation),
  })
}

const choices = new Map<Json, ToolChoice>([
  ['auto', 'auto'],
  ['none', 'none'],
  ['required', 'required'],
  ['any', 'required'],
])

function toolChoice(value: Json, path: string): ToolChoice {
  const expected = "'auto', 'none', 'required' or an object that names a tool"
  if (!isObject(value)) return choices.get(value) ?? refuse(path, expected, value)
  const type = required(value.type, `${path}.type`, "'function', 'custom' or 'allowed_tools'", filledText)
  if (type === 'function' || type === 'custom') return { name: toolName(value, path) }
  if (type === 'allowed_tools') return allowedTools(value, path)
  return { kind: isWebSearch(type) ? 'web_search' : type, by: 'chat', definition: value }
}

function allowedTools(value: JsonObject, path: string): ToolChoice {
  const at = `${path}.allowed_tools`
  const { mode, tools } = required(value.allowed_tools, at, 'an object with mode and tools', object)
  const named = (tool: Json, item: string) => toolName(object(tool, item), item)
  return {
    mode: required(mode, `${at}.mode`, "'auto' or 'required'", oneOf(['auto', 'required'])),
    allowed: required(tools, `${at}.tools`, 'an array of tools', listOf(named)),
  }
}

/** The name of the tool that a choice refers to: `{type, function: {name}}`, `{type, custom: {name}}` or `{type, name}`. */
function toolName(pointer: JsonObject, path: string): string {
  const kind = pointer.type === 'custom' ? 'custom' : 'function'
  const named = pointer[kind]
  if (isObject(named)) return required(named.name, `${path}.${kind}.name`, 'the name of the tool', filledText)
  return required(pointer.name, `${path}.${kind}.name`, 'the name of the tool', filledText)
}

function functionChoice(value: Json, path: string): ToolChoice {
  if (value === 'auto' || value === 'none') return value
  if (!isObject(value)) return refuse(path, "'auto', 'none' or an object with a name", value)
  return { name: required(value.name, `${path}.name`, 'the name of the function', filledText) }
}
