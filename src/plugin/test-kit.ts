import type { CallRecord } from '../core/call.ts'
import { Fold } from '../core/fold.ts'
import type { JsonObject } from '../core/json.ts'
import type { Reply } from '../core/reply.ts'
import { eventsOf } from '../core/reply-events.ts'
import { formatProblem, hasErrors } from '../manifest/check/problem.ts'
import { readSource } from '../manifest/read/source.ts'
import { textsOfReply } from './answer-texts.ts'
import { freezeData } from './call-view.ts'
import {
  type Hooks,
  type Kit,
  type Plugin,
  type PluginCall,
  type PluginLog,
  type PluginReply,
  type PluginRequest,
  type PluginTarget,
  Refusal,
  Retry,
  type StreamedEvent,
} from './contract.ts'
import { HeldEvents, usualHold } from './held-events.ts'
import { noBudgets, openKit, valuesInMemory } from './kit.ts'
import { eventResult, replyResult, requestResult, sentResult, targetsResult } from './results.ts'
import { checkOptions } from './settings.ts'
import { hooksProblem, pluginProblem } from './shape.ts'

/** Options, secrets, budgets and `fetch` for a plugin under test. */
export type TestSetup<Options> = {
  options?: Partial<Options>
  /** Variables of the environment, by name. */
  secrets?: { readonly [name: string]: string }
  /** Returns the budgets of a key; by default there are none. */
  budgets?: Kit['budgets']
  /** Replacement of `fetch`; by default every `fetch` fails. */
  fetch?: Kit['fetch']
}

/** A plugin that is set up for a test. */
export type TestedPlugin = AsyncDisposable & {
  hooks: Hooks
  /** The services that the plugin was set up with. */
  kit: Kit
  logged: { level: keyof PluginLog; facts: Record<string, unknown>; message: string }[]
  /** Runs a call through all hooks. Rejects with the error that a hook throws, and when a hook returns something invalid. */
  call(call?: TestCall): Promise<TestedCall>
}

/** Sets a plugin up for a test, as the router does. Rejects with an Error that describes the problem of the plugin or its options. */
export async function openPlugin<Options>(
  plugin: Plugin<Options>,
  { options = {}, secrets = {}, budgets = noBudgets, fetch = unreachable }: TestSetup<Options> = {},
): Promise<TestedPlugin> {
  const wrong = pluginProblem(plugin)
  if (wrong) throw new Error(wrong.message)
  const logged: TestedPlugin['logged'] = []
  const write = (level: keyof PluginLog) => (facts: Record<string, unknown>, message: string) => {
    logged.push({ level, facts, message })
  }
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  const openFetch = () => ({ fetch, close: async () => {} })
  const lent = {
    log: log as never,
    env: secrets,
    credentials: new Set<string>(),
    values: valuesInMemory(),
    budgets,
    openFetch,
  }
  const { kit } = openKit('tested', [], lent)
  const hooks = await plugin.setup(checkedOptions(plugin, options as JsonObject) as Options, kit)
  const unusable = hooksProblem(hooks)
  if (unusable) throw new Error(unusable.message)
  return {
    hooks,
    kit,
    logged,
    call: (call = {}) => runCall(hooks, call),
    async [Symbol.asyncDispose]() {
      await hooks[Symbol.asyncDispose]?.()
    },
  }
}

function checkedOptions(
  { options: schema, renamedOptions }: Pick<Plugin, 'options' | 'renamedOptions'>,
  given: JsonObject,
): JsonObject {
  const source = readSource('options', JSON.stringify(given))
  const problemOf = (message: string) => source.problem([], message)
  const { options, problems } = checkOptions(given, {
    name: 'tested',
    schema,
    renamed: renamedOptions,
    source,
    problemOf,
  })
  if (hasErrors(problems)) throw new Error(problems.map(formatProblem).join('\n'))
  return options
}

const unreachable: Kit['fetch'] = async (url) => {
  throw new TypeError(`no network in tests: give openPlugin a \`fetch\` that answers ${url}`)
}

/** A call for a test: everything that is not given is that of a short conversation with a short answer. */
export type TestCall = {
  /** The text of the user. */
  text?: string
  /** The whole request. */
  request?: PluginRequest
  /** The provider's answer: a text, a reply, or the JSON of another operation. */
  answer?: string | Partial<Reply> | { json: JsonObject }
  /** Set where the answer is streamed; texts in pieces of these lengths, the last length for all the rest. */
  stream?: boolean | readonly number[]
  /** The events of the stream, instead of those of `answer`. */
  events?: readonly StreamedEvent[]
  targets?: readonly PluginTarget[]
  /** The body of the request to the provider, which `send` may edit. */
  outgoing?: JsonObject
  /** Other facts of the call, as hooks see them. */
  facts?: Partial<Omit<PluginCall, 'state'>>
  record?: Partial<CallRecord>
}

/** The result of a call for a test. */
export type TestedCall = {
  /** The plugin's refusal: then the rest is empty, but for `events` and `text`, which the client had by then. */
  refusal?: Refusal
  /** Set where the plugin wants another answer. */
  retry?: Retry
  /** The request as it goes to a provider; absent where the plugin refused or answered the call. */
  forwarded?: PluginRequest
  /** The former name of `forwarded`. */
  asked?: PluginRequest
  /** Headers for the client, and for the provider. */
  headers: Readonly<Record<string, string>>
  sent: Readonly<Record<string, string>>
  /** The body for the provider as `send` has edited it. */
  outgoing?: JsonObject
  targets: readonly PluginTarget[]
  /** The events that the client gets of a stream. */
  events: readonly StreamedEvent[]
  /** The answer as the client gets it. */
  reply?: PluginReply
  /** The text of the answer. */
  text: string
}

/** Runs a call through the hooks of a plugin. Rejects with the error that a hook throws, and for a result that it may not return. */
export async function runCall(hooks: Hooks, given: TestCall): Promise<TestedCall> {
  const request = freezeData(given.request ?? requestOf(given))
  const isStream = (given.stream ?? given.events !== undefined) !== false
  const call = callOf(request, { stream: isStream, ...given.facts })
  const ended = await refusable(async () => {
    const { headers, request: forwarded, reply } = await ask(hooks, request, call)
    if (reply) return { ...nothing, headers, reply, text: textOf(reply) }
    const routed = await route(hooks, given, call)
    return {
      ...nothing,
      forwarded,
      asked: forwarded,
      ...routed,
      ...(await answer(hooks, given, { request: forwarded, call, isStream, headers })),
    }
  })
  await hooks.record?.(freezeData(recordOf(call, ended, given.record)), call)
  return ended
}

const nothing: TestedCall = { headers: {}, sent: {}, targets: [], events: [], text: '' }

async function refusable(run: () => Promise<TestedCall>): Promise<TestedCall> {
  try {
    return await run()
  } catch (thrown) {
    if (thrown instanceof Refusal) return { ...nothing, refusal: thrown }
    throw thrown
  }
}

/** Throws a refusal that a hook has returned. */
function unlessRefused<Result>(result: Result | Refusal): Result {
  if (!(result instanceof Refusal)) return result
  throw result
}

async function ask(hooks: Hooks, request: PluginRequest, call: PluginCall) {
  let given = request
  const headers: Record<string, string> = {}
  for (const name of ['request', request.operation] as const) {
    const hook = hooks[name] as Hooks['request']
    const returned = unlessRefused(await hook?.call(hooks, given, call))
    if (returned === undefined) continue
    const result = requestResult(returned, given)
    Object.assign(headers, result.headers)
    if (result.reply) return { request: given, reply: result.reply, headers }
    given = freezeData(result.request ?? given)
  }
  return { request: given, reply: undefined, headers }
}

async function route(hooks: Hooks, { targets = usualTargets, outgoing }: TestCall, call: PluginCall) {
  const given = freezeData([...targets])
  const chosen = unlessRefused(await hooks.targets?.(given, call))
  const left = chosen === undefined ? given : targetsResult(chosen, given, addedTarget)
  const body = outgoing && freezeData(structuredClone(outgoing))
  const returned = left[0] && unlessRefused(await hooks.send?.(left[0], call, body && { body }))
  const { headers: sent, body: edited = body } =
    returned === undefined ? { headers: {} } : sentResult(returned, body !== undefined)
  return { targets: left, sent, ...(edited && { outgoing: edited }) }
}

/** Returns a target that a plugin adds: tests have no catalog. */
function addedTarget(id: string): PluginTarget {
  const [provider = '', ...model] = id.split('/')
  return { id, provider, model: model.join('/') }
}

type RequestedCall = { request: PluginRequest; call: PluginCall; isStream: boolean; headers: TestedCall['headers'] }

async function answer(hooks: Hooks, given: TestCall, { request, call, isStream, headers }: RequestedCall) {
  const whole = freezeData(replyOf(request, given.answer))
  if (!isStream) {
    const returned = unlessRefused(await hooks.reply?.(whole, call))
    if (returned instanceof Retry) return { retry: returned, reply: whole, text: textOf(whole), events: [], headers }
    const { reply, headers: added } =
      returned === undefined ? { reply: whole, headers: {} } : replyResult(returned, whole.operation)
    unlessRefused(await hooks.check?.({ texts: textsOfReply(freezeData(reply)), isLast: true }, call))
    return { reply, text: textOf(reply), events: [], headers: { ...headers, ...added } }
  }
  const pieces = Array.isArray(given.stream) ? given.stream : [Number.POSITIVE_INFINITY]
  const events = (given.events ?? cut(whole, pieces)).filter((event) => !('done' in event && event.done))
  const { left, refusal } = await streamed(hooks, events, call)
  const text = left.map((event) => ('text' in event ? (event.text ?? '') : '')).join('')
  if (refusal) return { events: left, text, refusal }
  const foldedReply = (events: readonly StreamedEvent[]) =>
    'chat' in whole ? { operation: 'chat' as const, chat: folded(events) } : whole
  if ('chat' in whole) unlessRefused(await hooks.reply?.(freezeData(foldedReply(events)), call))
  return { reply: foldedReply(left), text, events: left, headers }
}

/** Passes events to a plugin, and returns those that the client gets, as far as the plugin has not refused the answer. */
async function streamed(
  hooks: Hooks,
  events: readonly StreamedEvent[],
  call: PluginCall,
): Promise<{ left: StreamedEvent[]; refusal?: Refusal }> {
  const held = hooks.check || hooks.hold ? new HeldEvents(hooks.hold ?? usualHold) : undefined
  const left: StreamedEvent[] = []
  const pass = (passed: readonly StreamedEvent[]) =>
    left.push(...passed.filter((event) => !('done' in event && event.done)))
  try {
    for (const event of [...events, { done: true as const }]) {
      const returned = unlessRefused(hooks.event?.(freezeData(event), call))
      const seen = returned === undefined ? [event] : eventResult(returned, event, call.operation)
      if (!held) pass(seen)
      held?.add(seen)
      const isLast = 'done' in event
      if (!held || !(isLast || held.isReady)) continue
      unlessRefused(await hooks.check?.({ texts: freezeData(held.texts()), isLast }, call))
      pass(held.release(isLast).flat())
    }
  } catch (thrown) {
    if (!(thrown instanceof Refusal)) throw thrown
    return { left, refusal: thrown }
  }
  return { left }
}

function folded(events: readonly StreamedEvent[]): Reply {
  const fold = new Fold({ signer: 'tested', newId: () => 'tested', now: () => 0 })
  for (const event of [...events, { done: true as const }]) if (!('json' in event)) fold.take(event)
  return fold.reply()
}

function requestOf({ text = 'Hello' }: TestCall): PluginRequest {
  const messages = [{ role: 'user' as const, parts: [{ type: 'text' as const, text }] }]
  return { operation: 'chat', chat: { model: 'acme/model', messages } }
}

function replyOf({ operation }: PluginRequest, answer: TestCall['answer'] = 'Hello.'): PluginReply {
  if (operation !== 'chat') {
    if (typeof answer === 'object' && 'json' in answer && answer.json) return { operation, json: answer.json }
    throw new Error(`a call for '${operation}' needs \`answer: { json }\``)
  }
  const said =
    typeof answer === 'string' ? { parts: [{ type: 'text' as const, text: answer }] } : (answer as Partial<Reply>)
  const usage = { input: 1, output: 1 }
  return { operation, chat: { id: 'tested', created: 0, model: 'model', parts: [], finish: 'stop', usage, ...said } }
}

/** Returns the call of a request; all but its state is frozen. */
function callOf(request: PluginRequest, facts: TestCall['facts']): PluginCall {
  const call: PluginCall = {
    id: 'call-1',
    organization: 'organization-1',
    key: 'key-1',
    names: { key: 'key', organization: 'organization' },
    labels: {},
    api: 'chat',
    operation: request.operation,
    requested: 'chat' in request ? request.chat.model : request.model,
    stream: false,
    headers: {},
    body: {},
    signal: new AbortController().signal,
    ...facts,
    state: {},
  }
  for (const [name, value] of Object.entries(call)) if (name !== 'state' && name !== 'signal') freezeData(value)
  return Object.freeze(call)
}

const usualTargets: readonly PluginTarget[] = [
  { id: 'acme/model', provider: 'acme', model: 'model', input_price: 0, output_price: 0, context_window: 128_000 },
]

function recordOf(call: PluginCall, { refusal, targets }: TestedCall, given: Partial<CallRecord> = {}): CallRecord {
  const { id, organization, key, requested, stream, operation } = call
  const [target = { provider: 'plugin', model: 'tested' }] = targets
  return {
    id,
    at: 0,
    organization,
    key,
    api: 'chat',
    operation: operation === 'count' ? 'chat' : operation,
    requested,
    provider: target.provider,
    model: target.model,
    stream,
    outcome: refusal ? 'failed' : 'complete',
    status: refusal?.status ?? 200,
    usage: { input: 1, output: 1 },
    cost: { nanoUsd: 0, parts: {}, priceVersion: 'tested' },
    dropped: [],
    attempts: 1,
    durationMs: 1,
    ...given,
  }
}

function textOf(reply: PluginReply): string {
  if (!('chat' in reply)) return ''
  return reply.chat.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** Returns the events of a reply, its texts in pieces of these lengths. */
function cut(reply: PluginReply, lengths: readonly number[]): StreamedEvent[] {
  if (!('chat' in reply)) return [reply]
  return eventsOf(reply.chat).flatMap((event) => {
    if (event.text === undefined) return [event]
    const { text, ...others } = event
    return piecesOf(text, lengths).map((piece) => ({ ...others, text: piece }))
  })
}

function piecesOf(text: string, lengths: readonly number[]): string[] {
  const pieces: string[] = []
  for (let at = 0, index = 0; at < text.length; index++) {
    const length = Math.max(1, lengths[Math.min(index, lengths.length - 1)] ?? text.length)
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return pieces
}
