import { definePlugin, type PluginCall, type PluginReply } from 'inference-router/plugin'
import { duration, durationForm } from './duration.ts'
import { Flights } from './flights.ts'
import { openKept } from './kept.ts'
import { isCacheable, keyOf, type Share } from './key.ts'
import { preferencesOf } from './preferences.ts'
import { isWhole } from './whole.ts'

type Options = {
  ttl: string
  wait: string
  only: 'all' | 'deterministic'
  share: Share
  operations: string[]
  headers: string[]
  max_bytes: number
  max_reply_bytes: number
  file?: string
  max_file_bytes: number
}

/** State of a call that asks a provider: its key, the time for which its reply is valid, and the reply. */
type Asking = { key: string; ttlMs: number; leads: boolean; reply?: PluginReply }
type Call = PluginCall & { state: { asking?: Asking } }

const operations = ['chat', 'embed', 'rerank', 'moderate', 'complete', 'decide']
const mib = 1_048_576

export default definePlugin<Options>({
  description: 'Answers repeated requests with the cached reply',
  timeoutMs: 600_000,
  options: {
    properties: {
      ttl: { type: 'string', pattern: durationForm, default: '1h' },
      wait: { type: 'string', pattern: durationForm, default: '60s' },
      only: { enum: ['all', 'deterministic'], default: 'all' },
      share: { enum: ['organization', 'group', 'key'], default: 'organization' },
      operations: { type: 'array', items: { enum: operations }, default: operations },
      headers: { type: 'array', items: { type: 'string', pattern: '^x-[a-z0-9-]+$' }, default: [] },
      max_bytes: { type: 'integer', minimum: 1, default: 64 * mib },
      max_reply_bytes: { type: 'integer', minimum: 1, default: mib },
      file: { type: 'string', minLength: 1 },
      max_file_bytes: { type: 'integer', minimum: mib, default: 1024 * mib },
    },
  },
  setup(options, kit) {
    const kept = openKept(options, kit.log)
    const flights = new Flights(duration(options.wait))
    const usualTtlMs = duration(options.ttl)
    return {
      request(request, call: Call) {
        const preferences = preferencesOf(call.headers)
        if (preferences.bypass || !isCacheable(request, call, options)) return withState('BYPASS')
        const key = keyOf(request, call, options)
        const ttlMs = preferences.ttlMs ?? usualTtlMs
        const asks = (leads: boolean) => {
          call.state.asking = { key, ttlMs, leads }
          return withState('MISS')
        }
        if (preferences.refresh) return asks(flights.begin(key))
        const sought = seek(key, preferences.ttlMs)
        if (!sought)
          return waitedFor(key, preferences.ttlMs, call.signal).then((one) => answered(one) ?? asks(one === 'leads'))
        return answered(sought) ?? asks(true)
      },
      reply(reply, { state: { asking } }: Call) {
        if (asking) asking.reply = reply
        return undefined
      },
      // Not before: another plugin may refuse the reply, and then nobody may get it.
      record({ outcome, error }, { state: { asking } }: Call) {
        if (!asking) return
        const { key, reply, ttlMs, leads } = asking
        const isKept = outcome === 'complete' && reply !== undefined && isWhole(reply) && kept.put(key, reply, ttlMs)
        if (leads) flights.end(key, isKept ? { reply } : error === 'client_gone' ? 'gone' : 'failed')
      },
      async [Symbol.asyncDispose]() {
        flights.close()
        kept.close()
      },
    }

    /** Returns a reply that is kept; `leads` where others wait for this call from now on; undefined where this one has to wait. */
    function seek(key: string, oldestMs: number | undefined): Sought | undefined {
      const reply = kept.get(key, oldestMs)
      if (reply) return { reply }
      return flights.begin(key) ? 'leads' : undefined
    }

    /** Returns the same when the call that asks has ended; `failed` where it got no reply for others. */
    async function waitedFor(
      key: string,
      oldestMs: number | undefined,
      signal: AbortSignal,
    ): Promise<Sought | 'failed'> {
      for (;;) {
        const landed = await flights.landing(key, signal)
        const sought = landed === 'gone' ? seek(key, oldestMs) : landed
        if (sought) return sought
      }
    }
  },
})

type Sought = { reply: PluginReply } | 'leads'

function answered(sought: Sought | 'failed') {
  return typeof sought === 'object' ? { ...withState('HIT'), reply: sought.reply } : undefined
}

function withState(state: 'HIT' | 'MISS' | 'BYPASS'): { headers: Record<string, string>; reply?: PluginReply } {
  return { headers: { 'x-router-cache': state } }
}
