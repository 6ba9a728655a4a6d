import type { PluginRequest } from 'inference-router/plugin'

type Part = Extract<PluginRequest, { chat: unknown }>['chat']['messages'][number]['parts'][number]

/** Origin of the texts that are checked. */
export type Origin = 'user' | 'tool_result'

/** Returns the texts of users and tools in a request: `all` of them, and those that are `fresh`, after the last answer. */
export function textsOf(request: PluginRequest, origins: readonly Origin[]): { all: string[]; fresh: string[] } {
  if (!('chat' in request)) {
    const isAsked = request.operation === 'complete' && origins.includes('user')
    const texts = isAsked ? [request.fields.prompt].flat().filter((text) => typeof text === 'string') : []
    return { all: texts, fresh: texts }
  }
  const { messages } = request.chat
  const answered = messages.findLastIndex(({ role }) => role === 'assistant')
  const texts = messages.map(({ role, parts }) =>
    role === 'user' ? parts.flatMap((part) => saidIn(part, origins)) : [],
  )
  return { all: texts.flat(), fresh: texts.slice(answered + 1).flat() }
}

function saidIn(part: Part, origins: readonly Origin[]): string[] {
  if (part.type === 'text') return origins.includes('user') ? [part.text] : []
  if (part.type !== 'tool_result' || !origins.includes('tool_result')) return []
  return part.parts.flatMap((one) => (one.type === 'text' ? [one.text] : []))
}
