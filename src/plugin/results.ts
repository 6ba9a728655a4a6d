import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { Message, NeutralRequest } from '../core/request.ts'
import type { PluginReply, PluginRequest, ReplyResult, RequestResult } from './contract.ts'
import { type Members, requireMembers, WrongResult } from './members.ts'
import { requireParts } from './part-members.ts'

/** What a `request` hook returned, for a request of this operation. Throws `WrongResult`. */
export function requestResult(result: unknown, { operation }: PluginRequest): RequestResult {
  const { request, reply, headers } = requireMembers<RequestResult>(result, 'the result', resultMembers)
  if (headers) requireHeaders(headers)
  if (request) requireRequest(request, operation)
  if (reply) requireReply(reply, operation)
  return result as RequestResult
}

const resultMembers: Members = { request: 'object', reply: 'object', headers: 'object' }

function requireRequest(request: PluginRequest, operation: PluginRequest['operation']): void {
  requireSame(request.operation, operation, 'request')
  const isChat = operation === 'chat'
  requireMembers(request, 'request', isChat ? { operation: 'text!', chat: 'object!' } : jsonRequestMembers)
  if (!('chat' in request)) return
  const { messages, system, tools } = requireMembers<NeutralRequest>(request.chat, 'request.chat', chatMembers)
  if (system) requireParts(system, 'request.chat.system')
  for (const [index, message] of messages.entries()) {
    const path = `request.chat.messages[${index}]`
    const { role, parts } = requireMembers<Message>(message, path, { role: 'text!', parts: 'list!', name: 'text' })
    if (!roles.has(role)) throw new WrongResult(`${path}.role is '${role}'`)
    requireParts(parts, `${path}.parts`)
  }
  for (const [index, tool] of (tools ?? []).entries()) requireTool(tool, `request.chat.tools[${index}]`)
}

const roles: ReadonlySet<string> = new Set(['user', 'assistant', 'system'])

function requireTool(tool: unknown, path: string): void {
  const isOfProvider = isObject(tool) && 'definition' in tool
  requireMembers(tool, path, isOfProvider ? providerToolMembers : clientToolMembers)
}

const providerToolMembers: Members = { kind: 'text!', by: 'text!', definition: 'object!', cache: 'object' }
const clientToolMembers: Members = {
  kind: 'text!',
  name: 'text!',
  description: 'text',
  parameters: 'object',
  strict: 'flag',
  format: 'object',
  cache: 'object',
}

const chatMembers: Members = {
  model: 'text!',
  system: 'list',
  messages: 'list!',
  tools: 'list',
  tool_choice: 'any',
  parallel_tool_calls: 'flag',
  web_search: 'object',
  max_output_tokens: 'number',
  temperature: 'number',
  top_p: 'number',
  top_k: 'number',
  seed: 'number',
  stop: 'list',
  frequency_penalty: 'number',
  presence_penalty: 'number',
  logit_bias: 'object',
  logprobs: 'object',
  n: 'number',
  response_format: 'object',
  reasoning: 'object',
  modalities: 'list',
  audio: 'object',
  prediction: 'object',
  service_tier: 'text',
  verbosity: 'text',
  cache: 'object',
  user: 'text',
  safety_identifier: 'text',
  metadata: 'object',
  store: 'flag',
  moderation: 'object',
  stream: 'flag',
  extensions: 'object',
  unread: 'list',
}

/** What a `reply` hook returned, for a reply of this operation. Throws `WrongResult`. */
export function replyResult(
  result: unknown,
  operation: PluginReply['operation'],
): { reply: PluginReply; headers: NonNullable<ReplyResult['headers']> } {
  if (typeof result !== 'object' || result === null) requireMembers(result, 'reply', {})
  const { headers = {}, ...reply } = result as ReplyResult
  requireMembers({ headers }, 'reply', { headers: 'object' })
  requireHeaders(headers)
  requireReply(reply, operation)
  return { reply, headers }
}

function requireReply(reply: PluginReply, operation: PluginReply['operation']): void {
  requireMembers(reply, 'reply', operation === 'chat' ? { operation: 'text!', chat: 'object!' } : jsonReplyMembers)
  requireSame(reply.operation, operation, 'reply')
  if (!('chat' in reply)) return
  const { parts, finish } = requireMembers<Extract<PluginReply, { chat: unknown }>['chat']>(
    reply.chat,
    'reply.chat',
    replyMembers,
  )
  requireParts(parts, 'reply.chat.parts')
  if (!finishes.has(finish)) throw new WrongResult(`reply.chat.finish is '${finish}'`)
}

const jsonRequestMembers: Members = { operation: 'text!', model: 'text!', fields: 'object!' }
const jsonReplyMembers: Members = { operation: 'text!', json: 'object!' }
const finishes: ReadonlySet<string> = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'refusal', 'pause'])
const replyMembers: Members = {
  id: 'text',
  model: 'text',
  created: 'number',
  parts: 'list!',
  finish: 'text!',
  finish_raw: 'text',
  stop_sequence: 'text',
  usage: 'object',
  logprobs: 'any',
  extensions: 'object',
}

function requireSame(given: string, wanted: string, path: string): void {
  if (given !== wanted) throw new WrongResult(`${path}.operation is '${given}', and the call is for '${wanted}'`)
}

function requireHeaders(headers: object): void {
  for (const [name, value] of Object.entries(headers as JsonObject)) requireHeader(name, value)
}

function requireHeader(name: string, value: Json | undefined): void {
  if (!/^x-[a-z0-9-]+$/.test(name))
    throw new WrongResult(`the header '${name}' does not begin with x- in small letters`)
  if (routersOwn.has(name)) throw new WrongResult(`the header '${name}' is the router's own`)
  if (typeof value !== 'string' || !isPrintable.test(value))
    throw new WrongResult(`the header '${name}' is no plain text`)
}

const routersOwn: ReadonlySet<string> = new Set(['x-request-id', 'x-should-retry'])
const isPrintable = /^[\x20-\x7e]*$/
