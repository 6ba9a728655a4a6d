import type { StreamEvent, StreamEventOf } from '../../core/events.ts'
import { type JsonObject, parseJson } from '../../core/json.ts'
import type { Part, ToolCallPart } from '../../core/parts.ts'
import { type ReplyFacts, writeEvent } from '../client-api.ts'
import { deltaUsage, stopOf, writeUsage } from './reply-members.ts'
import { callBlock, citationOf, messageId, reasoningBlock, signatureBlocks, textBlock, wholeBlocks } from './write.ts'

type OfPart = StreamEventOf<'open' | 'delta' | 'citation' | 'close'>

/** Writes parts as blocks: numbered from 0, one open at a time. Events of a later part wait until the open one ends. */
export class BlockWriter {
  /** The reason why the message ended: `{stop_reason, stop_sequence, stop_details}`. */
  #ending: JsonObject = stopOf({ finish: 'error', parts: [] })
  readonly #model: string
  readonly #refusals: Part[] = []
  /** The part that is being written. */
  #live: OpenBlock | undefined
  readonly #done = new Set<number>()
  /** The events of other parts than the open one, by part, in the order in which the parts began. */
  readonly #held = new Map<number, OfPart[]>()
  #releasing = false
  /** True if parts arrive interleaved. */
  #interleaved = false
  /** Parts that were written without a signature: it may still come. */
  readonly #unsigned: { part: Part; position: number }[] = []
  #next = 0
  #texts = 0

  constructor(model: string) {
    this.#model = model
  }

  /** The text of some neutral events. */
  write(events: readonly StreamEvent[]): string {
    let text = ''
    for (const event of events) {
      if (event.type === 'start') text += this.#start(event)
      else if (event.type === 'finish') text += this.#finish(event)
      else if (event.type !== 'usage' && event.type !== 'logprobs') text += this.#take(event)
    }
    return text
  }

  /** Writes the last `message_delta`: why the message ended, and its counts. */
  end({ usage, costUsd, router }: ReplyFacts): string {
    const delta = { container: null, ...this.#ending }
    return writeEvent({ type: 'message_delta', delta, usage: deltaUsage(usage, costUsd), ...(router && { router }) })
  }

  #start({ id }: StreamEventOf<'start'>): string {
    const message = {
      id: messageId(id),
      type: 'message',
      role: 'assistant',
      model: this.#model,
      content: [],
      container: null,
      diagnostics: null,
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      usage: writeUsage({}, undefined),
    }
    return `${writeEvent({ type: 'message_start', message })}event: ping\ndata: {"type":"ping"}\n\n`
  }

  #take(event: OfPart): string {
    const { index } = event
    // A search is written when it is over; the text that it is for may come before.
    if (event.type === 'open' && event.part.type === 'search') return ''
    if (this.#live && this.#live.index !== index) {
      if (this.#live.mayEnd(event, this.#interleaved))
        return this.#end(this.#live) + this.#release() + this.#take(event)
      const waiting = this.#held.get(index)
      if (waiting) waiting.push(event)
      else this.#held.set(index, [event])
      this.#interleaved = true
      return ''
    }
    if (!this.#live) {
      const kind = kindOf(event)
      // Late events of a part that has ended: text continues in a new block, a call cannot.
      const late = this.#done.has(index)
      if (late && (kind === 'tool_call' || event.type === 'close')) return ''
      this.#live = new OpenBlock(index, kind, late)
    }
    const live = this.#live
    if (event.type === 'open') {
      return event.part.type === 'tool_call' ? this.#begun(live.begin(event.part, this.#next)) : ''
    }
    if (event.type === 'close') live.close(event.part)
    const text = event.type === 'close' ? '' : this.#begun(live.grow(event, this.#next))
    return live.isWhole ? text + this.#end(live) + this.#release() : text
  }

  /** A block that begins in this text takes the next number. */
  #begun({ text, began }: { text: string; began: boolean }): string {
    if (began) this.#next++
    return text
  }

  #end(live: OpenBlock): string {
    this.#live = undefined
    this.#done.add(live.index)
    const { part } = live
    if (part?.type === 'refusal') this.#refusals.push(part)
    if (live.isBegun) {
      const position = this.#texts
      if (live.isText) this.#texts++
      return live.stop() + (part ? this.#writeSignature(part, position) : '')
    }
    if (!part) return ''
    const blocks = wholeBlocks(part)
    const position = blocks.some(({ type }) => type === 'text') ? this.#texts++ : -1
    return blocks.map((block) => this.#whole(block)).join('') + this.#writeSignature(part, position)
  }

  #writeSignature(part: Part, position: number): string {
    const blocks = signatureBlocks(part, position)
    if (blocks.length === 0) this.#unsigned.push({ part, position })
    return blocks.map((block) => this.#whole(block)).join('')
  }

  /** Writes the parts that have waited, one after the other, until one of them may still grow. */
  #release(): string {
    // A part that ends while it is written releases nothing itself: the loop goes on, however many there are.
    if (this.#releasing) return ''
    this.#releasing = true
    let text = ''
    for (const [index, events] of this.#held) {
      if (this.#live && !this.#live.isLate) break
      this.#held.delete(index)
      for (const event of events) text += this.#take(event)
    }
    this.#releasing = false
    return text
  }

  #finish({ finish, stop_sequence }: StreamEventOf<'finish'>): string {
    let text = ''
    while (this.#live) text += this.#end(this.#live) + this.#release()
    for (const { part, position } of this.#unsigned.splice(0)) text += this.#writeSignature(part, position)
    this.#ending = stopOf({ finish, parts: this.#refusals, ...(stop_sequence !== undefined && { stop_sequence }) })
    return text
  }

  /** Writes a block at once: the input of a tool as its one delta, everything else in the start. */
  #whole(block: JsonObject): string {
    const index = this.#next++
    const { input } = block
    const content_block = input === undefined ? block : { ...block, input: {} }
    const partial_json = input === undefined ? '{}' : JSON.stringify(input)
    const growth = { type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json } }
    return (
      writeEvent({ type: 'content_block_start', index, content_block }) +
      (partial_json === '{}' ? '' : writeEvent(growth)) +
      writeEvent({ type: 'content_block_stop', index })
    )
  }
}

function kindOf(event: OfPart): Part['type'] {
  if (event.type === 'delta') return event.part
  return event.type === 'citation' ? 'text' : event.part.type
}

type Growth = StreamEventOf<'delta' | 'citation'>
/** The text to write, and whether the block begins with it. */
type Written = { text: string; began: boolean }

/** The part that is being written: its block begins with the first text, and parts without any are written when they close. */
class OpenBlock {
  readonly index: number
  readonly #kind: Part['type']
  /** True if this is more text for a part that has already closed: it will not be closed a second time. */
  readonly #late: boolean
  #position = -1
  #head = ''
  #arguments = ''
  #lastFragment = ''
  #parsed = 0
  /** The finished part, once it has closed. */
  part: Part | undefined

  constructor(index: number, kind: Part['type'], late: boolean) {
    this.index = index
    this.#kind = kind
    this.#late = late
  }

  /** Returns whether its block has been started. */
  get isBegun(): boolean {
    return this.#position >= 0
  }

  /** Returns whether its block is a text block. */
  get isText(): boolean {
    return this.#kind === 'text' || this.#kind === 'refusal'
  }

  /** Returns whether its part had closed before. */
  get isLate(): boolean {
    return this.#late
  }

  /** Returns whether the part is complete, so that nothing more can come. */
  get isWhole(): boolean {
    if (!this.part) return false
    return this.part.type !== 'tool_call' || this.#hasWholeArguments()
  }

  /** A call whose fragments end like an object again and again counts as unfinished once that has cost enough. */
  #hasWholeArguments(): boolean {
    if (this.#parsed > maxParsed || !this.#lastFragment.endsWith('}')) return false
    this.#parsed += this.#arguments.length
    return parseJson(this.#arguments) !== undefined
  }

  /** Checks whether an event of another part ends this one; a call that is `interleaved` with others may still get arguments. */
  mayEnd(event: StreamEvent, interleaved: boolean): boolean {
    if (this.#late) return true
    if (interleaved) return false
    const isOther = event.type === 'open' && event.part.type !== 'tool_call'
    return this.part !== undefined && isOther && this.#arguments === ''
  }

  /** A call begins with its name. The free text of a custom tool is written when it is complete: it is not JSON. */
  begin(call: ToolCallPart, position: number): Written {
    if (call.kind === 'custom') return { text: '', began: false }
    const block = { ...callBlock(call), input: {} }
    return { text: this.#start(block, '"type":"input_json_delta","partial_json":', position), began: true }
  }

  grow(event: Growth, position: number): Written {
    const began = !this.isBegun && this.#kind !== 'tool_call'
    const start = began ? this.#startText(position) : ''
    if (event.type === 'citation') {
      const delta = { type: 'citations_delta', citation: citationOf(event.citation) }
      return { text: start + writeEvent({ type: 'content_block_delta', index: this.#position, delta }), began }
    }
    this.#arguments += event.arguments ?? ''
    this.#lastFragment = event.arguments?.trimEnd() || this.#lastFragment
    const fragment = event.text ?? event.summary ?? event.arguments ?? ''
    return { text: this.isBegun ? `${start}${this.#head}${JSON.stringify(fragment)}}}\n\n` : '', began }
  }

  close(part: Part): void {
    this.part = part
  }

  /** The end of a started block, with the signature of reasoning. */
  stop(): string {
    const index = this.#position
    const stopped = writeEvent({ type: 'content_block_stop', index })
    if (this.part?.type !== 'reasoning') return stopped
    const { signature } = reasoningBlock(this.part)
    if (!signature) return stopped
    return writeEvent({ type: 'content_block_delta', index, delta: { type: 'signature_delta', signature } }) + stopped
  }

  #startText(position: number): string {
    if (this.#kind !== 'reasoning') return this.#start(textBlock(''), '"type":"text_delta","text":', position)
    const block = { type: 'thinking', thinking: '', signature: '' }
    return this.#start(block, '"type":"thinking_delta","thinking":', position)
  }

  #start(block: ReturnType<typeof textBlock>, delta: string, position: number): string {
    this.#position = position
    this.#head = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${position},"delta":{${delta}`
    return writeEvent({ type: 'content_block_start', index: position, content_block: block })
  }
}

/** Maximum length of the parsed arguments of one call, all pieces together. Characters. */
const maxParsed = 16 * 1024 * 1024
