import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { instanceBudget, instanceOf } from './instance.ts'
import type { SimulatedMessage, SimulatedRequest, SimulatedTool } from './request.ts'
import { maxConversationLength, requireLength, tokensOf } from './words.ts'

/** A reply of the simulator: text or calls, token by token, and its usage. */
export type SimulatedReply = {
  id: string
  reasoning: string[]
  refusal: string[]
  text: string[]
  calls: { id: string; kind: SimulatedTool['kind']; name: string; arguments: string }[]
  finish: 'stop' | 'length' | 'tool_calls'
  usage: { prompt: number; completion: number; reasoning: number }
  fault?: Fault
}

/**
 * Replies to a request. In this order: the model `trouble` fails as the text requests; offered tools are called unless the last
 * message is a tool's result; a requested JSON format is filled in; otherwise the last message is echoed. Throws SimulatedError.
 */
export function replyTo(request: SimulatedRequest): SimulatedReply {
  requireLength(lengthOf(request), maxConversationLength)
  const last = request.messages.at(-1) as SimulatedMessage
  const fault = request.model === 'trouble' ? faultIn(last.text) : undefined
  const id = digest(JSON.stringify(request))
  const room = instanceBudget()
  const calls = callsFor(request, last).map((tool, index) => ({
    id: `call_${digest(`${id} ${index}`)}`,
    kind: tool.kind,
    name: tool.name,
    arguments: tool.kind === 'custom' ? last.text : JSON.stringify(instanceOf(tool.parameters, room)),
  }))
  const reasoning = request.reasons ? tokensOf(reasoningFor(request, last)) : []
  const refusal = fault === 'refuse' ? tokensOf('I am sorry, but I must decline, as asked for.') : []
  const full = calls.length > 0 || refusal.length > 0 ? '' : textFor(request, last)
  const { text, finish } = limited(full, request, reasoning.length)
  return {
    id: `chatcmpl-${id}`,
    reasoning,
    refusal,
    text,
    calls,
    finish: calls.length > 0 ? 'tool_calls' : finish,
    usage: {
      prompt: promptTokens(request),
      completion:
        reasoning.length + refusal.length + text.length + calls.reduce((sum, call) => sum + callTokens(call), 0),
      reasoning: reasoning.length,
    },
    ...(fault && fault !== 'refuse' && { fault }),
  }
}

function lengthOf({ messages, tools, format, stop }: SimulatedRequest): number {
  return messages.reduce((sum, { text }) => sum + text.length, JSON.stringify([tools, format, stop]).length)
}

/** The tools that the text names, all of them when it asks for all, else the first; only one where calls are not parallel. */
function callsFor({ messages, tools, calls, parallel }: SimulatedRequest, last: SimulatedMessage): SimulatedTool[] {
  const answered = resultsIn(messages).length > 0
  if (calls === 'none' || tools.length === 0 || (answered && calls === 'auto')) return []
  const named = tools.filter(({ name }) => last.text.includes(name))
  const chosen = /\b(all|both|each|every|parallel)\b/i.test(last.text)
    ? tools
    : named.length > 0
      ? named
      : tools.slice(0, 1)
  return parallel ? chosen : chosen.slice(0, 1)
}

function textFor({ format, messages }: SimulatedRequest, last: SimulatedMessage): string {
  if (format.type === 'schema') return JSON.stringify(instanceOf(format.schema))
  if (format.type === 'json') return JSON.stringify({ echo: last.text })
  const [, most] = /\bcount to (\d{1,4})\b/i.exec(last.text) ?? []
  if (most !== undefined) return Array.from({ length: Number(most) }, (_, index) => index + 1).join(' ')
  const results = resultsIn(messages)
  const seen = last.attachments.length > 0 ? ` I see ${last.attachments.join(' and ')}.` : ''
  if (results.length > 0) return `The tool${results.length > 1 ? 's' : ''} said: ${results.join('; ')}${seen}`
  return `You said: ${last.text}${seen}`
}

/** Returns the tool results since the assistant's last message. */
function resultsIn(messages: SimulatedMessage[]): string[] {
  const from = messages.findLastIndex(({ role }) => role === 'assistant')
  const since = messages.slice(from + 1)
  return since.filter(({ role }) => role === 'tool' || role === 'function').map(({ text }) => text)
}

function reasoningFor(request: SimulatedRequest, last: SimulatedMessage): string {
  const count = tokensOf(last.text).length
  const next = callsFor(request, last).length > 0 ? 'I should use a tool.' : 'I should answer.'
  return `The last message has ${count} tokens. ${next}`
}

/** The text up to the first stop sequence, within the token limit. */
function limited(
  full: string,
  { stop, limit }: SimulatedRequest,
  spent: number,
): Pick<SimulatedReply, 'text' | 'finish'> {
  const ends = stop.map((sequence) => full.indexOf(sequence)).filter((index) => index >= 0)
  const text = tokensOf(full.slice(0, Math.min(...ends, full.length)))
  const left = Math.max(0, limit - spent)
  return text.length > left ? { text: text.slice(0, left), finish: 'length' } : { text, finish: 'stop' }
}

/** Tokens of a message beside its text, and of an image or a file. */
const perMessage = 3
const perAttachment = 85

function promptTokens({ messages, tools }: SimulatedRequest): number {
  const sent = messages.map(
    ({ text, attachments }) => perMessage + tokensOf(text).length + perAttachment * attachments.length,
  )
  const offered = tools.map(({ name, parameters }) => tokensOf(name + JSON.stringify(parameters ?? {})).length)
  return [...sent, ...offered].reduce((sum, count) => sum + count, 0)
}

function callTokens({ name, arguments: args }: SimulatedReply['calls'][number]): number {
  return tokensOf(name).length + tokensOf(args).length
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 24)
}

/** A way to fail: with an HTTP status, or in the middle of the reply. */
export type Fault = { status: number } | 'stall' | 'cut' | 'garble' | 'unfinished'

/** The fault that a text asks for: `fail 503`, `stall`, `cut`, `garble`, `unfinished` or `refuse`. */
function faultIn(text: string): Fault | 'refuse' | undefined {
  const [, status] = /\bfail ([45]\d\d)\b/.exec(text) ?? []
  if (status !== undefined) return { status: Number(status) }
  return kinds.find((kind) => new RegExp(`\\b${kind}\\b`).test(text))
}

const kinds = ['stall', 'cut', 'garble', 'unfinished', 'refuse'] as const

/** Fails after what was sent so far: stalls, breaks the connection, sends garbage, or ends without a finish reason. */
export async function failWith(response: ServerResponse, fault: Fault): Promise<void> {
  if (fault === 'stall') {
    response.flushHeaders()
    await new Promise((resolve) => response.once('close', resolve))
  } else if (fault === 'cut') {
    // Earlier chunks must be sent before the connection breaks.
    await new Promise<void>((resolve) => response.write(': cut\n\n', () => resolve()))
    response.destroy()
  } else {
    response.end(fault === 'garble' ? 'data: {"choices":[{"delta":{"content": oops\n\n' : '')
  }
}
