import type { Difference, Facts } from './difference.ts'

type Rule = { kind: Difference['kind']; path: RegExp; why: string }

/** Differences that are there between any two gateways, or are documented. */
const rules: readonly Rule[] = [
  {
    kind: 'value',
    path: /(?:^|\.)(?:id|created|created_at|completed_at|system_fingerprint|call_id|item_id|request_id)$/,
    why: 'made anew for each answer',
  },
  { kind: 'value', path: /(?:^|\.)model$/, why: 'this router names the provider and the model that served' },
  { kind: 'only_here', path: /^usage\.cost/, why: 'the cost, which this router adds' },
  {
    kind: 'only_here',
    path: /^(?:choices\[\]\.)?native_finish_reason$/,
    why: "the provider's own finish reason, which this router adds",
  },
  { kind: 'only_here', path: /^provider$|^x_/, why: 'a member that this router adds' },
  { kind: 'only_there', path: /provider_specific_fields|thinking_blocks|_hidden_params/, why: 'a member of LiteLLM' },
  {
    kind: 'only_there',
    path: /^(?:choices\[\]\.)?message\.tool_calls\[\]\.index$/,
    why: 'a member of streams, which the other gateway also has in whole answers',
  },
  {
    kind: 'only_there',
    path: /^usage\..*(?:text_tokens|cache_creation_tokens|cache_creation_input_tokens|cache_read_input_tokens)$/,
    why: 'a count that follows from others',
  },
  { kind: 'only_there', path: /^extra_fields/, why: 'a member of Bifrost' },
]

/** Returns why a difference is expected; undefined where it is not. */
export function explanation({ kind, path = '' }: Difference, facts: Facts): string | undefined {
  if (kind === 'dropped') return 'the provider does not take these fields'
  if (kind === 'cost') return facts.usageDiffers ? 'follows from the usage' : undefined
  const isMember = kind === 'value' || kind === 'only_here' || kind === 'only_there'
  if (facts.isError && isMember && path.startsWith('error')) return 'errors are worded by each gateway'
  if (kind === 'value' && isWritten(path)) return facts.exact ? undefined : 'models do not write the same text twice'
  if (kind === 'value' && facts.textDiffers && /^usage\..*(?:completion|output|total|reasoning)/.test(path))
    return 'follows from the text'
  return rules.find((rule) => rule.kind === kind && rule.path.test(path))?.why
}

/** Checks whether a path is that of a text that a model writes anew for each answer. */
export function isWritten(path: string): boolean {
  return /(?:^|\.)(?:content|text|refusal|reasoning|reasoning_content|thinking|summary|arguments|embedding(?:\[\])?|transcript)$/.test(
    path,
  )
}
