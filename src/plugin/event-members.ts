import { isFinish } from '../core/reply.ts'
import type { PluginCall, StreamedEvent } from './contract.ts'
import { type Members, requireMembers, WrongResult } from './members.ts'
import { mediaMembers, requirePart } from './part-members.ts'

/** What an `event` hook returned for an event of a stream of this operation. Throws `WrongResult`. */
export function eventResult(
  result: unknown,
  event: StreamedEvent,
  operation: PluginCall['operation'],
): readonly StreamedEvent[] {
  if (!Array.isArray(result)) {
    // Nobody waits for it.
    if (result instanceof Promise) result.catch(() => {})
    throw new WrongResult('an `event` hook returns a list of events at once')
  }
  for (const one of result) if (one !== event) requireEvent(one, operation)
  return result
}

function requireEvent(event: unknown, operation: PluginCall['operation']): void {
  if (operation === 'chat') {
    requireChatEvent(event)
    return
  }
  const isEnd = (event as { done?: unknown } | null)?.done === true
  const given = requireMembers<{ operation?: string }>(event, 'the event', isEnd ? { done: 'flag!' } : jsonEventMembers)
  if (!isEnd && given.operation !== operation) throw new WrongResult(`the event is of '${given.operation}'`)
}

const jsonEventMembers: Members = { operation: 'text!', json: 'object!' }

function requireChatEvent(given: unknown): void {
  const event = requireMembers<{ [name: string]: unknown }>(given, 'the event', eventMembers)
  for (const name in event) {
    const members = nestedMembers[name]
    if (members && event[name] !== undefined) requireMembers(event[name], `the event's ${name}`, members)
  }
  const { whole, finish, at } = event
  if (whole !== undefined) requirePart(whole, "the event's whole")
  if (finish !== undefined && !isFinish(finish as string)) throw new WrongResult(`the event's finish is '${finish}'`)
  const isKey = at === undefined || typeof at === 'string' || typeof at === 'number'
  if (!isKey) throw new WrongResult("the event's at is neither a text nor a number")
}

const eventMembers: Members = {
  id: 'text',
  model: 'text',
  created: 'number',
  at: 'any',
  text: 'text',
  signature: 'text',
  refusal: 'text',
  reasoning: 'object',
  tool: 'object',
  citation: 'object',
  search: 'object',
  media: 'object',
  opaque: 'object',
  whole: 'object',
  logprobs: 'any',
  finish: 'text',
  raw: 'text',
  done: 'flag',
  stop_sequence: 'text',
  usage: 'object',
  extensions: 'object',
}

const nestedMembers: { readonly [name: string]: Members } = {
  reasoning: { text: 'text', summary: 'text', signature: 'text', encrypted: 'text', id: 'text' },
  tool: { id: 'text', name: 'text', arguments: 'any', kind: 'text', signature: 'text', cache: 'object' },
  citation: { url: 'text', title: 'text', cited_text: 'text', start: 'number', end: 'number' },
  search: { id: 'text', query: 'text', status: 'text', results: 'any' },
  media: mediaMembers,
  opaque: { body: 'any' },
}
