import type { Part } from '../core/parts.ts'
import type { Reply } from '../core/reply.ts'
import type { NeutralRequest } from '../core/request.ts'
import { completionTokens, promptTokens, type Usage } from '../core/usage.ts'

/** A token is about four characters of English text or JSON: the usual estimate where nobody counted. */
const charactersPerToken = 4
/** What an image, a recording or a document is taken to count where nobody counted. Tokens. */
const tokensPerMedium = 1_000

/** What a call used: the provider's own counts where it gave them, else an estimate from what passed. */
export function measuredUsage(
  reply: Reply,
  passed: { request: NeutralRequest; complete: boolean },
): { usage: Usage; estimated: boolean } {
  const { usage } = reply
  const measured: Usage = { ...usage }
  const promptCounted = promptTokens(usage) > 0
  if (!promptCounted) measured.input = promptEstimate(passed.request)
  // Counts of a stream that broke may be of its beginning: what has come since counts as well.
  const answerCounted = completionTokens(usage) > 0 || (passed.complete && promptCounted)
  const trusted = passed.complete && answerCounted
  const estimate = trusted ? 0 : Math.ceil(charactersIn(reply.parts) / charactersPerToken)
  const answerEstimated = !trusted && (!answerCounted || completionTokens(usage) < estimate)
  if (answerEstimated) measured.output = Math.max(estimate - (usage.reasoning ?? 0), 0)
  return { usage: measured, estimated: !promptCounted || answerEstimated }
}

/** Tokens of a request where nobody counted them. */
export function promptEstimate({ system = [], messages, tools = [] }: NeutralRequest): number {
  const parts = [...system, ...messages.flatMap((message) => message.parts)]
  const characters = charactersIn(parts) + (tools.length > 0 ? JSON.stringify(tools).length : 0)
  const media = parts.filter(({ type }) => ['image', 'audio', 'file', 'video'].includes(type)).length
  return Math.ceil(characters / charactersPerToken) + media * tokensPerMedium
}

/** Characters of everything written in these parts, visible or not. */
function charactersIn(parts: readonly Part[]): number {
  let characters = 0
  for (const part of parts) {
    if (part.type === 'text' || part.type === 'refusal') characters += part.text.length
    else if (part.type === 'reasoning') characters += (part.text ?? part.summary ?? '').length
    else if (part.type === 'tool_call') characters += part.name.length + part.arguments.length
    else if (part.type === 'tool_result') characters += charactersIn(part.parts)
  }
  return characters
}
