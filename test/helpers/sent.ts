import type { ClientApi } from '../../src/api/client-api.ts'
import { namesInBody } from '../../src/api/wire-fields.ts'
import { translationOf } from '../../src/call/attempt/choose-translation.ts'
import type { PreparedCall } from '../../src/call/attempt/types.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import { unreadableFile } from '../../src/manifest/run/unsupported.ts'
import { servedBy, type Target } from '../../src/manifest/target.ts'
import { shippedFiles } from './shipped.ts'

/** What a shipped provider gets for a client's body, and what is reported of it. */
export type Sent = {
  target: Target
  body: JsonObject
  /** Neutral names of what is lost, and the client's. */
  dropped: string[]
  names: string[]
  /** The links that were fetched. */
  fetched: string[]
  unreadable: string | undefined
}

/** The bytes behind every link. */
export const fetchedFile = { data: 'JVBERi0xLjQ=', media_type: 'application/pdf' }

/** A model of a shipped provider, by its full id, as it is asked for a request. */
export async function shippedTarget(id: string, request?: NeutralRequest): Promise<Target> {
  const slug = id.slice(0, id.indexOf('/'))
  const model = id.slice(slug.length + 1)
  const { providers, catalog } = await shippedFiles()
  const loaded = providers.find(({ provider }) => provider.slug === slug)
  if (!loaded) throw new Error(`there is no provider ${slug}`)
  const entry = catalog.find(slug, model)
  const asked = request && { request, entry }
  return { provider: servedBy(loaded.provider, model, asked), model, ...(entry && { entry }) } as Target
}

/** A model of every shipped provider that converses, and of each of its variants. */
export async function shippedTargets(): Promise<string[]> {
  const { providers } = await shippedFiles()
  const variants = ['azure/claude-haiku-4-5', 'azure/gpt-5.1-codex', 'azure/grok-4', 'vertex/claude-opus-5']
  const families = ['openai/o3', 'openai/gpt-5.6', 'openai-responses/gpt-5.4', 'vertex/openai/gpt-oss-120b-maas']
  const claude = ['anthropic/claude-sonnet-4-5', 'bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0']
  const conversing = providers.filter(({ provider }) => provider.chat)
  return [...conversing.map(({ provider }) => `${provider.slug}/some-model`), ...variants, ...families, ...claude]
}

/**
 * Translates a client's body for a model of a shipped provider, or edits it where the formats are the same; `length` is the output limit in
 * place of the client's own.
 */
export async function sentTo(id: string, api: ClientApi, given: JsonObject, length?: number): Promise<Sent> {
  const body = { model: id, ...given }
  const request = api.read(body)
  const target = await shippedTarget(id, request)
  const fetched: string[] = []
  const fetchAll = async (urls: Iterable<string>) => {
    const wanted = [...urls]
    fetched.push(...wanted)
    return new Map(wanted.map((url) => [url, fetchedFile]))
  }
  const call = { clientApi: api, id: 'c', forwardedHeaders: [] }
  const turn = { bodyFor: () => body }
  const media = { fetchAll, param: 'messages' }
  const prepared = { call, request, turn, media, ...(length !== undefined && { length }) } as unknown as PreparedCall
  const { body: written, dropped } = await translationOf(target, prepared).request()
  const names = [...new Set(dropped.flatMap((name) => namesInBody(api.wireNames(name), body)))]
  return { target, body: written, dropped, names, fetched, unreadable: unreadableFile(request, dropped) }
}
