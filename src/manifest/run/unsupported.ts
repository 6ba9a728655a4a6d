import { isObject, type JsonObject } from '../../core/json.ts'
import type { Part } from '../../core/parts.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import { partTypes, undemanding } from '../fields.ts'
import type { UnsupportedField } from '../types.ts'

/** Function that runs the condition of an unsupported field over the request and the facts about its target. */
export type Evaluate = (when: Mapping, field: string) => unknown

/** An unsupported field without its place in a file. */
export type UnsupportedRule = Pick<UnsupportedField, 'field' | 'when'>

/**
 * Returns the fields declared unsupported that this request uses, and whose `when` is true. A promise only where a condition is
 * interpreted.
 */
export function declaredUnsupported(
  losses: readonly UnsupportedRule[],
  request: NeutralRequest,
  evaluate: Evaluate,
): string[] | Promise<string[]> {
  const contents = contentsOf(request)
  const used = withUses(losses).filter(({ use }) => use(request, contents))
  return used.length === 0 ? [] : matchedUnsupported(used, request, evaluate)
}

function matchedUnsupported(
  used: readonly UnsupportedRule[],
  request: NeutralRequest,
  evaluate: Evaluate,
  met = new Set<string>(),
): string[] | Promise<string[]> {
  for (const [index, { field, when }] of used.entries()) {
    if (met.has(field)) continue
    const result = when === undefined || evaluate(when, field)
    if (result instanceof Promise) {
      return result.then((known) => {
        if (isTrue(known)) met.add(field)
        return matchedUnsupported(used.slice(index + 1), request, evaluate, met)
      })
    }
    if (isTrue(result)) met.add(field)
  }
  return met.delete('extensions') ? [...met, ...unknownFieldsOf(request)] : [...met]
}

/** The lists belong to providers and models: each is prepared once. */
const prepared = new WeakMap<readonly UnsupportedRule[], readonly (UnsupportedRule & { use: Use })[]>()

function withUses(losses: readonly UnsupportedRule[]): readonly (UnsupportedRule & { use: Use })[] {
  let made = prepared.get(losses)
  if (!made) {
    made = losses.map((loss) => ({ ...loss, use: useFor(loss.field) }))
    prepared.set(losses, made)
  }
  return made
}

/** Returns every field that the neutral form does not have, by its own name. */
function unknownFieldsOf({ extensions = {} }: NeutralRequest): string[] {
  return Object.keys(extensions).map((name) => `extensions.${name}`)
}

/** Returns `parts.opaque` if the request has blocks that only another signer understands: they never reach this one. */
export function foreignOpaque(request: NeutralRequest, maker: string): string[] {
  const { parts, names } = contentsOf(request)
  const foreign = names.has('opaque') && parts.some((part) => part.type === 'opaque' && part.by !== maker)
  return foreign ? ['parts.opaque'] : []
}

/** Characters of the type of a block in the name of what is dropped. */
const maxTypeLength = 60

/** Returns these names with the types of the blocks that the client has sent and no reader knows, in the place of `parts.opaque`. */
export function withBlockTypes(names: readonly string[], request: NeutralRequest): string[] {
  if (!names.includes('parts.opaque')) return [...names]
  const unknown = contentsOf(request).parts.flatMap((part) => {
    const isOwn = part.type === 'opaque' && part.by === undefined && isObject(part.body)
    const type = isOwn ? (part.body as JsonObject).type : undefined
    return typeof type === 'string' ? [`parts.opaque.${type.slice(0, maxTypeLength).replace(/[^\w-]/g, '_')}`] : []
  })
  const types = [...new Set(unknown)]
  return names.flatMap((name) => (name === 'parts.opaque' && types.length > 0 ? types : [name]))
}

/** The id of a file that the provider would take as data or by URL, but cannot read by its id. */
export function unreadableFile(request: NeutralRequest, lost: readonly string[]): string | undefined {
  if (lost.length === 0) return undefined
  const part = contentsOf(request).parts.find((one) => {
    if (!('file_id' in one) || one.file_id === undefined || lost.includes(`parts.${one.type}`)) return false
    return lost.includes('parts.file_id') || lost.includes(`parts.${one.type}.file_id`)
  })
  return part && 'file_id' in part ? part.file_id : undefined
}

/** Checks whether a request refers to media by their address. */
export function hasLinks(request: NeutralRequest): boolean {
  return contentsOf(request).names.has('url')
}

/** Returns the names that the request uses. */
export function namesInRequest(names: readonly string[], request: NeutralRequest): string[] {
  return names.filter((name) => usesField(name, request))
}

/** Returns these names without kinds of tools that the request no longer has. */
export function stillUsed(names: readonly string[], request: NeutralRequest): string[] {
  return names.filter((name) => !name.startsWith('tools.') || usesField(name, request))
}

/** Returns the dropped fields that matter: values that ask for nothing, or for what the router does itself, need no report. */
export function demanding(names: readonly string[], request: NeutralRequest): string[] {
  return names.flatMap((name) => {
    if (undemanding[name]?.(request[name as keyof NeutralRequest])) return []
    // The metadata of this API, which the router records.
    if (name === 'user' && request.origin.api === 'messages') return []
    // An earlier call of a custom tool is sent as a function call.
    if (name === 'tools.custom' && !matches(request.tools, ['custom'])) return []
    if (name === 'tools.strict' && !request.tools?.some((tool) => 'strict' in tool && tool.strict)) return []
    const { cache } = request
    if (name !== 'cache' || cache?.key === undefined) return [name]
    return Object.keys(cache).flatMap((member) => (member === 'key' ? [] : [`cache.${member}`]))
  })
}

/**
 * Returns each name once, without those that a more specific one implies: `reasoning` by `reasoning.summary`, `parts.url` by
 * `parts.image.url`.
 */
export function distinctNames(names: readonly string[]): string[] {
  if (names.length === 0) return []
  const unique = new Set(names)
  const covered = (name: string) => {
    for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      if (unique.has(name.slice(0, dot))) return true
    }
    const [first, , member] = name.split('.')
    return first === 'parts' && member !== undefined && unique.has(`parts.${member}`)
  }
  return [...unique].filter((name) => !covered(name))
}

/** The request without these fields. The client's own is not changed. */
export function requestWithoutFields(request: NeutralRequest, fields: readonly string[]): NeutralRequest {
  return fields.reduce(without, request)
}

function without(request: NeutralRequest, field: string): NeutralRequest {
  const [first = '', ...rest] = field.split('.')
  if (first !== 'parts') return withoutPath(request, [first, ...rest]) as NeutralRequest
  const shorten = (parts: Part[]): Part[] => withoutPath(parts, rest) as Part[]
  const messages = request.messages.map((message) => ({
    ...message,
    parts: shorten(message.parts).map(inResult(shorten)),
  }))
  return { ...request, messages, ...(request.system && { system: shorten(request.system) }) }
}

function inResult(shorten: (parts: Part[]) => Part[]): (part: Part) => Part {
  return (part) => (part.type === 'tool_result' ? { ...part, parts: shorten(part.parts) } : part)
}

/** Returns the value without the part at the path: a member, or the items of a list that are of this kind or type. */
function withoutPath(value: unknown, path: readonly string[]): unknown {
  const [step, ...rest] = path
  if (step === undefined || value === undefined) return undefined
  if (Array.isArray(value)) return value.map((item) => withoutPath(item, path)).filter((item) => item !== undefined)
  if (!isObject(value)) return value
  if (value.kind === step || value.type === step) return rest.length > 0 ? withoutPath(value, rest) : undefined
  const { [step]: member, ...others } = value
  const left = rest.length > 0 ? withoutPath(member, rest) : undefined
  return left === undefined ? others : { ...others, [step]: left }
}

/** JSONata's own notion of true, as far as a condition can give it. */
function isTrue(result: unknown): boolean {
  return Array.isArray(result) ? result.some(isTrue) : Boolean(result)
}

type Use = (request: NeutralRequest, contents: Contents) => boolean

/** Cache of uses: unsupported fields are declared in files, so the number of names is limited, except for those of unknown fields. */
const uses = new Map<string, Use>()
const rememberedUses = 1_000

/** Checks whether a request uses a field, by its neutral name. */
export function usesField(field: string, request: NeutralRequest): boolean {
  return useFor(field)(request, contentsOf(request))
}

function useFor(field: string): Use {
  let use = uses.get(field)
  if (!use) {
    use = useOf(field)
    if (uses.size < rememberedUses) uses.set(field, use)
  }
  return use
}

/** `seed`, `tools.strict`, `tools.custom` (a kind), `parts.video` (a type), `parts.cache` (a member). */
function useOf(field: string): Use {
  const [first = '', ...rest] = field.split('.')
  if (field === 'tools.custom') return (request, contents) => matches(request.tools, rest) || hasCustomCall(contents)
  if (first !== 'parts') {
    const name = first as keyof NeutralRequest
    return (request) => request[name] !== undefined && matches(request[name], rest)
  }
  const [second = '', ...deeper] = rest
  const isType = Object.hasOwn(partTypes, second)
  const usesPart = (part: Part) => (isType ? part.type === second && matches(part, deeper) : matches(part, rest))
  return (_, { parts, names }) => names.has(second) && parts.some(usesPart)
}

function hasCustomCall({ parts, names }: Contents): boolean {
  return names.has('custom') && parts.some(isCustomCall)
}

function isCustomCall(part: Part): boolean {
  return part.type === 'tool_call' && part.kind === 'custom'
}

function matches(value: unknown, path: readonly string[]): boolean {
  if (value === undefined || value === null) return false
  if (Array.isArray(value)) return value.some((item) => matches(item, path))
  const [step, ...rest] = path
  if (step === undefined) return true
  if (!isObject(value)) return false
  return value.kind === step || value.type === step ? matches(value, rest) : matches(value[step], rest)
}

/** The parts of a request, those inside results among them; and the types, kinds and members that there are, by name. */
type Contents = { parts: readonly Part[]; names: ReadonlySet<string> }

/**
 * Contents of the last request. Dozens of checks examine the parts of one request in a row, and most find nothing. In a WeakMap the parts
 * would outlive their request, since V8 treats its values as reachable until old objects are collected.
 */
let last: { request: NeutralRequest; contents: Contents } | undefined

function contentsOf(request: NeutralRequest): Contents {
  if (last?.request === request) return last.contents
  if (!last) queueMicrotask(forget)
  last = { request, contents: gather(request) }
  return last.contents
}

function forget(): void {
  last = undefined
}

function gather({ system = [], messages }: NeutralRequest): Contents {
  const parts: Part[] = []
  const names = new Set<string>()
  const add = (part: Part) => {
    parts.push(part)
    names.add(part.type)
    if ('kind' in part && part.kind) names.add(part.kind)
    for (const name in part) names.add(name)
    if (part.type === 'tool_result') part.parts.forEach(add)
  }
  system.forEach(add)
  for (const message of messages) message.parts.forEach(add)
  return { parts, names }
}
