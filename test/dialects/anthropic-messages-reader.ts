import type { Reply } from '../../src/core/reply.ts'
import { type Recording, recordedEvents } from '../helpers/recordings.ts'
import type { Frame } from './replay.ts'

// The independent reader of Messages: the contents of a recording, read without the mappings.

// biome-ignore lint/suspicious/noExplicitAny: the reader walks over recorded JSON of whatever shape.
type Loose = any

/** The same facts read straight from the provider's message, without any mapping. */
export function readMessage(message: Loose) {
  const blocks: Loose[] = message.content
  const of = (...types: string[]) => blocks.filter(({ type }) => types.includes(type))
  const finishes: Record<string, Reply['finish']> = {
    end_turn: 'stop',
    stop_sequence: 'stop',
    tool_use: 'tool_calls',
    max_tokens: 'length',
    refusal: 'refusal',
    pause_turn: 'pause',
  }
  const results = new Map(of('web_search_tool_result').map((block) => [block.tool_use_id, block.content]))
  const searching = (block: Loose) => block.type === 'server_tool_use' && block.name === 'web_search'
  return {
    id: message.id,
    model: message.model,
    finish: finishes[message.stop_reason] as Reply['finish'],
    raw: message.stop_reason,
    stop: message.stop_sequence ?? undefined,
    text: of('text')
      .filter(({ text }) => text !== '')
      .map(({ text, citations }) => ({ text, citations: (citations ?? []).map(readCitation) })),
    calls: of('tool_use').map(({ id, name, input }) => ({ id, name, input })),
    reasoning: of('thinking', 'redacted_thinking').map((block) => ({
      text: block.thinking || undefined,
      signature: block.signature,
      encrypted: block.data,
    })),
    searches: blocks.filter(searching).map(({ id, input }) => ({
      id,
      query: input.query,
      status: results.has(id) ? 'completed' : undefined,
      results: results.get(id),
    })),
    opaque: blocks.filter(
      (block) =>
        !searching(block) &&
        !['text', 'tool_use', 'thinking', 'redacted_thinking', 'web_search_tool_result'].includes(block.type),
    ),
    refusal: message.stop_details?.explanation ? [message.stop_details.explanation] : [],
    usage: readUsage(message.usage),
  }
}

function readCitation(citation: Loose) {
  const { url = citation.source, title, document_title, cited_text } = citation
  return { ...(url && { url }), ...((title ?? document_title) && { title: title ?? document_title }), cited_text }
}

function readUsage(usage: Loose) {
  const beside = (usage.iterations ?? []).filter(({ type }: Loose) => type === 'compaction')
  const all = (name: string) => beside.reduce((sum: number, pass: Loose) => sum + pass[name], usage[name] ?? 0)
  const thinking = usage.output_tokens_details?.thinking_tokens ?? 0
  const written1h = usage.cache_creation?.ephemeral_1h_input_tokens ?? 0
  const counts = {
    input: all('input_tokens'),
    cache_read: all('cache_read_input_tokens'),
    cache_write_5m: all('cache_creation_input_tokens') - written1h,
    cache_write_1h: written1h,
    output: all('output_tokens') - thinking,
    reasoning: thinking,
    searches: usage.server_tool_use?.web_search_requests ?? 0,
    reported_cost: usage.cost ?? 0,
  }
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0))
}

/** The whole message: as it came, or put together from its stream as the provider documents it. */
export function assembled(recording: Recording): Loose {
  if (recording.response.body) return recording.response.body
  let message: Loose
  const inputs = new Map<number, string>()
  for (const { data } of recordedEvents(recording)) {
    if (data === '[DONE]') continue
    const event = JSON.parse(data)
    if (event.type === 'message_start') message = structuredClone(event.message)
    else if (event.type === 'content_block_start') message.content[event.index] = structuredClone(event.content_block)
    else if (event.type === 'content_block_delta') grow(message.content[event.index], event, inputs)
    else if (event.type === 'message_delta') {
      Object.assign(message, event.delta)
      addUsage(message.usage, event.usage)
    }
  }
  for (const [index, text] of inputs) message.content[index].input = JSON.parse(text || '{}')
  return message
}

/** Later counts replace earlier ones; a sum of cache writes that grew without saying for how long grew at 5 minutes. */
function addUsage(usage: Loose, later: Loose): void {
  for (const [name, count] of Object.entries(later)) if (count !== null) usage[name] = count
  const { cache_creation_input_tokens: sum, cache_creation: written } = usage
  if (written && !later.cache_creation) written.ephemeral_5m_input_tokens = sum - written.ephemeral_1h_input_tokens
}

function grow(block: Loose, { index, delta }: Loose, inputs: Map<number, string>): void {
  if (delta.type === 'text_delta') block.text += delta.text
  else if (delta.type === 'thinking_delta') block.thinking += delta.thinking
  else if (delta.type === 'signature_delta') block.signature = delta.signature
  else if (delta.type === 'citations_delta') block.citations = [...(block.citations ?? []), delta.citation]
  else if (delta.type === 'compaction_delta') block.content = delta.content
  else if (delta.type === 'input_json_delta') inputs.set(index, (inputs.get(index) ?? '') + delta.partial_json)
  else throw new Error(`the test's reader does not know ${delta.type}`)
}

/** A stream as the provider would have sent this message. */
export function framesOf(message: Loose): Frame[] {
  const { usage, stop_reason, stop_sequence, stop_details, ...head } = message
  const { output_tokens, ...counted } = usage
  const frames: Loose[] = [
    { type: 'message_start', message: { ...head, content: [], usage: { ...counted, output_tokens: 1 } } },
  ]
  message.content.forEach((block: Loose, index: number) => {
    frames.push({ type: 'content_block_start', index, content_block: { ...block, ...emptied(block) } })
    for (const delta of deltasOf(block)) frames.push({ type: 'content_block_delta', index, delta })
    frames.push({ type: 'content_block_stop', index })
  })
  const { cache_creation, ...reported } = usage
  frames.push({ type: 'message_delta', delta: { stop_reason, stop_sequence, stop_details }, usage: reported })
  frames.push({ type: 'message_stop' })
  return frames.map((data) => ({ event: data.type, data }))
}

function emptied(block: Loose): Loose {
  if (block.type === 'text') return { text: '', ...(block.citations && { citations: [] }) }
  if (block.type === 'thinking') return { thinking: '', signature: '' }
  if (block.type === 'compaction') return { content: null }
  return block.input ? { input: {} } : {}
}

function deltasOf(block: Loose): Loose[] {
  if (block.type === 'text')
    return [
      ...(block.citations ?? []).map((citation: Loose) => ({ type: 'citations_delta', citation })),
      { type: 'text_delta', text: block.text.slice(0, 3) },
      { type: 'text_delta', text: block.text.slice(3) },
    ]
  if (block.type === 'thinking')
    return [
      { type: 'thinking_delta', thinking: block.thinking },
      { type: 'signature_delta', signature: block.signature },
    ]
  if (block.type === 'compaction') return [{ type: 'compaction_delta', content: block.content }]
  if (!block.input) return []
  const input = JSON.stringify(block.input)
  return ['', ...(input === '{}' ? [] : [input.slice(0, 5), input.slice(5)])].map((partial_json) => ({
    type: 'input_json_delta',
    partial_json,
  }))
}
