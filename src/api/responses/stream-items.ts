import type { StreamEvent } from '../../core/events.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Part, TextPart, ToolCallPart } from '../../core/parts.ts'
import {
  annotationOf,
  contentPart,
  type ItemKind,
  kindOf,
  type OutputGroup,
  reasoningMembers,
  writeItem,
} from './output.ts'
import { itemId } from './write.ts'

type Told<Type extends StreamEvent['type']> = StreamEvent & { type: Type }
type Emit = (type: string, members: JsonObject) => void
/** An item that has been added and not yet told done; `heads` are the unchanging members of its deltas. */
type OpenItem = OutputGroup & { id: string; position: number; indexes: number[] }

/** Parts as output items: added, grown and done, each event in its place. */
export class Items {
  /** The finished items. */
  readonly output: JsonObject[] = []
  readonly #responseId: string
  readonly #emit: Emit
  readonly #open = new Map<number, OpenItem>()
  #message: OpenItem | undefined
  #next = 0

  constructor(responseId: string, emit: Emit) {
    this.#responseId = responseId
    this.#emit = emit
  }

  take(event: StreamEvent): void {
    if (event.type === 'delta') this.#delta(event)
    else if (event.type === 'open') this.#begin(event)
    else if (event.type === 'citation') this.#citation(event)
    else if (event.type === 'close') this.#close(event)
    else if (event.type === 'finish') this.end()
  }

  /** Tells done what is still open. */
  end(): void {
    this.#endMessage()
    for (const [index, item] of this.#open) this.#done(index, item)
  }

  #begin({ index, part }: Told<'open'>): void {
    const kind = kindOf(part)
    if (kind === 'msg') this.#beginContent(index, part)
    else if (kind) this.#beginItem(index, kind, part)
  }

  #beginItem(index: number, kind: ItemKind, part: Part): void {
    this.#endMessage()
    const item = this.#add(kind, [part])
    this.#open.set(index, item)
    if (kind !== 'ws') return
    for (const stage of ['in_progress', 'searching']) this.#emit(`response.web_search_call.${stage}`, at(item))
  }

  #beginContent(index: number, part: Part): void {
    this.#message ??= this.#add('msg', [])
    const item = this.#message
    item.parts.push(part)
    item.indexes.push(index)
    this.#emit('response.content_part.added', {
      ...at(item),
      content_index: item.parts.length - 1,
      part: emptyContent(part),
    })
  }

  #add(kind: ItemKind, parts: Part[]): OpenItem {
    const position = this.#next++
    const id = itemId(this.#responseId, kind, position)
    const empty = writeItem({ kind, parts: parts.map(emptied) }, id, 'in_progress')
    this.#emit('response.output_item.added', { output_index: position, item: empty })
    return { kind, parts: [...parts], id, position, indexes: [] }
  }

  #delta({ index, part, text, summary, arguments: fragment }: Told<'delta'>): void {
    const message = this.#message
    if (message && (part === 'text' || part === 'refusal')) {
      const content_index = message.indexes.indexOf(index)
      const type = part === 'text' ? 'response.output_text.delta' : 'response.refusal.delta'
      this.#emit(type, { ...at(message), content_index, delta: text ?? '', ...(part === 'text' && { logprobs: [] }) })
      return
    }
    const item = this.#open.get(index)
    if (!item) return
    if (part === 'reasoning') this.#think(item, text ?? summary ?? '')
    else if (item.kind === 'ctc')
      this.#emit('response.custom_tool_call_input.delta', { ...at(item), delta: fragment ?? '' })
    else this.#emit('response.function_call_arguments.delta', { ...at(item), delta: fragment ?? '' })
  }

  #think(item: OpenItem, delta: string): void {
    const place = { ...at(item), summary_index: 0 }
    if (item.indexes.length === 0) {
      item.indexes.push(0)
      this.#emit('response.reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } })
    }
    this.#emit('response.reasoning_summary_text.delta', { ...place, delta })
  }

  #citation({ index, citation }: Told<'citation'>): void {
    const message = this.#message
    const content_index = message?.indexes.indexOf(index) ?? -1
    if (!message || content_index < 0) return
    const part = message.parts[content_index] as TextPart
    const annotation_index = this.#cited.get(index) ?? 0
    this.#cited.set(index, annotation_index + 1)
    const annotation = annotationOf(citation, part.text)
    this.#emit('response.output_text.annotation.added', { ...at(message), content_index, annotation_index, annotation })
  }

  readonly #cited = new Map<number, number>()

  #close({ index, part }: Told<'close'>): void {
    if (part.type === 'text' || part.type === 'refusal') this.#closeContent(index, part)
    const item = this.#open.get(index)
    if (!item) return
    item.parts = [part]
    // Arguments that are not whole yet may go on after another call has begun.
    if (part.type !== 'tool_call' || part.kind === 'custom' || isWhole(part)) this.#done(index, item)
  }

  #closeContent(index: number, part: Part): void {
    const message = this.#message
    const content_index = message?.indexes.indexOf(index) ?? -1
    if (!message || content_index < 0) return
    message.parts[content_index] = part
    const place = { ...at(message), content_index }
    const content = contentPart(part)
    if (part.type === 'refusal') this.#emit('response.refusal.done', { ...place, refusal: part.text })
    else this.#emit('response.output_text.done', { ...place, text: (part as TextPart).text, logprobs: [] })
    this.#emit('response.content_part.done', { ...place, part: content })
  }

  #endMessage(): void {
    if (this.#message) this.#finish(this.#message)
    this.#message = undefined
  }

  #done(index: number, item: OpenItem): void {
    this.#open.delete(index)
    const [part] = item.parts as [Part]
    if (part.type === 'reasoning' && item.indexes.length > 0) {
      const place = { ...at(item), summary_index: 0 }
      const [said] = reasoningMembers(part).summary as [JsonObject]
      this.#emit('response.reasoning_summary_text.done', { ...place, text: said.text ?? '' })
      this.#emit('response.reasoning_summary_part.done', { ...place, part: said })
    } else if (part.type === 'tool_call') this.#saidAll(item, part)
    else if (item.kind === 'ws') this.#emit('response.web_search_call.completed', at(item))
    this.#finish(item)
    if (part.type === 'tool_call' && part.signature !== undefined) this.#finish(this.#add('rs', [part]))
  }

  #saidAll(item: OpenItem, { name, arguments: said }: ToolCallPart): void {
    if (item.kind === 'ctc') this.#emit('response.custom_tool_call_input.done', { ...at(item), input: said })
    else this.#emit('response.function_call_arguments.done', { ...at(item), name, arguments: said })
  }

  #finish(item: OpenItem): void {
    const done = writeItem(item, item.id)
    this.output[item.position] = done
    this.#emit('response.output_item.done', { output_index: item.position, item: done })
  }
}

function at({ id, position }: OpenItem): JsonObject {
  return { item_id: id, output_index: position }
}

/** A part as it stands in the event that announces it: its name, but nothing said yet. */
function emptied(part: Part): Part {
  if (part.type === 'tool_call') return { ...part, arguments: '' }
  return part.type === 'reasoning' ? { type: 'reasoning' } : part
}

function emptyContent(part: Part): JsonObject {
  return part.type === 'refusal' ? { type: 'refusal', refusal: '' } : contentPart({ type: 'text', text: '' })
}

function isWhole({ arguments: text }: ToolCallPart): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
