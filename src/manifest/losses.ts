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

function partsOf({ system = [], messages }: NeutralRequest): Part[] {
  const parts = [...system, ...messages.flatMap((message) => message.parts)]
  return parts.flatMap((part) => (part.type === 'tool_result' ? [part, ...part.parts] : [part]))
}
