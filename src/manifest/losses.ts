import { isObject } from '../core/json.ts'
import type { Part } from '../core/parts.ts'
import type { NeutralRequest } from '../core/request.ts'
import type { Mapping } from '../mapping/mapping.ts'
import { partTypes } from './fields.ts'
import type { ChatEndpoint, Loss } from './provider.ts'

/** Runs the condition of a loss over the request and the facts about its target. */
export type Ask = (when: Mapping, field: string) => unknown

/** The declared losses that this request meets, by field: those it uses, and whose `when` says so. */
export async function declaredLosses({ losses }: ChatEndpoint, request: NeutralRequest, ask: Ask): Promise<string[]> {
  const met = new Set<string>()
  for (const loss of losses) {
    if (met.has(loss.field) || !isUsed(loss, request)) continue
    if (loss.when === undefined || isTrue(await ask(loss.when, loss.field))) met.add(loss.field)
  }
  return [...met]
}

/** Unknown fields of the client that a rebuilt body leaves out: all, unless the mapping knows what to do with them. */
export function lostExtensions(
  { request: mapping, losses }: ChatEndpoint,
  met: string[],
  request: NeutralRequest,
): string[] {
  const names = Object.entries(request.extensions ?? {}).filter(([, value]) => value !== undefined)
  const unread = names.map(([name]) => name).filter((name) => !mapping.reads.has(name))
  if (!mapping.reads.has('extensions')) return names.map(([name]) => name)
  // A mapping may take them as a whole, without naming one; a declared loss says that it does not.
  return losses.some(({ field }) => field === 'extensions') && met.includes('extensions') ? unread : []
}

/** Blocks that only another maker understands never reach this one. */
export function foreignOpaque(request: NeutralRequest, maker: string): string[] {
  const foreign = partsOf(request).some((part) => part.type === 'opaque' && part.by !== maker)
  return foreign ? ['parts.opaque'] : []
}

/** The request without those of the fields that its mapping does not know to be lost. The client's own is not changed. */
export function withoutUnmapped(
  { losses }: ChatEndpoint,
  met: readonly string[],
  request: NeutralRequest,
): NeutralRequest {
  const fields = losses.filter(({ field, unmapped }) => unmapped && met.includes(field)).map(({ field }) => field)
  const left = fields.reduce(without, request)
  return fields.includes('tools.custom') ? withoutCustomTools(left) : left
}

/** Where there are no custom tools, what they were called with is the argument of a function; no tools need no choice. */
function withoutCustomTools({ tools, tool_choice, parallel_tool_calls, ...request }: NeutralRequest): NeutralRequest {
  const messages = request.messages.map((message) => ({ ...message, parts: message.parts.map(asFunction) }))
  const choosing = tool_choice !== undefined && { tool_choice }
  const many = parallel_tool_calls !== undefined && { parallel_tool_calls }
  return { ...request, messages, ...(tools && tools.length > 0 && { tools, ...choosing, ...many }) }
}

function asFunction(part: Part): Part {
  if (part.type !== 'tool_call' || part.kind !== 'custom') return part
  const { kind: _custom, ...call } = part
  return { ...call, arguments: JSON.stringify({ input: part.arguments }) }
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

/** The value without what stands at the path: a member, or the items of a list that are of this kind or type. */
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

type Use = (request: NeutralRequest) => boolean
const uses = new WeakMap<Loss, Use>()

function isUsed(loss: Loss, request: NeutralRequest): boolean {
  let use = uses.get(loss)
  if (!use) {
    use = useOf(loss.field)
    uses.set(loss, use)
  }
  return use(request)
}

/** `seed`, `tools.strict`, `tools.custom` (a kind), `parts.video` (a type), `parts.cache` (a member). */
function useOf(field: string): Use {
  const [first = '', ...rest] = field.split('.')
  if (first !== 'parts') return (request) => holds(request[first as keyof NeutralRequest], rest)
  const [second = '', ...deeper] = rest
  if (!Object.hasOwn(partTypes, second)) return (request) => holds(partsOf(request), rest)
  return (request) => partsOf(request).some((part) => part.type === second && holds(part, deeper))
}

function holds(value: unknown, path: readonly string[]): boolean {
  if (value === undefined || value === null) return false
  if (Array.isArray(value)) return value.some((item) => holds(item, path))
  const [step, ...rest] = path
  if (step === undefined) return true
  if (!isObject(value)) return false
  return value.kind === step || value.type === step ? holds(value, rest) : holds(value[step], rest)
}

/** Half a dozen losses look at the parts of one request, which does not change meanwhile. */
const gathered = new WeakMap<NeutralRequest, Part[]>()

function partsOf(request: NeutralRequest): Part[] {
  let parts = gathered.get(request)
  if (!parts) {
    parts = gather(request)
    gathered.set(request, parts)
  }
  return parts
}

function gather({ system = [], messages }: NeutralRequest): Part[] {
  const parts: Part[] = []
  for (const list of [system, ...messages.map((message) => message.parts)]) {
    for (const part of list) {
      parts.push(part)
      if (part.type === 'tool_result') for (const inner of part.parts) parts.push(inner)
    }
  }
  return parts
}
