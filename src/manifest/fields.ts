import type { Part } from '../core/parts.ts'
import type { NeutralRequest } from '../core/request.ts'
import { didYouMean } from './did-you-mean.ts'

/**
 * Every field of the neutral request. A dialect must map a `mapped` one or declare it as lost; a `free` one may be
 * ignored without harm: the model may stand in the path, and whether to stream may be told by it.
 */
export const neutralFields = {
  model: 'free',
  system: 'mapped',
  messages: 'mapped',
  tools: 'mapped',
  tool_choice: 'mapped',
  parallel_tool_calls: 'mapped',
  web_search: 'mapped',
  max_output_tokens: 'mapped',
  temperature: 'mapped',
  top_p: 'mapped',
  top_k: 'mapped',
  seed: 'mapped',
  stop: 'mapped',
  frequency_penalty: 'mapped',
  presence_penalty: 'mapped',
  logit_bias: 'mapped',
  logprobs: 'mapped',
  n: 'mapped',
  response_format: 'mapped',
  reasoning: 'mapped',
  modalities: 'mapped',
  audio: 'mapped',
  prediction: 'mapped',
  service_tier: 'mapped',
  verbosity: 'mapped',
  cache: 'mapped',
  user: 'mapped',
  safety_identifier: 'mapped',
  metadata: 'mapped',
  store: 'mapped',
  moderation: 'mapped',
  stream: 'free',
  // Lost by themselves where no mapping reads them.
  extensions: 'free',
  origin: 'free',
} as const satisfies Record<keyof Required<NeutralRequest>, 'mapped' | 'free'>

/** Every type of part. A request mapping must know each, or declare it as lost (`parts.video`). */
export const partTypes = {
  text: true,
  image: true,
  audio: true,
  file: true,
  video: true,
  reasoning: true,
  tool_call: true,
  tool_result: true,
  search: true,
  refusal: true,
  opaque: true,
} as const satisfies Record<Part['type'], true>

/** Members of parts that a provider may be unable to take (`parts.cache`). */
export const partMembers = ['cache', 'citations', 'detail', 'file_id', 'filename', 'id', 'signature', 'summary', 'url']

/** Why `field` is no name of a loss; undefined when it is one. */
export function unknownLoss(field: string): string | undefined {
  const [first = '', second = ''] = field.split('.')
  if (first !== 'parts') {
    if (Object.hasOwn(neutralFields, first)) return undefined
    return `\`${first}\` is no field of the neutral request${didYouMean(first, Object.keys(neutralFields))}`
  }
  const known = [...Object.keys(partTypes), ...partMembers]
  if (known.includes(second)) return undefined
  return `parts have no \`${second}\`${didYouMean(second, known) || `; known are ${known.join(', ')}`}`
}
