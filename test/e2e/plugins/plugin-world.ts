import type { ServerResponse } from 'node:http'
import type { CallRecord } from '../../../src/core/call.ts'
import type { FaultCount } from '../../../src/plugin/faults.ts'
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

// A router with plugins that tests write, and two providers whose answers they choose.

export type Step = (response: ServerResponse, request: Received) => void | Promise<void>

const price = (usd: number) => `[{ prompt_tokens_threshold: 0, input_price: ${usd}, output_price: ${usd} }]`
const manifest = (slug: string, url: string, usd: number) => `slug: ${slug}
name: ${slug}
base_url: ${url}
headers: { x-declared: manifest }
auth: { scheme: bearer, secret: "\${KEY_OF_${slug.toUpperCase()}}" }
dialect: openai-chat
endpoints: { embed: {}, image: { stream: {} }, speech: {}, complete: { stream: {} } }
traits: [{ match: ".*", facts: { prefill: true } }]
models:
  m1: { api: chat, context_window: 1000, pricing: ${price(usd)} }
  m2: { api: chat, geolocation: eu, pricing: ${price(usd)} }
  vectors: { api: embedding, pricing: ${price(usd)} }
  pictures: { api: image, pricing: ${price(usd)} }
  voice: { api: speech, pricing: ${price(usd)} }
  words: { api: completion, context_window: 1000, pricing: ${price(usd)} }
`

/** The same provider by the Responses API. */
const responsesManifest = (url: string) => `slug: own
name: own
base_url: ${url}
auth: { scheme: none }
dialect: openai-responses
unknown_models: pass
endpoints: { count: { path: /count }, compact: { path: /compact } }
`

const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const head = { id: 'c1', created: 1, model: 'm1' }
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
/** One chunk of a stream. */
export const chunk = (delta: object, finish_reason: string | null = null) =>
  data({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })
/** How a stream ends. */
export const streamEnd = `${chunk({}, 'stop')}${data({ ...head, object: 'chat.completion.chunk', choices: [], usage })}data: [DONE]\n\n`

/** Answers a conversation with these texts, each in an event of its own where it is streamed. */
export const says =
  (...texts: string[]): Step =>
  (response, { body }) => {
    if (body.stream) {
      beginStream(response)
      response.end(texts.map((content) => chunk({ content })).join('') + streamEnd)
      return
    }
    const message = { role: 'assistant', content: texts.join('') }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    answerJson(response, { ...head, object: 'chat.completion', choices, usage, system_fingerprint: 'own' })
  }

/** What the providers of a world do where a test says nothing else. */
const usual: Step = (response, request) => {
  const { path, body } = request
  if (path.includes('embeddings')) {
    const vectors = [body.input]
      .flat()
      .map((_: unknown, index: number) => ({ object: 'embedding', index, embedding: [1, 2] }))
    answerJson(response, { object: 'list', data: vectors, usage: { prompt_tokens: 2, total_tokens: 2 } })
  } else if (path.includes('images')) {
    beginStream(response)
    response.write(data({ type: 'image_generation.partial_image', partial_image_index: 0, b64_json: 'QQ==' }))
    response.end(data({ type: 'image_generation.completed', b64_json: 'UEk=' }))
  } else if (path === '/count') {
    answerJson(response, { object: 'response.input_tokens', input_tokens: 14 })
  } else if (path === '/compact') {
    const output = [{ type: 'compaction', id: 'cmp_1', encrypted_content: 'sealed' }]
    answerJson(response, {
      id: 'resp_2',
      object: 'response.compaction',
      created_at: 2,
      output,
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
    })
  } else if (path.includes('speech')) {
    response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(Buffer.from('sound'))
  } else {
    return says('Hi ', 'you.')(response, request)
  }
}

export type PluginWorld = {
  router: TestRouter
  store: Store
  providers: { one: LoopbackProvider; two: LoopbackProvider }
  /** What the providers do, step by step; then they answer as usual. */
  steps: { one: Step[]; two: Step[] }
  rows(): Promise<CallRecord[]>
  /** What plugins have noted: they call `note`. */
  notes: unknown[]
  /** Asks for a conversation; the text of a stream, or the message. */
  ask(changes?: object, headers?: Record<string, string>): Promise<Asked>
  /** What hooks did wrong, as the metrics tell it. */
  faults(): Promise<FaultCount[]>
  end(): Promise<void>
}

export type Asked = { status: number; headers: Headers; text: string; content: string; body: string }

/** What config.yaml says of its plugins, by name, its other settings, and further variables. */
type PluginWorldSetup = { said?: Record<string, object>; settings?: object; env?: Record<string, string> }

let worlds = 0

/** `plugins` are the bodies of `setup` by name: they may use `options`, `kit`, `note` and `Refusal`. */
export async function pluginWorld(
  plugins: Record<string, string>,
  { said = {}, settings = {}, env = {} }: PluginWorldSetup = {},
): Promise<PluginWorld> {
  const steps: PluginWorld['steps'] = { one: [], two: [] }
  const serve = (name: 'one' | 'two') =>
    loopbackProvider((request, response) => (steps[name].shift() ?? usual)(response, request))
  const providers = { one: await serve('one'), two: await serve('two') }
  const notes: unknown[] = []
  const id = `notes of ${++worlds}`
  ;(globalThis as { [name: string]: unknown })[id] = notes
  const source = (body: string) => `
import { definePlugin, Refusal, Retry } from 'inference-router/plugin'
const note = (fact: unknown) => { (globalThis as any)[${JSON.stringify(id)}].push(fact) }
export default definePlugin<any>({ options: { additionalProperties: true }, setup(options, kit) { ${body} } })
void Refusal; void Retry; void note
`
  const router = await testRouter({
    threads: 1,
    env: { KEY_OF_ONE: 'secret-of-one', KEY_OF_TWO: 'secret-of-two', ...env },
    files: {
      'providers/one.yaml': manifest('one', providers.one.url, 0.000_002),
      'providers/own.yaml': responsesManifest(providers.one.url),
      'providers/two.yaml': manifest('two', providers.two.url, 0.000_001),
      ...Object.fromEntries(Object.entries(plugins).map(([name, body]) => [`plugins/${name}.ts`, source(body)])),
    },
    settings: { plugins: Object.keys(plugins).map((name) => ({ name, ...said[name] })), ...settings },
  })
  const store = await storeIn(router.folder)
  return {
    router,
    store,
    providers,
    steps,
    notes,
    rows: async () => await Array.fromAsync(store.ledger.each({})),
    async ask(changes = {}, headers = {}) {
      const body = { model: 'one/m1', messages: [{ role: 'user', content: 'Hello' }], ...changes }
      const response = await router.call('/v1/chat/completions', body, headers)
      const text = await response.text()
      return { status: response.status, headers: response.headers, text, body: text, content: contentOf(text) }
    },
    async faults() {
      const text = await (await router.call('/metrics')).text()
      const found = text.matchAll(/^inference_router_plugin_faults_total\{(.*)\} (\d+)$/gm)
      return [...found].map(([, labels = '', count]) => {
        const named = Object.fromEntries(
          [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
        )
        return { ...named, count: Number(count) } as FaultCount
      })
    },
    async end() {
      await store.close()
      await router.end()
      await providers.one.close()
      await providers.two.close()
    },
  }
}

/** What an answer says, streamed or whole. */
function contentOf(text: string): string {
  if (text.startsWith('{')) return JSON.parse(text).choices?.[0]?.message?.content ?? ''
  const events = text.split('\n').filter((line) => line.startsWith('data: {'))
  return events.map((line) => JSON.parse(line.slice(6)).choices?.[0]?.delta?.content ?? '').join('')
}
