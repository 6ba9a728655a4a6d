import type { Format, ThoughtsMember } from './conversation.ts'
import { chat } from './formats/chat.ts'
import { gemini as generateContent } from './formats/gemini.ts'
import { messages } from './formats/messages.ts'
import { responses } from './formats/responses.ts'
import { anthropic } from './rules/anthropic.ts'
import { gemini } from './rules/gemini.ts'
import { deepseek, kimi, mistral, qwenAtVllm } from './rules/open-models.ts'
import { openaiChat } from './rules/openai-chat.ts'
import { openaiResponses } from './rules/openai-responses.ts'
import type { Rule } from './rules/rule.ts'

/** A provider and one of its models. */
export type Target = {
  /** The slug of its manifest. */
  provider: string
  /** The model as clients of the router write it. */
  model: string
  /** Prefix of the paths of its endpoints. */
  base: string
  thoughts?: ThoughtsMember
  rules: { chat?: readonly Rule[]; responses?: readonly Rule[]; messages?: readonly Rule[]; gemini?: readonly Rule[] }
}

/** All targets by the names that the command takes. */
export const targets: Readonly<Record<string, Target>> = {
  openai: {
    provider: 'openai',
    model: 'openai/gpt-5.6-sol',
    base: '/v1',
    rules: { chat: openaiChat, responses: openaiResponses },
  },
  'openai-responses': {
    provider: 'openai-responses',
    model: 'openai-responses/gpt-5.6-sol',
    base: '/v1',
    rules: { responses: openaiResponses },
  },
  anthropic: { provider: 'anthropic', model: 'anthropic/claude-sonnet-5', base: '', rules: { messages: anthropic } },
  gemini: { provider: 'google', model: 'google/gemini-3.5-flash', base: '/v1beta', rules: { gemini } },
  qwen: {
    provider: 'vllm',
    model: 'vllm/Qwen/Qwen3.5-397B-A17B',
    base: '/v1',
    thoughts: 'reasoning',
    rules: { chat: qwenAtVllm },
  },
  deepseek: {
    provider: 'deepseek',
    model: 'deepseek/deepseek-v4-pro',
    base: '',
    thoughts: 'reasoning_content',
    rules: { chat: deepseek },
  },
  mistral: { provider: 'mistral', model: 'mistral/mistral-large-2512', base: '/v1', rules: { chat: mistral } },
  kimi: {
    provider: 'moonshot',
    model: 'moonshot/kimi-k3',
    base: '/v1',
    thoughts: 'reasoning_content',
    rules: { chat: kimi },
  },
}

/** The format and the rules of a path; undefined where the target has no such endpoint. */
export function endpointOf({ rules }: Target, path: string): { format: Format; rules: readonly Rule[] } | undefined {
  if (path.endsWith('/chat/completions')) return rules.chat && { format: chat, rules: rules.chat }
  if (path.endsWith('/responses')) return rules.responses && { format: responses, rules: rules.responses }
  if (path.endsWith('/messages')) return rules.messages && { format: messages, rules: rules.messages }
  return /:(streamG|g)enerateContent$/.test(path)
    ? rules.gemini && { format: generateContent, rules: rules.gemini }
    : undefined
}
