/** Where each field of the neutral request stands in this API; the first name is the one to report when none was used. */
export const wireFields: { readonly [field: string]: readonly string[] } = {
  model: ['model'],
  system: ['messages'],
  messages: ['messages'],
  tools: ['tools', 'functions'],
  tool_choice: ['tool_choice', 'function_call'],
  parallel_tool_calls: ['parallel_tool_calls'],
  // Among the tools it has no field of its own: reported by its place.
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

/** Where members of messages, parts and tools stand. */
export const messageFields: { readonly [field: string]: readonly string[] } = {
  name: ['name'],
  detail: ['detail'],
  cache: ['cache_control', 'prompt_cache_breakpoint'],
  signature: ['extra_content'],
  citations: ['annotations'],
}

/** Top-level names that `read` understands; all others are extensions. */
export const knownNames: ReadonlySet<string> = new Set(Object.values(wireFields).flat())

/** The names of a neutral field in this API; a field nobody here knows already has its wire name. */
export function wireNames(field: string): readonly string[] {
  const names = [...(messageFields[field] ?? []), ...(wireFields[field] ?? [])]
  return names.length > 0 ? names : [field]
}
