import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { openStore, type Store } from '../../src/store/open.ts'
import { fileHost, type LoopbackProvider, loopbackProvider, type Received } from '../helpers/provider.ts'
import { type Recording, recordedEvents } from '../helpers/recordings.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'

// biome-ignore lint/suspicious/noExplicitAny: recorded bodies have the shape of whoever sent them.
export type Body = any

/** What a loopback provider answers. */
export type Answer = { status: number; headers: Record<string, string>; text: string }

/** Who speaks for the recordings of a folder. */
export const speakers = {
  'openai-chat': 'openai',
  'anthropic-messages': 'anthropic',
  gemini: 'google',
  groq: 'groq',
  deepseek: 'deepseek',
  mistral: 'mistral',
  openrouter: 'openrouter',
  xai: 'xai',
  together: 'together',
  'openai-compatible': 'vllm',
  'azure-openai': 'vllm',
  perplexity: 'vllm',
} as const

/** The name of a folder of recordings. */
export type Folder = keyof typeof speakers

/** One call through the router: its answer, and what the provider received. */
export type Called = { status: number; headers: Headers; text: string; received: Received | undefined }

/** A router between us and one loopback provider per wire format. */
export type Stage = {
  router: TestRouter
  /** Sends a chat request as it is; calls run one after the other. */
  send(body: Body, headers?: Record<string, string>): Promise<Called>
  /** Asks a provider, which answers this. */
  replay(asked: { slug: string; model: string | null; stream: boolean; answer: Answer }): Promise<Called>
  store: Store
  /** Where files by URL are really there. */
  filesUrl: string
  end(): Promise<void>
}

/** Starts the router and its providers. */
export async function openStage(): Promise<Stage> {
  const answers = new Map<string, Answer>()
  const slugs = [...new Set(Object.values(speakers))]
  const providers = new Map<string, LoopbackProvider>()
  for (const slug of slugs) {
    const answer = (request: Received, response: ServerResponse) => {
      const key = /replay no\. (\d+)/.exec(JSON.stringify(request.body))?.[1] ?? ''
      const { status, headers, text } = answers.get(key) ?? plainAnswer(slug, request)
      response.writeHead(status, headers).end(text)
    }
    providers.set(slug, await loopbackProvider(answer))
  }
  const files = await fileHost('iVBORw0KGgo=')
  const router = await testRouter({
    media: files.media,
    providers: Object.fromEntries(
      [...providers].map(([slug, { url }]) => [
        slug,
        { base_url: url, secret: '${UPSTREAM_KEY}', unknown_models: 'pass' },
      ]),
    ),
    env: { UPSTREAM_KEY: 'sk-upstream' },
  })
  const store = openStore(`sqlite:${join(router.folder, 'data/router.sqlite')}`)

  const send: Stage['send'] = async (body, headers) => {
    const received = providers.get(String(body.model).split('/')[0] ?? '')?.received ?? []
    const before = received.length
    const response = await router.call('/v1/chat/completions', body, headers)
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, received: received[before] }
  }
  return {
    router,
    store,
    send,
    filesUrl: files.url,
    replay({ slug, model, stream, answer }) {
      const key = String(answers.size)
      answers.set(key, answer)
      return send({
        model: `${slug}/${model ?? 'unnamed'}`,
        messages: [{ role: 'user', content: `replay no. ${key}` }],
        ...(stream && { stream, stream_options: { include_usage: true } }),
      })
    },
    async end() {
      store.close()
      await router.end()
      for (const server of [files, ...providers.values()]) await server.close()
    },
  }
}

/** The recorded answer as it came; an array of events is framed as its provider frames streams for us. */
export function recordedAnswer({ response }: Recording): Answer {
  const { status, headers, body, sse, text } = response
  if (sse !== undefined) return { status, headers: streamHeaders, text: sse }
  if (Array.isArray(body) && status === 200) return streamOf(body.map((data) => ({ data })))
  return { status, headers: { ...headers, 'content-type': jsonType }, text: text ?? JSON.stringify(body) }
}

/** A whole answer of our making. */
export function wholeOf(body: Body): Answer {
  return { status: 200, headers: { 'content-type': jsonType }, text: JSON.stringify(body) }
}

/** A stream of our making. */
export function streamOf(frames: readonly { event?: string; data: Body }[], terminator = ''): Answer {
  const blocks = frames.map(({ event, data }) => {
    const name = event ? `event: ${event}\n` : ''
    return `${name}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
  })
  return { status: 200, headers: streamHeaders, text: blocks.join('') + terminator }
}

/** Whether the recording is a stream. */
export function isStreamed(recording: Recording): boolean {
  return recording.response.sse !== undefined || recordedEvents(recording).length > 0
}

const jsonType = 'application/json'
const streamHeaders = { 'content-type': 'text/event-stream' }

/** The shortest good answer of each format, for requests that are not replays. */
function plainAnswer(slug: string, { path, body }: Received): Answer {
  if (slug === 'google') {
    const said = { candidates: [{ content: { parts: [{ text: 'fine' }] }, finishReason: 'STOP' }] }
    return path.includes('stream') ? streamOf([{ data: said }]) : wholeOf(said)
  }
  if (slug === 'anthropic') {
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: {} }
    if (!body.stream) return wholeOf({ ...message, content: [{ type: 'text', text: 'fine' }], stop_reason: 'end_turn' })
    const begin = { event: 'message_start', data: { type: 'message_start', message } }
    const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: {} }
    return streamOf([begin, { event: 'message_delta', data: end }])
  }
  const whole = { id: 'chatcmpl-1', created: 1, model: 'm' }
  const choice = { index: 0, finish_reason: 'stop' }
  if (!body.stream)
    return wholeOf({ ...whole, choices: [{ ...choice, message: { role: 'assistant', content: 'fine' } }] })
  return streamOf([{ data: { ...whole, choices: [{ ...choice, delta: { content: 'fine' } }] } }], 'data: [DONE]\n\n')
}
