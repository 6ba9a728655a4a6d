import { expect } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import type { Citation } from '../../src/core/parts.ts'
import type { Recording } from '../helpers/recordings.ts'
import type { Frame } from './replay.ts'

// The independent reader of Converse and ConverseStream: the contents of a recording, read without the mappings.

/** The contents of a recorded reply. */
export type Facts = {
  texts: string[]
  reasoning: { text: string; seal: string | undefined }[]
  calls: { name: string; arguments: unknown; id: string }[]
  citations: { text: string; citation: Citation }[]
  searches: string[]
  finish: string
  raw: string
  usage: { [name: string]: number }
}

// biome-ignore lint/suspicious/noExplicitAny: recorded bodies have the shape of their sender.
type Block = any

/** The decoded frames of a recorded stream; undefined when the answer came whole. */
export function framesOf(recording: Recording): Frame[] | undefined {
  const { events } = recording.response as { events?: { headers: { [name: string]: string }; payload: JsonObject }[] }
  return events?.map(({ headers, payload }) => {
    const event = headers[':event-type'] ?? headers[':exception-type']
    return { ...(event && { event }), data: payload }
  })
}

/** The whole answer that the frames of a stream add up to. */
export function joined(frames: readonly Frame[]): Block {
  const blocks = new Map<number, Block>()
  const answer: Block = { output: { message: { role: 'assistant' } } }
  for (const { event, data } of frames as { event: string; data: Block }[]) {
    const { contentBlockIndex: index, start, delta, p, ...facts } = data
    if (event === 'messageStop' || event === 'metadata') Object.assign(answer, facts)
    if (event === 'contentBlockStart') blocks.set(index, structuredClone(start))
    if (event === 'contentBlockDelta') blocks.set(index, grown(blocks.get(index) ?? {}, delta))
  }
  answer.output.message.content = [...blocks.entries()].sort(([a], [b]) => a - b).map(([, block]) => finished(block))
  return answer
}

function grown(block: Block, { text, toolUse, toolResult, reasoningContent: thought, citation }: Block): Block {
  if (text !== undefined) block.text = (block.text ?? '') + text
  if (toolUse) block.toolUse.input = (block.toolUse.input ?? '') + toolUse.input
  if (toolResult) block.toolResult.content = [...(block.toolResult.content ?? []), ...toolResult]
  if (citation) block.citations = [...(block.citations ?? []), citation]
  if (thought?.redactedContent) block.reasoningContent = thought
  else if (thought) {
    const { text: earlier = '', ...rest } = block.reasoningContent?.reasoningText ?? {}
    const { text: more = '', ...signed } = thought
    block.reasoningContent = { reasoningText: { ...rest, ...signed, text: earlier + more } }
  }
  return block
}

function finished({ citations, text, ...block }: Block): Block {
  if (block.toolUse) return { toolUse: { ...block.toolUse, input: JSON.parse(block.toolUse.input || '{}') } }
  if (citations) return { citationsContent: { citations, ...(text && { content: [{ text }] }) } }
  return text === undefined ? block : { text }
}

/** A whole reply as a stream: texts in two pieces, usage last. */
export function framesFrom({
  output,
  stopReason,
  usage,
  serviceTier,
  trace,
  additionalModelResponseFields: more,
}: Block): Frame[] {
  const content: Block[] = output.message.content
  const frame = (event: string, data: object): Frame => ({ event, data: { ...data, p: 'abc' } as JsonObject })
  const deltas = (index: number, ...list: object[]) =>
    list.map((delta) => frame('contentBlockDelta', { contentBlockIndex: index, delta }))
  const blocks = content.flatMap(
    ({ text, toolUse, toolResult, reasoningContent: thought, citationsContent }, index) => {
      const begins = (start: object) => frame('contentBlockStart', { contentBlockIndex: index, start })
      if (text !== undefined) return deltas(index, { text: text.slice(0, 3) }, { text: text.slice(3) })
      if (thought?.redactedContent) return deltas(index, { reasoningContent: thought })
      if (thought) {
        const { text: contents, signature } = thought.reasoningText
        const signed = signature ? deltas(index, { reasoningContent: { signature } }) : []
        return [...deltas(index, { reasoningContent: { text: contents } }), ...signed]
      }
      if (toolUse) {
        const { input, ...start } = toolUse
        const json = Object.keys(input).length > 0 ? JSON.stringify(input) : ''
        return [
          begins({ toolUse: start }),
          ...deltas(index, { toolUse: { input: json.slice(0, 4) } }, { toolUse: { input: json.slice(4) } }),
        ]
      }
      if (toolResult) {
        const { content: reported, ...start } = toolResult
        return [begins({ toolResult: start }), ...deltas(index, { toolResult: reported })]
      }
      const { content: contents = [], citations } = citationsContent
      return deltas(index, ...citations.map((citation: object) => ({ citation })), ...contents)
    },
  )
  return [
    frame('messageStart', { role: 'assistant' }),
    ...blocks,
    frame('messageStop', { stopReason, ...(more !== undefined && { additionalModelResponseFields: more }) }),
    frame('metadata', {
      usage,
      metrics: { latencyMs: 1 },
      ...(serviceTier !== undefined && { serviceTier }),
      ...(trace !== undefined && { trace }),
    }),
  ]
}

/** The contents of a whole reply. */
export function readIndependently({ output, stopReason, usage }: Block): Facts {
  const content: Block[] = output.message.content
  const texts: string[] = []
  const citations: Facts['citations'] = []
  for (const { text, citationsContent } of content) {
    const contents = text ?? (citationsContent?.content ?? []).map((one: Block) => one.text).join('')
    if (contents) texts.push(contents)
    for (const { title, sourceContent = [], location = {} } of citationsContent?.citations ?? []) {
      const quoted = sourceContent.map((one: Block) => one.text).join('')
      const [url, name] = [location.web?.url, title ?? location.web?.domain]
      const citation = { ...(url && { url }), ...(name && { title: name }), ...(quoted && { cited_text: quoted }) }
      citations.push({ text: texts.at(-1) ?? '', citation })
    }
  }
  const uses: Block[] = content.flatMap(({ toolUse }) => toolUse ?? [])
  const thoughts: Block[] = content.flatMap(({ reasoningContent }) => reasoningContent ?? [])
  const own = uses.filter(({ type }) => type !== 'server_tool_use')
  return {
    texts,
    reasoning: thoughts.map(({ reasoningText, redactedContent }) => ({
      text: reasoningText?.text ?? '',
      seal: reasoningText?.signature ?? redactedContent,
    })),
    calls: own.map(({ name, input, toolUseId }) => ({ name, arguments: input, id: toolUseId })),
    citations,
    searches: uses.filter((use) => !own.includes(use)).map(({ input }) => input.query),
    finish: finishes[stopReason] ?? 'unknown',
    raw: stopReason,
    usage: countsOf(usage, uses.length - own.length),
  }
}

const finishes: { [reason: string]: string } = {
  end_turn: 'stop',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  guardrail_intervened: 'content_filter',
}

function countsOf(usage: Block, searches: number): Facts['usage'] {
  const counts = {
    input: usage.inputTokens,
    cache_read: usage.cacheReadInputTokens ?? 0,
    cache_write_5m: usage.cacheWriteInputTokens ?? 0,
    output: usage.outputTokens,
  }
  const total = Object.values(counts).reduce((sum, one) => sum + one, 0)
  expect(total, 'classes are disjoint and complete').toBe(usage.totalTokens)
  return nonZero({ ...counts, searches })
}

/** Counts without those that are zero and without how the call was served. */
export function nonZero(usage: object): Facts['usage'] {
  return Object.fromEntries(Object.entries(usage).filter(([name, count]) => name !== 'modes' && count !== 0))
}
