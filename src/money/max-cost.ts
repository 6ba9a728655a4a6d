import type { Json } from '../core/json.ts'
import type { ModelEntry } from '../core/models/model.ts'
import { entryAt } from '../core/models/price-times.ts'
import type { Part } from '../core/parts.ts'
import { isProviderTool, type NeutralRequest } from '../core/request.ts'
import { mergeUsage, type Usage, type UsageClass } from '../core/usage.ts'
import type { Provider } from '../manifest/provider.ts'
import { targetFacts } from '../manifest/target.ts'
import { estimateTokens, type PromptSize } from './estimate-tokens.ts'
import { costAt } from './price.ts'
import { multiplierUnit, type Rates, reachedTier, type Tariff, tariffOf } from './rates.ts'
import { type RemoteUses, remoteUses, reportedUses, tokensOfDrawing, uncountedUses } from './remote-tools.ts'

/** A call as far as its cost can be known in advance. `at` is its arrival in Unix milliseconds: it decides the prices. */
export type BoundedCall = {
  request: NeutralRequest
  size: PromptSize
  at: number
  /** The tokens of the text by a tokenizer (`o200k_base`), where it has been counted. */
  counted?: number | undefined
}

/** The properties of a target that its price depends on. */
export type PricedTarget = { entry?: ModelEntry; model?: string; provider?: Provider }

/** Sizes up a call, once for all its targets. */
export function boundedCall(request: NeutralRequest, at: number, counted?: number): BoundedCall {
  return { request, size: estimateTokens(request), at, counted }
}

/** Returns the maximum length of a model's reply, in tokens; the longest of any model where the catalog does not state it. */
export function maxOutputTokens({ entry }: PricedTarget): number {
  return entry?.max_output_tokens ?? entry?.context_window ?? tokenCap
}

/** The most tokens of all choices of a reply whose length is limited to `length`. */
export function outputBound({ request }: BoundedCall, target: PricedTarget, length: number): number {
  let bound = target.provider?.sameAs === 'responses' ? Math.max(length, minOfResponses) : length
  if (request.reasoning && !declinesThinking(request)) {
    const thinking = Math.max(request.reasoning.budget ?? 0, minThinking)
    if (bound <= thinking) bound += thinking
  }
  return Math.min(bound, maxOutputTokens(target)) * choicesOf(request)
}

/** Checks whether a request asks its model not to think, which not every model obeys. */
export function declinesThinking({ reasoning }: NeutralRequest): boolean {
  return reasoning?.effort === 'none' || reasoning?.budget === 0
}

/** Checks whether a model may think about a request: all that can do, unless its manifest states that it must be asked to. */
export function thinks(request: NeutralRequest, target: PricedTarget): boolean {
  const can = target.entry?.supports_reasoning
  const isAsked = request.reasoning !== undefined && !declinesThinking(request)
  return isAsked ? can !== false : can === true && factsOf(target).thinks_unasked !== false
}

/** Checks whether a provider may use more for a call than the client sees: its model thinks, or it runs tools. */
export function hidesUsage(call: BoundedCall, target: PricedTarget): boolean {
  const { passes, searches } = usesAt(call, target)
  return passes + searches > 0 || thinks(call.request, target)
}

/** Returns the uses of the provider's tools that the parts of an answer report. */
export function usesIn(parts: readonly Part[], call: BoundedCall, target: PricedTarget): Usage {
  return parts.length === 0 ? {} : reportedUses(parts, usesAt(call, target))
}

/** Returns the usage of an answer with the uses of tools that its provider does not count. */
export function withUncounted(usage: Usage, parts: readonly Part[], target: PricedTarget): Usage {
  if (factsOf(target).counts_uses !== false) return usage
  return mergeUsage(usage, uncountedUses(parts))
}

/** Returns the number of replies that a request asks for at once. */
export function choicesOf({ n = 1, extensions }: NeutralRequest): number {
  const best = extensions?.best_of
  return Math.max(n, typeof best === 'number' ? best : 1, 1)
}

/**
 * Returns the maximum number of tokens of a call's prompt at a target: those of its text, at most one for each byte; of its images, as
 * many as the manifest states for the model; and the whole context of the model for each thing whose length is not known.
 */
export function promptBound(call: BoundedCall, target: PricedTarget): number {
  return promptWith(call, target, usesAt(call, target))
}

function promptWith(call: BoundedCall, target: PricedTarget, uses: RemoteUses): number {
  const { request, size } = call
  const context = target.entry?.context_window ?? maxContext
  const images = size.images === 0 ? 0 : size.images * imageTokens(target)
  const media =
    size.boundless || continues(request, target) ? Math.max(context, size.media + images) : size.media + images
  return Math.max(textBound(call, target) + bytesOfTemplate + media, size.tokens) + uses.passes * context + uses.tokens
}

/**
 * The maximum tokens of a text: no more than it has bytes; where they have been counted (`o200k_base`), no more than other tokenizers
 * may make of as many.
 */
export function textBound(
  { size, counted }: { size: Pick<PromptSize, 'bytes' | 'text' | 'other'>; counted?: number | undefined },
  target: PricedTarget,
): number {
  if (counted === undefined) return size.bytes
  const { token_factor: stated } = factsOf(target)
  const factor = typeof stated === 'number' ? stated : factorUnstated
  const foreign = factor > 1 ? size.other * tokensPerCharacter : 0
  return Math.min(size.bytes, size.bytes - size.text + Math.ceil(counted * factor) + foreign)
}

/** Tokens that a tokenizer makes of one of `o200k_base`, where the manifest does not state it, and of other characters beyond. */
const factorUnstated = 2
const tokensPerCharacter = 2

/** Checks whether a call leaves open how often tools of its provider are used. */
export function leavesUsesOpen(call: BoundedCall, target: PricedTarget): boolean {
  return usesAt(call, target).open
}

/** Checks whether the provider adds stored content to the prompt: it may have more than came from here. */
function continues({ origin: { api, body } }: NeutralRequest, { provider }: PricedTarget): boolean {
  return provider?.sameAs === api && stateFields.some((name) => isPresent(body[name]))
}

const stateFields = ['previous_response_id', 'conversation', 'prompt', 'thread'] as const

/** Returns the use of the provider's tools: most calls use none. */
function usesAt({ request }: BoundedCall, target: PricedTarget): RemoteUses {
  const { web_search, tools, extensions } = request
  const facts = factsOf(target)
  const isAsked = web_search || tools?.some(isProviderTool) || extensions?.mcp_servers !== undefined
  return isAsked || facts.remote_uses !== undefined ? remoteUses(request, target.provider, facts) : noUses
}

const noUses: RemoteUses = {
  searches: 0,
  fileSearches: 0,
  passes: 0,
  tokens: 0,
  drawings: 0,
  containers: 0,
  open: false,
}

/** Checks whether the price of a target is known. */
export function isPriced({ at }: Pick<BoundedCall, 'at'>, { entry }: PricedTarget): boolean {
  return entry !== undefined && tariffOf(entryAt(entry, at)) !== undefined
}

/**
 * Returns the cost of a call at a target, in nano-USD, if its reply has `output` tokens; 0 where no price is known. `isCached`: its
 * prompt is in the provider's cache.
 */
export function costBound(call: BoundedCall, target: PricedTarget, output: number, isCached = false): bigint {
  const priced = pricedAt(call, target)
  if (!priced) return 0n
  const { entry } = priced
  const inputs = isCached ? cachedClasses : inputClasses(call.request, call.size, entry)
  const tariff = priced.tariff.marginal ? withMostExpensiveInput(inputs, priced) : priced.tariff
  const uses = usesAt(call, target)
  const longest = promptWith(call, target, uses)
  let most = 0n
  for (let place = reachedTier(tariff, longest); place >= 0; place--) {
    // A prompt with fewer tokens stays in a lower tier.
    const prompt = Math.min(longest, maxInside(tariff, place))
    const cost = costAt(usageBound(call, { entry, tariff, place, inputs, uses, prompt, output }), tariff, place)
    if (cost > most) most = cost
  }
  return most
}

/** Returns the maximum length of each choice for which all output costs at most `nanoUsd`; undefined where output costs nothing. */
function lengthFor(call: BoundedCall, target: PricedTarget, nanoUsd: bigint): number | undefined {
  const priced = pricedAt(call, target)
  if (!priced) return undefined
  const { entry, tariff } = priced
  const classes = outputClasses(call.request, entry)
  let [highest, unit] = [0n, 1_000n]
  for (const rates of tariff.tiers) {
    const price = rates.pico[mostExpensiveOf(classes, rates)]
    if (price > highest) highest = price
  }
  for (const mode of mostExpensiveModes(call.request, tariff)) {
    const multiplier = tariff.multipliers.get(mode)
    if (multiplier === undefined) continue
    highest *= multiplier
    unit *= multiplierUnit
  }
  const one = highest * BigInt(choicesOf(call.request))
  return one === 0n ? undefined : Number((nanoUsd * unit) / one)
}

/** The smallest output limit of the Responses API. Tokens. */
const minOfResponses = 16
/** The smallest thinking budget of providers; it is added to a smaller output limit. Tokens. */
const minThinking = 1_024
/** Larger bounds are capped: no model writes or reads more. Tokens. */
const tokenCap = 1_000_000_000
const maxContext = 1_000_000
/** Size of what providers put before a prompt themselves: their own instructions, and how tools are called. Tokens. */
const bytesOfTemplate = 1_024
/** Maximum number of tokens of an image where the manifest does not state it: those of a model with dynamic resolution. */
const imageTokensUnstated = 16_384

/** The trait `image_tokens` of the model's family. */
function imageTokens(target: PricedTarget): number {
  const { image_tokens: stated } = factsOf(target)
  return typeof stated === 'number' ? stated : imageTokensUnstated
}

/** Returns the facts that the manifest states about the model. */
function factsOf({ provider, model, entry }: PricedTarget): { [name: string]: Json } {
  if (!provider?.traits || model === undefined) return {}
  return targetFacts(provider, { model, ...(entry && { entry }) }).traits
}

function pricedAt({ at }: BoundedCall, target: PricedTarget): { entry: ModelEntry; tariff: Tariff } | undefined {
  const entry = target.entry && entryAt(target.entry, at)
  const tariff = entry && tariffOf(entry)
  return entry && tariff ? { entry, tariff } : undefined
}

/** Maximum use of a call at a tier of a tariff. */
type MaxUsage = {
  entry: ModelEntry
  tariff: Tariff
  place: number
  inputs: Classes
  uses: RemoteUses
  prompt: number
  output: number
}

/** The longest prompt that reaches no higher tier. */
function maxInside({ tiers, inclusive }: Tariff, place: number): number {
  const next = tiers[place + 1]
  return next ? next.threshold - (inclusive ? 1 : 0) : Infinity
}

/**
 * Returns the tariff with the price of its most expensive input class in each tier: with marginal tiers each slice may be of that class.
 */
function withMostExpensiveInput(inputs: Classes, { tariff }: Pick<MaxUsage, 'tariff'>): Tariff {
  const tiers = tariff.tiers.map((rates) => ({
    ...rates,
    pico: { ...rates.pico, input: rates.pico[mostExpensiveOf(inputs, rates)] },
  }))
  return { ...tariff, tiers }
}

function mostExpensiveOf(names: Classes, { pico }: Rates): UsageClass {
  let [mostExpensive] = names
  for (const other of names) if (pico[other] > pico[mostExpensive]) mostExpensive = other
  return mostExpensive
}

function usageBound({ request }: BoundedCall, most: MaxUsage): Usage {
  const { entry, tariff, place, inputs, uses, prompt, output } = most
  const rates = tariff.tiers[place] as Rates
  const usage: Usage = {}
  usage[mostExpensiveOf(inputs, rates)] = prompt
  usage[mostExpensiveOf(outputClasses(request, entry), rates)] = output
  if (uses !== noUses) addUses(usage, uses)
  const modes = mostExpensiveModes(request, tariff)
  if (modes.length > 0) usage.modes = modes
  return usage
}

function addUses(usage: Usage, { searches, fileSearches, containers, drawings }: RemoteUses): void {
  // Each may open a page.
  if (searches > 0) Object.assign(usage, { searches, page_visits: searches })
  if (fileSearches > 0) usage.file_searches = fileSearches
  if (containers > 0) usage.containers = containers
  if (drawings === 0) return
  usage.drawing_input = drawings * tokensOfDrawing.input
  usage.drawing_output = drawings * tokensOfDrawing.output
}

type Classes = [UsageClass, ...UsageClass[]]

const cachedClasses: Classes = ['cache_read']

function inputClasses({ modalities }: NeutralRequest, size: PromptSize, entry: ModelEntry): Classes {
  const { audio, images, boundless, caches } = size
  const names: Classes = ['input', 'cache_read']
  if (audio || boundless || modalities?.includes('audio')) names.push('input_audio', 'cache_read_audio')
  if (images > 0 || boundless) names.push('input_image')
  if (caches || writesByDefault(entry)) names.push('cache_write_5m')
  if (caches === '1h') names.push('cache_write_1h')
  return names
}

/** Checks whether the provider caches by default: cache writes then have one price whatever their lifetime. */
function writesByDefault({ pricing = [] }: ModelEntry): boolean {
  return pricing.some(({ caching_price, caching_5m_price }) => isPresent(caching_price) && !isPresent(caching_5m_price))
}

function isPresent(value: Json | undefined): boolean {
  return value !== null && value !== undefined
}

function outputClasses({ modalities, audio }: NeutralRequest, entry: ModelEntry): Classes {
  const names: Classes = ['output', 'reasoning']
  if (audio || modalities?.includes('audio')) names.push('output_audio')
  if (modalities?.includes('image') || (!modalities && entry.supports_image_generation)) names.push('output_image')
  return names
}

/**
 * The requested modes that cost more; a request for a cheaper mode may be served without it. A tier that the entry does not price by its
 * name may be billed as the most expensive that it has: OpenAI serves `fast` as `priority`.
 */
function mostExpensiveModes(
  { service_tier: tier, extensions, web_search: search }: NeutralRequest,
  { multipliers }: Tariff,
) {
  const dearer: string[] = []
  for (const asked of [tier, extensions?.speed, extensions?.inference_geo]) {
    if (typeof asked !== 'string') continue
    const mode = billedMode(asked, multipliers)
    if (!dearer.includes(mode) && (multipliers.get(mode) ?? 0n) > multiplierUnit) dearer.push(mode)
  }
  if (search?.context_size) dearer.push(`search_${search.context_size}`)
  return dearer
}

function billedMode(mode: string, multipliers: Tariff['multipliers']): string {
  if (multipliers.has(mode) || !raisedTiers.has(mode)) return mode
  let mostExpensive = mode
  for (const tier of raisedTiers)
    if ((multipliers.get(tier) ?? 0n) > (multipliers.get(mostExpensive) ?? 0n)) mostExpensive = tier
  return mostExpensive
}

/** Tiers that cost more where they cost anything else than the ordinary one. */
const raisedTiers: ReadonlySet<string> = new Set(['priority', 'fast', 'reserved'])

/** Bounds on the length of a reply whose request does not limit it. */
export type Allowance = {
  /** Amount that the caller can still pay, in nano-USD; undefined where nothing limits it. */
  leftNano: bigint | undefined
  /** The length that a call gets at least, in tokens. */
  defaultLength: number
}

/** The length that a call asks for at a target, in tokens. */
export type RequestedLength = {
  /** The output limit to be sent; undefined where the request stays as it is. */
  length?: number
  /** The output of all choices that is held. */
  output: number
  /** The most output of all choices that can come. */
  maxTokens: number
  /** The output that rate limits count in advance. */
  expected: number
}

/**
 * The length of a reply: the client's own, at most the model's; else, for a caller with a limit, the longest that costs at
 * most an eighth of what is left. What cannot be sent shorter than the default is asked for at that length.
 */
export function requestedLength(call: BoundedCall, target: PricedTarget, allowance: Allowance): RequestedLength {
  const most = maxOutputTokens(target)
  const stated = call.request.max_output_tokens
  if (stated !== undefined) {
    const length = Math.min(stated, most)
    const output = outputBound(call, target, length)
    return { ...(length < stated && { length }), output, maxTokens: output, expected: output }
  }
  const expected = outputBound(call, target, Math.min(allowance.defaultLength, most))
  const all = outputBound(call, target, most)
  if (allowance.leftNano === undefined) return { output: expected, maxTokens: all, expected }
  const affordable = affordableLength(call, target, allowance.leftNano)
  if (affordable === undefined) return { output: all, maxTokens: all, expected }
  const length = Math.min(Math.max(affordable, allowance.defaultLength), most)
  const isBelow = length < most || target.entry?.max_output_tokens === undefined
  const output = outputBound(call, target, length)
  return { ...(isBelow && { length }), output, maxTokens: output, expected }
}

/** A caller that leaves the length open must be able to make other calls. */
const share = 8n

function affordableLength(call: BoundedCall, target: PricedTarget, left: bigint): number | undefined {
  const rest = left - costBound(call, target, 0)
  const portion = left / share
  const least = rest < portion ? rest : portion
  return lengthFor(call, target, least > 0n ? least : 0n)
}
