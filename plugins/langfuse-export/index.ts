import { type CallRecord, definePlugin, type PluginCall } from 'inference-router/plugin'
import { Batches } from './batches.ts'
import { boundedJson } from './bounded-json.ts'
import { otlpRequest } from './otlp.ts'
import { type CallContents, spanOf, spanSize, spanText } from './spans.ts'

type Options = {
  url: string
  public_key: string
  secret_key: string
  contents: boolean
  max_content_characters: number
  environment?: string
  release?: string
  every_seconds: number
  attempts: number
  max_waiting: number
  max_waiting_characters: number
}

type Call = PluginCall & { state: CallContents }

const variable = '^\\$[A-Za-z_][A-Za-z0-9_]*$'

export default definePlugin<Options>({
  description: 'Sends calls to Langfuse as generations',
  options: {
    properties: {
      url: { type: 'string', pattern: '^https?://', default: 'https://cloud.langfuse.com' },
      public_key: { type: 'string', pattern: variable, default: '$LANGFUSE_PUBLIC_KEY' },
      secret_key: { type: 'string', pattern: variable, default: '$LANGFUSE_SECRET_KEY' },
      contents: { type: 'boolean', default: false },
      max_content_characters: { type: 'integer', minimum: 1, default: 100_000 },
      environment: { type: 'string', pattern: '^(?!langfuse)[a-z0-9_-]{1,40}$' },
      release: { type: 'string', minLength: 1, maxLength: 200 },
      every_seconds: { type: 'number', minimum: 0.01, maximum: 3_600, default: 5 },
      attempts: { type: 'integer', minimum: 1, maximum: 12, default: 6 },
      max_waiting: { type: 'integer', minimum: 1, default: 10_000 },
      max_waiting_characters: { type: 'integer', minimum: 100_000, default: 50_000_000 },
    },
  },
  setup({ url, public_key, secret_key, contents, max_content_characters, environment, release, ...bounds }, kit) {
    const credentials = `${kit.secret(public_key)}:${kit.secret(secret_key)}`
    const headers = {
      authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
      'content-type': 'application/json',
      'x-langfuse-ingestion-version': '4',
    }
    const address = `${url.replace(/\/+$/, '')}/api/public/otel/v1/traces`
    const resource = {
      'service.name': 'inference-router',
      'langfuse.environment': environment,
      'langfuse.release': release,
    }
    const batches = new Batches({ ...bounds, log: kit.log }, async (spans) => {
      const body = otlpRequest(resource, spans)
      const signal = AbortSignal.timeout(answerMs)
      return await kit.fetch(address, { method: 'POST', headers, body, redirect: 'error', signal })
    })
    const written = (value: unknown) => boundedJson(value, max_content_characters)
    return {
      ...(contents && {
        request(request, { state }: Call) {
          if (!('chat' in request)) state.input = written(request.fields)
          else {
            const { system, messages } = request.chat
            state.input = written(system ? { system, messages } : messages)
          }
          return undefined
        },
        reply(reply, { state }: Call) {
          state.output = written('chat' in reply ? reply.chat.parts : reply.json)
          return undefined
        },
      }),
      record(record: CallRecord, call: Call) {
        const span = spanOf(record, call, call.state)
        // The output of a stream may arrive a moment later.
        batches.add({ text: () => spanText(span), size: spanSize(span) })
      },
      [Symbol.asyncDispose]: () => batches.close(),
    }
  },
})

const answerMs = 20_000
