import { isDeepStrictEqual } from 'node:util'
import type { Part } from '../core/parts.ts'
import type { PluginRequest } from './contract.ts'

type ToolPart = Extract<Part, { type: 'tool_call' | 'tool_result' }>

/**
 * A request of a plugin without the client's own form of calls and results that the plugin has changed otherwise: providers of the
 * client's API would get that form, and what the plugin has masked with it.
 */
export function withoutStaleForms(request: PluginRequest, before: PluginRequest): PluginRequest {
  if (!('chat' in request) || !('chat' in before)) return request
  const known = new Map<unknown, ToolPart>()
  for (const { parts } of before.chat.messages) {
    for (const part of parts) if (isNative(part)) known.set(part.native, part)
  }
  if (known.size === 0) return request
  const messages = request.chat.messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) => {
      const earlier = isNative(part) ? known.get(part.native) : undefined
      return earlier && isNative(part) && !saysTheSame(part, earlier) ? withoutNative(part) : part
    }),
  }))
  return { ...request, chat: { ...request.chat, messages } }
}

function isNative(part: Part): part is ToolPart {
  return (part.type === 'tool_call' || part.type === 'tool_result') && part.native !== undefined
}

function saysTheSame(part: ToolPart, earlier: ToolPart): boolean {
  const { native: _native, ...one } = part
  const { native: _earlier, ...other } = earlier
  return isDeepStrictEqual(one, other)
}

function withoutNative({ native: _native, ...part }: ToolPart): Part {
  return part as Part
}
