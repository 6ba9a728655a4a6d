import type { ProviderEvent } from './events.ts'
import type { Part, ReasoningPart } from './parts.ts'
import { eventsOfPart } from './reply-events.ts'

/**
 * The events for what has not come yet of a part that its provider repeats whole. What was said otherwise before stays as
 * it was said: clients have read it.
 */
export function restOfPart(whole: Part, come: Part | undefined, at: ProviderEvent['at']): ProviderEvent[] {
  const key = at === undefined ? {} : { at }
  if (!come || whole.type === 'search') return eventsOfPart(whole).map((event) => ({ ...key, ...event }))
  if (whole.type === 'text' && come.type === 'text') {
    const signature = come.signature === undefined && whole.signature ? { signature: whole.signature } : {}
    const citations = come.citations ? [] : (whole.citations ?? [])
    const grown = { ...key, text: rest(whole.text, come.text), ...signature }
    return [grown, ...citations.map((citation) => ({ ...key, citation }))]
  }
  if (whole.type === 'refusal' && come.type === 'refusal') return [{ ...key, refusal: rest(whole.text, come.text) }]
  if (whole.type === 'reasoning' && come.type === 'reasoning')
    return [{ ...key, reasoning: restOfReasoning(whole, come) }]
  if (whole.type === 'tool_call' && come.type === 'tool_call') {
    return [{ ...key, tool: { arguments: rest(whole.arguments, come.arguments) } }]
  }
  return []
}

/** Texts as far as they are missing, and the id and the signatures that are: providers make new ones for a repetition. */
function restOfReasoning({ type, by, text = '', summary = '', ...marks }: ReasoningPart, come: ReasoningPart) {
  const missing = Object.entries(marks).filter(([name]) => come[name as keyof ReasoningPart] === undefined)
  return { ...Object.fromEntries(missing), text: rest(text, come.text), summary: rest(summary, come.summary) }
}

function rest(whole: string, come = ''): string {
  return whole.startsWith(come) ? whole.slice(come.length) : ''
}
