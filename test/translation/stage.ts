import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { accumulated, eventsIn as messageEvents } from '../api/messages-stream.ts'
import { follow, eventsIn as responseEvents } from '../api/responses-order.ts'
import { environment, providerSettings } from '../e2e/recordings/replay.ts'
import { type Answer, type Body, framed, linesAnswer, streamOf, wholeOf } from '../e2e/recordings/replay-answers.ts'
import { chunksIn, gathered } from '../e2e/recordings/replay-client.ts'
import { awsEvent } from '../helpers/aws-frames.ts'
import { loopbackProvider, type Received } from '../helpers/provider.ts'
import { alone, testRouter } from '../helpers/router.ts'
import type { Case, CaseFile } from './read-cases.ts'

/** One call of a case: the reply as one document, even if it was streamed, and the request that the provider received. */
export type Called = { status: number; dropped: string[]; answer: Body; received: Received | undefined }

/** A router whose shipped providers are one loopback server, which replies as the current case says. */
export type Stage = {
  call(one: Case, options?: { stream?: boolean; strict?: boolean }): Promise<Called>
  end(): Promise<void>
}

/** Starts the router with the providers that a file names. */
export async function openStage({ file, models: replaced, cases }: CaseFile): Promise<Stage> {
  for (const { name, model } of cases)
    if (!existsSync(join(import.meta.dirname, `../../providers/${slugOf(model)}.yaml`)))
      throw new Error(`${file}, case "${name}": there is no provider '${slugOf(model)}'`)
  let current: Case | undefined
  const provider = await loopbackProvider((request, response) => {
    const { status, headers, text } = replyTo(request, current)
    response.writeHead(status, headers).end(text)
  })
  const slugs = new Set(cases.map(({ model }) => slugOf(model)))
  const providers = [...slugs].map((slug) => {
    const { models, ...settings } = providerSettings(slug, provider.url)
    const own = Object.entries(replaced).flatMap(([id, entry]) =>
      slugOf(id) === slug ? [[id.slice(slug.length + 1), entry]] : [],
    )
    return [slug, { ...settings, models: { ...models, ...Object.fromEntries(own) } }]
  })
  const router = await testRouter({ providers: alone(Object.fromEntries(providers)), env: environment })

  return {
    async call(one, { stream = false, strict = false } = {}) {
      current = one
      provider.received.length = 0
      const { path, body } = requestOf(one, stream)
      const response = await router.call(path, body, strict ? { 'x-router-strict': 'true' } : {})
      const text = await response.text()
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
      return {
        status: response.status,
        dropped: response.headers.get('x-router-dropped')?.split(/,\s*/) ?? [],
        answer: isStream ? streamed[one.client](text) : JSON.parse(text),
        received: provider.received[0],
      }
    },
    async end() {
      await router.end()
      await provider.close()
    },
  }
}

function slugOf(model: string): string {
  return model.slice(0, model.indexOf('/'))
}

/** The client's call: what the case leaves out of its request is a short message. */
function requestOf({ client, model, request }: Case, stream: boolean): { path: string; body: Body } {
  const messages = [{ role: 'user', content: 'Hi' }]
  const usage = stream && { stream_options: { include_usage: true } }
  if (client === 'responses') return { path: '/v1/responses', body: { input: 'Hi', ...request, model, stream } }
  if (client === 'messages')
    return { path: '/v1/messages', body: { messages, max_tokens: 10_000, ...request, model, stream } }
  return { path: '/v1/chat/completions', body: { messages, ...request, model, stream, ...usage } }
}

/** The reply that a client puts together from a stream; each reader checks the order of its events. */
const streamed: { readonly [client in Case['client']]: (text: string) => Body } = {
  chat: (text) => gathered(chunksIn(withoutComments(text)).chunks),
  messages: (text) => accumulated(messageEvents(text)),
  responses: (text) => follow(responseEvents(withoutComments(text))),
}

function withoutComments(text: string): string {
  return text.replace(/^:.*\n\n/gm, '')
}

/** The provider's reply in the framing of its API, which is known from its path. */
function replyTo({ path, body }: Received, one: Case | undefined): Answer {
  const isStream = body.stream === true || /stream/i.test(path)
  if (!isStream || !one?.events) return wholeOf(one?.reply ?? shortest(path))
  if (path.endsWith('/api/chat')) return linesAnswer(one.events)
  if (path.endsWith('/converse-stream'))
    return framed(
      Buffer.concat(
        one.events.flatMap((event) =>
          Object.entries(event as object).map(([type, payload]) => awsEvent(type, payload)),
        ),
      ),
    )
  return streamOf(one.events.map((data: Body) => ({ event: data.type, data })))
}

/** The shortest whole reply of each API, for cases that are about requests. */
function shortest(path: string): Body {
  const text = 'fine'
  if (path.endsWith('/messages'))
    return {
      id: 'm',
      type: 'message',
      role: 'assistant',
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      usage: {},
    }
  if (path.endsWith('/responses')) {
    const content = [{ type: 'output_text', text, annotations: [] }]
    return { id: 'r', status: 'completed', output: [{ type: 'message', role: 'assistant', content }], usage: {} }
  }
  if (path.includes(':generateContent'))
    return { candidates: [{ content: { parts: [{ text }] }, finishReason: 'STOP' }] }
  if (path.endsWith('/converse'))
    return { output: { message: { role: 'assistant', content: [{ text }] } }, stopReason: 'end_turn', usage: {} }
  if (path.endsWith('/v2/chat'))
    return { id: 'c', finish_reason: 'COMPLETE', message: { role: 'assistant', content: [{ type: 'text', text }] } }
  if (path.endsWith('/api/chat'))
    return { model: 'm', message: { role: 'assistant', content: text }, done: true, done_reason: 'stop' }
  return { id: 'c', choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }] }
}
