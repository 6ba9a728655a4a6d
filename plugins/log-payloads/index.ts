import { definePlugin, type PluginCall } from 'inference-router/plugin'
import { loadScanner } from '../lib/secret-rules.ts'
import { type OwnPattern, redactor } from './redact.ts'
import { openRotated } from './rotated.ts'
import { maxUser, storedEntries } from './stored.ts'

type Options = {
  folder: string
  requests: boolean
  replies: boolean
  patterns: OwnPattern[]
  max_entry_bytes: number
  max_file_bytes: number
  max_bytes: number
  days: number
  max_waiting: number
}

const mib = 1_048_576

export default definePlugin<Options>({
  description: 'Writes requests and replies to files, without secrets',
  options: {
    required: ['folder'],
    properties: {
      folder: { type: 'string', minLength: 1 },
      requests: { type: 'boolean', default: true },
      replies: { type: 'boolean', default: true },
      patterns: {
        type: 'array',
        default: [],
        items: {
          type: 'object',
          additionalProperties: false,
          required: ['name', 'pattern'],
          properties: {
            name: { type: 'string', minLength: 1 },
            pattern: { type: 'string', minLength: 1, maxLength: 1_000 },
            ignore_case: { type: 'boolean' },
          },
        },
      },
      max_entry_bytes: { type: 'integer', minimum: 1_000, default: mib },
      max_file_bytes: { type: 'integer', minimum: 1_000, default: 64 * mib },
      max_bytes: { type: 'integer', minimum: 1_000, default: 1024 * mib },
      days: { type: 'number', exclusiveMinimum: 0, default: 7 },
      max_waiting: { type: 'integer', minimum: 1, default: 1_000 },
    },
  },
  async setup({ requests, replies, patterns, max_entry_bytes, ...bounds }, kit) {
    const redacted = redactor(patterns, max_entry_bytes, await loadScanner())
    const files = await openRotated({ ...bounds, log: kit.log })
    const write = (kind: string, call: PluginCall, said: object) => {
      const { id, organization, key, api, operation, requested, stream } = call
      const about = {
        kind,
        id,
        at: new Date().toISOString(),
        organization,
        key,
        ...(call.user !== undefined && { user: call.user.slice(0, maxUser) }),
        api,
        operation,
        requested,
        stream,
      }
      files.add(() => {
        const text = JSON.stringify({ ...about, ...redacted(said) })
        const bytes = Buffer.byteLength(text)
        return bytes <= max_entry_bytes ? text : JSON.stringify({ ...about, left_out_bytes: bytes })
      })
    }
    return {
      ...(requests && {
        request(request, call) {
          write('request', call, 'chat' in request ? { request: request.chat } : { request: request.fields })
          return undefined
        },
      }),
      ...(replies && {
        reply(reply, call) {
          write('reply', call, { reply: 'chat' in reply ? reply.chat : reply.json })
          return undefined
        },
      }),
      record({ provider, model, outcome, status, error, durationMs, usage, cost }, call) {
        write('end', call, { provider, model, outcome, status, error, durationMs, usage, cost_usd: cost.nanoUsd / 1e9 })
      },
      content: storedEntries(bounds.folder),
      [Symbol.asyncDispose]: () => files.close(),
    }
  },
})
