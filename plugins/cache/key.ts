import { hash } from 'node:crypto'
import type { JsonObject, PluginCall, PluginRequest } from 'inference-router/plugin'

/** Scope in which callers get each other's replies. */
export type Share = 'organization' | 'group' | 'key'

/** Checks whether a request may be answered with the reply to an equal one. */
export function isCacheable(
  request: PluginRequest,
  { operation }: Pick<PluginCall, 'operation'>,
  { only, operations }: { only: 'all' | 'deterministic'; operations: readonly string[] },
): boolean {
  // A conversation that is counted or made shorter is asked as one.
  if (!operations.includes(operation)) return false
  const { temperature, n } = 'chat' in request ? request.chat : request.fields
  if (typeof n === 'number' && n > 1) return false
  const isSampled = operation === 'chat' || operation === 'complete' || operation === 'decide'
  return only === 'all' || !isSampled || temperature === 0
}

/** Returns a key that is the same for requests that are answered alike, and for no others. */
export function keyOf(
  request: PluginRequest,
  { organization, group, key, api, body, headers }: Omit<PluginCall, 'state' | 'signal'>,
  { share, headers: more }: { share: Share; headers: readonly string[] },
): string {
  const sharing = { organization: '', group: `g ${group ?? key}`, key: `k ${key}` }[share]
  const relevant = [...changing, ...more].map((name) => headers[name] ?? null)
  const asked = 'chat' in request ? chatOf(request, api, body) : [request, without(body, unimportant)]
  return hash('sha256', JSON.stringify([organization, sharing, relevant, asked]), 'base64url')
}

/** Headers that change the answer. */
const changing = ['x-router-strict', 'x-router-explain', 'anthropic-beta', 'anthropic-version']

/** Members of a body that do not change the content of the answer. */
const unimportant = ['stream', 'stream_options', 'metadata', 'store', 'requesty', 'session_id']

/** Returns a conversation, whichever API it is asked by; what only its API has counts with its whole body. */
function chatOf({ chat }: Extract<PluginRequest, { chat: unknown }>, api: string, body: PluginCall['body']): unknown {
  const { stream: _, metadata: __, store: ___, unread, ...said } = chat
  const { models, provider, route } = body
  const own = unread ? [api, without(body, unimportant)] : []
  return [said, models ?? null, provider ?? null, route ?? null, ...own]
}

function without(body: PluginCall['body'], names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)))
}
