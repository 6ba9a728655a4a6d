import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { integer, oneOf, optional, refuse } from '../check.ts'

/** The query parameters of a list of items, as texts from the URL. */
export type ListQuery = { order?: Json; limit?: Json; after?: Json; before?: Json }

/**
 * A page of the items of a response's input, the newest first by default. Items that came without an id get a stable one. Throws RouterError 400 that names the parameter.
 */
export function inputList(items: readonly Json[], responseId: string, query: ListQuery): JsonObject {
  const order = optional(query.order, 'order', oneOf(['asc', 'desc'])) ?? 'desc'
  const limit = optional(numeric(query.limit), 'limit', integer(1, 100)) ?? 20
  const all = items.map((item, index) => listed(item, responseId, index))
  if (order === 'desc') all.reverse()
  const from = query.after === undefined ? 0 : positionOf(all, query.after, 'after') + 1
  const to = query.before === undefined ? all.length : positionOf(all, query.before, 'before')
  const found = all.slice(from, Math.max(to, from))
  // A page before an item ends directly before it.
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

function positionOf(items: readonly JsonObject[], id: Json, name: string): number {
  const position = items.findIndex((item) => item.id === id)
  if (position < 0) refuse(name, 'the id of an item of this list', id)
  return position
}

/** An item in its full form, regardless of the shorthand that the client used. */
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

/** Inputs are numbered downwards and outputs upwards, so that their ids never coincide. */
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
