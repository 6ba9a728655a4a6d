import { isObject, type Json, type JsonObject } from '../../../core/json.ts'
import { type Check, filledText, list, object, oneOf, optional, refuse, required, text } from '../../check.ts'
import { dataOf, isAddress } from '../../media-address.ts'

/** The input of decisions: a text, or messages, calls and their outputs. */
export const decisionInput: Check<Json> = (value, path) => {
  if (typeof value === 'string') return filledText(value, path)
  if (!Array.isArray(value)) return refuse(path, 'a string, or an array of messages, calls and their outputs', value)
  if (value.length === 0) return refuse(path, 'a list that is not empty', value)
  const calls = new Set<string>()
  for (const [index, item] of value.entries()) checkItem(object(item, `${path}[${index}]`), `${path}[${index}]`, calls)
  return value
}

/** What the instructions of a question may be: a text, or parts. */
export const instructions: Check<Json> = (value, path) => {
  if (typeof value === 'string') return filledText(value, path)
  return filledParts(value, path, ['input_text', 'input_image', 'input_json'])
}

const itemTypes = [
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
] as const

/** An output must follow the call that it answers, which has the same kind. */
function checkItem(item: JsonObject, path: string, calls: Set<string>): void {
  const type = optional(item.type, `${path}.type`, oneOf(itemTypes)) ?? 'message'
  if (type === 'message') {
    checkMessage(item, path)
    return
  }
  const id = required(item.call_id, `${path}.call_id`, 'the id of the call', filledText)
  if (type === 'function_call' || type === 'custom_tool_call') {
    calls.add(`${type} ${id}`)
    required(item.name, `${path}.name`, 'the name of the tool', filledText)
    const name = type === 'function_call' ? 'arguments' : 'input'
    required(item[name], `${path}.${name}`, 'a string', text)
    return
  }
  if (!calls.has(`${type.replace(/_output$/, '')} ${id}`)) refuse(`${path}.call_id`, 'the id of a call before it', id)
  checkContent(item.output, `${path}.output`, ['input_text', 'input_image'])
}

const partsByRole: { readonly [role: string]: readonly string[] } = {
  user: ['input_text', 'input_image', 'input_json'],
  developer: ['input_text'],
  system: ['input_text'],
  assistant: ['output_text', 'refusal'],
}

function checkMessage(item: JsonObject, path: string): void {
  const roles = ['user', 'developer', 'system', 'assistant'] as const
  const role = required(item.role, `${path}.role`, "'user', 'developer', 'system' or 'assistant'", oneOf(roles))
  checkContent(item.content, `${path}.content`, partsByRole[role] ?? [])
}

function checkContent(value: Json | undefined, path: string, types: readonly string[]): void {
  required(value, path, 'a string or an array of parts', (given) =>
    typeof given === 'string' ? given : filledParts(given, path, types),
  )
}

function filledParts(value: Json, path: string, types: readonly string[]): Json[] {
  const parts = list(value, path)
  if (parts.length === 0) refuse(path, 'a list that is not empty', value)
  for (const [index, part] of parts.entries()) checkPart(part, `${path}[${index}]`, types)
  return parts
}

function checkPart(part: Json, path: string, types: readonly string[]): void {
  const { type: given, ...members } = object(part, path)
  const type = required(given, `${path}.type`, `one of ${types.join(', ')}`, oneOf(types))
  const [name = 'text', check] = memberOf[type] ?? []
  required(members[name], `${path}.${name}`, 'what the part is', check ?? text)
}

/** The member that a part consists of. */
const memberOf: { readonly [type: string]: readonly [name: string, check: Check<unknown>] } = {
  input_text: ['text', text],
  output_text: ['text', text],
  refusal: ['refusal', text],
  input_json: ['data', jsonData],
  input_image: ['image_url', imageAddress],
}

function jsonData(value: Json, path: string): Json {
  const fits = isObject(value) || (Array.isArray(value) && value.every(isObject))
  return fits ? value : refuse(path, 'an object or an array of objects', value)
}

function imageAddress(value: Json, path: string): Json {
  const url = filledText(value, path)
  if (url.slice(0, 5).toLowerCase() === 'data:') dataOf(url, path)
  else if (!isAddress(url)) refuse(path, 'a data URL or an http(s) URL', value)
  return url
}
