import { RouterError } from '../../core/errors.ts'
import type { Json, JsonObject } from '../../core/json.ts'
import type { UploadedFile } from '../../core/operation.ts'
import { type Check, oneOf, refuse } from '../check.ts'
import { routingFields } from '../router-fields.ts'

/**
 * The fields of a form as a JSON body: those among `lists` are lists, however often they come, as `name` or `name[]`; `name[member]`
 * is a member of an object; a name that the API does not know is a list where it comes several times. Throws RouterError 400.
 */
export function formFields(
  fields: readonly (readonly [name: string, value: string])[],
  { lists, known }: { lists: readonly string[]; known: readonly string[] },
): JsonObject {
  const body = new Map<string, string | string[] | Map<string, string>>()
  for (const [written, value] of fields) {
    const [, name = written, member] = /^([^[\]]+)\[([^[\]]*)\]$/.exec(written) ?? []
    const own = lists.includes(name) || known.includes(name) ? name : written
    const before = body.get(own)
    if (lists.includes(own)) body.set(own, [...(Array.isArray(before) ? before : []), value])
    else if (own === name && own !== written && member) body.set(own, withMember(before, { name, member, value }))
    else if (before === undefined) body.set(own, value)
    else if (known.includes(own) || before instanceof Map) throw repeated(own)
    else body.set(own, [before, value].flat())
  }
  const values = [...body].map(([name, value]) => [name, value instanceof Map ? Object.fromEntries(value) : value])
  return Object.fromEntries(values)
}

function withMember(
  before: string | string[] | Map<string, string> | undefined,
  { name, member, value }: { name: string; member: string; value: string },
): Map<string, string> {
  if (before !== undefined && !(before instanceof Map)) throw repeated(name)
  if (before?.has(member)) throw repeated(`${name}[${member}]`)
  return new Map([...(before ?? []), [member, value]])
}

function repeated(name: string): RouterError {
  return new RouterError('invalid_request', `'${name}' is given several times: send it once.`, { param: name })
}

/** Checks a text of a form that is true or false. */
export const formFlag: Check<boolean> = (value, path) => {
  return oneOf(['true', 'false', 'True', 'False', '1', '0'])(value, path).match(/^(?:true|1)$/i) !== null
}

/** A text of a form that is a number within bounds, both included. */
export function formNumber(least: number, most: number): Check<number> {
  return (value, path) => {
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN
    return number >= least && number <= most ? number : refuse(path, `a number from ${least} to ${most}`, value)
  }
}

/** Parses a text of a form as JSON; undefined where it is not valid JSON. */
export function parsedJson(text: string): Json | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A file among the fields of a request. */
export function fileField({ filename, mediaType, size }: UploadedFile, index: number): JsonObject {
  return { $file: index, filename, media_type: mediaType, size }
}

type FormField = readonly [name: string, value: string]

/**
 * Returns the fields of a form that determine how the call is routed, as members of a JSON body, and its other fields. A form has them as
 * `provider` with a JSON text, or as `provider[order][]` and the like.
 */
export function routingOfForm(fields: readonly FormField[]): { routing: JsonObject; others: FormField[] } {
  const routing: JsonObject = {}
  const others: FormField[] = []
  for (const field of fields) {
    const [written, value] = field
    const [name = '', ...path] = written.replaceAll(']', '').split('[')
    if (path.length > maxSteps) throw tooDeep(name)
    if (!isRouting(name)) others.push(field)
    else if (name === 'models') routing.models = [...listIn(routing, 'models'), value]
    else if (path.length === 0) routing[name] = name === 'provider' ? (parsedJson(value) ?? value) : value
    else put(routing, [name, ...path], value)
  }
  return { routing, others }
}

/** Most steps of a path in a name, as in `provider[max_price][prompt]`. */
const maxSteps = 8

function tooDeep(name: string): RouterError {
  const message = `A field of '${name.slice(0, 80)}' is nested in more than ${maxSteps} levels.`
  return new RouterError('invalid_request', message, { param: name.slice(0, 80) })
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
