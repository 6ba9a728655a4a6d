import { RouterError } from '../core/errors.ts'
import type { Json, JsonObject } from '../core/json.ts'
import {
  dataCollections,
  type MaxPrice,
  priceKinds,
  type RoutingRequest,
  requestedSorts,
} from '../core/routing-request.ts'
import { type Check, defined, filledText, flag, listOf, object, oneOf, optional, refuse, text } from './check.ts'

/** The fields of a body that say how the call is routed. The router alone reads them. */
export const routingFields = ['models', 'provider', 'route', 'session_id'] as const

/**
 * How a body asks to be routed; `totalMs` is the time that a header gives to the whole call. Undefined where nothing is asked for.
 * Throws RouterError 400 that names the field.
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

function readProvider(provider: JsonObject): RoutingRequest {
  refuseUnknown(provider)
  const member = <T>(name: ProviderField, check: Check<T>) => optional(provider[name], `provider.${name}`, check)
  return defined({
    order: filled(member('order', slugs)),
    only: filled(member('only', slugs)),
    ignore: filled(member('ignore', slugs)),
    sort: member('sort', oneOf(requestedSorts)),
    maxPrice: member('max_price', maxPrice),
    allowFallbacks: member('allow_fallbacks', flag),
    requireParameters: member('require_parameters', flag),
    dataCollection: member('data_collection', oneOf(dataCollections)),
  })
}

const providerFields = [
  ...(['order', 'only', 'ignore', 'sort', 'max_price'] as const),
  ...(['allow_fallbacks', 'require_parameters', 'data_collection'] as const),
] as const
type ProviderField = (typeof providerFields)[number]

/** A wish that is not known may be a limit on who serves: it is not passed over. */
function refuseUnknown(provider: JsonObject): void {
  const known: readonly string[] = providerFields
  const unknown = Object.keys(provider).find((name) => !known.includes(name) && (provider[name] ?? false) !== false)
  if (unknown === undefined) return
  const param = `provider.${unknown.slice(0, 60)}`
  const message = `'${param}' is not supported by this router; known: ${known.join(', ')}.`
  throw new RouterError('invalid_request', message, { param })
}

const furtherModels: Check<string[]> = (value, path) => atMost(mostModels, listOf(filledText)(value, path), path)

/** Slugs of providers, in lower case as they are here. */
const slugs: Check<string[]> = (value, path) =>
  atMost(mostSlugs, listOf(filledText)(value, path), path).map((slug) => slug.toLowerCase())

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
    throw new RouterError('invalid_request', `'${param}' is no price that is known here: ${known.join(', ')}.`, {
      param,
    })
  }
  const read = priceKinds.map((name) => [name, optional(prices[name], `${path}.${name}`, usd)] as const)
  return Object.fromEntries(read.filter(([, price]) => price !== undefined))
}

/** A number of USD, or its text. */
function usd(value: Json, path: string): number {
  const price = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value
  const fits = typeof price === 'number' && price >= 0 && price <= largestUsd
  return fits ? price : refuse(path, 'a number of USD of at least 0', value)
}

function sessionId(value: Json, path: string): string {
  const id = text(value, path)
  return id.length <= longestSession ? id : refuse(path, `a text of at most ${longestSession} characters`, value)
}

function filled(names: string[] | undefined): string[] | undefined {
  return names && names.length > 0 ? names : undefined
}

const mostModels = 32
const mostSlugs = 100
const longestSession = 256
const largestUsd = 1_000_000
