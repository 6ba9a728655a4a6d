import type { Operation } from '../../core/operation.ts'

const image = [
  ...['prompt', 'n', 'size', 'quality', 'style', 'background', 'moderation', 'output_format', 'output_compression'],
  ...['partial_images', 'response_format', 'stream', 'seed', 'aspect_ratio', 'resolution', 'user'],
]

/** The fields of each operation in the words of its API, as mappings read them: without `model`. */
export const fieldNames: { readonly [operation in Operation]: readonly string[] } = {
  embed: ['input', 'dimensions', 'encoding_format', 'input_type', 'user'],
  image,
  image_edit: [...image, 'images', 'mask', 'input_fidelity'],
  speech: ['input', 'voice', 'instructions', 'response_format', 'speed', 'stream_format'],
  transcribe: [
    ...['file', 'language', 'prompt', 'response_format', 'temperature', 'chunking_strategy', 'stream', 'languages'],
    ...['keywords', 'timestamp_granularities', 'include', 'known_speaker_names', 'known_speaker_references', 'user'],
  ],
  decide: ['input', 'questions', 'prompt_cache_key', 'prompt_cache_options', 'safety_identifier', 'user'],
  complete: [
    ...['prompt', 'suffix', 'echo', 'n', 'best_of', 'logprobs', 'max_tokens', 'temperature', 'top_p', 'stop', 'seed'],
    ...['frequency_penalty', 'presence_penalty', 'logit_bias', 'stream', 'stream_options', 'user'],
  ],
  rerank: ['query', 'documents', 'top_n', 'return_documents', 'max_tokens_per_doc', 'rank_fields', 'user'],
  moderate: ['input', 'user'],
}
