import type { ServerResponse } from 'node:http'
import type { Json } from '../../src/core/json.ts'
import type { ModelEntry } from '../../src/core/models/model.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import type { Example } from '../../src/manifest/read/layer.ts'
import { servedBy } from '../../src/manifest/target.ts'
import type { Reply, Wire } from '../e2e/clients/sdk-wire.ts'
import { messagesWire } from '../e2e/clients/sdk-wire-messages.ts'
import { responsesWire } from '../e2e/clients/sdk-wire-responses.ts'
import { chatWire, mistralWire } from '../e2e/clients/sdk-wires-chat.ts'
import { converseWire, geminiWire } from '../e2e/clients/sdk-wires-cloud.ts'
import { cohereWire, ollamaWire } from '../e2e/clients/sdk-wires-open.ts'
import { answerJson, type LoopbackProvider, loopbackProvider, type Received } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import { shippedFiles } from '../helpers/shipped.ts'
import { serviceAccount, tokenEndpoint } from '../helpers/token-endpoint.ts'

/** What a provider does when it is called: a reply of a conversation, a status, or a JSON document. */
export type Play = { reply: Reply } | { status: number } | { json: Json }

/** A shipped provider: its manifest as it is configured, the models that it lists, and the examples of its manifest. */
export type Shipped = {
  slug: string
  provider: Provider
  models: { model: string; entry: ModelEntry }[]
  examples: readonly Example[]
}

/** One router with all shipped providers, all of which are one server. */
export type ContractWorld = {
  router: TestRouter
  shipped: readonly Shipped[]
  /** What has come since the last call of `play`. */
  received(): readonly Received[]
  play(play: Play | ((received: Received['body']) => Play)): void
  end(): Promise<void>
}

const wires = [messagesWire, responsesWire, chatWire, converseWire, geminiWire, cohereWire, ollamaWire]

/** The wire format in which a provider answers conversations. */
export function wireOf({ slug, dialect }: Provider): Wire {
  const wire = slug === mistralWire.slug ? mistralWire : wires.find((one) => one.dialect === dialect)
  if (!wire) throw new Error(`${slug} speaks ${dialect}, for which there is no wire`)
  return wire
}

/** The models of a provider that are served as the manifest itself says, not one of its variants. */
export function plainModels({ provider, models }: Shipped): Shipped['models'] {
  return models.filter(({ model, entry }) => servedBy(provider, entry.is ?? model) === provider)
}

/** Starts it. Every variable that a manifest names is set. */
export async function contractWorld(): Promise<ContractWorld> {
  const files = await shippedFiles()
  const tokens = await tokenEndpoint()
  let playing: Play | ((received: Received['body']) => Play) = { status: 500 }
  const server: LoopbackProvider = await loopbackProvider((request, response) => {
    const slug = request.path.split('/')[1] ?? ''
    const found = shipped.find((one) => one.slug === slug)
    const play = typeof playing === 'function' ? playing(request.body) : playing
    if (found) answer(found.provider, request, response, play)
    else response.writeHead(404).end()
  })
  const missing = files.providers.flatMap(({ provider }) => provider.missing)
  const env = {
    ...Object.fromEntries(missing.map((name) => [name, `value-of-${name.toLowerCase().replaceAll('_', '-')}`])),
    GOOGLE_APPLICATION_CREDENTIALS: serviceAccount(tokens.url),
  }
  const slugs = files.providers.map(({ provider }) => provider.slug)
  const providers = Object.fromEntries(slugs.map((slug) => [slug, { base_url: `${server.url}/${slug}` }]))
  const router = await testRouter({ env, providers })
  const { catalog, providers: loaded } = router.snapshot()
  const shipped = files.providers.map(({ provider: { slug }, layers }) => ({
    slug,
    provider: loaded.get(slug) as Provider,
    models: catalog.list().filter(({ provider }) => provider === slug),
    examples: layers?.at(-1)?.examples ?? [],
  }))
  return {
    router,
    shipped,
    received: () => server.received,
    play(play) {
      playing = play
      server.received.length = 0
    },
    async end() {
      await router.end()
      await server.close()
      await tokens.close()
    },
  }
}

function answer(provider: Provider, { path, body }: Received, response: ServerResponse, play: Play): void {
  const wire = 'reply' in play ? wireOf(provider) : undefined
  if ('json' in play) answerJson(response, play.json)
  else if ('status' in play) {
    answerJson(response, { error: { message: `Failure ${play.status}` } }, play.status)
  } else if (!wire?.isStream(path, body)) answerJson(response, wire?.whole(play.reply))
  else {
    response.writeHead(200, { 'content-type': wire.contentType })
    for (const frame of wire.frames(play.reply)) response.write(frame)
    response.end()
  }
}
