import { RouterError } from '../core/errors.ts'
import { isObject } from '../core/json.ts'
import type { Provider } from '../manifest/provider.ts'
import { defaultAnswerBounds } from './answer-bounds.ts'
import { parseObject } from './answer-json.ts'
import type { HttpClient } from './http-client.ts'
import { sendRequest, textOf } from './provider-request.ts'

/** The ids of the models that a provider lists itself, sorted. Throws RouterError. */
export async function listModels(provider: Provider, httpClient: HttpClient, signal: AbortSignal): Promise<string[]> {
  const { listing, slug } = provider
  if (!listing) {
    const message = `The manifest of '${slug}' does not say where the provider lists its models: write endpoints.models.`
    throw new RouterError('not_found', message)
  }
  const { path, list, id, prefix = '' } = listing
  const request = { method: 'GET' as const, path, accept: 'application/json', signal }
  const response = await sendRequest({ provider, model: '' }, request, httpClient)
  const bounds = defaultAnswerBounds
  const answer = parseObject(provider, await textOf(provider, response, bounds.bytes), bounds)
  const models = answer[list]
  if (!Array.isArray(models)) {
    throw new RouterError('provider_unreadable', `The answer has no list '${list}'.`, { provider: slug })
  }
  const ids = models.flatMap((model) => (isObject(model) && typeof model[id] === 'string' ? model[id] : []))
  return ids.map((one) => (one.startsWith(prefix) ? one.slice(prefix.length) : one)).toSorted()
}
