import type { Part, PluginRequest } from 'inference-router/plugin'

/** A conversation as it is asked for. */
export type Chat = Extract<PluginRequest, { chat: unknown }>['chat']

/** Part of a prompt that may be cached up to its end: all tools, all system texts, or a message before the last one. In characters. */
export type Block = { at: 'tools' | 'system' | number; length: number }

type Hint = { ttl?: '5m' | '1h' }

/** Lists the blocks in the order in which providers read them; blocks whose end cannot be marked belong to the next one. */
export function blocksOf({ tools = [], system = [], messages }: Chat): Block[] {
  const blocks: Block[] = []
  let length = 0
  const add = (at: Block['at'], content: unknown, canBeMarked: boolean) => {
    length += JSON.stringify(content).length
    if (!canBeMarked) return
    blocks.push({ at, length })
    length = 0
  }
  add('tools', tools, tools.length > 0)
  add('system', system, markedPart(system) >= 0)
  for (const [index, { parts }] of messages.slice(0, -1).entries()) add(index, parts, markedPart(parts) >= 0)
  return blocks
}

/** Checks whether the client has marked any part of it. */
export function hasHints({ tools = [], system = [], messages }: Chat): boolean {
  const parts = [...system, ...messages.flatMap((message) => message.parts)]
  return tools.some(({ cache }) => cache) || parts.some((part) => 'cache' in part && part.cache !== undefined)
}

/** Returns the conversation with marks at the ends of some blocks. */
export function withHints(chat: Chat, chosen: readonly Block[], cache: Hint): Chat {
  const { tools = [], system = [], messages } = chat
  const isChosen = (at: Block['at']) => chosen.some((block) => block.at === at)
  return {
    ...chat,
    ...(isChosen('tools') && {
      tools: tools.with(-1, { ...tools[tools.length - 1], cache } as (typeof tools)[number]),
    }),
    ...(isChosen('system') && { system: marked(system, cache) }),
    messages: messages.map((message, index) =>
      isChosen(index) ? { ...message, parts: marked(message.parts, cache) } : message,
    ),
  }
}

function marked(parts: readonly Part[], cache: Hint): Part[] {
  const at = markedPart(parts)
  return parts.map((part, index) => (index === at ? ({ ...part, cache } as Part) : part))
}

/** Returns the last part that can be marked; -1 if there is none. */
function markedPart(parts: readonly Part[]): number {
  return parts.findLastIndex((part) => markable.has(part.type) && (part.type !== 'text' || part.text.trim() !== ''))
}

const markable: ReadonlySet<string> = new Set(['text', 'image', 'file', 'tool_call', 'tool_result'])
