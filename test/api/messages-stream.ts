import { expect } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'

// An independent reader of streamed messages: legal order, and the message that the deltas add up to.

// biome-ignore lint/suspicious/noExplicitAny: the reader walks over events of many shapes.
type Loose = any

/** The events of a stream: each block of lines has a name and data of the same type. Comments are passed over. */
export function eventsIn(text: string): JsonObject[] {
  const blocks = text.split('\n\n').filter((block) => block !== '' && !block.startsWith(':'))
  return blocks.map((block) => {
    const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? []
    const event = JSON.parse(data ?? '')
    expect(event.type).toBe(name)
    return event
  })
}

/** The message that the events add up to, after every one of them came in its turn. Fails where the order is not legal. */
export function accumulated(events: readonly JsonObject[]): JsonObject {
  let message: Loose
  let open: { index: number; input: string } | undefined
  let ended = false
  for (const event of events as Loose[]) {
    if (event.type === 'ping') continue
    expect(ended, 'nothing comes after message_stop').toBe(false)
    if (event.type === 'message_start') {
      expect(message, 'message_start comes once').toBeUndefined()
      message = structuredClone(event.message)
      expect(message).toMatchObject({ content: [], stop_reason: null })
      continue
    }
    expect(message, 'message_start comes first').toBeDefined()
    if (event.type === 'content_block_start') {
      expect(open, 'one block is open at a time').toBeUndefined()
      expect(message.stop_reason, 'no block begins after message_delta').toBeNull()
      expect(event.index).toBe(message.content.length)
      message.content.push(structuredClone(event.content_block))
      open = { index: event.index, input: '' }
    } else if (event.type === 'content_block_delta') {
      expect(event.index).toBe(open?.index)
      grow(message.content[event.index], event.delta, open as { input: string })
    } else if (event.type === 'content_block_stop') {
      expect(event.index).toBe(open?.index)
      if (open?.input) message.content[event.index].input = JSON.parse(open.input)
      open = undefined
    } else if (event.type === 'message_delta') {
      expect(open, 'all blocks have ended').toBeUndefined()
      expect(message.stop_reason, 'message_delta comes once').toBeNull()
      Object.assign(message, event.delta)
      for (const [name, count] of Object.entries(event.usage)) if (count !== null) message.usage[name] = count
    } else if (event.type === 'message_stop') {
      expect(message.stop_reason).not.toBeNull()
      ended = true
    } else throw new Error(`no such event: ${event.type}`)
  }
  expect(ended, 'message_stop comes last').toBe(true)
  return message
}

function grow(block: Loose, delta: Loose, open: { input: string }): void {
  const wanted: Record<string, string> = {
    text_delta: 'text',
    citations_delta: 'text',
    thinking_delta: 'thinking',
    signature_delta: 'thinking',
    input_json_delta: 'tool_use server_tool_use',
  }
  expect(wanted[delta.type]?.split(' ')).toContain(block.type)
  if (delta.type === 'text_delta') block.text += delta.text
  else if (delta.type === 'thinking_delta') block.thinking += delta.thinking
  else if (delta.type === 'signature_delta') block.signature += delta.signature
  else if (delta.type === 'citations_delta') block.citations = [...(block.citations ?? []), delta.citation]
  else open.input += delta.partial_json
}
