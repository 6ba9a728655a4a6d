/** Routing instructions of one request. */
export type RoutingRequest = {
  /** Further names, for when those before them fail. */
  models?: readonly string[]
  /** Slugs of providers: those to be tried first, the only ones that may serve, those that may not. */
  order?: readonly string[]
  only?: readonly string[]
  ignore?: readonly string[]
  /** The order of targets, in place of that of their name. */
  sort?: RequestedSort
  /** Scope of that order: the targets of each name by itself, or, by default, of all together. */
  partition?: Partition
  maxPrice?: MaxPrice
  /** false: no other target is asked when the first one fails. */
  allowFallbacks?: boolean
  /** True if only targets that accept every parameter are allowed. */
  requireParameters?: boolean
  /** `deny`: only targets whose providers neither keep data nor train on it. */
  dataCollection?: DataCollection
  /** True if only targets whose providers store no data are allowed. */
  zeroRetention?: boolean
  /** Names of the fields with preferences that were recognized, but ignored. */
  ignored?: readonly string[]
  sessionId?: string
  /** The time for the whole call, in milliseconds. */
  totalMs?: number
}

/** The highest prices: USD per million tokens of prompt and completion, USD per request and per image. */
export type MaxPrice = { [name in PriceKind]?: number }

export type PriceKind = (typeof priceKinds)[number]
export type RequestedSort = (typeof requestedSorts)[number]
export type Partition = (typeof partitions)[number]
export type DataCollection = (typeof dataCollections)[number]

export const priceKinds = ['prompt', 'completion', 'request', 'image'] as const
export const requestedSorts = ['price', 'latency', 'throughput'] as const
export const partitions = ['model', 'none'] as const
export const dataCollections = ['allow', 'deny'] as const
