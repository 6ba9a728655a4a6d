import type { JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import type { Message, NeutralRequest, TargetFacts } from '../../src/core/request.ts'
import { benchDialect, traitsOf } from './replay.ts'

// Requests for Responses, as the tests of its dialect write them.

/** The dialect under test. */
export const bench = benchDialect('openai-responses')

/** One model of each family, with the facts that its manifest declares. */
export function modelFacts(model: string): Partial<TargetFacts> {
  return { signer: 'openai', traits: traitsOf('openai-responses', model) }
}

function requestWith(more: Partial<NeutralRequest> = {}): NeutralRequest {
  const messages: Message[] = [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }]
  return { model: 'm', messages, origin: { api: 'chat', body: {} }, ...more }
}

/** The body that a request becomes. */
export const sent = (more: Partial<NeutralRequest>, model = 'gpt-5.4') =>
  bench.body(requestWith(more), modelFacts(model))

/** Fields that are reported as lost for this request, in the names of the neutral form. */
export const lost = (more: Partial<NeutralRequest>, model = 'gpt-5.4') => lostOf(requestWith(more), model)

/** As `lost`, of a whole request. */
export async function lostOf(request: NeutralRequest, model: string): Promise<string[]> {
  return (await bench.written(request, modelFacts(model))).dropped
}

/** The input for a conversation. */
export async function input(messages: Message[], model?: string): Promise<JsonObject[]> {
  return (await sent({ messages }, model)).input as JsonObject[]
}

/** Short constructors of turns and parts. */
export const user = (...parts: Part[]): Message => ({ role: 'user', parts })
export const assistant = (...parts: Part[]): Message => ({ role: 'assistant', parts })
export const textPart = (text: string): Part => ({ type: 'text', text })
export const signedReasoning = (id: string, by = 'openai'): Part => ({
  type: 'reasoning',
  id,
  summary: 'S',
  encrypted: `${id} enc`,
  by,
})
export const called = (id: string, more: object = {}): Part => ({
  type: 'tool_call',
  id,
  name: 'f',
  arguments: '{}',
  ...more,
})
export const answered = (id: string, ...parts: Part[]): Part => ({ type: 'tool_result', id, parts })
