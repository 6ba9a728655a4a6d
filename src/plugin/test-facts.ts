import type { CallRecord } from '../core/call.ts'
import type { Reply } from '../core/reply.ts'
import { eventsOf } from '../core/reply-events.ts'
import type { PluginCall, PluginReply, PluginRequest, PluginTarget, StreamedEvent } from './contract.ts'
import { freezeData } from './freeze-data.ts'
import type { TestCall, TestedCall } from './test-call.ts'

export function requestOf({ text = 'Hello' }: TestCall): PluginRequest {
  const messages = [{ role: 'user' as const, parts: [{ type: 'text' as const, text }] }]
  return { operation: 'chat', chat: { model: 'acme/model', messages } }
}

export function replyOf({ operation }: PluginRequest, answer: TestCall['answer'] = 'Hello.'): PluginReply {
  if (operation !== 'chat') {
    if (typeof answer === 'object' && 'json' in answer && answer.json) return { operation, json: answer.json }
    throw new Error(`a call for '${operation}' needs \`answer: { json }\``)
  }
  const said =
    typeof answer === 'string' ? { parts: [{ type: 'text' as const, text: answer }] } : (answer as Partial<Reply>)
  const usage = { input: 1, output: 1 }
  return { operation, chat: { id: 'tested', created: 0, model: 'model', parts: [], finish: 'stop', usage, ...said } }
}

/** The call of a request; all but its state is frozen. */
export function callOf(request: PluginRequest, facts: TestCall['facts']): PluginCall {
  const call: PluginCall = {
    id: 'call-1',
    organization: 'organization-1',
    key: 'key-1',
    api: 'chat',
    operation: request.operation,
    requested: 'chat' in request ? request.chat.model : request.model,
    stream: false,
    headers: {},
    body: {},
    signal: new AbortController().signal,
    ...facts,
    state: {},
  }
  for (const [name, value] of Object.entries(call)) if (name !== 'state' && name !== 'signal') freezeData(value)
  return Object.freeze(call)
}

export const usualTargets: readonly PluginTarget[] = [
  { id: 'acme/model', provider: 'acme', model: 'model', input_price: 0, output_price: 0, context_window: 128_000 },
]

export function recordOf(
  call: PluginCall,
  { refusal, targets }: TestedCall,
  given: Partial<CallRecord> = {},
): CallRecord {
  const { id, organization, key, requested, stream, operation } = call
  const [target = { provider: 'plugin', model: 'tested' }] = targets
  return {
    id,
    at: 0,
    organization,
    key,
    api: 'chat',
    operation: operation === 'count' ? 'chat' : operation,
    requested,
    provider: target.provider,
    model: target.model,
    stream,
    outcome: refusal ? 'failed' : 'complete',
    status: refusal?.status ?? 200,
    usage: { input: 1, output: 1 },
    cost: { nanoUsd: 0, parts: {}, priceVersion: 'tested' },
    dropped: [],
    attempts: 1,
    durationMs: 1,
    ...given,
  }
}

export function textOf(reply: PluginReply): string {
  if (!('chat' in reply)) return ''
  return reply.chat.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** The events of a reply, its texts in pieces of these lengths. */
export function cut(reply: PluginReply, lengths: readonly number[]): StreamedEvent[] {
  if (!('chat' in reply)) return [reply]
  return eventsOf(reply.chat).flatMap((event) => {
    if (event.text === undefined) return [event]
    const { text, ...others } = event
    return piecesOf(text, lengths).map((piece) => ({ ...others, text: piece }))
  })
}

function piecesOf(text: string, lengths: readonly number[]): string[] {
  const pieces: string[] = []
  for (let at = 0, index = 0; at < text.length; index++) {
    const length = Math.max(1, lengths[Math.min(index, lengths.length - 1)] ?? text.length)
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return pieces
}
