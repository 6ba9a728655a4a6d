import { join } from 'node:path'
import { openStore, type Store } from '../../src/store/open.ts'
import { type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'

/** How a provider answers. */
export type Answering = Parameters<typeof loopbackProvider>[0]

/** A router with one provider behind all others, which says what each test wants. */
export type ImageWorld = {
  router: TestRouter
  provider: LoopbackProvider
  store: Store
  /** What the provider says next. */
  answer(answering: Answering): void
  /** The body that the provider got last: JSON, or the fields of a form by their names. */
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it sent.
  last(): any
  end(): Promise<void>
}

/** The shortest PNG: a pixel, or what says that it is larger. */
export function png(width = 1, height = 1): Buffer {
  const picture = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  )
  picture.writeUInt32BE(width, 16)
  picture.writeUInt32BE(height, 20)
  return picture
}

/** Models by provider, with prices of every unit. */
const painters = {
  openai: {
    'dall-e-3': { api: 'image', image_prices: { '1024x1024': 0.04, 'hd 1024x1024': 0.08, 'hd 1024x1792': 0.12 } },
    'by-megapixel': { api: 'image', other_prices: { per_megapixel: 0.003 } },
    'by-image': { api: 'image', other_prices: { per_image: 0.02, per_input_image: 0.01 } },
  },
}

const env = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 's' }

/** Starts a world; `settings` and `media` are those of the router, `more` further models by provider. */
export async function imageWorld({
  settings = {},
  media = {},
  more = {},
}: {
  settings?: object
  media?: object
  more?: Record<string, object>
} = {}) {
  let answering: Answering = (_, response) => void response.writeHead(500).end()
  const provider = await loopbackProvider((request, response) => answering(request, response))
  const { host } = new URL(provider.url)
  const all: Record<string, object> = { ...painters, ...more }
  const providerOf = (slug: string, models: object) => ({
    base_url: `${provider.url}/v1`,
    ...(slug !== 'bedrock' && { secret: 's' }),
    models,
  })
  const providers = Object.fromEntries(Object.entries(all).map(([slug, models]) => [slug, providerOf(slug, models)]))
  const allowed = { schemes: ['https', 'http'], allow_hosts: [host], ...media }
  const router = await testRouter({ providers, settings, media: allowed, env })
  const store = await openStore(`sqlite:${join(router.folder, 'data/router.sqlite')}`)
  const world: ImageWorld = {
    router,
    provider,
    store,
    answer: (next) => {
      answering = next
    },
    last: () => {
      const body = provider.received.at(-1)?.body
      if (!Array.isArray(body)) return body
      const grouped = Map.groupBy<string, [string, unknown]>(body, ([name]) => name)
      return Object.fromEntries([...grouped].map(([name, all]) => [name, all.map(([, value]) => value)]))
    },
    async end() {
      await store.close()
      await router.end()
      await provider.close()
    },
  }
  return world
}
