import type { StreamEvent, StreamEventOf } from '../../core/events.ts'
import type { Json, JsonObject } from '../../core/json.ts'
import type { Part, ToolCallPart } from '../../core/parts.ts'
import { endingOf } from './reply-members.ts'
import { lateMembers, mediaOf, reasoningBreak, replyId, signatureMembers, writeLogprobs } from './write.ts'

/** The model that serves, whether calls take their deprecated form, and whether the client reads `reasoning`. */
export type ChunkOptions = { model: string; legacy: boolean; readsReasoning: boolean }

/** Writes neutral events as chat completion chunks. The JSON around a delta is the same in all of them and built once. */
export class ChunkWriter {
  /** The members that all chunks share. */
  readonly base = { id: '', object: 'chat.completion.chunk', created: 0 }
  readonly #options: ChunkOptions
  readonly #closed: Part[] = []
  /** Tool calls by the index of their part: their number among the calls, their kind, and the signature written. */
  readonly #calls = new Map<number, { number: number; custom: boolean; signature: string | undefined }>()
  #head = ''
  /** The reasoning part written last, and whether its text was written or its summary. */
  #reasoning = { index: -1, hasText: false }

  constructor(options: ChunkOptions) {
    this.#options = options
  }

  /** The chunks of some events, as the text of server-sent events. */
  write(events: readonly StreamEvent[]): string {
    let text = ''
    for (let at = 0; at < events.length; at++) {
      const event = events[at] as StreamEvent
      const next = events[at + 1]
      if (event.type === 'delta' && next?.type === 'logprobs') {
        text += this.#delta(event, next.logprobs)
        at++
      } else if (event.type === 'delta') text += this.#delta(event)
      else if (event.type === 'start') text += this.#start(event, next)
      else if (event.type === 'open') text += this.#open(event)
      else if (event.type === 'close') text += this.#close(event)
      else if (event.type === 'logprobs') text += this.#chunk('{}', event.logprobs)
      else if (event.type === 'finish') text += this.#finish(event)
    }
    return text
  }

  #start({ id, created }: StreamEventOf<'start'>, next: StreamEvent | undefined): string {
    Object.assign(this.base, { id: replyId(id), created })
    const opening = JSON.stringify({ ...this.base, model: this.#options.model, choices: [] })
    this.#head = `data: ${opening.slice(0, -']}'.length)}{"index":0,"delta":`
    const startsWithText = next?.type === 'open' && next.part.type === 'text'
    return this.#members({ role: 'assistant', content: startsWithText ? '' : null, refusal: null })
  }

  #delta(event: StreamEventOf<'delta'>, logprobs?: Json): string {
    const { index, part, text = '', summary = '', arguments: fragment = '' } = event
    if (part === 'text') return this.#chunk(`{"content":${JSON.stringify(text)}}`, logprobs)
    if (part === 'refusal') return this.#chunk(`{"refusal":${JSON.stringify(text)}}`, logprobs)
    if (part === 'reasoning') return this.#reasoningDelta(index, text, summary)
    return part === 'tool_call' ? this.#arguments(index, fragment) : ''
  }

  /** The text, or the summary of reasoning that has none. */
  #reasoningDelta(index: number, text: string, summary: string): string {
    const isNewPart = this.#reasoning.index >= 0 && this.#reasoning.index !== index
    const hasText = !isNewPart && this.#reasoning.hasText
    if (!text && hasText) return ''
    this.#reasoning = { index, hasText: hasText || text !== '' }
    const content = JSON.stringify((isNewPart ? reasoningBreak : '') + (text || summary))
    return this.#chunk(
      `{"reasoning_content":${content}${this.#options.readsReasoning ? `,"reasoning":${content}` : ''}}`,
    )
  }

  #open({ index, part }: StreamEventOf<'open'>): string {
    if (part.type !== 'tool_call') return ''
    const { id, name, signature } = part
    const custom = part.kind === 'custom'
    this.#calls.set(index, { number: this.#calls.size, custom, signature })
    if (this.#options.legacy) return this.#call(index, { name, arguments: '' })
    const called: JsonObject = custom
      ? { id, type: 'custom', custom: { name, input: '' } }
      : { id, type: 'function', function: { name, arguments: '' } }
    return this.#call(index, { ...called, ...signatureMembers(part) })
  }

  #arguments(index: number, fragment: string): string {
    if (!this.#calls.has(index)) return ''
    if (this.#options.legacy) return this.#call(index, { arguments: fragment })
    return this.#call(index, this.#grown(index, fragment))
  }

  /** Returns a delta with more arguments of a call: clients expect them in every piece, if only as an empty text. */
  #grown(index: number, fragment: string): JsonObject {
    return this.#calls.get(index)?.custom ? { custom: { input: fragment } } : { function: { arguments: fragment } }
  }

  /** The deprecated form allows one call only. */
  #call(index: number, members: JsonObject): string {
    const number = this.#calls.get(index)?.number ?? 0
    if (this.#options.legacy) return number === 0 ? this.#members({ function_call: members }) : ''
    return this.#members({ tool_calls: [{ index: number, ...members }] })
  }

  #close({ index, part }: StreamEventOf<'close'>): string {
    this.#closed[index] = part
    if (part.type === 'tool_call') return this.#closeCall(index, part)
    if (part.type === 'audio' || part.type === 'image') return this.#members(mediaOf([part], this.base.created))
    return ''
  }

  /**
   * Closes a call with a signature that came after the call had started. Some clients take any piece after the whole call for another
   * call.
   */
  #closeCall(index: number, part: ToolCallPart): string {
    const signature = signatureMembers(part)
    const isWritten = this.#calls.get(index)?.signature === part.signature
    if (this.#options.legacy || isWritten || Object.keys(signature).length === 0) return ''
    return this.#call(index, { ...this.#grown(index, ''), ...signature })
  }

  #finish(event: StreamEventOf<'finish'>): string {
    const late = lateMembers(this.#closed.filter((part) => part !== undefined))
    const lateChunk = Object.keys(late).length > 0 ? this.#members(late) : ''
    const ending = JSON.stringify(endingOf(event, this.#options.legacy)).slice(1, -1)
    return `${lateChunk}${this.#head}{},"logprobs":null,${ending}}]}\n\n`
  }

  #members(delta: JsonObject): string {
    return this.#chunk(JSON.stringify(delta))
  }

  #chunk(delta: string, logprobs?: Json): string {
    const tokens = logprobs === undefined ? 'null' : JSON.stringify(writeLogprobs(logprobs))
    return `${this.#head}${delta},"logprobs":${tokens},"finish_reason":null}]}\n\n`
  }
}
