import type { ServerResponse } from 'node:http'
import type { CallRecord } from '../../../src/core/call.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import type { Store } from '../../../src/store/open.ts'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  type Received,
} from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { storeIn } from '../money/budget-world.ts'

// Two providers whose answers tests choose, and policies over them that are asked why they choose what they choose.

export type Step = (response: ServerResponse, request: Received) => void | Promise<void>

/** A target in its place, one that was left out, an attempt: as an explanation has them. */
export type Explained = {
  sort: string
  sticky: string
  prompt_tokens?: number
  targets: {
    model: string
    by: string
    reason: string
    weight?: number
    max_cost_usd?: number
    prompt_cost_usd?: number
    name?: number
  }[]
  skipped: { model: string; step: string; reason: string }[]
  not_allowed?: number
  attempts: JsonObject[]
  timings: { before_ms: number; first_content_ms?: number; total_ms: number }
}

const price = (input: number) => `[{ prompt_tokens_threshold: 0, input_price: ${input}, output_price: ${input} }]`
const manifest = (slug: string, url: string, usd: number) => `slug: ${slug}
name: ${slug}
base_url: ${url}
auth: { scheme: bearer, secret: "\${KEY_OF_${slug.toUpperCase()}}" }
dialect: openai-chat
endpoints: { embed: {}, image: { stream: {} } }
traits: [{ match: ".*", facts: { prefill: true } }]
models:
  m1: { api: chat, pricing: ${price(usd)} }
  blind: { api: chat, supports_vision: false, pricing: ${price(usd)} }
  small: { api: chat, context_window: 10, pricing: ${price(usd)} }
  european: { api: chat, geolocation: eu, pricing: ${price(usd)} }
  unpriced: { api: chat }
  vectors: { api: embedding, pricing: ${price(usd)} }
  pictures: { api: image, pricing: ${price(usd)} }
`

const head = { id: 'c1', created: 1, model: 'm1' }
const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
export const chunk = (delta: object, finish_reason: string | null = null) =>
  data({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })

/** Whole or streamed, a conversation or vectors. */
const answers: Step = (response, { path, body }) => {
  if (path.includes('embeddings')) {
    const vectors = [{ object: 'embedding', index: 0, embedding: [1, 2] }]
    answerJson(response, { object: 'list', data: vectors, usage: { prompt_tokens: 2, total_tokens: 2 } })
  } else if (path.includes('images')) {
    beginStream(response)
    response.end(data({ type: 'image_generation.completed', b64_json: 'UEl' }))
  } else if (body.stream) {
    beginStream(response)
    response.end(`${chunk({ content: 'Hi ' })}${chunk({ content: 'you.' })}${chunk({}, 'stop')}data: [DONE]\n\n`)
  } else {
    const message = { role: 'assistant', content: 'Hi you.' }
    answerJson(response, {
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage,
    })
  }
}

export const fails =
  (status: number, headers = {}): Step =>
  (response) =>
    answerJson(response, { error: { message: `failed with ${status}` } }, status, headers)

export class World {
  readonly router: TestRouter
  readonly store: Store
  readonly providers: { one: LoopbackProvider; two: LoopbackProvider }
  /** What the providers do, step by step; then they answer. */
  readonly steps: { one: Step[]; two: Step[] }

  constructor(parts: Pick<World, 'router' | 'store' | 'providers' | 'steps'>) {
    this.router = parts.router
    this.store = parts.store
    this.providers = parts.providers
    this.steps = parts.steps
  }

  get rows(): Promise<CallRecord[]> {
    return Array.fromAsync(this.store.ledger.each({}))
  }

  async end(): Promise<void> {
    await this.store.close()
    await this.router.end()
    await this.providers.one.close()
    await this.providers.two.close()
  }
}

/** A router with these policies, and what else its settings say. */
export async function worldWith(policies: Record<string, object>, settings: object = {}): Promise<World> {
  const steps: World['steps'] = { one: [], two: [] }
  const serve = (name: 'one' | 'two') =>
    loopbackProvider((request, response) => (steps[name].shift() ?? answers)(response, request))
  const providers = { one: await serve('one'), two: await serve('two') }
  const router = await testRouter({
    env: { KEY_OF_ONE: 'secret-of-one', KEY_OF_TWO: 'secret-of-two' },
    files: {
      'providers/one.yaml': manifest('one', providers.one.url, 0.000_002),
      'providers/two.yaml': manifest('two', providers.two.url, 0.000_001),
      'providers/away.yaml': manifest('away', 'https://away.example', 0.000_001),
    },
    providers: { one: { limits: { concurrent: 1, queue: 1 } } },
    settings: { policies, ...settings },
    // Each thread would know of the health of targets by itself.
    threads: 1,
    // Streams that are held back begin with comments.
    keepAliveMs: 200,
  })
  return new World({ router, store: await storeIn(router.folder), providers, steps })
}
