import type { Part } from '../core/parts.ts'
import type { NeutralRequest } from '../core/request.ts'
import { didYouMean } from './check/did-you-mean.ts'

/**
 * Every field of the neutral request: whether it is dropped from a request that uses it where no mapping mentions it. The model may be in
 * the path, streaming may have a path of its own; messages, tools and extensions are judged by their contents.
 */
export const neutralFields = {
  model: 'free',
  system: 'texts',
  messages: 'parts',
  tools: 'kinds',
  tool_choice: 'whole',
  parallel_tool_calls: 'whole',
  web_search: 'members',
  max_output_tokens: 'whole',
  temperature: 'whole',
  top_p: 'whole',
  top_k: 'whole',
  seed: 'whole',
  stop: 'whole',
  frequency_penalty: 'whole',
  presence_penalty: 'whole',
  logit_bias: 'whole',
  logprobs: 'members',
  n: 'whole',
  response_format: 'members',
  reasoning: 'members',
  modalities: 'whole',
  audio: 'whole',
  prediction: 'whole',
  service_tier: 'whole',
  verbosity: 'whole',
  cache: 'members',
  user: 'whole',
  safety_identifier: 'whole',
  metadata: 'whole',
  store: 'whole',
  moderation: 'whole',
  stream: 'free',
  extensions: 'paths',
  unread: 'free',
  origin: 'free',
} as const satisfies Record<
  keyof Required<NeutralRequest>,
  'free' | 'whole' | 'members' | 'texts' | 'parts' | 'kinds' | 'paths'
>

/** The types of parts. */
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

const media = ['image', 'audio', 'file', 'video']

/** Members of parts that a provider may be unable to take (`parts.cache`), and the types that have them. */
const partMembers: { readonly [member: string]: readonly string[] } = {
  cache: ['text', ...media, 'tool_call', 'tool_result'],
  citations: ['text'],
  detail: ['image', 'file'],
  file_id: media,
  filename: ['file'],
  id: ['audio', 'reasoning'],
  is_error: ['tool_result'],
  signature: ['reasoning', 'tool_call'],
  summary: ['reasoning'],
  url: ['image', 'file', 'video'],
}

const toolMembers = ['function', 'custom', 'cache', 'description', 'parameters', 'strict', 'format']

/** Values that ask for nothing special, or for what the router does itself: a provider without such a field loses nothing. */
export const undemanding: { readonly [field: string]: (value: unknown) => boolean } = {
  n: (value) => value === 1,
  // The router records it.
  metadata: () => true,
  // The router sends the reasoning under both names.
  'extensions.include_reasoning': () => true,
  // A hint at which calls have the same beginning: caching works without it.
  'cache.key': () => true,
  cache: (value) => Object.keys(value as object).every((name) => name === 'key'),
  store: (value) => value === false,
  parallel_tool_calls: (value) => value === true,
  tool_choice: (value) => value === 'auto',
  frequency_penalty: (value) => value === 0,
  presence_penalty: (value) => value === 0,
  service_tier: (value) => ['auto', 'default', 'standard', 'standard_only'].includes(value as string),
  modalities: (value) => Array.isArray(value) && value.every((item) => item === 'text'),
  logit_bias: (value) => Object.keys(value as object).length === 0,
  response_format: (value) => (value as { type?: unknown }).type === 'text',
  reasoning: (value) => {
    const { effort, budget } = value as { effort?: unknown; budget?: unknown }
    return effort === 'none' || budget === 0
  },
}

/** The members of fields whose names are known. */
const fieldMembers: { readonly [field: string]: readonly string[] } = {
  messages: ['name'],
  web_search: ['max_uses', 'allowed_domains', 'blocked_domains', 'user_location', 'context_size'],
  reasoning: ['effort', 'budget', 'summary'],
  response_format: ['text', 'json', 'json_schema', 'name', 'description', 'schema', 'strict'],
  cache: ['key', 'retention', 'options'],
  logprobs: ['top'],
}

function unknownMember(field: string, member: string): string | undefined {
  const known = fieldMembers[field]
  if (member === '' || !known || known.includes(member)) return undefined
  return `\`${field}\` has no \`${member}\`${didYouMean(member, known) || `; known are ${known.join(', ')}`}`
}

/** Members that are labels or hints: a provider that has no place for them does the same without. */
export const labels: ReadonlySet<string> = new Set(['response_format.name', 'reasoning.visible'])

/** Returns why `field` is not the name of an unsupported field; undefined when it is one. */
export function unsupportedNameProblem(field: string, groups: readonly string[]): string | undefined {
  const [first = '', second = ''] = field.split('.')
  if (first !== 'parts') {
    if (Object.hasOwn(neutralFields, first)) return unknownMember(first, second)
    const hint = didYouMean(first, [...Object.keys(neutralFields), ...groups])
    return `\`${first}\` is neither a field of the neutral request nor a group${hint}`
  }
  const known = [...Object.keys(partTypes), ...Object.keys(partMembers)]
  if (known.includes(second)) return undefined
  return `parts have no \`${second}\`${didYouMean(second, known) || `; known are ${known.join(', ')}`}`
}

/** Fields that no manifest can declare unsupported, and why. */
const kept: { readonly [field: string]: string } = {
  model: 'every request names a model',
  messages: 'a request without messages asks for nothing; name the unsupported types of parts, or `messages.name`',
  stream: 'whether a reply is streamed is up to the client',
  'parts.text': 'nothing would be left of a message',
  'parts.id': 'calls and results are known by their ids; name the type, as in `parts.audio.id`',
  'response_format.name': 'a schema is identified by its name',
  'tools.parameters': 'a function without its parameters is a different one',
  origin: 'it is not passed to mappings or providers',
  unread: 'it is not passed to mappings or providers',
}

/** Returns why a field cannot be declared unsupported although it has a name; undefined when it can. */
export function undeclarable(field: string): string | undefined {
  const reason = Object.hasOwn(kept, field) ? kept[field] : undefined
  if (reason) return `\`${field}\` cannot be listed as unsupported: ${reason}`
  const [first, type = '', member] = field.split('.')
  if (first !== 'parts' || member === undefined) return undefined
  const types = Object.hasOwn(partMembers, member) ? partMembers[member] : undefined
  return types?.includes(type) ? undefined : `\`${field}\` does not exist: parts of this type have no \`${member}\``
}

/** Every field that can be declared unsupported, except for other kinds of tools and members of unknown fields. */
export const declarableUnsupported: readonly string[] = [
  ...Object.keys(neutralFields),
  ...Object.entries(fieldMembers).flatMap(([field, members]) => members.map((member) => `${field}.${member}`)),
  ...toolMembers.map((member) => `tools.${member}`),
  ...Object.keys(partTypes).map((type) => `parts.${type}`),
  ...Object.entries(partMembers).flatMap(([member, types]) => [
    `parts.${member}`,
    ...types.map((type) => `parts.${type}.${member}`),
  ]),
].filter((field) => undeclarable(field) === undefined)
