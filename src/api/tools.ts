import type { Json, JsonObject } from '../core/json.ts'
import type { CacheHint } from '../core/parts.ts'
import type { Api, ClientTool, NeutralRequest, ProviderTool, Tool, WebSearch } from '../core/request.ts'
import { defined, list, object, optional, text } from './check.ts'

/** Rules by which a client API defines its tools. */
export type ToolReader = {
  api: Api
  typeOf(tool: JsonObject, path: string): string
  /** Returns a tool that the client runs; undefined for any other type. */
  clientTool(type: string, tool: JsonObject, path: string): ClientTool | undefined
  /** Returns the functions that stand for a tool which only this API has, but the client runs; undefined for any other type. */
  functions?(type: string, tool: JsonObject, path: string): ClientTool[] | undefined
  webSearch(tool: JsonObject, path: string): WebSearch
  cache?(tool: JsonObject, path: string): CacheHint | undefined
}

/** The tools of a list in their order, and web search apart from them. Throws RouterError 400. */
export function readToolList(
  value: Json | undefined,
  reader: ToolReader,
  at = 'tools',
): { tools: Tool[]; web_search: WebSearch | undefined } {
  const tools: Tool[] = []
  let web_search: NeutralRequest['web_search']
  for (const [index, item] of (optional(value, at, list) ?? []).entries()) {
    const path = `${at}[${index}]`
    const tool = object(item, path)
    const type = reader.typeOf(tool, path)
    if (isWebSearch(type)) web_search = reader.webSearch(tool, path)
    else {
      const own = reader.clientTool(type, tool, path) ?? readProviderTool(type, tool, { reader, path })
      tools.push({ ...own, ...defined({ cache: reader.cache?.(tool, path) }) })
    }
  }
  return { tools, web_search }
}

function readProviderTool(
  kind: string,
  definition: JsonObject,
  { reader, path }: { reader: ToolReader; path: string },
): ProviderTool {
  const functions = reader.functions?.(kind, definition, path)
  return { kind, by: reader.api, definition, ...(functions && functions.length > 0 && { functions }) }
}

/** Checks whether a tool of this type is a web search: dated, previewed and prefixed names all mean the same. */
export function isWebSearch(type: Json | undefined): boolean {
  return typeof type === 'string' && /(^|:)web_search(_|$)/.test(type)
}

/** The location of a search's user, flat or under `approximate`. */
export function userLocation(value: Json, path: string): NonNullable<WebSearch['user_location']> {
  const location = object(value, path)
  const nested = optional(location.approximate, `${path}.approximate`, object)
  const { city, region, country, timezone } = nested ?? location
  const at = nested ? `${path}.approximate` : path
  return defined({
    city: optional(city, `${at}.city`, text),
    region: optional(region, `${at}.region`, text),
    country: optional(country, `${at}.country`, text),
    timezone: optional(timezone, `${at}.timezone`, text),
  })
}
