import { definePlugin, type PluginCall } from 'inference-router/plugin'
import { repairJson } from './repair.ts'

/** State of a call: whether JSON was asked for, and the texts of its stream by their keys. */
type State = { isJson?: boolean; held?: Map<string | number | undefined, string> }
type Call = PluginCall & { state: State }

export default definePlugin<Record<string, never>>({
  description: 'Repairs answers that are almost JSON, where JSON was asked for',
  setup: (_options, { log }) => {
    const healed = (text: string, { id, requested }: PluginCall): string => {
      const repaired = repairJson(text)
      if (repaired === text) return text
      if (repaired === undefined) log.warn({ call: id, requested }, 'an answer that should be JSON cannot be repaired')
      else log.info({ call: id, requested }, 'repaired an answer that should be JSON')
      return repaired ?? text
    }
    return {
      request(request, { state }: Call) {
        const type = 'chat' in request ? request.chat.response_format?.type : undefined
        state.isJson = type === 'json' || type === 'json_schema'
        return undefined
      },
      event(event, call: Call) {
        const { state } = call
        if (!state.isJson || 'json' in event) return undefined
        state.held ??= new Map()
        const { held } = state
        if (event.done) {
          const texts = [...held].map(([at, text]) => ({ ...(at !== undefined && { at }), text: healed(text, call) }))
          held.clear()
          return [...texts, event]
        }
        const { text, whole, ...others } = event
        if (whole?.type === 'text') held.set(event.at, whole.text)
        else if (text !== undefined) held.set(event.at, (held.get(event.at) ?? '') + text)
        else return undefined
        return Object.keys(others).some((name) => name !== 'at') ? [others] : []
      },
      reply(reply, call: Call) {
        if (!call.state.isJson || call.stream || !('chat' in reply)) return undefined
        const parts = reply.chat.parts.map((part) => {
          const text = part.type === 'text' && part.text ? healed(part.text, call) : undefined
          return text === undefined ? part : { ...part, text }
        })
        if (parts.every((part, index) => sameText(part, reply.chat.parts[index]))) return undefined
        return { ...reply, chat: { ...reply.chat, parts }, headers: { 'x-router-healed': '1' } }
      },
    }
  },
})

function sameText(one: object | undefined, other: object | undefined): boolean {
  return (one as { text?: string }).text === (other as { text?: string }).text
}
