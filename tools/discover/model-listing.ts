import { RouterError } from '../../src/core/errors.ts'
import { isObject, type Json } from '../../src/core/json.ts'
import type { ModelListing, Provider } from '../../src/manifest/provider.ts'
import { defaultAnswerBounds, parseAnswer } from '../../src/upstream/answer-body.ts'
import type { HttpClient } from '../../src/upstream/http/types.ts'
import { sendRequest, textOf } from '../../src/upstream/provider-request.ts'

/** Lists the ids of the models that a provider lists itself, sorted. Throws RouterError. */
export async function listModels(provider: Provider, httpClient: HttpClient, signal: AbortSignal): Promise<string[]> {
  const { listing, slug } = provider
  if (!listing) {
    const message = `The manifest of '${slug}' does not say where the provider lists its models: add endpoints.models.`
    throw new RouterError('not_found', message)
  }
  const { path, prefix = '' } = listing
  const all = new Set<string>()
  let query: { [parameter: string]: string } = {}
  for (let page = 1; page <= maxPages; page++) {
    const request = { method: 'GET' as const, path, query, accept: 'application/json', signal }
    const response = await sendRequest({ provider, model: '' }, request, httpClient)
    const answer = parseAnswer(provider, await textOf(provider, response, bounds.bytes), bounds)
    const ids = idsIn(answer, listing, slug)
    const before = all.size
    for (const id of ids) if (id !== '') all.add(id.startsWith(prefix) ? id.slice(prefix.length) : id)
    const next = nextPage(answer, listing)
    if (!next || all.size === before) return [...all].toSorted()
    query = next
  }
  throw new RouterError('provider_unreadable', `The list has more than ${maxPages} pages.`, { provider: slug })
}

const maxPages = 100
const bounds = defaultAnswerBounds

/** Reads the ids of models: a list is a member of the answer, or all of it. */
function idsIn(answer: Json, { list, id }: ModelListing, slug: string): string[] {
  const models = isObject(answer) ? answer[list] : answer
  if (!Array.isArray(models)) {
    throw new RouterError('provider_unreadable', `The answer has no list '${list}'.`, { provider: slug })
  }
  return models.flatMap((model) => (isObject(model) && typeof model[id] === 'string' ? model[id].trim() : []))
}

function nextPage(answer: Json, { next }: ModelListing): { [parameter: string]: string } | undefined {
  const token = next && isObject(answer) ? answer[next.member] : undefined
  return next && typeof token === 'string' && token !== '' ? { [next.parameter]: token } : undefined
}
