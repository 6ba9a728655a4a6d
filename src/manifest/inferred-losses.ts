import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { Api, NeutralRequest, Tool } from '../core/request.ts'
import type { Mapping } from '../mapping/mapping.ts'
import { type Mentions, membersOf, mentionsOf, type PathTree, whole } from '../mapping/mentions.ts'
import { neutralFields, partTypes, undemanding } from './fields.ts'
import { distinctNames } from './losses.ts'
import type { ChatEndpoint } from './provider.ts'

/** What a request mapping can take over, told by what it mentions: all else is lost by itself. */
export type Taken = {
  has(field: string): boolean
  /** The members of an object that are taken; `whole` for all of them. */
  members(field: string): PathTree
  part(type: string): boolean
  /** Kinds that are named; `*` takes all that the client API of the same format defines. */
  tool(tool: { kind: string; by?: Api }): boolean
  /** Members of parts and tools, wherever they stand. */
  named(member: string): boolean
}

/** The program's sections but `dropped`: what is only mentioned there does not reach the provider. */
export function takenBy({ tree }: Mapping): Taken {
  const mentions = mentionsOf(tree, (last) =>
    [...membersOf(last)].filter(([name]) => name !== 'dropped').map(([, section]) => section),
  )
  const { names, paths } = mentions
  const part = kinds(mentions, 'type', names.has('parts') ? 'text' : '')
  // Parts that are taken whatever they are go as they are, with members that nobody names.
  const copies = part('*')
  return {
    has: (field) => names.has(field),
    members: (field) => paths.get(field) ?? new Map<string, PathTree>(),
    part,
    tool: takesTool(mentions),
    named: (member) => copies || names.has(member),
  }
}

/** A tool that only one client API defines means nothing to formats of others, unless they name it. */
function takesTool(mentions: Mentions): Taken['tool'] {
  const takes = kinds(mentions, 'kind', mentions.names.has('tools') ? 'function' : '')
  const named = (kind: string) => mentions.compared.get('kind')?.has(kind) || mentions.compared.get('')?.has(kind)
  return ({ kind, by }) => (by === undefined ? takes(kind) : named(kind) === true)
}

/** A mapping takes the kinds that it names, `*` for all; one that names none is only interested in `plain` items. */
function kinds({ compared }: Mentions, member: string, plain: string): (kind: string) => boolean {
  const named = compared.get(member) ?? new Set<string>()
  if (named.has('*')) return () => true
  const elsewhere = compared.get('') ?? new Set<string>()
  if (named.size === 0) return (kind) => kind === plain || elsewhere.has(kind)
  return (kind) => named.has(kind) || elsewhere.has(kind)
}

/**
 * As `taken`, where these losses are declared: types of parts (`parts.audio`), kinds of tools (`tools.custom`). A format
 * that equals the client API `sameAs` knows the tools of that API.
 */
export function takenFor(taken: Taken, losses: readonly string[], sameAs: Api | undefined): Taken {
  const lost = new Set(losses)
  const all = taken.tool({ kind: '*' })
  return {
    ...taken,
    part: (type) => taken.part(type) && !lost.has(`parts.${type}`),
    tool: (tool) =>
      ((all && tool.by !== undefined && tool.by === sameAs) || taken.tool(tool)) && !lost.has(`tools.${tool.kind}`),
  }
}

/** The names of what a request uses and a mapping does not take. */
export function notTaken(request: NeutralRequest, taken: Taken): string[] {
  const lost = Object.entries(request).flatMap(([field, value]) => lostIn(field, value as Json | undefined, taken))
  return choosesLostTool(request, taken) ? [...lost, 'tool_choice'] : lost
}

/** What no request can bring to an endpoint: what its mapping does not take, and its unconditional losses. */
export function neverSent({ request, losses }: ChatEndpoint): string[] {
  const declared = losses.filter(({ when }) => !when).map(({ field }) => field)
  return distinctNames([...neverTaken(request.taken), ...declared])
}

/** Fields, types of parts and kinds of tools that a mapping never takes. */
export function neverTaken(taken: Taken): string[] {
  const fields = Object.entries(neutralFields)
    .filter(([field, how]) => how !== 'free' && how !== 'paths' && !taken.has(field))
    .map(([field]) => field)
  const types = Object.keys(partTypes).filter((type) => !taken.part(type))
  return [
    ...fields,
    ...types.map((type) => `parts.${type}`),
    ...(taken.tool({ kind: 'custom' }) ? [] : ['tools.custom']),
  ]
}

function lostIn(field: string, value: Json | undefined, taken: Taken): string[] {
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return []
  switch (neutralFields[field as keyof typeof neutralFields]) {
    case 'parts':
      return (value as JsonObject[]).flatMap(({ parts }) => lostParts(parts as JsonObject[], taken))
    case 'kinds':
      return lostTools(value as unknown as Tool[], taken)
    case 'paths':
      return lostMembers('extensions', value as JsonObject, taken.members(field))
    case 'members':
      if (taken.has(field)) return lostMembers(field, value as JsonObject, taken.members(field))
      return undemanding[field]?.(value) ? [] : [field]
    case 'whole':
      return taken.has(field) || undemanding[field]?.(value) ? [] : [field]
    default:
      return []
  }
}

function lostParts(parts: readonly JsonObject[], taken: Taken): string[] {
  return parts.flatMap((part) => {
    if (!taken.part(part.type as string)) return [`parts.${part.type}`]
    const inner = part.type === 'tool_result' ? lostParts(part.parts as JsonObject[], taken) : []
    return [...inner, ...lostHints(part, taken)]
  })
}

/** Wishes about a part that a mapping must know by name. */
function lostHints(part: JsonObject, taken: Taken): string[] {
  const lost: string[] = []
  if (part.cache !== undefined && !taken.named('cache')) lost.push('parts.cache')
  if (part.detail !== undefined && part.detail !== 'auto' && !taken.named('detail')) lost.push('parts.detail')
  if (part.file_id !== undefined && !taken.named('file_id')) lost.push('parts.file_id')
  if (part.url !== undefined && part.data === undefined && !taken.named('url')) lost.push('parts.url')
  return lost
}

function lostTools(tools: readonly Tool[], taken: Taken): string[] {
  return tools.flatMap((tool) => {
    const { kind, cache } = tool
    if (!taken.has('tools')) return ['tools']
    if (!taken.tool(tool)) return [`tools.${kind}`]
    const lost: string[] = []
    const strict = 'strict' in tool && tool.strict
    if (strict === true && !taken.named('strict')) lost.push('tools.strict')
    if (cache !== undefined && !taken.named('cache')) lost.push('tools.cache')
    return lost
  })
}

/** Members that are not in the tree, by their full path; a value that is no object is its own leaf. */
function lostMembers(path: string, value: JsonObject, tree: PathTree): string[] {
  if (tree === whole) return []
  return Object.entries(value).flatMap(([name, member]) => {
    if (member === undefined || member === null) return []
    const inner = tree.get(name)
    if (inner === undefined) return [`${path}.${name}`]
    return isObject(member) ? lostMembers(`${path}.${name}`, member, inner) : []
  })
}

/**
 * The request without the parts and tools that a mapping does not take. The client's own is not changed. Where there
 * are no custom tools, the text that one was called with is the argument of a function.
 */
export function onlyTaken(request: NeutralRequest, taken: Taken): NeutralRequest {
  const { messages, tools } = request
  const partsFit = messages.every(({ parts }) => parts.every((part) => fits(part, taken)))
  const toolsFit = (!tools || tools.every((tool) => taken.tool(tool))) && !choosesLostTool(request, taken)
  if (partsFit && toolsFit) return request
  const kept = partsFit ? messages : messages.map((message) => withTakenParts(message, taken))
  const left = { ...request, messages: kept }
  return toolsFit ? left : withTools(left, tools?.filter((tool) => taken.tool(tool)) ?? [], taken)
}

type Message = NeutralRequest['messages'][number]
type Part = Message['parts'][number]

/** What a user says with nothing but lost parts keeps its turn: without it the conversation would be another one. */
function withTakenParts(message: Message, taken: Taken): Message {
  const parts = keep(message.parts, taken)
  const isGone = message.role === 'user' && parts.length === 0 && message.parts.length > 0
  return { ...message, parts: isGone ? [{ type: 'text', text: '(something that cannot be shown here)' }] : parts }
}

function fits(part: Part, taken: Taken): boolean {
  if (!taken.part(part.type)) return false
  if (part.type === 'tool_call') return part.kind !== 'custom' || taken.tool({ kind: 'custom' })
  return part.type !== 'tool_result' || part.parts.every((inner) => taken.part(inner.type))
}

function keep(parts: readonly Part[], taken: Taken): Part[] {
  return parts.flatMap((part): Part[] => {
    if (!taken.part(part.type)) return []
    if (part.type === 'tool_result') return [{ ...part, parts: part.parts.filter(({ type }) => taken.part(type)) }]
    if (part.type !== 'tool_call' || part.kind !== 'custom' || taken.tool({ kind: 'custom' })) return [part]
    const { kind: _custom, ...call } = part
    return [{ ...call, arguments: JSON.stringify({ input: part.arguments }) }]
  })
}

/** The request with fewer tools; a choice goes with the tool that it involves, and without tools nothing is chosen. */
function withTools(request: NeutralRequest, left: readonly Tool[], taken: Taken): NeutralRequest {
  const { tools: _tools, tool_choice: choice, parallel_tool_calls: parallel, ...rest } = request
  if (left.length === 0) return rest
  const kept = choosesLostTool(request, taken) ? undefined : choice
  return {
    ...rest,
    tools: [...left],
    ...(kept !== undefined && { tool_choice: kept }),
    ...(parallel !== undefined && { parallel_tool_calls: parallel }),
  }
}

/** Whether the choice demands a tool that is lost, or is one that only another client API defines. */
function choosesLostTool({ tool_choice: choice, tools = [] }: NeutralRequest, taken: Taken): boolean {
  if (choice === undefined || choice === 'auto' || choice === 'none') return false
  if (typeof choice === 'object' && 'definition' in choice) return taken.has('tool_choice') && !taken.tool(choice)
  const noneLeft = tools.length > 0 && !tools.some((tool) => taken.tool(tool))
  if (noneLeft || typeof choice !== 'object' || !('name' in choice)) return noneLeft
  const tool = tools.find((one) => toolName(one) === choice.name)
  return tool !== undefined && !taken.tool(tool)
}

function toolName(tool: Tool): string | undefined {
  return 'name' in tool ? tool.name : undefined
}
