import type { CallRecord } from '../core/call.ts'
import { RouterError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import { andThen } from '../runtime/maybe-promise.ts'
import { textsOfReply } from './answer-texts.ts'
import { type CallFacts, freezeData, OutgoingBody } from './call-view.ts'
import {
  type MaybePromise,
  type PluginCall,
  type PluginLog,
  type PluginReply,
  type PluginRequest,
  type PluginTarget,
  type RequestResult,
  Retry,
} from './contract.ts'
import { checking, EventHooks } from './event-hooks.ts'
import { countUncaughtErrors, PluginFaults } from './faults.ts'
import { type LoadedPlugin, unavailablePlugin } from './loaded.ts'
import { WrongResult } from './members.ts'
import { PluginRecords } from './records.ts'
import { replyResult, requestResult, type Sent, sentResult, targetsResult } from './results.ts'
import { type HookName, type HookRun, RunningPlugin } from './running.ts'
import { withoutStaleForms } from './stale-forms.ts'

/** Services that the plugins of a router share, from snapshot to snapshot. */
export type PluginServices = { faults: PluginFaults; records: PluginRecords }

/** Opens them; they end with the stack. */
export function openPluginServices(log: Pick<PluginLog, 'warn'>, started: AsyncDisposableStack): PluginServices {
  const faults = new PluginFaults(log)
  started.defer(countUncaughtErrors(faults))
  return { faults, records: new PluginRecords(faults) }
}

/**
 * Result of the `request` hooks: another request, or the reply of a plugin, with headers that are sent only with that reply.
 */
export type RequestOutcome = {
  request: PluginRequest
  answer?: { plugin: string; reply: PluginReply; headers?: Readonly<Record<string, string>> | undefined }
}

/** Further checks of a request and a reply of a plugin. They throw RouterError for invalid ones. */
export type Accept = { request?(request: PluginRequest): void; reply?(reply: PluginReply): void }

/** A hook of plugin after plugin: the input of the next one, and what happens to the result of each, which may be the last. */
type HookSequence<Given, Result> = HookRun<Result> & {
  given: Given
  take(result: Result, plugin: RunningPlugin): boolean | undefined
}

/**
 * The plugins that see one call, in their order. All methods throw, or reject with, RouterError where a plugin ends the call; they
 * return promises only where one has to be waited for.
 */
export class CallPlugins {
  /** Headers that plugins send to the client. */
  readonly headers: { [name: string]: string } = {}
  readonly #plugins: readonly RunningPlugin[]
  readonly #unavailable: LoadedPlugin | undefined
  readonly #facts: CallFacts
  readonly #services: PluginServices
  /** The hooks that see the request: that of all operations, and that of its own. */
  readonly #requestHooks: readonly HookName[]
  #isRecorded = false
  /** Number of answers that plugins have rejected for another one. */
  #retries = 0
  /** Plugins that see the answer: if a plugin answers, those before it and those that guard. */
  #outside: readonly RunningPlugin[]

  constructor(plugins: readonly LoadedPlugin[], facts: CallFacts, services: PluginServices) {
    this.#unavailable = plugins.find((plugin) => plugin.unavailable !== undefined)
    this.#plugins = plugins.map((plugin) => new RunningPlugin(plugin, facts, services.faults))
    this.#outside = this.#plugins
    this.#facts = facts
    this.#requestHooks = requestHooks.get(facts.operation) ?? requestHooksOf(facts.operation)
    this.#services = services
  }

  /** Checks whether one of them sees the request. */
  get seeRequest(): boolean {
    return this.#requestHooks.some((hook) => this.have(hook))
  }

  /** Throws RouterError `plugin_unavailable` where one of them could not be set up, and no call goes on without it. */
  requireAvailable(): void {
    if (this.#unavailable) throw unavailablePlugin(this.#unavailable)
  }

  /** Checks whether one of them has this hook. */
  have(hook: HookName): boolean {
    for (const { hooks } of this.#plugins) if (hooks[hook]) return true
    return false
  }

  /** Checks whether one of them may change the answer, or keep it back: its events where it is streamed, else the whole. */
  get mayChangeAnswer(): boolean {
    return this.guards || this.have(this.#facts.stream ? 'event' : 'reply')
  }

  /** Checks whether one of them sees a stream before the client has all of it. */
  get maySeeStream(): boolean {
    return this.have('event') || this.have('check')
  }

  /** Checks whether the client may get only what they have seen of an answer. */
  get guards(): boolean {
    return this.have('check') || this.#plugins.some(({ guards, hooks }) => guards && (hooks.event || hooks.reply))
  }

  request(asked: PluginRequest, accept: Accept = {}): MaybePromise<RequestOutcome> {
    let answer: RequestOutcome['answer']
    const turns: HookSequence<PluginRequest, RequestResult> = {
      given: freezeData(asked),
      check(returned) {
        const result = requestResult(returned, turns.given)
        if (result.reply) accepted(result.reply, accept.reply)
        else if (result.request) accepted(result.request, accept.request)
        return result
      },
      take: ({ request, reply, headers }, plugin) => {
        if (reply) {
          this.#outside = this.#seeingAnswerOf(plugin)
          answer = { plugin: plugin.name, reply, headers }
          return true
        }
        Object.assign(this.headers, headers)
        if (request) turns.given = freezeData(withoutStaleForms(request, turns.given))
        return false
      },
    }
    const asking = this.#each(this.#plugins, this.#requestHooks, turns)
    return andThen(asking, () => ({ request: turns.given, ...(answer && { answer }) }))
  }

  /** Returns the plugins that see the answer of one of them: those before it, and those that guard what clients get, wherever they are. */
  #seeingAnswerOf(plugin: RunningPlugin): readonly RunningPlugin[] {
    const place = this.#plugins.indexOf(plugin)
    return this.#plugins.filter((one, at) => at < place || (at > place && (one.guards || one.hooks.check)))
  }

  /**
   * Returns some of the targets, and others that `find` returns by their ids, in the order in which they are to be tried. Throws RouterError
   * where a plugin leaves none.
   */
  targets<Target extends PluginTarget>(
    targets: readonly Target[],
    find?: (id: string) => Target | undefined,
  ): MaybePromise<readonly Target[]> {
    const turns: HookSequence<readonly Target[], readonly Target[]> = {
      given: freezeData(targets),
      check: (result) => targetsResult(result, turns.given, find),
      take(chosen, { name }) {
        if (chosen.length === 0)
          throw new RouterError('unavailable', `The plugin '${name}' left no target for this call.`)
        turns.given = freezeData(chosen)
      },
    }
    return andThen(this.#each(this.#plugins, targetsHook, turns), () => turns.given)
  }

  /**
   * Returns headers for the provider, by lower-case name, and the body as plugins edit it; `accept` throws an Error for an edit that they may
   * not make.
   */
  send(
    target: PluginTarget,
    { body, accept }: { body?: JsonObject | undefined; accept?: (edited: JsonObject) => void } = {},
  ): MaybePromise<Sent> {
    const sent: Sent = { headers: {}, body }
    const turns: HookSequence<PluginTarget, Sent> = {
      given: freezeData(target),
      more: body && new OutgoingBody(() => sent.body ?? body),
      check(returned) {
        const result = sentResult(returned, body !== undefined)
        if (result.body) accepted(result.body, accept)
        return result
      },
      take(own) {
        Object.assign(sent.headers, own.headers)
        if (own.body) sent.body = own.body
      },
    }
    return andThen(this.#each(this.#plugins, sendHook, turns), () => sent)
  }

  /** Returns the hooks for the events of one streamed answer; undefined where no plugin has any. */
  events(): EventHooks | undefined {
    const isSeen = this.#outside.some(({ hooks }) => hooks.event || hooks.check)
    return isSeen ? new EventHooks(this.#outside.toReversed()) : undefined
  }

  /**
   * Returns a whole answer as the client gets it. Throws RouterError, also where a plugin wants another answer and `mayRetry` is set.
   */
  reply(answer: PluginReply, accept?: Accept['reply'], mayRetry = false): MaybePromise<PluginReply> {
    const turns: HookSequence<PluginReply, RepliedBy> = {
      given: freezeData(answer),
      check(returned) {
        if (returned instanceof Retry) return returned
        const result = replyResult(returned, answer.operation)
        accepted(result.reply, accept)
        return result
      },
      take: (result, { name }) => {
        if (result instanceof Retry) {
          if (mayRetry && this.#retries < maxRetries) throw this.#retried(name, result)
          return
        }
        Object.assign(this.headers, result.headers)
        turns.given = freezeData(result.reply)
      },
    }
    return andThen(this.#replied(this.#outside.toReversed(), turns), () => turns.given)
  }

  #retried(plugin: string, { reason }: Retry): RouterError {
    this.#retries++
    const message = `The plugin '${plugin}' asked for another answer: ${String(reason)}`
    return new RouterError('plugin_refused', message, { pluginRefusal: { status: 502 }, wantsOther: true })
  }

  /** Passes an answer to the `reply` and the `check` of plugin after plugin. */
  #replied(plugins: readonly RunningPlugin[], turns: HookSequence<PluginReply, RepliedBy>): MaybePromise<unknown> {
    const [plugin, ...others] = plugins
    if (!plugin) return undefined
    const checked = () => {
      if (!plugin.hooks.check) return undefined
      return plugin.run('check', checking({ texts: textsOfReply(turns.given), isLast: true }))
    }
    return andThen(this.#each([plugin], replyHook, turns), () => andThen(checked(), () => this.#replied(others, turns)))
  }

  /** Shows each plugin the answer of a stream before its end, as it reached it: one may still refuse it, and none can change it. */
  streamed(answerAt: (plugin: RunningPlugin) => PluginReply): MaybePromise<unknown> {
    return this.#showEach(this.#inside('reply'), answerAt)
  }

  #showEach(
    [plugin, ...others]: readonly RunningPlugin[],
    answerAt: (plugin: RunningPlugin) => PluginReply,
  ): MaybePromise<unknown> {
    if (!plugin) return undefined
    const shown = plugin.run('reply', { given: freezeData(answerAt(plugin)), check: () => undefined })
    return andThen(shown, () => this.#showEach(others, answerAt))
  }

  /** Passes on that the call has ended, in whatever way: the first report counts. Nobody waits for the plugins. */
  record(record: CallRecord): void {
    if (this.#isRecorded) return
    this.#isRecorded = true
    const recording = this.#plugins.filter(({ hooks }) => hooks.record)
    if (recording.length === 0) return
    this.#services.records.add({ call: record.id, plugins: recording }, () => {
      const run = ignored(record)
      const running: Promise<unknown>[] = []
      for (const plugin of recording) {
        const one = quietly(plugin, 'record', run)
        if (one) running.push(one)
      }
      return running.length > 0 ? Promise.all(running) : undefined
    })
  }

  /** Runs these hooks of plugin after plugin, until one is the last. */
  #each<Given, Result>(
    plugins: readonly RunningPlugin[],
    hooks: readonly HookName[],
    turns: HookSequence<Given, Result>,
    from = 0,
  ): MaybePromise<unknown> {
    for (let index = from; index < plugins.length * hooks.length; index++) {
      const plugin = plugins[Math.floor(index / hooks.length)] as RunningPlugin
      const hook = hooks[index % hooks.length] as HookName
      if (!plugin.hooks[hook]) continue
      const running = plugin.run(hook, turns)
      if (running === undefined) continue
      if (running instanceof Promise) {
        return running.then((result) => {
          const isLast = result !== undefined && turns.take(result, plugin) === true
          return isLast || this.#each(plugins, hooks, turns, index + 1)
        })
      }
      if (turns.take(running, plugin) === true) break
    }
    return undefined
  }

  /** Returns the plugins that have a hook, the innermost first. */
  #inside(hook: HookName): RunningPlugin[] {
    return this.#outside.filter(({ hooks }) => hooks[hook]).toReversed()
  }
}

type RepliedBy = ReturnType<typeof replyResult> | Retry

/** The most answers of one call that plugins may reject for another one. */
const maxRetries = 2

const targetsHook = ['targets'] as const
const sendHook = ['send'] as const
const replyHook = ['reply'] as const
const requestHooks = new Map<PluginCall['operation'], readonly HookName[]>()

function requestHooksOf(operation: PluginCall['operation']): readonly HookName[] {
  const hooks: HookName[] = ['request', operation === 'compact' || operation === 'count' ? 'chat' : operation]
  requestHooks.set(operation, hooks)
  return hooks
}

function accepted<Value>(value: Value, accept: ((value: Value) => void) | undefined): Value {
  try {
    accept?.(value)
    return value
  } catch (thrown) {
    throw new WrongResult(thrown instanceof Error ? thrown.message : 'it cannot be read')
  }
}

/** Returns a run of hooks whose results are not used, and whose call has ended. */
function ignored(given: CallRecord): HookRun<undefined> {
  return { given: freezeData(given), check: () => undefined, goesOn: true }
}

/** Runs a hook that nobody waits for, when there is no longer a call that it could end. */
function quietly(plugin: RunningPlugin, hook: HookName, run: HookRun<undefined>): Promise<unknown> | undefined {
  try {
    const running = plugin.run(hook, run)
    return running instanceof Promise ? running.catch(() => {}) : undefined
  } catch {
    return undefined
  }
}
