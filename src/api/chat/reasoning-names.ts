import type { Json, JsonObject } from '../../core/json.ts'
import { type Effort, efforts, type NeutralRequest, summaries } from '../../core/request.ts'
import { defined, flag, integer, object, oneOf, optional, refuse } from '../check.ts'

type Reasoning = NonNullable<NeutralRequest['reasoning']>

/**
 * How much to reason, in all words that clients have for it: the flat `reasoning_effort`, a level or a number of tokens, and
 * two objects of gateways and providers, `reasoning` and `thinking`. Throws RouterError 400.
 */
export function readReasoning(body: JsonObject): { request?: Reasoning; extensions?: JsonObject } {
  if ((body.reasoning ?? body.thinking ?? body.reasoning_effort ?? null) === null) return {}
  const reasoning = optional(body.reasoning, 'reasoning', object) ?? {}
  const thinking = optional(body.thinking, 'thinking', object) ?? {}
  const { effort: nested, max_tokens, enabled, summary, ...others } = reasoning
  const named =
    optional(body.reasoning_effort, 'reasoning_effort', readEffort) ?? optional(nested, 'reasoning.effort', readEffort)
  const budget =
    optional(max_tokens, 'reasoning.max_tokens', integer(1)) ??
    optional(thinking.budget_tokens, 'thinking.budget_tokens', integer(1)) ??
    named?.budget
  const isEnabled = optional(enabled, 'reasoning.enabled', flag) ?? isThinkingEnabled(thinking.type)
  const request = defined({
    effort: named?.effort ?? effortOf(isEnabled, budget !== undefined || named !== undefined),
    budget,
    summary: optional(summary, 'reasoning.summary', oneOf(summaries)),
  })
  const extensions = defined({
    reasoning_effort: named?.unknown,
    reasoning: Object.keys(others).length > 0 ? others : undefined,
  })
  return { ...(Object.keys(request).length > 0 && { request }), extensions }
}

/** A level, a number of tokens also as text, or a level that only single providers have (`default`). */
function readEffort(value: Json, path: string): { effort?: Effort; budget?: number; unknown?: string } {
  const tokens = typeof value === 'string' && /^[0-9]+$/.test(value) ? Number(value) : value
  if (typeof tokens === 'number') {
    const budget = integer(0, Number.MAX_SAFE_INTEGER)(tokens, path)
    return budget === 0 ? { effort: 'none' } : { budget }
  }
  if (typeof value !== 'string') return refuse(path, 'a level or a number of tokens', value)
  // As little as the model can do with.
  if (value === 'min') return { effort: 'none' }
  const effort = efforts.find((known) => known === value)
  return effort ? { effort } : { unknown: value }
}

function isThinkingEnabled(type: Json | undefined): boolean | undefined {
  if (type === 'disabled') return false
  return type === 'enabled' || type === 'adaptive' ? true : undefined
}

/** Reasoning that is only switched on has medium effort, unless something else sets how much. */
function effortOf(isEnabled: boolean | undefined, isSet: boolean): Effort | undefined {
  if (isEnabled === false) return 'none'
  return isEnabled && !isSet ? 'medium' : undefined
}
