import type { RestrictedField } from '../../api/restricted-fields.ts'
import type { ErrorCode, Rejection } from '../../core/errors.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { maxNameLength } from '../../core/names.ts'
import type { Operation } from '../../core/operation.ts'
import type { Finish } from '../../core/reply.ts'
import type { Api, NeutralRequest, TargetFacts } from '../../core/request.ts'
import { durationMs } from '../../core/time.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import type { Problem } from '../check/problem.ts'
import { checkSchema } from '../check/schema.ts'
import type { ModelListing, RateLimitHeaders, Trait } from '../provider.ts'
import { type ChatFile, type HistoryFile, type PartialChat, readChat, readHistory } from './chat-layer.ts'
import { type LimitsFile, readLimits } from './family-limits.ts'
import { type Around, MappingReader } from './mapping-reader.ts'
import { type PartialOperation, readOperations, withheldIn } from './operation-layer.ts'
import { readPattern } from './pattern.ts'
import type { Path } from './position.ts'
import type { Pieces } from './program.ts'
import type { Source } from './source.ts'
import type { OperationFile } from './types.ts'

/** One file, a dialect or a manifest, or a variant in it: checked, and with its mappings ready to run. */
export type Layer = {
  source: Source
  sameAs?: Api
  headers: { [name: string]: string }
  chat?: PartialChat
  operations: { readonly [operation in Operation]?: PartialOperation }
  /** The operations that the provider has: a dialect offers none, it only defines how they are requested. */
  offers: readonly Operation[]
  /** Operations that it does not have although its dialect describes them. */
  withholds: readonly Operation[]
  /** The provider's words for why a reply ended, and ours. */
  finish?: { [word: string]: Finish }
  /** The provider's usage object to ours. */
  usage?: Mapping
  /** The provider's error body to ours. */
  failure?: Mapping
  /** Names for several unsupported fields at once. */
  groups: { [name: string]: readonly string[] }
  count?: { path: string }
  compact?: { path: string }
  /** False where the provider lists no models although its dialect defines how. */
  listing?: ModelListing | false
  /** Fields of requests that change who serves, what it costs or what is kept. */
  restricted: readonly RestrictedField[]
  errors: { [name: string]: ErrorCode }
  rejections: { [phrase: string]: Rejection }
  errorHeaders: readonly string[]
  rateLimits: readonly RateLimitHeaders[]
  traits: Trait[]
  examples: Example[]
  /** The place of each mapping in the file, and the texts that it was made of. */
  places: Map<Mapping, Path>
  pieces: Pieces
  /** Variants of a manifest, for models that are served differently, in its order. */
  variants: VariantLayers[]
}

/** The layers that a variant is made of, its own the last. */
export type VariantLayers = { layers: Layer[] }

/** A proof that a mapping does what it should: neutral request → provider JSON, provider JSON → neutral reply. */
export type Example = {
  name: string
  /** The endpoint that it is about, where that is not the one for chat; `request` is then the client's. */
  operation?: Operation
  request?: Partial<NeutralRequest>
  /** The texts of the URL's query. */
  query?: { [name: string]: string }
  target?: Partial<TargetFacts>
  sends?: JsonObject
  /** Fields that are dropped from the request. */
  dropped?: string[]
  answers?: JsonObject
  events?: (JsonObject | string)[]
  /** The body of an HTTP error. */
  fails?: JsonObject
  means?: JsonObject
}

type RestrictedFile = Pick<RestrictedField, 'effect' | 'instead' | 'public'> & {
  rule?: 'refuse' | 'inside' | 'edited' | 'resource'
  except?: string
}

/** A file's form after its schema has accepted it, as far as dialects and manifests have it in common. */
export type LayerFile = {
  same_as?: Api
  headers?: { [name: string]: string }
  define?: string
  finish?: { [word: string]: Finish }
  usage?: string
  failure?: string
  groups?: { [name: string]: string[] }
  endpoints?: {
    chat?: ChatFile
    count?: { path: string }
    compact?: { path: string }
    models?: ListingFile | boolean
  } & {
    [operation in Operation]?: OperationFile | boolean
  }
  errors?: { [name: string]: ErrorCode }
  rejections?: { [phrase: string]: Rejection }
  error_headers?: string[]
  rate_limits?: RateLimitFile[]
  restricted?: { [name: string]: RestrictedFile }
  traits?: { match: string; facts?: Trait['facts']; limits?: LimitsFile; history?: HistoryFile }[]
  examples?: Example[]
}

/**
 * Reads a file that its schema has accepted. The layer is complete only when there are no problems. Its mappings see the
 * definitions and functions `around` it.
 */
export function readLayer(source: Source, around: Around = {}): { layer: Layer; problems: Problem[] } {
  const file = source.value as LayerFile
  const reader = new MappingReader(source, around)
  const { chat, count, compact, models } = file.endpoints ?? {}
  const usage = reader.read(['usage'], file.usage)
  const failure = reader.read(['failure'], file.failure)
  const operations = readOperations(reader, file.endpoints ?? {})
  const isDialect = !isOfProvider(source.value)
  const layer: Layer = {
    source,
    headers: file.headers ?? {},
    errors: file.errors ?? {},
    rejections: file.rejections ?? {},
    errorHeaders: (file.error_headers ?? []).map((name) => name.toLowerCase()),
    rateLimits: (file.rate_limits ?? []).map(readRateLimit),
    groups: file.groups ?? {},
    restricted: readRestricted(reader, file.restricted ?? {}),
    traits: readTraits(reader, file.traits ?? []),
    examples: file.examples ?? [],
    places: reader.places,
    pieces: reader.pieces,
    variants: [],
    operations,
    offers: isDialect ? [] : (Object.keys(operations) as Operation[]),
    withholds: withheldIn(file.endpoints ?? {}),
    ...(file.same_as !== undefined && { sameAs: file.same_as }),
    ...(file.finish && { finish: file.finish }),
    ...(usage && { usage }),
    ...(failure && { failure }),
    ...(chat && { chat: readChat(reader, chat) }),
    ...(count && { count }),
    ...(compact && { compact }),
    ...(models !== undefined && models !== true && { listing: models && { list: 'data', id: 'id', ...models } }),
  }
  return { layer, problems: reader.problems }
}

type RateLimitFile = { limit?: string; remaining: string; reset?: string; window?: string; in?: string }

function readRateLimit({ limit, remaining, reset, window, in: place }: RateLimitFile): RateLimitHeaders {
  const windowMs = window === undefined ? undefined : durationMs(window)
  return {
    remaining: remaining.toLowerCase(),
    ...(limit !== undefined && { limit: limit.toLowerCase() }),
    ...(reset !== undefined && { reset: reset.toLowerCase() }),
    ...(windowMs !== undefined && { windowMs }),
    ...(place !== undefined && { in: place.split('.') }),
  }
}

type ListingFile = Pick<ModelListing, 'path'> & Partial<ModelListing>

/** Checks whether a file is a manifest or a variant in it: both state what a provider has, a dialect how to talk to it. */
export function isOfProvider(value: unknown): boolean {
  return isObject(value) && ('slug' in value || 'match' in value || 'when' in value)
}

/** The facts about models that another provider's manifest declares; its problems are reported with that file. */
export function sharedTraits(source: Source): Layer {
  const file = checkSchema(source, 'provider').length === 0 ? (source.value as LayerFile) : {}
  const traits = readTraits({ source, problems: [] }, file.traits ?? [])
  return {
    source,
    headers: {},
    errors: {},
    rejections: {},
    errorHeaders: [],
    rateLimits: [],
    groups: {},
    restricted: [],
    traits,
    examples: [],
    places: new Map(),
    pieces: new Map(),
    variants: [],
    operations: {},
    offers: [],
    withholds: [],
  }
}

/** The files that layers come from, those of variants included. */
export function filesOf(layers: readonly Layer[]): Source[] {
  return layers.flatMap(({ source, variants }) => [source, ...variants.flatMap((variant) => filesOf(variant.layers))])
}

/** The number of examples in a file. */
export function countExamples({ examples, variants }: Layer): number {
  const own = variants.map(({ layers }) => layers.at(-1)?.examples.length ?? 0)
  return own.reduce((sum, count) => sum + count, examples.length)
}

type Reading = Pick<MappingReader, 'source' | 'problems'>

function readRestricted(reading: Reading, fields: { [name: string]: RestrictedFile }): RestrictedField[] {
  return Object.entries(fields).map(([name, { except: pattern, ...field }]) => {
    const path = ['restricted', name, 'except']
    const except = pattern === undefined ? undefined : readPattern(reading, path, pattern)
    return { name, rule: 'refuse', ...field, ...(except && { except }) }
  })
}

function readTraits(reading: Reading, traits: NonNullable<LayerFile['traits']>): Trait[] {
  return traits.flatMap(({ match, facts = {}, limits, history }, index): Trait[] => {
    const at: Path = ['traits', index]
    const pattern = readPattern(reading, [...at, 'match'], match, { maxLength: maxNameLength })
    if (!pattern) return []
    const own = limits && readLimits(reading, [...at, 'limits'], limits)
    const rules = history && readHistory(reading, [...at, 'history'], history)
    return [{ match: pattern, facts, ...(own && { limits: own }), ...(rules && { history: rules }) }]
  })
}
