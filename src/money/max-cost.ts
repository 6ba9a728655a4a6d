import type { ModelEntry } from '../core/model.ts'
import { entryAt } from '../core/price-times.ts'
import type { NeutralRequest } from '../core/request.ts'
import type { Usage, UsageClass } from '../core/usage.ts'
import { estimateTokens, type PromptSize } from './estimate-tokens.ts'
import { costAt } from './price.ts'
import { multiplierUnit, type Rates, reachedTier, type Tariff, tariffOf } from './rates.ts'

/** The maximum cost of a call, as far as it is known in advance. */
export type MaxCost = {
  /** Of the most expensive target; 0 where no target has a price. */
  nanoUsd: bigint
  promptTokens: number
  outputTokens: number
  /** The request limits its output itself. */
  hasOutputLimit: boolean
}

/**
 * The cost of a request at its most expensive target: the estimated prompt, all of it in the most expensive class that can apply,
 * and as much output as the request allows, or `defaultOutputTokens` where it sets no limit; at the prices of the
 * moment when it arrived, `at`, in Unix milliseconds.
 */
export function maxCost(
  request: NeutralRequest,
  targets: readonly PricedTarget[],
  { defaultOutputTokens, at }: { defaultOutputTokens: number; at: number },
): MaxCost {
  const prompt = estimateTokens(request)
  const hasOutputLimit = request.max_output_tokens !== undefined
  let nanoUsd = 0n
  let outputTokens = 0
  for (const target of targets) {
    const output = outputBound(request, target, defaultOutputTokens)
    outputTokens = Math.max(outputTokens, output)
    const entry = target.entry && entryAt(target.entry, at)
    const tariff = entry && tariffOf(entry)
    if (!tariff) continue
    const cost = costBound({ request, prompt, output, entry, tariff })
    if (cost > nanoUsd) nanoUsd = cost
  }
  return { nanoUsd, promptTokens: prompt.tokens, outputTokens, hasOutputLimit }
}

/** The properties of a target that its price depends on. */
export type PricedTarget = { entry?: ModelEntry; provider?: { sameAs?: string } }

/** The smallest output limit of the Responses API. Tokens. */
const leastOfResponses = 16
/** The smallest thinking budget of providers; it is added to a smaller output limit. Tokens. */
const leastThinking = 1_024

/** Larger bounds are capped: no model writes more. Tokens. */
const mostOutput = 1_000_000_000

function outputBound(request: NeutralRequest, { entry, provider }: PricedTarget, defaultOutputTokens: number): number {
  const { max_output_tokens: limit, reasoning, n = 1 } = request
  let bound = limit ?? defaultOutputTokens
  if (provider?.sameAs === 'responses') bound = Math.max(bound, leastOfResponses)
  const thinks = reasoning && reasoning.effort !== 'none' && reasoning.budget !== 0
  if (limit !== undefined && thinks) {
    const thinking = Math.max(reasoning.budget ?? 0, leastThinking)
    if (bound <= thinking) bound += thinking
  }
  return Math.min(bound, entry?.max_output_tokens ?? mostOutput) * Math.max(n, 1)
}

type CostInput = { request: NeutralRequest; prompt: PromptSize; output: number; entry: ModelEntry; tariff: Tariff }

/** The highest cost at any tier that the prompt can reach: one with fewer tokens than estimated may stay in a lower tier. */
function costBound(input: CostInput): bigint {
  const { prompt } = input
  const tariff = input.tariff.marginal ? withDearestInput(input) : input.tariff
  let most = 0n
  for (let place = reachedTier(tariff, prompt.tokens); place >= 0; place--) {
    const tokens = Math.min(prompt.tokens, mostInside(tariff, place))
    const cost = costAt(usageBound({ ...input, tariff, prompt: { ...prompt, tokens } }, place), tariff, place)
    if (cost > most) most = cost
  }
  return most
}

/** The longest prompt that reaches no higher tier. */
function mostInside({ tiers, inclusive }: Tariff, place: number): number {
  const next = tiers[place + 1]
  return next ? next.threshold - (inclusive ? 1 : 0) : Infinity
}

/** With marginal tiers each slice may be of the class that is the most expensive in its tier. */
function withDearestInput({ request, prompt, entry, tariff }: CostInput): Tariff {
  const names = inputClasses(request, prompt, entry)
  const tiers = tariff.tiers.map((rates) => ({
    ...rates,
    pico: { ...rates.pico, input: rates.pico[dearestOf(names, rates)] },
  }))
  return { ...tariff, tiers }
}

function dearestOf(names: readonly UsageClass[], { pico }: Rates): UsageClass {
  return names.reduce((one, other) => (pico[other] > pico[one] ? other : one))
}

function usageBound({ request, prompt, output, entry, tariff }: CostInput, place: number): Usage {
  const rates = tariff.tiers[place] as Rates
  const modes = dearestModes(request, tariff)
  return {
    [dearestOf(inputClasses(request, prompt, entry), rates)]: prompt.tokens,
    [dearestOf(outputClasses(request, entry), rates)]: output,
    ...searchBound(request),
    ...(modes.length > 0 && { modes }),
  }
}

/** As many searches as the request allows, one by default. */
function searchBound({ web_search: search, tools, extensions }: NeutralRequest): Usage {
  const most = extensions?.max_tool_calls
  const allowed = typeof most === 'number' ? most : 1
  const inFiles = tools?.some(({ kind }) => kind === 'file_search')
  return {
    ...(search && { searches: Math.max(search.max_uses ?? allowed, 1) }),
    ...(inFiles && { file_searches: Math.max(allowed, 1) }),
  }
}

function inputClasses({ modalities }: NeutralRequest, { audio, images, caches }: PromptSize, entry: ModelEntry) {
  const names: UsageClass[] = ['input', 'cache_read']
  if (audio || modalities?.includes('audio')) names.push('input_audio', 'cache_read_audio')
  if (images) names.push('input_image')
  if (caches || writesByDefault(entry)) names.push('cache_write_5m')
  if (caches === '1h') names.push('cache_write_1h')
  return names
}

/** Where cache writes have one price whatever their lifetime, the provider caches by default. */
function writesByDefault({ pricing = [] }: ModelEntry): boolean {
  return pricing.some(({ caching_price, caching_5m_price }) => isPrice(caching_price) && !isPrice(caching_5m_price))
}

function isPrice(price: number | null | undefined): boolean {
  return price !== null && price !== undefined
}

function outputClasses({ modalities, audio }: NeutralRequest, entry: ModelEntry): UsageClass[] {
  const names: UsageClass[] = ['output', 'reasoning']
  if (audio || modalities?.includes('audio')) names.push('output_audio')
  if (modalities?.includes('image') || (!modalities && entry.supports_image_generation)) names.push('output_image')
  return names
}

/** The requested modes that cost more; a request for a cheaper mode may be served without it. */
function dearestModes({ service_tier: tier, extensions, web_search: search }: NeutralRequest, { multipliers }: Tariff) {
  const requested = [tier, extensions?.speed, extensions?.inference_geo].filter((mode) => typeof mode === 'string')
  const dearer = [...new Set(requested)].filter((mode) => (multipliers.get(mode) ?? 0n) > multiplierUnit)
  return search?.context_size ? [...dearer, `search_${search.context_size}`] : dearer
}
