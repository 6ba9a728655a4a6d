import { join } from 'node:path'
import type { Step } from '../e2e/plugins/plugin-world.ts'
import { says } from '../e2e/plugins/plugin-world.ts'
import { loopbackProvider, type Received } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'

export type ShippedWorld = {
  router: TestRouter
  received: Received[]
  /** What the provider does next; then it says `Hi.` */
  steps: Step[]
  ask(
    body: object,
    headers?: Record<string, string>,
  ): Promise<{ status: number; headers: Headers; text: string; content: string }>
  end(): Promise<void>
}

const price = '[{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000001 }]'

/** A router with shipped plugins, and a provider on loopback, where a model `one/m1` is. */
export async function shippedWorld(
  plugins: (url: string) => object[],
  env: NodeJS.ProcessEnv = {},
  settings: object = {},
): Promise<ShippedWorld> {
  const steps: Step[] = []
  const provider = await loopbackProvider((request, response) => (steps.shift() ?? says('Hi.'))(response, request))
  const manifest = `slug: one
name: One
base_url: ${provider.url}
auth: { scheme: bearer, secret: "\${KEY_OF_ONE}" }
dialect: openai-chat
models: { m1: { api: chat, context_window: 100000, pricing: ${price} } }
`
  const folders = { plugins: join(import.meta.dirname, '../../plugins') }
  const router = await testRouter({
    threads: 1,
    env: { KEY_OF_ONE: 'secret-of-one', ...env },
    files: { 'providers/one.yaml': manifest },
    settings: { folders, plugins: plugins(provider.url), ...settings },
  })
  return {
    router,
    received: provider.received,
    steps,
    async ask(body, headers) {
      const response = await router.call('/v1/chat/completions', { model: 'one/m1', ...body }, headers)
      const text = await response.text()
      return { status: response.status, headers: response.headers, text, content: contentOf(text) }
    },
    async end() {
      await router.end()
      await provider.close()
    },
  }
}

function contentOf(text: string): string {
  if (text.startsWith('{')) return JSON.parse(text).choices?.[0]?.message?.content ?? ''
  const events = text.split('\n').filter((line) => line.startsWith('data: {'))
  return events.map((line) => JSON.parse(line.slice(6)).choices?.[0]?.delta?.content ?? '').join('')
}
