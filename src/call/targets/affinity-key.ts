import { hash } from 'node:crypto'
import type { Part } from '../../core/parts.ts'
import { isProviderTool, type NeutralRequest, type Tool } from '../../core/request.ts'
import type { RoutingRules } from '../../core/routing/rules.ts'

/** A call as far as it tells which calls belong together; `session` is what a header says of it. */
export type AffineCall = {
  organization: string
  /** The id of the API key. */
  key: string
  request: NeutralRequest
  session?: string | undefined
}

/** What a call has in common with those that go to the same target; undefined when it tells nothing of the kind. */
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

/** Claude Code tells its session at the end of the user's id, or in it as JSON. */
function sessionInUser(user: string | undefined): string | undefined {
  return user && /(?:_session_|"session_id":\s*")([\w-]+)/.exec(user)?.[1]
}

/** The headers in which clients tell their session: Claude Code, Codex, OpenCode, and what others use. */
const sessionHeaders = [
  'x-session-id',
  'x-claude-code-session-id',
  'session-id',
  'session_id',
  'x-opencode-session',
  'x-session-affinity',
]

/** The session that a client tells in a header. */
export function sessionIn(headers: { readonly [name: string]: string | string[] | undefined }): string | undefined {
  for (const name of sessionHeaders) {
    const value = headers[name]
    if (typeof value === 'string' && value !== '') return value
  }
  return undefined
}

/** What the prompts of one conversation begin with: a provider that has it in its cache has it for all of them. */
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

/** Of a file. */
const sampledCharacters = 4_096
