import type { OwnMembers } from '../edit-nodes.ts'
import { routerFields } from '../router-fields.ts'
import { type FieldNames, namesOf, topLevelNames, type WireFields } from '../wire-fields.ts'

/** The names of each field of the neutral request in this API. */
export const wireFields: WireFields = {
  model: ['model'],
  system: ['system'],
  messages: ['messages'],
  tools: ['tools'],
  web_search: ['tools.web_search'],
  tool_choice: ['tool_choice'],
  parallel_tool_calls: ['tool_choice.disable_parallel_tool_use'],
  max_output_tokens: ['max_tokens'],
  temperature: ['temperature'],
  top_p: ['top_p'],
  top_k: ['top_k'],
  stop: ['stop_sequences'],
  response_format: ['output_config.format', 'output_format'],
  reasoning: ['thinking', 'output_config.effort'],
  cache: ['cache_control'],
  service_tier: ['service_tier'],
  user: ['metadata'],
  stream: ['stream'],
}

/** The names of fields below the top level, as paths in this API. */
const nestedNames: WireFields = {
  'parts.cache': ['messages.cache_control'],
  'parts.citations': ['messages.citations'],
  'parts.reasoning': ['messages.thinking'],
  'parts.filename': ['messages.document.title'],
  'parts.file': ['messages.document'],
  'parts.image': ['messages.image'],
  'parts.opaque': ['messages.content'],
  'parts.search': ['messages.server_tool_use'],
  'tools.cache': ['tools.cache_control'],
  'tools.strict': ['tools.strict'],
  'tools.parameters': ['tools.input_schema'],
  'reasoning.budget': ['thinking.budget_tokens'],
  'reasoning.effort': ['output_config.effort'],
  'reasoning.summary': ['thinking.display'],
  'web_search.max_uses': ['tools.web_search.max_uses'],
  'web_search.allowed_domains': ['tools.web_search.allowed_domains'],
  'web_search.blocked_domains': ['tools.web_search.blocked_domains'],
  'web_search.user_location': ['tools.web_search.user_location'],
  'parts.file_id': ['messages.image.source.file_id', 'messages.document.source.file_id'],
  'parts.url': ['messages.image.source.url', 'messages.document.source.url'],
  'parts.is_error': ['messages.tool_result.is_error'],
  'parts.signature': ['messages.thinking.signature'],
  'parts.tool_call': ['messages.tool_use'],
  'parts.tool_result': ['messages.tool_result'],
  'cache.options': ['cache_control', 'requesty.auto_cache'],
  'response_format.strict': ['output_config.format', 'output_format'],
  'response_format.text': ['output_config.format', 'output_format'],
  'response_format.json': ['output_config.format', 'output_format'],
  'response_format.json_schema': ['output_config.format', 'output_format'],
  'response_format.schema': ['output_config.format.schema', 'output_format.schema'],
}

/** The names of all neutral fields. */
export const fieldNames: FieldNames = { fields: wireFields, nested: nestedNames }

/** Top-level names that `read` handles; all others are extensions. */
export const knownNames: ReadonlySet<string> = new Set([...topLevelNames(wireFields), ...routerFields])

/** The places where members are optional ones of this API. */
export const ownMembers: OwnMembers = {
  lists: ['system', 'messages'],
  types: new Set(['text', 'image', 'document', 'tool_use', 'tool_result', 'thinking', 'custom']),
  settings: new Set(['thinking', 'output_config', 'output_format', 'tool_choice', 'cache_control']),
}

/** The client's names of a neutral field. */
export function wireNames(field: string): readonly string[] {
  return namesOf(field, fieldNames)
}
