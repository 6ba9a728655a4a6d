import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { integer, oneOf, optional, refuse } from '../check.ts'

/** What a query may say of a list of items; texts as they stand in the address. */
export type ListQuery = { order?: Json; limit?: Json; after?: Json; before?: Json }

/**
 * A page of the items of a response's input, the newest first unless asked otherwise. ItemWriter that came without an id get
 * one that stays the same. Throws RouterError 400 that names the parameter.
 */
export function inputList(items: readonly Json[], responseId: string, query: ListQuery): JsonObject {
  const order = optional(query.order, 'order', oneOf(['asc', 'desc'] as const)) ?? 'desc'
  const limit = optional(numeric(query.limit), 'limit', integer(1, 100)) ?? 20
  const all = items.map((item, index) => listed(item, responseId, index))
  if (order === 'desc') all.reverse()
  const from = query.after === undefined ? 0 : placeOf(all, query.after, 'after') + 1
  const to = query.before === undefined ? all.length : placeOf(all, query.before, 'before')
  const found = all.slice(from, Math.max(to, from))
  // A page before an item ends right before it.
  const backwards = query.before !== undefined && query.after === undefined
  const data = backwards ? found.slice(-limit) : found.slice(0, limit)
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: found.length > data.length,
  }
}

function numeric(text: Json | undefined): Json | undefined {
  return typeof text === 'string' && /^\d+$/.test(text) ? Number(text) : text
}

function placeOf(items: readonly JsonObject[], id: Json, name: string): number {
  const place = items.findIndex((item) => item.id === id)
  if (place < 0) refuse(name, 'the id of an item of this list', id)
  return place
}

/** An item in the full form of this API, whatever shorthand the client wrote. */
function listed(given: Json, responseId: string, index: number): JsonObject {
  const item = isObject(given) ? given : {}
  const type = typeof item.type === 'string' ? item.type : 'message'
  const id = typeof item.id === 'string' ? item.id : inputItemId(responseId, type, index)
  if (type !== 'message') return { ...item, id, type }
  const content = typeof item.content === 'string' ? [textPart(item.role, item.content)] : item.content
  return { ...item, id, type, status: item.status ?? 'completed', content }
}

function textPart(role: Json | undefined, text: string): JsonObject {
  return role === 'assistant' ? { type: 'output_text', text, annotations: [] } : { type: 'input_text', text }
}

/** Inputs are numbered from the other end than outputs, so that no id stands for both. */
function inputItemId(responseId: string, type: string, index: number): string {
  const number = (0xffff - index).toString(16).padStart(4, '0')
  return `${prefixes[type] ?? 'item'}_${responseId.replace(/^resp_/, '')}${number}`
}

const prefixes: { readonly [type: string]: string } = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  web_search_call: 'ws',
}
