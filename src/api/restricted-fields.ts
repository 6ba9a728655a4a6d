import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { Api } from '../core/request.ts'

/** Effect of a field besides the words of a reply: on who serves, what it costs, and what is stored or read at a provider. */
export type Effect = 'server' | 'cost' | 'state'

/**
 * Treatment of a field by the router. `read`: it understands it, and its price and limits hold. `refuse`: a 400. `priced`: it goes on
 * where its price is known. `held`: it names state at a provider, which the organization must have made through this router. `inside`:
 * its members may be other restricted fields, which are refused. `edited`: a 400 where the body goes on as it is; elsewhere nothing reads it.
 * `resource`: it names something that the account at the provider keeps, which the organization must be allowed to use.
 */
export type Rule = 'read' | 'refuse' | 'edited' | 'priced' | 'held' | 'inside' | 'resource'

/**
 * A field that decides more than the words of a reply, as a path in the body that goes through lists. `instead` is the advice that
 * follows its name in a message.
 */
export type RestrictedField = {
  name: string
  /** All APIs where this is missing. */
  apis?: readonly Api[]
  effect: Effect
  rule: Rule
  instead?: string
  /** Texts that may go on. */
  except?: { test(text: string): boolean }
  /** State is held in this format, and can go nowhere else. */
  format?: Api
  /** The values of a `resource` that the provider offers everybody, `*` for any characters. */
  public?: readonly string[]
}

const further = 'list further models in `models`'
const earlierTurns = 'send the whole conversation, or continue a response with `previous_response_id` on /v1/responses'
const ownLength =
  'limit the length with `max_completion_tokens`, on /v1/responses `max_output_tokens`, on /v1/messages `max_tokens`'
const operators = 'the operator decides this, not a request'

/** Lengths under the names that APIs and providers have for them. */
const lengths = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'].concat(
  ['max_new_tokens', 'max_tokens_to_sample', 'max_gen_len', 'max_length', 'num_predict', 'n_predict'],
  ['maxTokens', 'maxOutputTokens', 'maxTokenCount'],
)
const readLengths: { readonly [api in Api]: readonly string[] } = {
  chat: ['max_tokens', 'max_completion_tokens'],
  responses: ['max_output_tokens'],
  messages: ['max_tokens'],
}

/** Every restricted field of the client APIs; manifests add those of their providers. */
export const restrictedFields: readonly RestrictedField[] = [
  { name: 'model', effect: 'server', rule: 'read' },
  { name: 'models', effect: 'server', rule: 'read' },
  { name: 'provider', effect: 'server', rule: 'read' },
  { name: 'route', effect: 'server', rule: 'read' },
  { name: 'fallbacks', effect: 'server', rule: 'refuse', instead: further },
  { name: 'preset', effect: 'server', rule: 'refuse', instead: 'put its settings in the request' },
  { name: 'prompt', effect: 'server', rule: 'refuse', instead: 'put the prompt itself in the request' },
  {
    name: 'tools.model',
    effect: 'server',
    rule: 'refuse',
    instead: 'the price of the other model that works on it is unknown',
  },
  {
    // The API itself has none that the provider runs, and no counts for them.
    name: 'tools.type',
    apis: ['chat'],
    effect: 'cost',
    rule: 'edited',
    except: /^(function|custom)$|(^|:)web_search(_|$)/,
    instead: 'no price is known for a tool that the provider runs',
  },
  { name: 'inference_geo', apis: ['messages'], effect: 'server', rule: 'priced' },

  ...(['chat', 'responses', 'messages'] as const).flatMap((api) =>
    lengths.map((name): RestrictedField => {
      const rule = readLengths[api].includes(name) ? 'read' : 'refuse'
      return { name, apis: [api], effect: 'cost', rule, instead: ownLength }
    }),
  ),
  { name: 'n', apis: ['chat'], effect: 'cost', rule: 'read' },
  {
    name: 'n',
    apis: ['responses', 'messages'],
    effect: 'cost',
    rule: 'refuse',
    instead: 'one call produces one reply',
  },
  { name: 'best_of', effect: 'cost', rule: 'refuse', instead: 'ask for several replies with `n`' },
  { name: 'candidate_count', effect: 'cost', rule: 'refuse', instead: 'ask for several replies with `n`' },
  { name: 'service_tier', effect: 'cost', rule: 'priced' },
  { name: 'speed', apis: ['messages'], effect: 'cost', rule: 'priced' },
  {
    name: 'plugins',
    effect: 'cost',
    rule: 'refuse',
    instead: 'ask for a web search as a tool of the type `web_search`',
  },
  {
    name: 'transforms',
    effect: 'cost',
    rule: 'refuse',
    instead: 'send a prompt that fits the context window of the model',
  },
  { name: 'max_tool_calls', apis: ['responses'], effect: 'cost', rule: 'read' },
  { name: 'reasoning', apis: ['chat', 'responses'], effect: 'cost', rule: 'read' },
  { name: 'reasoning_effort', apis: ['chat'], effect: 'cost', rule: 'read' },
  { name: 'thinking', apis: ['chat', 'messages'], effect: 'cost', rule: 'read' },
  { name: 'modalities', apis: ['chat'], effect: 'cost', rule: 'read' },
  { name: 'audio', apis: ['chat'], effect: 'cost', rule: 'read' },
  { name: 'prediction', apis: ['chat'], effect: 'cost', rule: 'read' },
  { name: 'tools', effect: 'cost', rule: 'read' },
  { name: 'web_search_options', apis: ['chat'], effect: 'cost', rule: 'read' },
  { name: 'workspace_id', effect: 'cost', rule: 'refuse', instead: operators },
  { name: 'user_profile_id', effect: 'cost', rule: 'refuse', instead: operators },
  { name: 'billing_policy', effect: 'cost', rule: 'refuse', instead: operators },
  { name: 'fallback_credit_token', effect: 'cost', rule: 'refuse', instead: operators },

  { name: 'store', apis: ['chat', 'responses'], effect: 'state', rule: 'read' },
  { name: 'background', effect: 'state', rule: 'refuse', instead: 'replies are only produced synchronously' },
  { name: 'previous_response_id', apis: ['responses'], effect: 'state', rule: 'read' },
  { name: 'previous_response_id', apis: ['chat', 'messages'], effect: 'state', rule: 'refuse', instead: earlierTurns },
  { name: 'conversation', effect: 'state', rule: 'refuse', instead: earlierTurns },
  { name: 'thread', apis: ['messages'], effect: 'state', rule: 'held', format: 'messages', instead: earlierTurns },
  { name: 'thread', apis: ['chat', 'responses'], effect: 'state', rule: 'refuse', instead: earlierTurns },
  { name: 'container', apis: ['messages'], effect: 'state', rule: 'held', format: 'messages' },
  { name: 'container', apis: ['chat', 'responses'], effect: 'state', rule: 'refuse', instead: 'name it in the tool' },
  { name: 'tools.container', effect: 'state', rule: 'held', format: 'responses' },
  { name: 'tools.environment.container_id', effect: 'state', rule: 'held', format: 'responses' },
  { name: 'cached_content', effect: 'state', rule: 'refuse', instead: 'send the content' },
  { name: 'cachedContent', effect: 'state', rule: 'refuse', instead: 'send the content' },
]

/** A restricted field in a body: its path there, and its value. */
export type RestrictedUse = { field: RestrictedField; path: string; value: Json }

/** Finds the uses of restricted fields that the router does not simply read. */
export type RestrictedSearch = (body: JsonObject) => RestrictedUse[]

/** Members in which clients put what a provider alone understands. */
const wrappers = ['extra_body', 'extensions', 'provider_options', 'providerOptions']

/**
 * A search in the bodies of an API for a provider of this slug, with the fields that its manifest adds. A field inside of a wrapper is
 * refused regardless of its rule: the router reads it in its own place only.
 */
export function restrictedSearch(api: Api, slug: string, added: readonly RestrictedField[]): RestrictedSearch {
  const own = restrictedFields.filter(({ apis = [api] }) => apis.includes(api))
  return searchOf([...own, ...added], slug)
}

/** A search for these fields, of which later ones replace earlier ones of the same name. */
export function searchOf(all: readonly RestrictedField[], slug: string): RestrictedSearch {
  const fields = new Map(all.map((field) => [field.name, field]))
  const acting = [...fields.values()].filter(({ rule }) => rule !== 'read' && rule !== 'resource')
  const top = treeOf(acting)
  const inside = acting.flatMap(({ name, rule }) => (rule === 'inside' ? [name] : []))
  const wrapping = new Set([...wrappers, slug, ...inside])
  const meant = new Map([...spoken, ...top.keys(), ...fields.keys()].map((name) => [folded(name), name]))
  return (body) => {
    const uses: RestrictedUse[] = []
    for (const name of Object.keys(body)) {
      if (wrapping.has(name)) uses.push(...usesInside(body[name], name, fields))
      else addUses(body[name], top.get(name), uses)
      if (plain.test(name)) continue
      const other = meant.get(folded(name))
      if (other !== undefined && other !== name && !fields.has(name))
        uses.push({ field: misspelt(name, other), path: name, value: body[name] ?? null })
    }
    return uses
  }
}

/** Names that no provider reads as another one. */
const plain = /^[a-z0-9_]*$/

/** Fields that are not restricted, and decide how long a prompt is or how it is answered. */
const spoken = ['messages', 'input', 'system', 'instructions', 'stream']

/** Returns a name as providers read it that ignore case and whitespace, in all alphabets. */
export function folded(name: string): string {
  return name.trim().toUpperCase().toLowerCase()
}

function misspelt(name: string, meant: string): RestrictedField {
  return { name, effect: 'server', rule: 'refuse', instead: `write \`${meant}\`` }
}

/** Restricted fields by the steps of their paths. */
type Tree = Map<string, Branch>
type Branch = { field?: RestrictedField; inner: Tree }

function treeOf(fields: readonly RestrictedField[]): Tree {
  const top: Tree = new Map()
  for (const field of fields) {
    let branch: Branch = { inner: top }
    for (const step of field.name.split('.')) {
      const next = branch.inner.get(step) ?? { inner: new Map() }
      branch.inner.set(step, next)
      branch = next
    }
    branch.field = field
  }
  return top
}

/** Values that ask for nothing: null, false, and empty ones. */
export function asksForSomething(value: Json | undefined): value is Json {
  if (value === undefined || value === null || value === false || value === '') return false
  return typeof value !== 'object' || Object.keys(value).length > 0
}

/** Runs over the tools of every call: without lists of its own. */
function addUses(value: Json | undefined, branch: Branch | undefined, uses: RestrictedUse[]): void {
  if (!branch || value === undefined) return
  const { field, inner } = branch
  const isAllowed = typeof value === 'string' && field?.except?.test(value) === true
  if (field && asksForSomething(value) && !isAllowed) uses.push({ field, path: field.name, value })
  if (inner.size === 0 || typeof value !== 'object') return
  if (Array.isArray(value)) for (const item of value) addInner(item, inner, uses)
  else addInner(value, inner, uses)
}

function addInner(value: Json, inner: Tree, uses: RestrictedUse[]): void {
  if (isObject(value)) for (const [step, branch] of inner) addUses(value[step], branch, uses)
}

/** Finds restricted fields at any depth of a wrapper. */
function usesInside(
  wrapper: Json | undefined,
  name: string,
  fields: ReadonlyMap<string, RestrictedField>,
): RestrictedUse[] {
  const uses: RestrictedUse[] = []
  const open: [path: string, value: Json | undefined][] = [[name, wrapper]]
  for (let next = open.pop(); next; next = open.pop()) {
    const [at, value] = next
    if (Array.isArray(value)) for (const item of value) open.push([at, item])
    else if (isObject(value)) {
      for (const [member, inner] of Object.entries(value)) {
        const path = `${at}.${member}`
        const field = fields.get(member)
        if (field && asksForSomething(inner)) uses.push({ field: inPlace(field), path, value: inner as Json })
        else open.push([path, inner])
      }
    }
  }
  return uses
}

/** The router reads a field in its own place only. */
function inPlace({ name, effect, rule, instead }: RestrictedField): RestrictedField {
  const isRefused = rule === 'refuse' && instead !== undefined
  return { name, effect, rule: 'refuse', instead: isRefused ? instead : `write \`${name}\` at the top of the body` }
}
