import { type CallRecord, definePlugin, type JsonObject, type PluginCall } from 'inference-router/plugin'
import { Batches } from './batches.ts'
import { type CallContents, eventsOf } from './events.ts'

type Options = {
  url: string
  public_key: string
  secret_key: string
  contents: boolean
  max_content_characters: number
  every_seconds: number
  attempts: number
  max_waiting: number
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
      every_seconds: { type: 'number', minimum: 0.01, maximum: 3_600, default: 5 },
      attempts: { type: 'integer', minimum: 1, maximum: 12, default: 6 },
      max_waiting: { type: 'integer', minimum: 1, default: 10_000 },
    },
  },
  setup({ url, public_key, secret_key, contents, max_content_characters, ...bounds }, kit) {
    const credentials = `${kit.secret(public_key)}:${kit.secret(secret_key)}`
    const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
    const address = `${url.replace(/\/+$/, '')}/api/public/ingestion`
    const batches = new Batches({ ...bounds, log: kit.log }, async (batch: readonly JsonObject[]) => {
      const headers = { authorization, 'content-type': 'application/json' }
      const signal = AbortSignal.timeout(answerMs)
      const body = JSON.stringify({ batch })
      return await kit.fetch(address, { method: 'POST', headers, body, redirect: 'error', signal })
    })
    return {
      ...(contents && {
        request(request, { state }: Call) {
          state.input = 'chat' in request ? request.chat.messages : request.fields
          if ('chat' in request && request.chat.system) state.system = request.chat.system
          return undefined
        },
        reply(reply, { state }: Call) {
          state.output = 'chat' in reply ? reply.chat.parts : reply.json
          return undefined
        },
      }),
      record(record: CallRecord, { state }: Call) {
        // The output of a stream may arrive a moment later.
        batches.add(() => eventsOf(record, state, max_content_characters))
      },
      [Symbol.asyncDispose]: () => batches.close(),
    }
  },
})

const answerMs = 20_000
