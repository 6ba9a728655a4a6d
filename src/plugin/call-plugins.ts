import type { CallRecord } from '../core/call.ts'
import { RouterError } from '../core/errors.ts'
import { andThen } from '../manifest/run/run-mapping.ts'
import { type CallFacts, freezeData } from './call-view.ts'
import type { MaybePromise, PluginLog, PluginReply, PluginRequest, PluginTarget, RequestResult } from './contract.ts'
import { EventHooks } from './event-hooks.ts'
import { countUncaughtErrors, PluginFaults } from './faults.ts'
import type { LoadedPlugin } from './loaded.ts'
import { WrongResult } from './members.ts'
import { PluginRecords } from './records.ts'
import { replyResult, requestResult, sentHeaders, targetsResult } from './results.ts'
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
  #isRecorded = false
  /** Plugins that see the answer: if a plugin answers, those before it. */
  #outside: readonly RunningPlugin[]

  constructor(plugins: readonly LoadedPlugin[], facts: CallFacts, services: PluginServices) {
    this.#unavailable = plugins.find((plugin) => plugin.unavailable !== undefined)
    this.#plugins = plugins.map((plugin) => new RunningPlugin(plugin, facts, services.faults))
    this.#outside = this.#plugins
    this.#facts = facts
    this.#services = services
  }

  /** Throws RouterError `plugin_unavailable` where one of them could not be set up, and no call goes on without it. */
  requireAvailable(): void {
    const missing = this.#unavailable
    if (!missing) return
    const message = `The plugin '${missing.name}' is unavailable: the router has left out ${missing.unavailable}. It refuses calls without the plugin.`
    throw new RouterError('plugin_unavailable', message)
  }

  /** Checks whether one of them has this hook. */
  have(hook: HookName): boolean {
    for (const { hooks } of this.#plugins) if (hooks[hook]) return true
    return false
  }

  /** Checks whether one of them may change the answer: its events where it is streamed, else the whole. */
  get mayChangeAnswer(): boolean {
    return this.have(this.#facts.stream ? 'event' : 'reply')
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
          this.#outside = this.#plugins.slice(0, this.#plugins.indexOf(plugin))
          answer = { plugin: plugin.name, reply, headers }
          return true
        }
        Object.assign(this.headers, headers)
        if (request) turns.given = freezeData(withoutStaleForms(request, turns.given))
        return false
      },
    }
    const asking = this.#each(this.#plugins, 'request', turns)
    return andThen(asking, () => ({ request: turns.given, ...(answer && { answer }) }))
  }

  /** Returns some of the targets, in the order in which they are to be tried. */
  targets<Target extends PluginTarget>(targets: readonly Target[]): MaybePromise<readonly Target[]> {
    const turns: HookSequence<readonly Target[], readonly Target[]> = {
      given: freezeData(targets),
      check: (result) => targetsResult(result, turns.given),
      take(chosen) {
        turns.given = freezeData(chosen)
      },
    }
    return andThen(this.#each(this.#plugins, 'targets', turns), () => turns.given)
  }

  /** Returns headers for the provider, by lower-case name. */
  send(target: PluginTarget): MaybePromise<Record<string, string>> {
    const headers: Record<string, string> = {}
    const turns: HookSequence<PluginTarget, Record<string, string>> = {
      given: freezeData(target),
      check: sentHeaders,
      take: (own) => void Object.assign(headers, own),
    }
    return andThen(this.#each(this.#plugins, 'send', turns), () => headers)
  }

  /** Returns the hooks for the events of one streamed answer; undefined where no plugin has any. */
  events(): EventHooks | undefined {
    if (this.#inside('event').length === 0) return undefined
    return new EventHooks(this.#outside.toReversed())
  }

  /** Returns a whole answer as the client gets it. */
  reply(answer: PluginReply, accept?: Accept['reply']): MaybePromise<PluginReply> {
    const turns: HookSequence<PluginReply, ReturnType<typeof replyResult>> = {
      given: freezeData(answer),
      check(returned) {
        const result = replyResult(returned, answer.operation)
        accepted(result.reply, accept)
        return result
      },
      take: ({ reply, headers }) => {
        Object.assign(this.headers, headers)
        turns.given = freezeData(reply)
      },
    }
    return andThen(this.#each(this.#outside.toReversed(), 'reply', turns), () => turns.given)
  }

  /** Shows each plugin the answer of a stream that has ended, as it reached it. Nobody waits for them. */
  streamed(answerAt: (plugin: RunningPlugin) => PluginReply): void {
    for (const plugin of this.#inside('reply')) void quietly(plugin, 'reply', ignored(answerAt(plugin)))
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

  /** Runs a hook of these plugins one after the other, until one is the last. */
  #each<Given, Result>(
    plugins: readonly RunningPlugin[],
    hook: HookName,
    turns: HookSequence<Given, Result>,
    from = 0,
  ): MaybePromise<unknown> {
    for (let index = from; index < plugins.length; index++) {
      const plugin = plugins[index] as RunningPlugin
      if (!plugin.hooks[hook]) continue
      const running = plugin.run(hook, turns)
      if (running === undefined) continue
      if (running instanceof Promise) {
        return running.then((result) => {
          const isLast = result !== undefined && turns.take(result, plugin) === true
          return isLast || this.#each(plugins, hook, turns, index + 1)
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

function accepted<Value>(value: Value, accept: ((value: Value) => void) | undefined): Value {
  try {
    accept?.(value)
    return value
  } catch (thrown) {
    throw new WrongResult(thrown instanceof Error ? thrown.message : 'it cannot be read')
  }
}

/** Returns a run of hooks whose results are not used, and whose call has ended. */
function ignored(given: PluginReply | CallRecord): HookRun<undefined> {
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
