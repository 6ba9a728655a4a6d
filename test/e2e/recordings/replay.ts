import { existsSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { CallRecord } from '../../../src/core/call.ts'
import { openStore } from '../../../src/store/open.ts'
import { fileHost, type LoopbackProvider, loopbackProvider, type Received } from '../../helpers/provider.ts'
import { type Recording, recordings } from '../../helpers/recordings.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { serviceAccount, tokenEndpoint } from '../../helpers/token-endpoint.ts'
import { shippedModels } from '../../money/catalog.ts'
import { type Answer, type Body, plainAnswer } from './replay-answers.ts'

export type { Answer, Body } from './replay-answers.ts'

/** The provider of the recordings of a folder, unless they were made elsewhere. */
export const providersOf = {
  'openai-chat': 'openai',
  'openai-responses': 'openai-responses',
  'anthropic-messages': 'anthropic',
  gemini: 'google',
  'bedrock-converse': 'bedrock',
  'cohere-v2': 'cohere',
  ollama: 'ollama',
  groq: 'groq',
  deepseek: 'deepseek',
  mistral: 'mistral',
  openrouter: 'openrouter',
  xai: 'xai',
  together: 'together',
  'openai-compatible': 'vllm',
  'azure-openai': 'azure',
  perplexity: 'perplexity',
} as const

/** The name of a folder of recordings. */
export type Folder = keyof typeof providersOf

/** The provider that answers with a recording. */
export function providerOf({ dialect, provider }: Recording): string {
  return provider === 'vertex' ? 'vertex' : providersOf[dialect as Folder]
}

/** The recordings of a folder: successful replies, failures inside an HTTP success, and errors. */
export function sorted(folder: Folder): Record<'all' | 'good' | 'failing' | 'refused', Recording[]> {
  const all = recordings(folder)
  const answered = all.filter(({ response }) => response.status === 200)
  const fails = ({ case: name }: Recording) =>
    /\/(error-mid-stream|stop-reason-(unexpected-tool-call|error-stream))__/.test(name)
  return {
    all,
    good: answered.filter((recording) => !fails(recording)),
    failing: answered.filter(fails),
    refused: all.filter(({ response }) => response.status !== 200),
  }
}

/** The APIs that clients speak. */
export const clientApis = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
} as const

/** The name of a client API. */
export type ClientApi = keyof typeof clientApis

/** One call through the router: its reply, and the request that the provider received. */
export type Called = { status: number; headers: Headers; text: string; received: Received | undefined }

/** A router between us and one loopback provider per wire format. */
export type Stage = {
  router: TestRouter
  /** Sends a chat request as it is; calls run one after the other. */
  send(body: Body, headers?: Record<string, string>): Promise<Called>
  /** Calls the provider of a recording through one of the client APIs; it replies with this. */
  replay(recording: Recording, requested: { api: ClientApi; stream: boolean; answer: Answer }): Promise<Called>
  /** The ledger's row of a call. */
  rowOf(called: Called): Promise<CallRecord>
  /** Where files by URL are really there. */
  filesUrl: string
  end(): Promise<void>
}

/** How a network brings it: the first events, before and around the first content, each by itself; what follows them together. */
function* pieces(text: string | Buffer): Generator<string | Buffer, void> {
  if (typeof text !== 'string') return yield text
  const events = text.split(/(?<=\n\r?\n)/)
  yield* events.slice(0, mostPieces)
  yield events.slice(mostPieces).join('')
}

const mostPieces = 8

/** Starts the router and these providers. */
export async function openStage(slugs: readonly string[] = everybody): Promise<Stage> {
  const answers = new Map<string, Answer>()
  const providers = new Map<string, LoopbackProvider>()
  for (const slug of slugs) {
    const answer = async (request: Received, response: ServerResponse) => {
      const key = /replay no\. (\d+)/.exec(JSON.stringify(request.body))?.[1] ?? ''
      const { status, headers, text } = answers.get(key) ?? plainAnswer(slug, request)
      response.writeHead(status, headers)
      for (const piece of pieces(text)) {
        response.write(piece)
        await setImmediate()
      }
      response.end()
    }
    providers.set(slug, await loopbackProvider(answer))
  }
  const files = await fileHost('iVBORw0KGgo=')
  const tokens = await tokenEndpoint()
  const router = await testRouter({
    media: files.media,
    providers: Object.fromEntries([...providers].map(([slug, { url }]) => [slug, providerSettings(slug, url)])),
    env: { ...environment, GOOGLE_APPLICATION_CREDENTIALS: serviceAccount(tokens.url) },
  })
  const store = await openStore(`sqlite:${join(router.folder, 'data/router.sqlite')}`)

  const call = async (path: string, body: Body, headers?: Record<string, string>): Promise<Called> => {
    const received = providers.get(String(body.model).split('/')[0] ?? '')?.received ?? []
    const before = received.length
    const response = await router.call(path, body, headers)
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, received: received[before] }
  }
  return {
    router,
    async rowOf({ headers }) {
      const row = await store.ledger.find(headers.get('x-request-id') ?? '')
      if (!row) throw new Error('the call has no row in the ledger')
      return row
    },
    send: (body, headers) => call(clientApis.chat, body, headers),
    filesUrl: files.url,
    async replay(recording, { api, stream, answer }) {
      const key = String(answers.size)
      answers.set(key, answer)
      const model = `${providerOf(recording)}/${recording.model ?? 'unnamed'}`
      return await call(clientApis[api], { model, ...question(api, `replay no. ${key}`, stream) })
    },
    async end() {
      await store.close()
      await router.end()
      for (const server of [files, tokens, ...providers.values()]) await server.close()
    },
  }
}

const everybody = [...new Set([...Object.values(providersOf), 'vertex'])]

/** Providers whose manifests have a scheme of their own keep it; the others take one key. */
function plainKey(slug: string): object {
  return ['bedrock', 'vertex', 'azure', 'perplexity', 'cohere', 'ollama'].includes(slug)
    ? {}
    : { secret: '${UPSTREAM_KEY}' }
}

/** The settings of a shipped provider that is served at this URL. */
export function providerSettings(
  slug: string,
  url: string,
): { models: Record<string, object>; [name: string]: unknown } {
  return { base_url: url, unknown_models: 'pass', models: stillServed(slug), ...plainKey(slug) }
}

/** The variables of the shipped providers. */
export const environment = {
  UPSTREAM_KEY: 'sk-upstream',
  AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  AWS_REGION: 'us-east-1',
  AZURE_RESOURCE_NAME: 'resource',
  AZURE_API_KEY: 'azure-key',
  COHERE_API_KEY: 'cohere-key',
  PERPLEXITY_API_KEY: 'perplexity-key',
  GOOGLE_VERTEX_PROJECT: 'project',
}

function question(api: ClientApi, content: string, stream: boolean): Body {
  if (api === 'responses') return { input: content, stream }
  const messages = [{ role: 'user', content }]
  if (api === 'messages') return { messages, max_tokens: 4_000, stream }
  return { messages, ...(stream && { stream, stream_options: { include_usage: true } }) }
}

/** Models that were recorded may be shut down meanwhile: they are called as they were. */
function stillServed(slug: string): Record<string, object> {
  if (!existsSync(join(import.meta.dirname, `../../../catalog/${slug}.yaml`))) return {}
  const { models, by_api: others = {} } = shippedModels(slug)
  const sections = Object.entries({ chat: { models }, ...others })
  const shut = sections.flatMap(([api, section]) =>
    Object.entries(section.models).flatMap(([model, { shutdown }]) =>
      shutdown === undefined
        ? []
        : [[model, { api, ...(api === 'image' && { also: ['chat'] }), shutdown: '9999-12-31' }] as const],
    ),
  )
  return Object.fromEntries(shut)
}
