import type { OwnMembers } from '../edit-nodes.ts'
import { routerFields } from '../router-fields.ts'
import { type FieldNames, namesOf, topLevelNames, type WireFields } from '../wire-fields.ts'

/** The names of each field of the neutral request in this API. */
export const wireFields: WireFields = {
  model: ['model'],
  system: ['instructions'],
  messages: ['input'],
  tools: ['tools'],
  web_search: ['tools.web_search'],
  tool_choice: ['tool_choice'],
  parallel_tool_calls: ['parallel_tool_calls'],
  max_output_tokens: ['max_output_tokens'],
  temperature: ['temperature'],
  top_p: ['top_p'],
  logprobs: ['top_logprobs', 'include.message.output_text.logprobs'],
  response_format: ['text.format'],
  verbosity: ['text.verbosity'],
  reasoning: ['reasoning'],
  service_tier: ['service_tier'],
  cache: ['prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention'],
  user: ['user'],
  safety_identifier: ['safety_identifier'],
  metadata: ['metadata'],
  moderation: ['moderation'],
  store: ['store'],
  stream: ['stream', 'stream_options'],
}

/** The names of fields below the top level, as paths in this API. */
const nestedNames: WireFields = {
  'parts.image': ['input.input_image'],
  'parts.file': ['input.input_file'],
  'parts.audio': ['input.input_audio'],
  'parts.filename': ['input.input_file.filename'],
  'parts.detail': ['input.input_image.detail', 'input.input_file.detail'],
  'parts.reasoning': ['input.reasoning'],
  'parts.search': ['input.web_search_call'],
  'parts.opaque': ['input'],
  'parts.citations': ['input.annotations'],
  'parts.cache': ['input.prompt_cache_breakpoint'],
  'parts.video': ['input'],
  'messages.name': ['input.name'],
  'cache.key': ['prompt_cache_key'],
  'cache.retention': ['prompt_cache_retention'],
  'cache.options': ['prompt_cache_options', 'requesty.auto_cache'],
  'tools.custom': ['tools.custom'],
  'tools.strict': ['tools.strict'],
  'reasoning.summary': ['reasoning.summary', 'reasoning.generate_summary'],
  'reasoning.effort': ['reasoning.effort'],
  'web_search.allowed_domains': ['tools.web_search.filters.allowed_domains'],
  'web_search.user_location': ['tools.web_search.user_location'],
  'web_search.context_size': ['tools.web_search.search_context_size'],
  'parts.file_id': ['input.input_image.file_id', 'input.input_file.file_id'],
  'parts.url': ['input.input_image.image_url', 'input.input_file.file_url'],
  'parts.refusal': ['input.refusal'],
  'parts.summary': ['input.reasoning.summary'],
  'parts.tool_call': ['input.function_call', 'input.custom_tool_call'],
  'parts.tool_result': ['input.function_call_output', 'input.custom_tool_call_output'],
  'logprobs.top': ['top_logprobs'],
  'response_format.name': ['text.format.name'],
  'response_format.description': ['text.format.description'],
  'response_format.text': ['text.format'],
  'response_format.json': ['text.format'],
  'response_format.json_schema': ['text.format'],
  'response_format.schema': ['text.format.schema'],
  'response_format.strict': ['text.format.strict'],
  'web_search.blocked_domains': ['tools.web_search.filters.blocked_domains'],
}

/** The names of all neutral fields. */
export const fieldNames: FieldNames = { fields: wireFields, nested: nestedNames }

/** Top-level names that `read` or the router itself handles; all others are extensions. */
export const knownNames: ReadonlySet<string> = new Set([
  ...topLevelNames(wireFields),
  'include',
  'previous_response_id',
  'background',
  ...routerFields,
])

/** The places where members are optional ones of this API. */
export const ownMembers: OwnMembers = {
  lists: ['input'],
  types: new Set(
    ['message', 'input_text', 'input_image', 'input_file', 'input_audio', 'output_text', 'refusal', 'reasoning'].concat(
      ['function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output'],
      ['function', 'custom', 'web_search', 'web_search_preview'],
    ),
  ),
  settings: new Set(['reasoning', 'text', 'tool_choice', 'stream_options', 'prompt_cache_options']),
}

/** The client's names of a neutral field. */
export function wireNames(field: string): readonly string[] {
  return namesOf(field, fieldNames)
}
