import type { ServerResponse } from 'node:http'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  type Received,
} from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'

/** How a provider answers one request. */
export type Answer = (request: Received, response: ServerResponse) => void | Promise<void>

const head = (slug: string) => `slug: ${slug}
name: ${slug}
base_url: http://127.0.0.1:9
auth: { scheme: bearer, secret: "\${STEPS_KEY:-key-of-provider}" }
usage: '{ "input": heard, "output": spoken }'
models:
  m: { api: chat, also: [transcription], context_window: 8000, max_output_tokens: 900, pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 2e-6 }], other_prices: { per_second: 0.001 } }
`

const talk = `    request: { body: '{ "words": $join(messages.parts.text, "|"), "live": stream = true ? true }' }
    reply: '{ "id": id, "parts": { "type": "text", "text": words }, "finish": "stop", "usage": meter }'
`

const job = `    job:
      id: id
      poll: "/jobs/{id}"
      done: state = "ready"
      failed: 'state = "failed" ? { "message": reason }'
      cancel: "/jobs/{id}/cancel"
      every: 10ms
`

const events = `    events: { "*": '{ "text": words, "finish": over, "usage": meter }' }
`

/** Providers that need more than one request or cannot be asked for pieces, each dropped in as a file. */
const manifests: Record<string, string> = {
  cumulative: `${head('cumulative')}endpoints:
  chat:
    path: /talk
    stream: { cumulative: true }
${talk}${events}`,
  still: `${head('still')}endpoints:
  chat:
    path: /talk
    stream: false
${talk}`,
  // The same formats as the client APIs: bodies are edited.
  'still-chat': `${head('still-chat')}dialect: openai-chat
endpoints: { chat: { stream: false } }
`,
  jobs: `${head('jobs')}endpoints:
  chat:
    path: /talk
${talk}${job}`,
  live: `${head('live')}endpoints:
  chat:
    path: /talk
    stream: { url: links.live }
${talk}${events}${job}`,
  uploads: `${head('uploads')}endpoints:
  transcribe:
    path: /hear
    upload: { path: /files, reference: file.at }
    request: { body: '{ "sound": { "at": file }, "again": file }' }
    reply: '{ "text": words, "usage": meter }'
    usage: '{ "seconds": seconds }'
${job}`,
  forms: `${head('forms')}endpoints:
  transcribe:
    path: /hear
    upload: { path: /files, body: multipart, field: content, fields: { purpose: hearing }, reference: file.at }
    request: { body: '{ "sound": file }' }
    reply: '{ "text": words }'
`,
  inline: `${head('inline')}endpoints:
  transcribe:
    path: /hear
    request: { body: '{ "sound": { "data": file, "type": file.media_type } }' }
    reply: '{ "text": words }'
`,
  'inline-form': `${head('inline-form')}endpoints:
  transcribe:
    path: /hear
    body: multipart
    request: { body: '{ "what": { "sounds": [file], "kind": "wav" } }' }
    reply: '{ "text": words }'
`,
}

/** Opens a router before one server that is all these providers. `keepAliveMs`: after which a silent stream gets a comment. */
export async function stepsWorld(keepAliveMs?: number) {
  let answering: Answer = () => {}
  const provider: LoopbackProvider = await loopbackProvider((request, response) => answering(request, response))
  const files = Object.fromEntries(Object.entries(manifests).map(([slug, text]) => [`providers/${slug}.yaml`, text]))
  const providers = Object.fromEntries(Object.keys(manifests).map((slug) => [slug, { base_url: provider.url }]))
  const router: TestRouter = await testRouter({ files, providers, ...(keepAliveMs !== undefined && { keepAliveMs }) })
  return {
    provider,
    router,
    /** Sets the provider's answers, and forgets earlier requests. */
    begin(answer: Answer) {
      provider.received.length = 0
      answering = answer
    },
    async end() {
      await router.end()
      await provider.close()
    },
  }
}

export type StepsWorld = Awaited<ReturnType<typeof stepsWorld>>

/** The three client APIs: how a conversation is asked for, and how the text and the end of a streamed reply are read. */
export const clientApis = [
  {
    path: '/v1/chat/completions',
    body: { messages: [{ role: 'user', content: 'Hi' }] },
    // biome-ignore lint/suspicious/noExplicitAny: a test knows the form of the API.
    text: (reply: any) => reply.choices[0].message.content,
    // biome-ignore lint/suspicious/noExplicitAny: a test knows the form of the API.
    delta: (event: any) => event.choices?.[0]?.delta?.content,
    end: 'data: [DONE]',
  },
  {
    path: '/v1/messages',
    body: { max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }] },
    // biome-ignore lint/suspicious/noExplicitAny: a test knows the form of the API.
    text: (reply: any) => reply.content[0].text,
    // biome-ignore lint/suspicious/noExplicitAny: a test knows the form of the API.
    delta: (event: any) => (event.type === 'content_block_delta' ? event.delta.text : undefined),
    end: 'event: message_stop',
  },
  {
    path: '/v1/responses',
    body: { input: 'Hi' },
    // biome-ignore lint/suspicious/noExplicitAny: a test knows the form of the API.
    text: (reply: any) => reply.output.find(({ type }: { type: string }) => type === 'message').content[0].text,
    // biome-ignore lint/suspicious/noExplicitAny: a test knows the form of the API.
    delta: (event: any) => (event.type === 'response.output_text.delta' ? event.delta : undefined),
    end: 'event: response.completed',
  },
] as const

export type TestedApi = (typeof clientApis)[number]

/** Asks for a whole reply, and returns its text. */
export async function wholeText({ router }: StepsWorld, api: TestedApi, slug: string): Promise<string> {
  const response = await router.call(api.path, { model: `${slug}/m`, ...api.body })
  return api.text(await response.json())
}

/** Asks for a stream, and returns its pieces of text, whether it ended well, and all of it. */
export async function streamedText({ router }: StepsWorld, api: TestedApi, slug: string) {
  const response = await router.call(api.path, { model: `${slug}/m`, ...api.body, stream: true })
  const raw = await response.text()
  const data = [...raw.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json))
  const pieces = data.map(api.delta).filter((text): text is string => typeof text === 'string' && text !== '')
  return { status: response.status, pieces, isComplete: raw.includes(api.end), raw }
}

/** Writes events as JSON, and ends the stream. */
export function sendEvents(response: ServerResponse, events: readonly object[]): void {
  beginStream(response)
  response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
}

/** Answers a conversation with one whole reply. */
export function answerHello(response: ServerResponse, more: object = {}): void {
  answerJson(response, { id: 'r1', words: 'Hello.', meter: { heard: 5, spoken: 2 }, ...more })
}
