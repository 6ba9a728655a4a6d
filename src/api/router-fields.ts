import { RouterError } from '../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { NeutralRequest } from '../core/request.ts'
import {
  dataCollections,
  type MaxPrice,
  partitions,
  priceKinds,
  type RoutingRequest,
  requestedSorts,
} from '../core/routing/request.ts'
import {
  type Check,
  defined,
  filledText,
  flag,
  listOf,
  number,
  object,
  oneOf,
  optional,
  refuse,
  text,
} from './check.ts'

/** The fields of a body that determine how the call is routed. Only the router reads them. */
export const routingFields = ['models', 'provider', 'route', 'session_id'] as const

/** Fields that the router alone reads, in every API: no provider gets them. */
export const routerFields: readonly string[] = ['requesty', ...routingFields]

/** Checks whether the router is asked to have the prompt cached where caching must be requested. Throws RouterError 400. */
export function wantsCache(body: JsonObject): boolean {
  const settings = optional(body.requesty, 'requesty', object)
  return optional(settings?.auto_cache, 'requesty.auto_cache', flag) === true
}

/** The form in which a whole prompt is asked to be cached. */
export const wholePrompt = { type: 'ephemeral' }

/** A body without the fields of the router. */
export function withoutRouterFields(body: JsonObject, names = routerFields): JsonObject {
  if (!names.some((name) => name in body)) return body
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)))
}

/**
 * Reads the routing that a body asks for; `totalMs` is the time that a header gives to the whole call. Undefined where nothing is asked
 * for. Throws RouterError 400 that names the field.
 */
export function readRouting(body: JsonObject, totalMs?: number): RoutingRequest | undefined {
  const isAsked = routingFields.some((name) => (body[name] ?? null) !== null)
  if (!isAsked) return totalMs === undefined ? undefined : { totalMs }
  optional(body.route, 'route', oneOf(['fallback']))
  return {
    ...readProvider(optional(body.provider, 'provider', object) ?? {}),
    ...defined({
      models: filled(optional(body.models, 'models', furtherModels)),
      sessionId: optional(body.session_id, 'session_id', sessionId) || undefined,
      totalMs,
    }),
  }
}

/** A body that names its models by `models` alone asks for the first of them. */
export function withFirstModel(body: unknown): unknown {
  if (!isObject(body)) return body
  const first = firstModel(body)
  return first === undefined ? body : { ...body, model: first }
}

/** The first of `models` where there is no `model`. */
export function firstModel({ model, models }: JsonObject): Json | undefined {
  return (model ?? null) === null && Array.isArray(models) ? models[0] : undefined
}

function readProvider(provider: JsonObject): RoutingRequest {
  refuseUnknown(provider)
  const member = <T>(name: ProviderField, check: Check<T>) => optional(provider[name], `provider.${name}`, check)
  return defined({
    order: filled(member('order', slugs)),
    only: filled(member('only', slugs)),
    ignore: filled(member('ignore', slugs)),
    ...readSort(provider.sort),
    maxPrice: member('max_price', maxPrice),
    allowFallbacks: member('allow_fallbacks', flag),
    requireParameters: member('require_parameters', flag),
    dataCollection: member('data_collection', oneOf(dataCollections)),
    zeroRetention: member('zdr', flag) || undefined,
    ignored: filled(
      preferences.filter((name) => member(name, preference) !== undefined).map((name) => `provider.${name}`),
    ),
  })
}

/** A sort, or one with how far it reaches: for the targets of all names together, or for those of each name. */
function readSort(sort: Json | undefined): Pick<RoutingRequest, 'sort' | 'partition'> {
  if (!isObject(sort)) return defined({ sort: optional(sort, 'provider.sort', oneOf(requestedSorts)) })
  const by = optional(sort.by, 'provider.sort.by', oneOf(requestedSorts))
  const partition = optional(sort.partition, 'provider.sort.partition', oneOf(partitions)) ?? 'model'
  return by ? { sort: by, partition } : {}
}

/** A number of tokens per second or of seconds, or one for each of some percentiles. */
const preference: Check<Json> = (value, path) => {
  if (!isObject(value)) return number(0)(value, path)
  for (const [name, member] of Object.entries(value)) optional(member, `${path}.${name}`, number(0))
  return value
}

/** Preferences that are accepted and ignored: the reply reports that. */
const preferences = ['preferred_min_throughput', 'preferred_max_latency'] as const

const providerFields = [
  ...(['order', 'only', 'ignore', 'sort', 'max_price'] as const),
  ...(['allow_fallbacks', 'require_parameters', 'data_collection', 'zdr'] as const),
  ...preferences,
] as const
type ProviderField = (typeof providerFields)[number]

/** Facts about models that other routers know, and this one does not. */
const unknownFacts: { readonly [name: string]: string } = {
  quantizations: 'in which quantization a provider runs a model',
  enforce_distillable_text: 'whether other models may be trained on what a model writes',
}

/** Refuses unknown members: one may be a limit on who serves, so it must not be ignored. Throws RouterError 400. */
function refuseUnknown(provider: JsonObject): void {
  const known: readonly string[] = providerFields
  const unknown = Object.keys(provider).find((name) => !known.includes(name) && asksFor(provider[name]))
  if (unknown === undefined) return
  const param = `provider.${unknown.slice(0, 60)}`
  const { [unknown]: fact } = unknownFacts
  const why =
    fact === undefined ? 'is not supported by this router' : `cannot be met: this router does not know ${fact}`
  throw new RouterError('invalid_request', `'${param}' ${why}; leave it out. Known: ${known.join(', ')}.`, { param })
}

function asksFor(wished: Json | undefined): boolean {
  return (wished ?? false) !== false && !(Array.isArray(wished) && wished.length === 0)
}

const furtherModels: Check<string[]> = (value, path) => atMost(maxModels, listOf(filledText)(value, path), path)

/** Slugs of providers, in lower case as they are here. */
const slugs: Check<string[]> = (value, path) =>
  atMost(maxSlugs, listOf(filledText)(value, path), path).map((slug) => slug.toLowerCase())

function atMost(most: number, names: string[], path: string): string[] {
  if (names.length <= most) return names
  throw new RouterError('invalid_request', `'${path}' has ${names.length} names; at most ${most} are allowed.`, {
    param: path,
  })
}

const maxPrice: Check<MaxPrice> = (value, path) => {
  const prices = object(value, path)
  const known: readonly string[] = priceKinds
  const unknown = Object.keys(prices).find((name) => !known.includes(name) && (prices[name] ?? null) !== null)
  if (unknown !== undefined) {
    const param = `${path}.${unknown.slice(0, 60)}`
    throw new RouterError('invalid_request', `'${param}' is not a known price: ${known.join(', ')}.`, {
      param,
    })
  }
  const read = priceKinds.map((name) => [name, optional(prices[name], `${path}.${name}`, usd)] as const)
  return Object.fromEntries(read.filter(([, price]) => price !== undefined))
}

/** A number of USD, or its text. */
function usd(value: Json, path: string): number {
  const price = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value
  const fits = typeof price === 'number' && price >= 0 && price <= maxUsd
  return fits ? price : refuse(path, 'a number of USD of at least 0', value)
}

function sessionId(value: Json, path: string): string {
  const id = text(value, path)
  return id.length <= maxSessionLength ? id : refuse(path, `a string of at most ${maxSessionLength} characters`, value)
}

function filled(names: string[] | undefined): string[] | undefined {
  return names && names.length > 0 ? names : undefined
}

const maxModels = 32
const maxSlugs = 100
const maxSessionLength = 256
const maxUsd = 1_000_000

/** The prompt-cache fields that the Chat Completions and Responses APIs share; `wish` asks for the same. Throws RouterError 400. */
export function readPromptCache(body: JsonObject, wish?: JsonObject): NeutralRequest['cache'] {
  const cache = defined({
    key: optional(body.prompt_cache_key, 'prompt_cache_key', text),
    retention: optional(body.prompt_cache_retention, 'prompt_cache_retention', text),
    options:
      optional(body.prompt_cache_options, 'prompt_cache_options', object) ??
      wish ??
      (wantsCache(body) ? wholePrompt : undefined),
  })
  return Object.keys(cache).length > 0 ? cache : undefined
}
