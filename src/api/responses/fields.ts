import { topLevelNames, type WireFields, wireNamesOf } from '../wire-fields.ts'

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
  logprobs: ['top_logprobs'],
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

const nestedNames: { readonly [field: string]: string } = {
  'parts.image': 'input.input_image',
  'parts.file': 'input.input_file',
  'parts.audio': 'input.input_audio',
  'parts.filename': 'input.input_file.filename',
  'parts.detail': 'input.input_image.detail',
  'parts.reasoning': 'input.reasoning',
  'parts.search': 'input.web_search_call',
  'parts.opaque': 'input',
  'parts.citations': 'input.annotations',
  'parts.cache': 'input.prompt_cache_breakpoint',
  'parts.video': 'input',
  'messages.name': 'input.name',
  'cache.key': 'prompt_cache_key',
  'cache.retention': 'prompt_cache_retention',
  'cache.options': 'prompt_cache_options',
  'tools.custom': 'tools.custom',
  'tools.strict': 'tools.strict',
  'reasoning.summary': 'reasoning.summary',
  'reasoning.effort': 'reasoning.effort',
  'web_search.allowed_domains': 'tools.web_search.filters.allowed_domains',
  'web_search.user_location': 'tools.web_search.user_location',
  'web_search.context_size': 'tools.web_search.search_context_size',
}

/** Top-level names that `read` or the router itself handles; all others are extensions. */
export const knownNames: ReadonlySet<string> = new Set([
  ...topLevelNames(wireFields),
  'include',
  'previous_response_id',
  'background',
])

/** The client's names of a neutral field. */
export function wireNames(field: string): readonly string[] {
  return wireNamesOf(field, wireFields, nestedNames)
}
