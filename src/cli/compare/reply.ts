import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Exchange } from './exchange.ts'

/** Returns an answer in one form: the JSON of a whole one, or what the events of a stream add up to. */
export function replyOf({ json, events }: Pick<Exchange, 'json' | 'events'>): Json | undefined {
  if (!events) return json
  const objects = events.filter(isObject)
  return objects.some(({ choices }) => Array.isArray(choices)) ? chatOf(objects) : otherOf(objects)
}

/** Adds the chunks of Chat Completions up. */
function chatOf(chunks: readonly JsonObject[]): JsonObject {
  const choices = new Map<number, JsonObject>()
  const whole: JsonObject = {}
  for (const { choices: parts, ...members } of chunks) {
    Object.assign(whole, members)
    for (const part of Array.isArray(parts) ? parts : []) {
      if (!isObject(part)) continue
      const index = Number(part.index ?? 0)
      const known: JsonObject = choices.get(index) ?? { index, message: {} }
      const { delta, ...rest } = part
      for (const [name, value] of Object.entries(rest)) if (value !== null) known[name] = value
      addDelta(known.message as JsonObject, isObject(delta) ? delta : {})
      choices.set(index, known)
    }
  }
  return { ...whole, choices: [...choices.values()] }
}

function addDelta(message: JsonObject, delta: JsonObject): void {
  for (const [name, value] of Object.entries(delta)) {
    const known = message[name]
    if (name === 'tool_calls' && Array.isArray(value)) message.tool_calls = addCalls(known, value)
    else if (typeof value === 'string' && typeof known === 'string' && name !== 'role') message[name] = known + value
    else if (value !== null) message[name] = value
  }
}

function addCalls(known: Json | undefined, parts: readonly Json[]): Json[] {
  const calls = (Array.isArray(known) ? known : []) as JsonObject[]
  for (const part of parts) {
    if (!isObject(part)) continue
    const { index = calls.length, function: given, ...rest } = part
    const call: JsonObject = calls[Number(index)] ?? {}
    const before = isObject(call.function) ? call.function : {}
    const pieces = isObject(given) ? given : {}
    const text = `${before.arguments ?? ''}${pieces.arguments ?? ''}`
    const named = Object.entries({ ...rest, ...call }).filter(([, value]) => value !== null)
    calls[Number(index)] = { ...Object.fromEntries(named), function: { ...pieces, ...before, arguments: text } }
  }
  return calls
}

/** Adds the events of another API up: their types in order, their texts, and what the first and the last ones state. */
function otherOf(events: readonly JsonObject[]): JsonObject {
  const types: string[] = []
  let text = ''
  const whole: JsonObject = {}
  for (const event of events) {
    const type = String(event.type ?? '')
    if (types.at(-1) !== type && type !== 'ping') types.push(type)
    const { delta, message, response, usage } = event
    if (typeof delta === 'string') text += delta
    else if (isObject(delta)) {
      text += [delta.text, delta.partial_json, delta.thinking].filter((one) => typeof one === 'string').join('')
      for (const name of ['stop_reason', 'stop_sequence']) if (delta[name] !== undefined) whole[name] = delta[name]
    }
    if (isObject(message)) Object.assign(whole, message)
    if (isObject(response)) Object.assign(whole, response)
    if (isObject(usage)) whole.usage = { ...(isObject(whole.usage) ? whole.usage : {}), ...usage }
  }
  return { ...whole, event_types: types, ...(text !== '' && { text }) }
}

/** A value in an answer, by its path: `choices[0].message.content`. */
export type Leaves = ReadonlyMap<string, string | number | boolean | null>

/** Returns the values of an answer that are neither objects nor lists. */
export function leavesOf(value: Json | undefined): Leaves {
  const found = new Map<string, string | number | boolean | null>()
  const add = (one: Json | undefined, path: string): void => {
    if (Array.isArray(one)) for (const [index, item] of one.entries()) add(item, `${path}[${index}]`)
    else if (isObject(one))
      for (const [name, member] of Object.entries(one)) add(member, path === '' ? name : `${path}.${name}`)
    else if (one !== undefined) found.set(path, one)
  }
  add(value, '')
  return found
}
