import { topLevelNames, type WireFields, wireNamesOf } from '../wire-fields.ts'

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
  cache: ['prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention'],
  user: ['user'],
  safety_identifier: ['safety_identifier'],
  metadata: ['metadata'],
  store: ['store'],
  moderation: ['moderation'],
  stream: ['stream', 'stream_options'],
}

/** A neutral field below the top level: its name in this API, and what to remove from a body to drop it. */
export type Nested = {
  /** The client's name. */
  name: string
  /** Members of messages. */
  messages?: readonly string[]
  /** Members of content parts, tool calls and tools. */
  parts?: readonly string[]
  /** Whole content parts or tools, by their type. */
  types?: readonly string[]
  /** A member of an object at the top of the body. */
  option?: readonly [object: string, member: string]
}

/** Neutral fields below the top level, by their path. */
export const nestedFields: { readonly [field: string]: Nested } = {
  'messages.name': { name: 'messages.name', messages: ['name'] },
  'parts.cache': { name: 'messages.cache_control', parts: ['cache_control', 'prompt_cache_breakpoint'] },
  'parts.detail': { name: 'image_url.detail', parts: ['detail'] },
  'parts.filename': { name: 'file.filename', parts: ['filename'] },
  'parts.file_id': { name: 'file.file_id', parts: ['file_id'] },
  'parts.signature': { name: 'tool_calls.extra_content', parts: ['extra_content'] },
  'parts.citations': { name: 'messages.annotations', messages: ['annotations'] },
  'parts.refusal': { name: 'messages.refusal', messages: ['refusal'], types: ['refusal'] },
  'parts.reasoning': {
    name: 'messages.reasoning_content',
    messages: ['reasoning_content', 'reasoning', 'reasoning_details'],
    types: ['thinking'],
  },
  'parts.image': { name: 'image_url', types: ['image_url'] },
  'parts.audio': { name: 'input_audio', types: ['input_audio'] },
  'parts.video': { name: 'video_url', types: ['video_url'] },
  'parts.file': { name: 'file', types: ['file', 'document_url'] },
  'parts.search': { name: 'messages.replay_parts', messages: ['replay_parts'] },
  'parts.opaque': { name: 'messages.replay_parts', messages: ['replay_parts'] },
  'tools.custom': { name: 'tools.custom', types: ['custom'] },
  'tools.strict': { name: 'tools.strict', parts: ['strict'] },
  'tools.cache': { name: 'tools.cache_control', parts: ['cache_control'] },
  'logprobs.top': { name: 'top_logprobs' },
  'audio.format': { name: 'audio.format', option: ['audio', 'format'] },
  'reasoning.effort': { name: 'reasoning_effort', option: ['reasoning', 'effort'] },
  'reasoning.budget': { name: 'reasoning.max_tokens', option: ['reasoning', 'max_tokens'] },
  'reasoning.summary': { name: 'reasoning.summary', option: ['reasoning', 'summary'] },
  'web_search.max_uses': { name: 'tools.web_search.max_uses', parts: ['max_uses'] },
  'web_search.allowed_domains': { name: 'tools.web_search.allowed_domains', parts: ['allowed_domains'] },
  'web_search.blocked_domains': { name: 'tools.web_search.blocked_domains', parts: ['blocked_domains'] },
  'web_search.context_size': {
    name: 'web_search_options.search_context_size',
    parts: ['search_context_size'],
    option: ['web_search_options', 'search_context_size'],
  },
  'web_search.user_location': {
    name: 'web_search_options.user_location',
    parts: ['user_location'],
    option: ['web_search_options', 'user_location'],
  },
  'cache.key': { name: 'prompt_cache_key' },
  'cache.retention': { name: 'prompt_cache_retention' },
  'cache.options': { name: 'prompt_cache_options' },
}

const nestedNames = Object.fromEntries(Object.entries(nestedFields).map(([field, { name }]) => [field, name]))

/** Top-level names that `read` handles; all others are extensions. */
export const knownNames = topLevelNames(wireFields)

/** The client's names of a neutral field. */
export function wireNames(field: string): readonly string[] {
  return wireNamesOf(field, wireFields, nestedNames)
}
