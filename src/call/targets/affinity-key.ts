import { hash } from 'node:crypto'
import type { Part } from '../../core/parts.ts'
import { isProviderTool, type NeutralRequest, type Tool } from '../../core/request.ts'
import type { RoutingRules } from '../../core/routing/rules.ts'

/** The facts of a call that show which calls belong together; `session` is read from a header. */
export type AffineCall = {
  organization: string
  /** The id of the API key. */
  key: string
  request: NeutralRequest
  session?: string | undefined
}

/** Returns a key shared by the calls that go to the same target; undefined when the call has nothing to derive it from. */
export function affinityKey(sticky: RoutingRules['sticky'], call: AffineCall): string | undefined {
  const value = keyFor[sticky](call)
  if (value === undefined) return undefined
  // Nothing is shared across organizations, and no name decides for another.
  const key = `${call.organization}\n${call.request.model}\n${value}`
  return key.length <= longestKey ? key : hash('sha256', key, 'base64url')
}

const keyFor: { readonly [sticky in RoutingRules['sticky']]: (call: AffineCall) => string | undefined } = {
  none: () => undefined,
  session: sessionOf,
  user: ({ request }) => userOf(request),
  hash: ({ key, request }) => `${key}\n${userOf(request) ?? ''}`,
  cache: (call) => call.request.cache?.key ?? sessionOf(call) ?? beginningOf(call.request),
}

/** Characters. */
const longestKey = 256

function sessionOf({ request, session }: AffineCall): string | undefined {
  const { session_id } = request.origin.body
  return (typeof session_id === 'string' && session_id) || session || sessionInUser(request.user) || request.cache?.key
}

function userOf({ user, safety_identifier }: NeutralRequest): string | undefined {
  return user || safety_identifier
}

/** Finds the session of Claude Code, which is sent at the end of the user's id, or in it as JSON. */
function sessionInUser(user: string | undefined): string | undefined {
  return user && /(?:_session_|"session_id":\s*")([\w-]+)/.exec(user)?.[1]
}

/** Headers in which clients send their session: Claude Code, Codex, OpenCode, and what others use. */
const sessionHeaders = [
  'x-session-id',
  'x-claude-code-session-id',
  'session-id',
  'session_id',
  'x-opencode-session',
  'x-session-affinity',
]

/** Returns the session that a client sends in a header. */
export function sessionIn(headers: { readonly [name: string]: string | string[] | undefined }): string | undefined {
  for (const name of sessionHeaders) {
    const value = headers[name]
    if (typeof value === 'string' && value !== '') return value
  }
  return undefined
}

/** Returns the beginning that the prompts of one conversation share: a provider that has it in its cache has it for all of them. */
function beginningOf({ system = [], tools = [], messages }: NeutralRequest): string {
  const texts = [...system.map(textOf), ...tools.map(nameOf), ...(messages[0]?.parts.map(textOf) ?? [])]
  return hash('sha256', texts.join('\n'), 'base64url')
}

function textOf(part: Part): string {
  if (part.type === 'text') return part.text
  if ('url' in part && part.url !== undefined) return part.url
  if ('file_id' in part && part.file_id !== undefined) return part.file_id
  if ('data' in part && part.data !== undefined) return `${part.data.length} ${part.data.slice(0, sampledCharacters)}`
  return part.type
}

function nameOf(tool: Tool): string {
  return isProviderTool(tool) ? tool.kind : `${tool.name} ${tool.description ?? ''}`
}

/** Number of characters that are sampled of a file. */
const sampledCharacters = 4_096
