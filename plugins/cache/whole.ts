import type { PluginReply } from 'inference-router/plugin'

/** Checks whether a reply ended as its model wanted it to. */
export function isWhole(reply: PluginReply): boolean {
  if ('chat' in reply) return reply.chat.finish === 'stop' || reply.chat.finish === 'tool_calls'
  const { choices } = reply.json
  if (!Array.isArray(choices)) return true
  return choices.every((choice) => (choice as { finish_reason?: unknown } | null)?.finish_reason === 'stop')
}
