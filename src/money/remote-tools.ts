import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { Part, SearchPart } from '../core/parts.ts'
import { isProviderTool, type NeutralRequest } from '../core/request.ts'
import type { Usage, UsageClass } from '../core/usage.ts'
import type { Provider } from '../manifest/provider.ts'

/** Maximum use by one call of tools that run at the provider. */
export type RemoteUses = {
  searches: number
  fileSearches: number
  /** Uses of all tools, searches among them, after each of which the model reads everything again. */
  passes: number
  /** Tokens that searches add to the prompt instead, where the manifest states them. */
  tokens: number
  /** Images that are drawn. */
  drawings: number
  /** Gigabytes of containers that code runs in. */
  containers: number
  /** The request leaves open how often its tools are used. */
  open: boolean
}

/** The tokens of one drawing: the largest image of the best quality with its drafts, and the images that it is made from. */
export const tokensOfDrawing = { output: 7_000, input: 32_000 }

/** Facts that a manifest may state about the tools of a model's family. */
export type ToolFacts = {
  /** Maximum number of searches in one call. */
  search_uses?: unknown
  /** Maximum number of tokens that one search adds to the prompt. */
  search_tokens?: unknown
  /** Maximum number of uses of the provider's tools by the model although none is requested. */
  remote_uses?: unknown
  /** False where the provider's usage does not count the uses of its tools. */
  counts_uses?: unknown
}

/** Maximum number of uses of such a tool where neither the request nor the manifest states one: Anthropic's own bound. */
export const usesUnstated = 10

/** Returns the maximum use of the provider's tools; bounds that the provider accepts are believed. */
export function remoteUses(request: NeutralRequest, provider: Provider | undefined, facts: ToolFacts): RemoteUses {
  const { web_search: search, tools, extensions } = request
  const total = isResponses(provider) ? numberIn(extensions?.max_tool_calls) : undefined
  const searches = search ? searchesOf(search.max_uses, { total, provider, facts }) : 0
  let fileSearches = 0
  let drawings = 0
  let containers = 0
  let open =
    searches > 0 &&
    (!takesSearchBound(provider) || search?.max_uses === undefined) &&
    total === undefined &&
    facts.search_uses === undefined
  let others = numberIn(facts.remote_uses) ?? 0
  if (extensions?.mcp_servers !== undefined && reaches('messages', provider)) others += usesUnstated
  for (const tool of tools ?? []) {
    if (!isProviderTool(tool) || tool.functions || runAtClient.test(tool.kind) || !reaches(tool.by, provider)) continue
    const stated = numberIn(tool.definition.max_uses) ?? total
    const uses = Math.max(stated ?? usesUnstated, 1)
    open ||= stated === undefined
    if (tool.kind === 'file_search') fileSearches += uses
    else others += uses
    if (tool.kind === 'image_generation') drawings += uses
    containers += containerOf(tool.definition)
  }
  const perSearch = numberIn(facts.search_tokens)
  const passes = fileSearches + others + (perSearch === undefined ? searches : 0)
  return { searches, fileSearches, passes, tokens: searches * (perSearch ?? 0), drawings, containers, open }
}

/**
 * Returns the uses of tools that the parts of an answer report, besides those that failed. Containers are at most as many gigabytes as
 * the call can open; each image counts as the largest.
 */
export function reportedUses(parts: readonly Part[], { containers: most }: Pick<RemoteUses, 'containers'>): Usage {
  const usage: Usage = {}
  const add = (name: UsageClass, count = 1) => {
    usage[name] = (usage[name] ?? 0) + count
  }
  const containers = new Set<Json | undefined>()
  for (const part of parts) {
    if (part.type === 'search' && isSearch(part)) add('searches')
    if (part.type === 'image' && part.id?.startsWith('ig_')) add('drawing_output', tokensOfDrawing.output)
    if (part.type !== 'opaque' || !isObject(part.body) || part.body.status === 'failed') continue
    const { type, container_id } = part.body
    if (type === 'code_interpreter_call') containers.add(container_id)
    const name = typeof type === 'string' ? classOfUse[type] : undefined
    if (name) add(name)
  }
  if (Math.min(containers.size, most) > 0) usage.containers = Math.min(containers.size, most)
  return usage
}

/** Returns the uses of tools in the parts of an answer whose provider counts none: also the pages that its searches opened. */
export function uncountedUses(parts: readonly Part[]): Usage {
  const visits = parts.filter(
    (part) => part.type === 'search' && part.status !== 'failed' && typeOf(part) === 'open_page',
  )
  return { ...reportedUses(parts, { containers: 0 }), ...(visits.length > 0 && { page_visits: visits.length }) }
}

/** The classes in which providers count the uses of their tools. */
const classOfUse: { readonly [type: string]: UsageClass } = {
  file_search_call: 'file_searches',
  code_interpreter_call: 'code_runs',
  x_search_call: 'x_searches',
}

/** Checks whether a search is one for which providers charge: opening a page is none. */
function isSearch(part: SearchPart): boolean {
  const type = typeOf(part)
  return part.status !== 'failed' && type !== 'open_page' && type !== 'find_in_page'
}

function typeOf({ results }: SearchPart): Json | undefined {
  return isObject(results) ? results.type : undefined
}

function searchesOf(
  stated: number | undefined,
  { total, provider, facts }: { total: number | undefined; provider: Provider | undefined; facts: ToolFacts },
): number {
  const bound = takesSearchBound(provider) ? stated : undefined
  return Math.max(bound ?? total ?? numberIn(facts.search_uses) ?? usesUnstated, 1)
}

/** Tools of providers that the client runs itself: their results come with the next request. */
const runAtClient = /^(bash|text_editor|computer|memory|local_shell|apply_patch|function|custom|namespace)(_|$)/

function isResponses(provider: Provider | undefined): boolean {
  return provider === undefined || provider.sameAs === 'responses'
}

/** Tools of one API go to providers of that API only. */
function reaches(api: string, provider: Provider | undefined): boolean {
  return provider === undefined || provider.sameAs === api
}

/** Checks whether `web_search.max_uses` reaches the provider. */
function takesSearchBound(provider: Provider | undefined): boolean {
  if (!provider?.chat) return true
  let takes = takers.get(provider)
  if (takes === undefined) {
    const { request, unsupported } = provider.chat
    const members = request.support.members('web_search')
    const isLost = unsupported.some(({ field }) => field === 'web_search.max_uses')
    takes = !isLost && (members === 'whole' || members.has('max_uses'))
    takers.set(provider, takes)
  }
  return takes
}

const takers = new WeakMap<Provider, boolean>()

/** The memory of a container that the call opens; one that is named is open already. */
function containerOf({ type, container, environment }: JsonObject): number {
  const opened = type === 'shell' ? environment : container
  if ((type !== 'code_interpreter' && type !== 'shell') || typeof opened === 'string') return 0
  const memory = isObject(opened) ? /^(\d+)g$/.exec(String(opened.memory_limit))?.[1] : undefined
  return Number(memory ?? 1)
}

function numberIn(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined
}
