import { isObject, type Json, type JsonObject } from '../core/json.ts'
import { isFinish } from '../core/reply.ts'
import type { Message, NeutralRequest } from '../core/request.ts'
import type {
  Caller,
  PluginCall,
  PluginReply,
  PluginRequest,
  PluginTarget,
  ReplyResult,
  RequestResult,
  StreamedEvent,
} from './contract.ts'
import { type Members, mediaMembers, requireMembers, requirePart, requireParts, WrongResult } from './members.ts'

/** Checks the result of a `request` hook, for a request of this operation. Throws `WrongResult`. */
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

const providerToolMembers: Members = {
  kind: 'text!',
  by: 'text!',
  definition: 'object!',
  functions: 'list',
  cache: 'object',
}
const clientToolMembers: Members = {
  kind: 'text!',
  name: 'text!',
  description: 'text',
  parameters: 'object',
  strict: 'flag',
  format: 'object',
  form: 'object',
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

/** Checks the result of a `reply` hook, for a reply of this operation. Throws `WrongResult`. */
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
    throw new WrongResult(`the header '${name}' is not plain text`)
}

const routersOwn: ReadonlySet<string> = new Set(['x-request-id', 'x-should-retry'])
const isPrintable = /^[\x20-\x7e]*$/

/** Checks the result of an `event` hook for an event of a stream of this operation. Throws `WrongResult`. */
export function eventResult(
  result: unknown,
  event: StreamedEvent,
  operation: PluginCall['operation'],
): readonly StreamedEvent[] {
  if (!Array.isArray(result)) {
    // Nobody waits for it.
    if (result instanceof Promise) result.catch(() => {})
    throw new WrongResult('an `event` hook must return a list of events synchronously')
  }
  for (const one of result) if (one !== event) requireEvent(one, operation)
  return result
}

function requireEvent(event: unknown, operation: PluginCall['operation']): void {
  if (operation === 'chat') {
    requireChatEvent(event)
    return
  }
  const isEnd = (event as { done?: unknown } | null)?.done === true
  const given = requireMembers<{ operation?: string }>(event, 'the event', isEnd ? { done: 'flag!' } : jsonEventMembers)
  if (!isEnd && given.operation !== operation) throw new WrongResult(`the event is of '${given.operation}'`)
}

const jsonEventMembers: Members = { operation: 'text!', json: 'object!' }

function requireChatEvent(given: unknown): void {
  // Events of providers have members that are null, and plugins copy them.
  const event = requireMembers<{ [name: string]: unknown }>(withoutNulls(given), 'the event', eventMembers)
  for (const name in event) {
    const members = nestedMembers[name]
    if (members && event[name] !== undefined) requireMembers(event[name], `the event's ${name}`, members)
  }
  const { whole, finish, at, also } = event
  if (whole !== undefined) requirePart(whole, "the event's whole")
  if (finish !== undefined && !isFinish(finish as string)) throw new WrongResult(`the event's finish is '${finish}'`)
  for (const [name, key] of Object.entries({ at, also })) {
    const isKey = key === undefined || typeof key === 'string' || typeof key === 'number'
    if (!isKey) throw new WrongResult(`the event's ${name} is neither a string nor a number`)
  }
}

function withoutNulls(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null))
}

const eventMembers: Members = {
  id: 'text',
  model: 'text',
  created: 'number',
  at: 'any',
  also: 'any',
  text: 'text',
  signature: 'text',
  refusal: 'text',
  reasoning: 'object',
  tool: 'object',
  citation: 'object',
  search: 'object',
  media: 'object',
  opaque: 'object',
  whole: 'object',
  logprobs: 'any',
  finish: 'text',
  raw: 'text',
  done: 'flag',
  stop_sequence: 'text',
  usage: 'object',
  extensions: 'object',
}

const nestedMembers: { readonly [name: string]: Members } = {
  reasoning: { text: 'text', summary: 'text', signature: 'text', encrypted: 'text', id: 'text' },
  tool: { id: 'text', name: 'text', arguments: 'any', kind: 'text', signature: 'text', cache: 'object' },
  citation: { url: 'text', title: 'text', cited_text: 'text', start: 'number', end: 'number' },
  search: { id: 'text', query: 'text', status: 'text', results: 'any' },
  media: mediaMembers,
  opaque: { body: 'any' },
}

/** Headers for a provider, by lower-case name, and the body of the request, where it was edited. */
export type Sent = { headers: Record<string, string>; body?: JsonObject | undefined }

/** Checks the result of a `send` hook: headers alone, or with the body. Throws `WrongResult`. */
export function sentResult(result: unknown, hasBody: boolean): Sent {
  const { headers, body } = (result ?? {}) as { [name: string]: unknown }
  if (!isObject(headers) && !isObject(body)) return { headers: sentHeaders(result) }
  requireMembers(result, 'the result', { headers: 'object', body: 'object' })
  if (body !== undefined && !hasBody) throw new WrongResult('this request has no body that could be edited')
  return { headers: sentHeaders(headers ?? {}), ...(isObject(body) && { body }) }
}

/** Checks headers for a provider, by lower-case name. Throws `WrongResult`. */
export function sentHeaders(result: unknown): Record<string, string> {
  const headers: Record<string, string> = {}
  if (typeof result !== 'object' || result === null || Array.isArray(result)) requireMembers(result, 'the result', {})
  for (const [given, value] of Object.entries(result as object)) {
    const name = given.toLowerCase()
    if (!isName.test(name)) throw new WrongResult(`'${given}' is not the name of a header`)
    if (refused.test(name)) throw new WrongResult(`a plugin may not send the header '${name}'`)
    if (typeof value !== 'string' || !isValue.test(value))
      throw new WrongResult(`the header '${name}' is not plain text`)
    headers[name] = value
  }
  return headers
}

const isName = /^[a-z0-9!#$%&'*+.^_`|~-]+$/
const isValue = /^[\t\x20-\x7e]*$/

/** Headers that authenticate, that decide where a request goes and how it is written, or that belong to its connection. */
const refused =
  /^(?:.*authorization|.*api-key|.*-token|.*-secret|cookie2?|host|content-.*|accept(?:-encoding)?|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|x-amz-.*)$/

/** Checks the result of an `authenticate` hook. Throws `WrongResult`. */
export function callerResult(result: unknown): Caller {
  if (isObject(result) && 'key' in result) return requireMembers(result, 'the caller', { key: 'text!' })
  const caller = requireMembers<Exclude<Caller, { key: string }>>(result, 'the caller', callerMembers)
  const { id, labels = {}, limits = {}, models = [] } = caller
  if (!/^[\w.@-]{1,100}$/.test(id))
    throw new WrongResult('the id of the caller is not 1 to 100 letters, digits and ._@-')
  const { monthly_usd, ...counts } = requireMembers<NonNullable<typeof caller.limits>>(
    limits,
    'the limits of the caller',
    limitMembers,
  )
  if (monthly_usd !== undefined && !(monthly_usd > 0 && monthly_usd < maxUsd))
    throw new WrongResult('the monthly limit of the caller is not above 0 and below a billion dollars')
  if (Object.values(counts).some((count) => count !== undefined && !(Number.isSafeInteger(count) && count > 0)))
    throw new WrongResult('a limit of the caller is not a whole number above 0')
  const texts = [...Object.values(labels), ...models]
  if (texts.some((text) => typeof text !== 'string')) throw new WrongResult('labels and models of a caller are texts')
  return caller
}

/** A limit above it says nothing. */
const maxUsd = 1e9

const callerMembers: Members = {
  organization: 'text!',
  group: 'text',
  id: 'text!',
  name: 'text',
  labels: 'object',
  limits: 'object',
  models: 'list',
}
const limitMembers: Members = {
  monthly_usd: 'number',
  requests_per_minute: 'number',
  tokens_per_minute: 'number',
  concurrent_calls: 'number',
}

/**
 * Checks the result of a `targets` hook: targets that it was given, or that `find` returns, by their ids, each once. Throws `WrongResult`.
 */
export function targetsResult<Target extends PluginTarget>(
  result: unknown,
  given: readonly Target[],
  find: (id: string) => Target | undefined = () => undefined,
): readonly Target[] {
  if (!Array.isArray(result)) throw new WrongResult('the result is not a list of targets')
  const left = [...given]
  return result.map((one: Partial<PluginTarget> | null) => {
    const place = left.findIndex(({ id }) => id === one?.id)
    const [target] = place < 0 ? [] : left.splice(place, 1)
    if (target) return target
    const isRepeated = given.some(({ id }) => id === one?.id)
    const added = isRepeated || typeof one?.id !== 'string' ? undefined : find(one.id)
    if (!added)
      throw new WrongResult(`'${one?.id}' is neither one of the remaining targets nor one that the caller may use`)
    return added
  })
}
