import type { StreamEvent } from '../../core/events.ts'
import type { JsonObject } from '../../core/json.ts'
import type { ReasoningPart, ToolCallPart } from '../../core/parts.ts'
import { reasoningBlock } from './reasoning.ts'
import { blocksOf, callSeal, citationOf, messageId, stopOf, textSeal, writeUsage } from './write.ts'

type Told<Type extends StreamEvent['type']> = StreamEvent & { type: Type }

/** One event of this API as the text of a server-sent event. */
export function named(event: JsonObject): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}

/** Parts as blocks: numbered from 0, one open at a time; what comes for a later one waits until the open one ends. */
export class Blocks {
  /** Why the message ended: `{stop_reason, stop_sequence}`. */
  ending: JsonObject = { stop_reason: 'end_turn', stop_sequence: null }
  readonly #model: string
  #next = 0
  #texts = 0
  /** The part whose block is open, and the start of its deltas. */
  #open: { index: number; head: string } | undefined
  /** Calls that opened while another was still being written: told whole at the end. */
  readonly #waiting = new Map<number, ToolCallPart>()

  constructor(model: string) {
    this.#model = model
  }

  /** The text of some neutral events. */
  write(events: readonly StreamEvent[]): string {
    let text = ''
    for (const event of events) {
      if (event.type === 'delta') text += this.#delta(event)
      else if (event.type === 'start') text += this.#start(event)
      else if (event.type === 'open') text += this.#begin(event)
      else if (event.type === 'citation') text += this.#citation(event)
      else if (event.type === 'close') text += this.#close(event)
      else if (event.type === 'finish') text += this.#finish(event)
    }
    return text
  }

  #start({ id }: Told<'start'>): string {
    const message = {
      id: messageId(id),
      type: 'message',
      role: 'assistant',
      model: this.#model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: writeUsage({}, undefined),
    }
    return `${named({ type: 'message_start', message })}event: ping\ndata: {"type":"ping"}\n\n`
  }

  /** Blocks that grow are opened here; whole ones are written when they close. */
  #begin({ index, part }: Told<'open'>): string {
    if (part.type === 'text' || part.type === 'refusal') {
      return this.#openBlock(index, { type: 'text', text: '', citations: null }, '"type":"text_delta","text":')
    }
    if (part.type !== 'tool_call') return ''
    // A call that takes turns with the one before it waits: blocks must not interleave.
    if (this.#open) {
      this.#waiting.set(index, part)
      return ''
    }
    const block = { type: 'tool_use', id: part.id, name: part.name, input: {} }
    return this.#openBlock(index, block, '"type":"input_json_delta","partial_json":')
  }

  #delta({ index, part, text, summary, arguments: fragment }: Told<'delta'>): string {
    if (part === 'reasoning' && this.#open?.index !== index) {
      const block = { type: 'thinking', thinking: '', signature: '' }
      return this.#openBlock(index, block, '"type":"thinking_delta","thinking":') + this.#grow(text ?? summary ?? '')
    }
    if (this.#open?.index !== index) return ''
    return this.#grow(text ?? summary ?? fragment ?? '')
  }

  #grow(words: string): string {
    return `${this.#open?.head}${JSON.stringify(words)}}}\n\n`
  }

  #citation({ index, citation }: Told<'citation'>): string {
    if (this.#open?.index !== index) return ''
    return this.#inBlock({ type: 'citations_delta', citation: citationOf(citation) })
  }

  #close({ index, part }: Told<'close'>): string {
    if (part.type === 'tool_call') return this.#closeCall(index, part)
    const isOpen = this.#open?.index === index
    if (part.type === 'text') {
      const seal = textSeal(part, this.#texts++)
      return (isOpen ? this.#stop() : '') + this.#wholes(seal)
    }
    if (part.type === 'refusal') return isOpen ? this.#stop() : ''
    if (part.type === 'reasoning') return this.#closeReasoning(part, isOpen)
    return this.#wholes(blocksOf(part, this.#texts))
  }

  /** Arguments that are not whole yet may go on after another call has opened: the block waits for the end. */
  #closeCall(index: number, part: ToolCallPart): string {
    if (this.#waiting.has(index)) {
      this.#waiting.set(index, part)
      return ''
    }
    if (this.#open?.index !== index || !isWhole(part)) return ''
    return this.#stop() + this.#wholes(callSeal(part))
  }

  #closeReasoning(part: ReasoningPart, isOpen: boolean): string {
    const block = reasoningBlock(part)
    if (!isOpen) return this.#wholes([block])
    const signature = block.type === 'thinking' ? block.signature : ''
    return (signature ? this.#inBlock({ type: 'signature_delta', signature }) : '') + this.#stop()
  }

  #finish(event: Told<'finish'>): string {
    this.ending = stopOf(event)
    const waiting = [...this.#waiting.values()].flatMap((part) => blocksOf(part, this.#texts))
    this.#waiting.clear()
    return (this.#open ? this.#stop() : '') + this.#wholes(waiting)
  }

  #openBlock(index: number, block: JsonObject, delta: string): string {
    const ended = this.#open ? this.#stop() : ''
    const position = this.#next++
    this.#open = {
      index,
      head: `event: content_block_delta\ndata: {"type":"content_block_delta","index":${position},"delta":{${delta}`,
    }
    return ended + named({ type: 'content_block_start', index: position, content_block: block })
  }

  #inBlock(delta: JsonObject): string {
    return named({ type: 'content_block_delta', index: this.#next - 1, delta })
  }

  #stop(): string {
    this.#open = undefined
    return named({ type: 'content_block_stop', index: this.#next - 1 })
  }

  /** Blocks told at once: tool inputs as their one delta, everything else in the start. */
  #wholes(blocks: readonly JsonObject[]): string {
    let text = this.#open && blocks.length > 0 ? this.#stop() : ''
    for (const block of blocks) {
      const growing = block.type === 'tool_use'
      text += named({
        type: 'content_block_start',
        index: this.#next++,
        content_block: growing ? { ...block, input: {} } : block,
      })
      if (growing) text += this.#inBlock({ type: 'input_json_delta', partial_json: JSON.stringify(block.input) })
      text += this.#stop()
    }
    return text
  }
}

function isWhole({ arguments: text }: ToolCallPart): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
