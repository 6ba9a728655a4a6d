import type { Json, JsonObject } from '../../core/json.ts'
import { routingFields } from '../routing-fields.ts'
import { parsedJson } from './form-fields.ts'

type FormField = readonly [name: string, value: string]

/**
 * The fields of a form that say how the call is routed, as members of a JSON body, and its other fields. A form has them as
 * `provider` with a JSON text, or as `provider[order][]` and the like.
 */
export function routingOfForm(fields: readonly FormField[]): { routing: JsonObject; others: FormField[] } {
  const routing: JsonObject = {}
  const others: FormField[] = []
  for (const field of fields) {
    const [written, value] = field
    const [name = '', ...path] = written.replaceAll(']', '').split('[')
    if (!isRouting(name)) others.push(field)
    else if (name === 'models') routing.models = [...listIn(routing, 'models'), value]
    else if (path.length === 0) routing[name] = name === 'provider' ? (parsedJson(value) ?? value) : value
    else put(routing, [name, ...path], value)
  }
  return { routing, others }
}

function isRouting(name: string): boolean {
  return (routingFields as readonly string[]).includes(name)
}

/** Puts a text at its path; one whose last step is empty is an item of a list. */
function put(into: JsonObject, [step = '', ...rest]: readonly string[], value: string): void {
  if (step === '__proto__') return
  if (rest.length === 0) into[step] = flags.get(value) ?? value
  else if (rest.length === 1 && rest[0] === '') into[step] = [...listIn(into, step), value]
  else put(objectIn(into, step), rest, value)
}

function listIn(object: JsonObject, name: string): Json[] {
  const { [name]: list } = object
  return Array.isArray(list) ? list : []
}

function objectIn(object: JsonObject, name: string): JsonObject {
  const { [name]: found } = object
  const inner = typeof found === 'object' && found !== null && !Array.isArray(found) ? found : {}
  object[name] = inner
  return inner
}

const flags: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
])
