import { type Fields, fieldsOf, objectsOf, textOf } from '../fields.ts'

/** A documented limit of a provider. */
export type Rule = {
  /** Name of the rule, in a few words. */
  name: string
  /** Returns the provider's message for a request that breaks the rule; nothing where the request keeps it. */
  refusal(body: Fields): string | undefined
}

/** The first of the values that are no undefined. */
export function first<T>(values: Iterable<T | undefined>): T | undefined {
  for (const value of values) if (value !== undefined) return value
  return undefined
}

/** Checks each object of a list and returns the first refusal. */
export function firstOf<T>(
  list: readonly T[],
  check: (value: T, index: number) => string | undefined,
): string | undefined {
  return first(list.map(check))
}

/** The first member that is not known. */
export function unknownMember(value: Fields, known: readonly string[]): string | undefined {
  return Object.keys(value).find((name) => !known.includes(name))
}

/** Returns what OpenAI and its copies say about a text that is too long or has other characters. */
export function textRefusal(
  path: string,
  value: unknown,
  { max, pattern }: { max: number; pattern?: RegExp },
): string | undefined {
  if (typeof value !== 'string') return undefined
  if (value.length > max) {
    return `Invalid '${path}': string too long. Expected a string with maximum length ${max}, but got a string with length ${value.length} instead.`
  }
  return pattern && !pattern.test(value)
    ? `Invalid '${path}': string does not match pattern. Expected a string that matches the pattern '${pattern.source}'.`
    : undefined
}

/** The keywords that unite schemas and that no provider takes at the root of the arguments. */
const unions = ['oneOf', 'anyOf', 'allOf', 'enum', 'not']

/** A union at the root of a schema, or a root that is no object. */
export function rootProblem(schema: unknown): string | undefined {
  if (schema === undefined) return undefined
  const root = fieldsOf(schema)
  if (root.type !== 'object') return 'type'
  return unions.find((keyword) => keyword in root)
}

/** All schemas in a schema, itself included. */
export function* schemasIn(schema: Fields): Generator<Fields> {
  yield schema
  for (const name of ['properties', '$defs', 'definitions', 'patternProperties']) {
    for (const value of Object.values(fieldsOf(schema[name]))) yield* schemasIn(fieldsOf(value))
  }
  for (const name of ['anyOf', 'oneOf', 'allOf', 'prefixItems']) {
    for (const value of objectsOf(schema[name])) yield* schemasIn(value)
  }
  for (const name of ['items', 'additionalProperties', 'not']) {
    if (typeof schema[name] === 'object') yield* schemasIn(fieldsOf(schema[name]))
  }
}

/** A strict schema that leaves objects open or members optional. */
export function strictProblem(schema: Fields): string | undefined {
  for (const one of schemasIn(schema)) {
    if (one.type !== 'object') continue
    if (one.additionalProperties !== false) return `'additionalProperties' is required to be supplied and to be false.`
    const required = Array.isArray(one.required) ? one.required : []
    const missing = Object.keys(fieldsOf(one.properties)).find((name) => !required.includes(name))
    if (missing)
      return `'required' is required to be supplied and to be an array including every key in properties. Missing '${missing}'.`
  }
  return undefined
}

/** Chat messages whose calls are not answered at once, or that answer nothing. */
export function unpairedCall(messages: readonly Fields[]): string | undefined {
  let open: string[] = []
  for (const message of messages) {
    if (message.role === 'tool') {
      const id = textOf(message.tool_call_id)
      if (!open.includes(id))
        return `messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. (${id})`
      open = open.filter((one) => one !== id)
      continue
    }
    if (open.length > 0) break
    open = objectsOf(message.tool_calls).map(({ id }) => textOf(id))
  }
  return open.length > 0
    ? `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${open.join(', ')}`
    : undefined
}
