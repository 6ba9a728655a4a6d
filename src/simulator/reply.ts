import { createHash } from 'node:crypto'
import { type Trouble, troubleIn } from './faults.ts'
import { instanceOf } from './instance.ts'
import type { SimulatedMessage, SimulatedRequest, SimulatedTool } from './request.ts'
import { tokensOf } from './tokens.ts'

/** What the simulator says: either text or calls, token by token, and at what count. */
export type Answer = {
  id: string
  reasoning: string[]
  refusal: string[]
  text: string[]
  calls: { id: string; kind: SimulatedTool['kind']; name: string; arguments: string }[]
  finish: 'stop' | 'length' | 'tool_calls'
  usage: { prompt: number; completion: number; reasoning: number }
  trouble?: Trouble
}

/**
 * Decides what to say. In this order: `trouble` fails as it is told; offered tools are called unless the last message
 * is a tool's result; a wanted JSON form is filled in; otherwise the last message is repeated, with what it showed.
 */
export function answer(request: SimulatedRequest): Answer {
  const last = request.messages.at(-1) as SimulatedMessage
  const trouble = request.model === 'trouble' ? troubleIn(last.text) : undefined
  const id = digest(JSON.stringify(request))
  const calls = callsFor(request, last).map((tool, index) => ({
    id: `call_${digest(`${id} ${index}`)}`,
    kind: tool.kind,
    name: tool.name,
    arguments: tool.kind === 'custom' ? last.text : JSON.stringify(instanceOf(tool.parameters)),
  }))
  const reasoning = request.reasons ? tokensOf(thoughtOn(request, last)) : []
  const refusal = trouble === 'refuse' ? tokensOf('I am sorry, but I must decline, as asked for.') : []
  const said = calls.length > 0 || refusal.length > 0 ? '' : textFor(request, last)
  const { text, finish } = bounded(said, request, reasoning.length)
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
    ...(trouble && trouble !== 'refuse' && { trouble }),
  }
}

/** Tools that the text names, all of them when it asks for all, else the first; one only where calls are not parallel. */
function callsFor({ messages, tools, calls, parallel }: SimulatedRequest, last: SimulatedMessage): SimulatedTool[] {
  const answered = resultsIn(messages).length > 0
  if (calls === 'none' || tools.length === 0 || (answered && calls === 'auto')) return []
  const named = tools.filter(({ name }) => last.text.includes(name))
  const wanted = /\b(all|both|each|every|parallel)\b/i.test(last.text)
    ? tools
    : named.length > 0
      ? named
      : tools.slice(0, 1)
  return parallel ? wanted : wanted.slice(0, 1)
}

function textFor({ format, messages }: SimulatedRequest, last: SimulatedMessage): string {
  if (format.type === 'schema') return JSON.stringify(instanceOf(format.schema))
  if (format.type === 'json') return JSON.stringify({ echo: last.text })
  const [, most] = /\bcount to (\d{1,4})\b/i.exec(last.text) ?? []
  if (most !== undefined) return Array.from({ length: Number(most) }, (_, index) => index + 1).join(' ')
  const results = resultsIn(messages)
  const seen = last.shown.length > 0 ? ` I see ${last.shown.join(' and ')}.` : ''
  if (results.length > 0) return `The tool${results.length > 1 ? 's' : ''} said: ${results.join('; ')}${seen}`
  return `You said: ${last.text}${seen}`
}

/** What tools have answered since the last turn of the assistant. */
function resultsIn(messages: SimulatedMessage[]): string[] {
  const from = messages.findLastIndex(({ role }) => role === 'assistant')
  const since = messages.slice(from + 1)
  return since.filter(({ role }) => role === 'tool' || role === 'function').map(({ text }) => text)
}

function thoughtOn(request: SimulatedRequest, last: SimulatedMessage): string {
  const count = tokensOf(last.text).length
  const next = callsFor(request, last).length > 0 ? 'I should use a tool.' : 'I should answer.'
  return `The last message has ${count} tokens. ${next}`
}

/** The text up to the first stop sequence, and no more tokens than allowed. */
function bounded(said: string, { stop, limit }: SimulatedRequest, spent: number): Pick<Answer, 'text' | 'finish'> {
  const ends = stop.map((sequence) => said.indexOf(sequence)).filter((index) => index >= 0)
  const text = tokensOf(said.slice(0, Math.min(...ends, said.length)))
  const left = Math.max(0, limit - spent)
  return text.length > left ? { text: text.slice(0, left), finish: 'length' } : { text, finish: 'stop' }
}

/** What a message costs beside its words, and what an image or a file counts. Tokens. */
const perMessage = 3
const perShown = 85

function promptTokens({ messages, tools }: SimulatedRequest): number {
  const said = messages.map(({ text, shown }) => perMessage + tokensOf(text).length + perShown * shown.length)
  const offered = tools.map(({ name, parameters }) => tokensOf(name + JSON.stringify(parameters ?? {})).length)
  return [...said, ...offered].reduce((sum, count) => sum + count, 0)
}

function callTokens({ name, arguments: args }: Answer['calls'][number]): number {
  return tokensOf(name).length + tokensOf(args).length
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 24)
}
