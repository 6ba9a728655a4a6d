import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Api, NeutralRequest, Tool, ToolChoice } from '../../core/request.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import { type Mentions, membersOf, mentionsOf, type PathTree, whole } from '../../mapping/mentions.ts'
import { labels, neutralFields, partTypes } from '../fields.ts'
import type { ChatEndpoint, Support } from '../provider.ts'
import { distinctNames } from './unsupported.ts'

/** Infers the support of a request mapping. What only `dropped` mentions does not reach the provider. */
export function supportOf({ tree }: Mapping): Support {
  const mentions = mentionsOf(tree, (last) =>
    [...membersOf(last)].filter(([name]) => name !== 'dropped').map(([, section]) => section),
  )
  const { names, paths } = mentions
  const named = kinds(mentions, 'type', names.has('parts') || names.has('messages') ? 'text' : '')
  // Who reads the member `text` takes texts, even if other types are named as well.
  const part = (type: string) => (type === 'text' && names.has('text')) || named(type)
  // A mapping that accepts every type of part copies parts whole, including members that it does not name.
  const copies = part('*')
  return {
    has: (field) => names.has(field),
    members: (field) => paths.get(field) ?? new Map<string, PathTree>(),
    part,
    tool: supportsTool(mentions),
    named: (member) => copies || names.has(member),
  }
}

/** A tool that only one client API defines is dropped for other formats unless their mapping names it. */
function supportsTool(mentions: Mentions): Support['tool'] {
  const takes = kinds(mentions, 'kind', mentions.names.has('tools') ? 'function' : '')
  const named = (kind: string) => mentions.compared.get('kind')?.has(kind) || mentions.compared.get('')?.has(kind)
  return ({ kind, by }) => (by === undefined ? takes(kind) : named(kind) === true)
}

/** A mapping supports the kinds that it names, `*` for all; one that names none supports only the default kind. */
function kinds({ compared }: Mentions, member: string, byDefault: string): (kind: string) => boolean {
  const named = compared.get(member) ?? new Set<string>()
  if (named.has('*')) return () => true
  const elsewhere = compared.get('') ?? new Set<string>()
  if (named.size === 0) return (kind) => kind === byDefault || elsewhere.has(kind)
  return (kind) => named.has(kind) || elsewhere.has(kind)
}

/**
 * Support without types of parts that are declared unsupported (`parts.audio`) and kinds of tools (`tools.custom`). A mapping with `*`
 * for tools supports those of the client API `sameAs` that its format equals.
 */
export function supportFor(support: Support, losses: readonly string[], sameAs: Api | undefined): Support {
  const lost = losses.filter((name) => name.startsWith('parts.') || name.startsWith('tools.'))
  const own = sameAs === undefined ? support : supportOfOwn(support, sameAs)
  if (lost.length === 0) return own
  return {
    ...own,
    part: (type) => own.part(type) && !lost.includes(`parts.${type}`),
    tool: (tool) => own.tool(tool) && !lost.includes(`tools.${tool.kind}`),
  }
}

/** Made once per mapping: with the tools of the API itself, where the mapping takes all. */
const owned = new WeakMap<Support, { [api in Api]?: Support }>()

function supportOfOwn(support: Support, sameAs: Api): Support {
  const known = owned.get(support) ?? {}
  owned.set(support, known)
  known[sameAs] ??= withOwnTools(support, sameAs)
  return known[sameAs]
}

function withOwnTools(support: Support, sameAs: Api): Support {
  if (!support.tool({ kind: '*' })) return support
  return { ...support, tool: (tool) => tool.by === sameAs || support.tool(tool) }
}

/** The names of what a request uses and a mapping does not support. */
export function inferredUnsupported(request: NeutralRequest, support: Support): string[] {
  const lost: string[] = []
  for (const field of Object.keys(request)) {
    const found = unsupportedIn(field, request[field as keyof NeutralRequest] as Json | undefined, support)
    if (found.length > 0) lost.push(...found)
  }
  if (choosesUnsupportedTool(request, support)) lost.push('tool_choice')
  return lost
}

/** Returns the features that never reach an endpoint: unsupported by its mapping, or declared unsupported without a condition. */
export function unsupportedByEndpoint({ request, unsupported }: ChatEndpoint): string[] {
  const declared = unsupported.filter(({ when }) => !when).map(({ field }) => field)
  return distinctNames([...unsupportedByMapping(request.support), ...declared])
}

/** Checks whether parts of a type may reach an endpoint. */
export function takesPart({ request, unsupported }: ChatEndpoint, type: string): boolean {
  return request.support.part(type) && !unsupported.some(({ field, when }) => !when && field === `parts.${type}`)
}

/** The fields, types of parts and kinds of tools that a mapping does not support. */
export function unsupportedByMapping(support: Support): string[] {
  const fields = Object.entries(neutralFields)
    .filter(([field, how]) => how !== 'free' && how !== 'paths' && !support.has(field))
    .map(([field]) => field)
  const types = Object.keys(partTypes).filter((type) => !support.part(type))
  return [
    ...fields,
    ...types.map((type) => `parts.${type}`),
    // Custom tools become functions where there are those.
    ...(support.tool({ kind: 'custom' }) || support.tool({ kind: 'function' }) ? [] : ['tools.custom']),
  ]
}

const none: readonly string[] = []

function unsupportedIn(field: string, value: Json | undefined, support: Support): readonly string[] {
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return none
  switch (neutralFields[field as keyof typeof neutralFields]) {
    case 'parts':
      return unsupportedInMessages(value as JsonObject[], support)
    case 'kinds':
      return unsupportedTools(value as unknown as Tool[], support)
    case 'paths':
      return unsupportedMembers('extensions', value as JsonObject, support.members(field)).flatMap((name) => {
        return name === 'extensions.reasoning' ? namesBelow(name, (value as JsonObject).reasoning) : [name]
      })
    case 'members':
      if (support.has(field)) return unsupportedMembers(field, value as JsonObject, support.members(field))
      return [field]
    case 'texts':
      if (!support.has(field)) return [field]
      return unsupportedMembersOfTexts(value as JsonObject[], support)
    case 'whole':
      return support.has(field) ? none : [field]
    default:
      return none
  }
}

/** Returns the paths of the members of an object, or its own path where it is not an object. */
function namesBelow(name: string, value: Json | undefined): string[] {
  return isObject(value) ? Object.keys(value).map((member) => `${name}.${member}`) : [name]
}

function unsupportedMembersOfTexts(parts: readonly JsonObject[], support: Support): string[] {
  const lost: string[] = []
  for (const part of parts) collectUnsupportedMembersOfPart(part, support, lost)
  return lost
}

function unsupportedInMessages(messages: readonly JsonObject[], support: Support): string[] {
  const lost: string[] = []
  for (const { parts, name } of messages) {
    collectUnsupportedParts(parts as JsonObject[], support, lost)
    if (name !== undefined && !support.named('name')) lost.push('messages.name')
  }
  return lost
}

function collectUnsupportedParts(parts: readonly JsonObject[], support: Support, lost: string[]): void {
  for (const part of parts) {
    if (!support.part(part.type as string)) {
      lost.push(`parts.${part.type}`)
      continue
    }
    if (part.type === 'tool_result') collectUnsupportedParts(part.parts as JsonObject[], support, lost)
    collectUnsupportedMembersOfPart(part, support, lost)
  }
}

/** Optional members of a part that reach the provider only if the mapping names them. */
function collectUnsupportedMembersOfPart(part: JsonObject, support: Support, lost: string[]): void {
  if (part.cache !== undefined && !support.named('cache')) lost.push('parts.cache')
  if (part.detail !== undefined && part.detail !== 'auto' && !support.named('detail')) lost.push('parts.detail')
  if (part.file_id !== undefined && !support.named('file_id')) lost.push('parts.file_id')
  if (part.url !== undefined && part.data === undefined && !support.named('url')) lost.push('parts.url')
  if (part.is_error === true && !support.named('is_error')) lost.push('parts.is_error')
}

function unsupportedTools(tools: readonly Tool[], support: Support): string[] {
  return tools.flatMap((tool) => {
    const { kind, cache } = tool
    if (!support.has('tools')) return ['tools']
    if (!support.tool(tool)) return [`tools.${kind}`]
    const lost: string[] = []
    const strict = 'strict' in tool && tool.strict
    if (strict === true && !support.named('strict')) lost.push('tools.strict')
    if (cache !== undefined && !support.named('cache')) lost.push('tools.cache')
    return lost
  })
}

/** Members that are not in the tree, by their full path. */
function unsupportedMembers(path: string, value: JsonObject, tree: PathTree): string[] {
  if (tree === whole) return []
  return Object.entries(value).flatMap(([name, member]) => {
    if (member === undefined || member === null) return []
    const inner = tree.get(name)
    if (inner === undefined) return labels.has(`${path}.${name}`) ? [] : [`${path}.${name}`]
    const items = [member].flat().filter(isObject)
    return items.flatMap((item) => unsupportedMembers(`${path}.${name}`, item, inner))
  })
}

/** The request without unsupported parts and tools; the original is not changed. */
export function supportedOnly(request: NeutralRequest, support: Support, signer: string): NeutralRequest {
  const { messages, tools } = request
  // Blocks that only another signer understands reach no mapping.
  const takes = (part: Part) => support.part(part.type) && !(part.type === 'opaque' && part.by !== signer)
  const partsFit = messages.every(({ parts }) => parts.every((part) => fits(part, takes)))
  const toolsFit = (!tools || tools.every((tool) => support.tool(tool))) && !choosesUnsupportedTool(request, support)
  if (partsFit && toolsFit) return request
  const supported = partsFit ? messages : messages.flatMap((message) => withSupportedParts(message, takes))
  const fitting = { ...request, messages: supported }
  return toolsFit ? fitting : withTools(fitting, tools?.filter((tool) => support.tool(tool)) ?? [], support)
}

type Message = NeutralRequest['messages'][number]
type Part = Message['parts'][number]

type Takes = (part: Part) => boolean

/**
 * Returns a message with the parts that are taken. One of the user that is left without any gets a placeholder, and so does a result; one
 * of the assistant is omitted.
 */
function withSupportedParts(message: Message, takes: Takes): Message[] {
  const { role, parts: all } = message
  const parts = supportedParts(all, takes)
  if (parts.length > 0 || all.length === 0) return [{ ...message, parts }]
  if (role === 'assistant') return []
  return [{ ...message, parts: all.some(({ type }) => type !== 'tool_result') ? omitted : parts }]
}

const omitted: Part[] = [{ type: 'text', text: '(unsupported content omitted)' }]

function fits(part: Part, takes: Takes): boolean {
  return takes(part) && (part.type !== 'tool_result' || part.parts.every(takes))
}

function supportedParts(parts: readonly Part[], takes: Takes): Part[] {
  return parts.flatMap((part): Part[] => {
    if (!takes(part)) return []
    if (part.type !== 'tool_result' || part.parts.every(takes)) return [part]
    const left = part.parts.filter(takes)
    return [{ ...part, parts: left.length > 0 ? left : omitted }]
  })
}

/** The request with fewer tools; a choice is removed with the tool that it names, and without tools there is none. */
function withTools(request: NeutralRequest, remaining: readonly Tool[], support: Support): NeutralRequest {
  const { tools: _tools, tool_choice: choice, parallel_tool_calls: parallel, ...rest } = request
  if (remaining.length === 0) return rest
  const keptChoice = choosesUnsupportedTool(request, support) ? undefined : narrowed(choice, request, remaining)
  return {
    ...rest,
    tools: [...remaining],
    ...(keptChoice !== undefined && { tool_choice: keptChoice }),
    ...(parallel !== undefined && { parallel_tool_calls: parallel }),
  }
}

/** Returns a choice among several tools without the dropped ones; none where none of them is left. */
function narrowed(choice: ToolChoice | undefined, { tools = [] }: NeutralRequest, remaining: readonly Tool[]) {
  if (typeof choice !== 'object' || !('allowed' in choice)) return choice
  const gone = new Set(tools.filter((tool) => !remaining.includes(tool)).map(toolName))
  const allowed = choice.allowed.filter((name) => !gone.has(name))
  return allowed.length > 0 ? { ...choice, allowed } : undefined
}

/** Checks whether a request asks for a tool to be called. */
export function demandsTool({ tool_choice: choice }: NeutralRequest): boolean {
  return choice !== undefined && choice !== 'auto' && choice !== 'none'
}

/** The request without the demand for a call where nothing is left that could be called. */
export function withoutIdleChoice(request: NeutralRequest, support: Support): NeutralRequest {
  const searches = request.web_search !== undefined && support.has('web_search')
  if (!demandsTool(request) || (request.tools ?? []).length > 0 || searches) return request
  const { tool_choice: _choice, ...rest } = request
  return rest
}

/** Checks whether the choice demands a tool that is dropped, or is one that only another client API defines. */
function choosesUnsupportedTool({ tool_choice: choice, tools = [] }: NeutralRequest, support: Support): boolean {
  if (choice === undefined || choice === 'auto' || choice === 'none') return false
  if (typeof choice === 'object' && 'definition' in choice) return support.has('tool_choice') && !support.tool(choice)
  const noneLeft = tools.length > 0 && !tools.some((tool) => support.tool(tool))
  if (noneLeft || typeof choice !== 'object' || !('name' in choice)) return noneLeft
  const tool = tools.find((one) => toolName(one) === choice.name)
  return tool !== undefined && !support.tool(tool)
}

function toolName(tool: Tool): string | undefined {
  return 'name' in tool ? tool.name : undefined
}
