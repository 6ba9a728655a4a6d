import type { StreamEvent, StreamEventOf } from '../../core/events.ts'
import { parseJson } from '../../core/json.ts'
import type { Part, ToolCallPart } from '../../core/parts.ts'
import { writeEvent } from '../sse.ts'
import { reasoningBlock } from './reasoning.ts'
import { callBlock, citationOf, textBlock } from './write.ts'

type Growth = StreamEventOf<'delta' | 'citation'>
/** The text to write, and whether the block begins with it. */
type Written = { text: string; began: boolean }

/** The part that is being written: its block begins with the first text, and parts without any are written when they close. */
export class OpenBlock {
  readonly index: number
  readonly #kind: Part['type']
  /** More text for a part that has closed already: it will not be closed a second time. */
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

  /** Whether its block has been started. */
  get isBegun(): boolean {
    return this.#position >= 0
  }

  /** Whether its block is a text block. */
  get isText(): boolean {
    return this.#kind === 'text' || this.#kind === 'refusal'
  }

  /** Whether its part had closed before. */
  get isLate(): boolean {
    return this.#late
  }

  /** Whether nothing more can come. */
  get isWhole(): boolean {
    if (!this.part) return false
    return this.part.type !== 'tool_call' || this.#hasWholeArguments()
  }

  /** A call whose fragments end like an object again and again counts as unfinished once that has cost enough. */
  #hasWholeArguments(): boolean {
    if (this.#parsed > mostParsed || !this.#lastFragment.endsWith('}')) return false
    this.#parsed += this.#arguments.length
    return parseJson(this.#arguments) !== undefined
  }

  /** Whether an event of another part ends this one; a call that is `interleaved` with others may still get arguments. */
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

/** How much of the arguments of one call is parsed in all. Characters. */
const mostParsed = 16 * 1024 * 1024
