import type { Key } from '../../access/keys.ts'
import type { CallRecord } from '../../core/call.ts'
import { asRouterError, type RouterError } from '../../core/errors.ts'
import { type NamedTarget, targetId } from '../../manifest/target.ts'
import { CallPlugins } from '../../plugin/call-plugins.ts'
import type { MaybePromise, PluginRequest } from '../../plugin/contract.ts'
import { pluginsFor as loadedFor } from '../../plugin/loaded.ts'
import { isEuOnly } from '../../routing/names/resolve.ts'
import { andThen } from '../../runtime/maybe-promise.ts'
import { admitUncharged } from '../admission/accounts.ts'
import type { AnswerEnd, CallKind, PluginAnswer, SeenCall } from '../call-kind.ts'
import { routeOf } from '../targets/find-targets.ts'
import type { CallResponse, CallStart, KeyWithRules, OpenedCall, ReadCall, Services } from '../types.ts'

/** Returns the plugins that see a call; undefined where none does. */
export function pluginsFor(
  { call, key, rules, read, start }: Pick<OpenedCall, 'call' | 'key' | 'rules' | 'read' | 'start'>,
  { plugins: { operation } }: CallKind,
  { plugins }: Pick<Services, 'plugins'>,
): CallPlugins | undefined {
  if (!plugins) return undefined
  const { organization } = key
  const seeing = loadedFor(plugins.loaded, {
    organization,
    rules: rules.plugins,
    keyRules: key.plugins,
  })
  if (seeing.length === 0) return undefined
  const { headers = {}, signal } = call
  const group = key.groupId === null ? undefined : rules.groupNames?.get(key.groupId)
  const names = { key: key.name, organization: rules.name, ...(group !== undefined && { group }) }
  const facts = { ...start, names, labels: { ...key.labels }, operation: operation ?? start.operation }
  return new CallPlugins(seeing, { ...facts, headers, body: () => read.body(), signal }, plugins)
}

/** Steps that follow the plugins, and facts that have to be checked again after them. */
type Following<Read extends ReadCall> = {
  services: Services
  recheck(authenticated: Key, kind: CallKind<Read>, services: Services): MaybePromise<KeyWithRules>
  answer(call: OpenedCall<Read>): Promise<CallResponse>
}

/** Answers a call as the plugins that see it change it, unless one of them refuses or answers it. Throws RouterError. */
export function withPlugins<Read extends ReadCall>(
  opened: OpenedCall<Read>,
  kind: CallKind<Read>,
  following: Following<Read>,
): Promise<CallResponse> {
  if (!isSeen(opened)) return following.answer(opened)
  return reportedToPlugins(opened, kind, () => {
    opened.plugins.requireAvailable()
    if (!opened.plugins.seeRequest) return following.answer(opened)
    return andThen(changedByPlugins(opened, kind, following), ({ call, answer }) =>
      answer && kind.plugins.answer
        ? answerOfPlugin(answer, call, { kind, ...following, respond: kind.plugins.answer })
        : following.answer(call),
    )
  })
}

function isSeen<Read extends ReadCall>(call: OpenedCall<Read>): call is SeenCall<Read> {
  return call.plugins !== undefined
}

function changedByPlugins<Read extends ReadCall>(
  opened: SeenCall<Read>,
  kind: CallKind<Read>,
  { services, recheck }: Following<Read>,
): MaybePromise<{ call: SeenCall<Read>; answer?: PluginAnswer }> {
  const given = kind.plugins.given(opened.read)
  const asking = opened.plugins.request(given, kind.plugins.accept?.(opened))
  const hasWaited = asking instanceof Promise
  return andThen(asking, ({ request, answer }) =>
    andThen(hasWaited ? recheck(opened.authenticated, kind, services) : opened, ({ key, rules }) => {
      const current = { ...opened, key, rules }
      const call = request === given ? current : changed(current, request, kind)
      return answer ? { call, answer } : { call }
    }),
  )
}

/** Returns the call as plugins changed it: of several names none is asked that the plugin has not chosen. */
function changed<Read extends ReadCall>(
  opened: SeenCall<Read>,
  request: PluginRequest,
  kind: CallKind<Read>,
): SeenCall<Read> {
  const before = opened.read.model
  const read = kind.plugins.changed(opened.read, request)
  if (read === opened.read) return opened
  const call = { ...opened, read, isRewritten: true }
  if (read.model === before) return call
  const { models: _, ...routing } = read.routing ?? {}
  const inEurope = isEuOnly(before, opened.rules)
  return { ...call, read: { ...read, routing: read.routing && routing }, inEurope }
}

/** Adds the headers that plugins send to the client, and reports to them how a call ended that has no row. Throws RouterError. */
async function reportedToPlugins(
  { plugins, start }: SeenCall,
  { isFree }: CallKind,
  answer: () => MaybePromise<CallResponse>,
): Promise<CallResponse> {
  try {
    const response = await answer()
    if (Object.keys(plugins.headers).length === 0) return response
    return { ...response, headers: { ...plugins.headers, ...response.headers } }
  } catch (thrown) {
    const error = asRouterError(thrown)
    if (!isFree) plugins.record(recordOfRefused(start, error))
    throw error.withHeaders(plugins.headers)
  }
}

function recordOfRefused(start: CallStart, { status, code }: RouterError): CallRecord {
  return recordOf(start, { target: { provider: { slug: '' }, model: '' }, outcome: 'failed', status, error: code })
}

type Answering<Read extends ReadCall> = Following<Read> & {
  kind: CallKind<Read>
  respond: NonNullable<CallKind<Read>['plugins']['answer']>
}

/**
 * Returns the response to a call that a plugin answers: it costs nothing, counts against the limits, and has its row. A caller who may not
 * use the model that was asked for is still refused. Throws RouterError.
 */
async function answerOfPlugin<Read extends ReadCall>(
  answer: PluginAnswer,
  opened: SeenCall<Read>,
  { kind, services, recheck, respond }: Answering<Read>,
): Promise<CallResponse> {
  const { plugins, explanation, start } = opened
  const { plugin } = answer
  routeOf(opened, opened, kind, services)
  const admitting = admitUncharged(opened, services.admission)
  const limits = admitting instanceof Promise ? await admitting : admitting
  try {
    if (admitting instanceof Promise) await recheck(opened.authenticated, kind, services)
  } catch (thrown) {
    limits.undo()
    throw thrown
  }
  Object.assign(plugins.headers, answer.headers)
  explanation?.begin(start.monotonicMs)
  explanation?.answeredByPlugin(plugin)
  let hasEnded = false
  const end: AnswerEnd = async (how, response) => {
    if (hasEnded) return
    hasEnded = true
    limits.settle(0)
    const row = recordOf(start, { target: pluginAsTarget(plugin), ...how })
    const stored = explanation ? { ...row, explanation: explanation.told() } : row
    await services.ledger.settle(stored, response, { keyName: start.keyName })
    plugins.record(row)
  }
  try {
    const response = await respond(answer, opened, end)
    const headers = { 'x-router-model': targetId(pluginAsTarget(plugin)), 'x-router-attempts': '0' }
    return { ...response, headers: { ...limits.headers, ...headers, ...response.headers } }
  } catch (thrown) {
    limits.settle(0)
    throw thrown
  }
}

/** Returns a plugin in the form in which others name a target. */
export function pluginAsTarget(plugin: string): NamedTarget {
  return { provider: { slug: 'plugin' }, model: plugin }
}

/** Returns the row of a call for which no provider was asked. */
function recordOf(
  { monotonicMs, keyName: _, ...start }: CallStart,
  { target, ...how }: { target: NamedTarget } & Parameters<AnswerEnd>[0],
): CallRecord {
  return {
    ...start,
    provider: target.provider.slug,
    model: target.model,
    ...how,
    usage: {},
    cost: { nanoUsd: 0, parts: {}, priceVersion: '' },
    dropped: [],
    attempts: 0,
    durationMs: Math.round(performance.now() - monotonicMs),
  }
}
