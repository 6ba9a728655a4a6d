import type { OwnMembers } from '../edit-nodes.ts'
import { routerFields } from '../router-fields.ts'
import { type FieldNames, namesOf, topLevelNames, type WireFields } from '../wire-fields.ts'

/** The names of each field of the neutral request in this API. */
export const wireFields: WireFields = {
  model: ['model'],
  system: ['messages'],
  messages: ['messages'],
  tools: ['tools', 'functions'],
  tool_choice: ['tool_choice', 'function_call'],
  parallel_tool_calls: ['parallel_tool_calls'],
  // Among the tools it has no field of its own: reported by its path.
  web_search: ['tools.web_search', 'web_search_options'],
  max_output_tokens: ['max_completion_tokens', 'max_tokens'],
  temperature: ['temperature'],
  top_p: ['top_p'],
  top_k: ['top_k'],
  seed: ['seed'],
  stop: ['stop'],
  frequency_penalty: ['frequency_penalty'],
  presence_penalty: ['presence_penalty'],
  logit_bias: ['logit_bias'],
  logprobs: ['logprobs', 'top_logprobs'],
  n: ['n'],
  response_format: ['response_format'],
  reasoning: ['reasoning_effort', 'reasoning', 'thinking'],
  modalities: ['modalities'],
  audio: ['audio'],
  prediction: ['prediction'],
  service_tier: ['service_tier'],
  verbosity: ['verbosity'],
  cache: ['prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention', 'cache_control'],
  user: ['user'],
  safety_identifier: ['safety_identifier'],
  metadata: ['metadata'],
  store: ['store'],
  moderation: ['moderation'],
  stream: ['stream', 'stream_options'],
}

const fileTypes = ['file', 'input_file', 'file_input']

/** The names of fields below the top level, as paths in this API. */
const nestedNames: WireFields = {
  'messages.name': ['messages.name'],
  'parts.cache': ['messages.cache_control', 'messages.prompt_cache_breakpoint'],
  'parts.detail': ['image_url.detail'],
  'parts.filename': fileNames('filename'),
  'parts.file_id': fileNames('file_id'),
  'parts.id': ['messages.audio'],
  'parts.reasoning.id': ['messages.reasoning_details'],
  'parts.summary': ['messages.reasoning_details'],
  'parts.url': ['messages.image_url.url', 'messages.video_url.url', 'messages.document_url.url'].concat(
    ...fileTypes.map((type) => `messages.${type}.file_url`),
  ),
  'parts.signature': ['tool_calls.extra_content'],
  'parts.citations': ['messages.annotations'],
  'parts.refusal': ['messages.refusal'],
  'parts.reasoning': ['messages.reasoning_content', 'messages.reasoning', 'messages.reasoning_details'],
  'parts.image': ['image_url'],
  'parts.audio': ['input_audio'],
  'parts.video': ['video_url'],
  'parts.file': fileTypes,
  'parts.search': ['messages.replay_parts'],
  'parts.opaque': ['messages.replay_parts'],
  'parts.tool_call': ['messages.tool_calls', 'messages.function_call'],
  'parts.tool_result': ['messages.tool_call_id'],
  'tools.function': ['tools.function', 'functions'],
  'tools.cache': ['tools.cache_control'],
  'logprobs.top': ['top_logprobs'],
  'reasoning.effort': ['reasoning_effort', 'reasoning.effort', 'reasoning.enabled'],
  'reasoning.budget': ['reasoning.max_tokens', 'thinking.budget_tokens'],
  'response_format.name': ['response_format.json_schema.name'],
  'response_format.description': ['response_format.json_schema.description'],
  'response_format.text': ['response_format'],
  'response_format.json': ['response_format'],
  'response_format.json_schema': ['response_format'],
  'response_format.schema': ['response_format.json_schema.schema'],
  'response_format.strict': ['response_format.json_schema.strict'],
  'web_search.max_uses': searchNames('max_uses'),
  'web_search.allowed_domains': searchNames('allowed_domains'),
  'web_search.blocked_domains': [...searchNames('blocked_domains'), ...searchNames('excluded_domains')],
  'web_search.context_size': optionNames('search_context_size'),
  'web_search.user_location': optionNames('user_location'),
  'cache.key': ['prompt_cache_key'],
  'cache.retention': ['prompt_cache_retention'],
  'cache.options': ['prompt_cache_options', 'cache_control', 'requesty.auto_cache'],
}

/** A member of a file, which the words of other gateways do not nest. */
function fileNames(member: string): string[] {
  return [`file.${member}`, ...fileTypes.slice(1).map((type) => `messages.${type}.${member}`)]
}

/** Options of a search among the tools, flat or nested. */
function searchNames(option: string): string[] {
  return ['', 'filters.', 'parameters.', 'parameters.filters.'].map((at) => `tools.web_search.${at}${option}`)
}

function optionNames(option: string): string[] {
  return [`web_search_options.${option}`, `tools.web_search.${option}`, `tools.web_search.parameters.${option}`]
}

/** The names of all neutral fields. */
export const fieldNames: FieldNames = { fields: wireFields, nested: nestedNames }

/** Fields that the router alone reads: `usage: {include}` asks it for the usage of a stream. */
export const ownFields: readonly string[] = [...routerFields, 'usage']

/** Top-level names that `read` handles; all others are extensions. */
export const knownNames: ReadonlySet<string> = new Set([...topLevelNames(wireFields), ...ownFields])

/** The places where members are optional ones of this API. */
export const ownMembers: OwnMembers = {
  lists: ['messages'],
  types: new Set(
    [
      'text',
      'image_url',
      'input_audio',
      'file',
      'input_file',
      'file_input',
      'video_url',
      'document_url',
      'refusal',
    ].concat(['function', 'custom', 'web_search', 'web_search_preview']),
  ),
  settings: new Set(
    ['reasoning', 'thinking', 'stream_options', 'response_format', 'tool_choice', 'web_search_options', 'audio'].concat(
      ['functions', 'function_call', 'prompt_cache_options', 'prediction'],
    ),
  ),
}

/** The client's names of a neutral field. */
export function wireNames(field: string): readonly string[] {
  return namesOf(field, fieldNames)
}
