import type { CallRecord } from '../core/call.ts'
import { freezeData } from '../core/freeze-data.ts'
import type { CallFacts } from './call-view.ts'
import type {
  Hooks,
  MaybePromise,
  PluginCall,
  PluginLog,
  PluginReply,
  PluginRequest,
  PluginTarget,
  RequestResult,
} from './contract.ts'
import { EventHooks } from './event-hooks.ts'
import { PluginFaults } from './faults.ts'
import type { LoadedPlugin } from './loaded.ts'
import { WrongResult } from './members.ts'
import { PluginRecords } from './records.ts'
import { replyResult, requestResult } from './results.ts'
import { type HookName, type HookRun, RunningPlugin } from './running.ts'
import { sentHeaders } from './sent-headers.ts'
import { countStrays } from './strays.ts'
import { targetsResult } from './targets-result.ts'

/** What the plugins of a router have in common, from snapshot to snapshot. */
export type PluginServices = { faults: PluginFaults; records: PluginRecords }

/** Opens them; they end with the stack. */
export function openPluginServices(log: Pick<PluginLog, 'warn'>, started: AsyncDisposableStack): PluginServices {
  const faults = new PluginFaults(log)
  started.defer(countStrays(faults))
  return { faults, records: new PluginRecords(faults) }
}

/**
 * What `request` hooks made of a request: another one, or the reply of a plugin, with headers that only those are told who get the
 * reply.
 */
export type AskedPlugins = {
  request: PluginRequest
  answer?: { plugin: string; reply: PluginReply; headers?: Readonly<Record<string, string>> | undefined }
}

/** What else a request and a reply of a plugin must be. They throw RouterError for those that are not. */
export type Accept = { request?(request: PluginRequest): void; reply?(reply: PluginReply): void }

/** The plugins that see one call, in their order. All methods throw, or reject with, RouterError where a plugin ends the call. */
export class CallPlugins {
  /** What plugins tell the client in headers. */
  readonly headers: { [name: string]: string } = {}
  readonly #plugins: readonly RunningPlugin[]
  readonly #facts: CallFacts
  readonly #services: PluginServices
  #isRecorded = false
  /** Those that see the answer: if a plugin answers, those before it. */
  #outside: readonly RunningPlugin[]

  constructor(plugins: readonly LoadedPlugin[], facts: CallFacts, services: PluginServices) {
    this.#plugins = plugins.map((plugin) => new RunningPlugin(plugin, facts, services.faults))
    this.#outside = this.#plugins
    this.#facts = facts
    this.#services = services
  }

  /** Whether one of them has this hook. */
  have(hook: HookName): boolean {
    return this.#plugins.some(({ hooks }) => hooks[hook])
  }

  /** Whether one of them may change the answer: its events where it is streamed, else the whole. */
  get mayChangeAnswer(): boolean {
    return this.have(this.#facts.stream ? 'event' : 'reply')
  }

  async request(asked: PluginRequest, accept: Accept = {}): Promise<AskedPlugins> {
    let request = freezeData(asked)
    const run: HookRun<RequestResult> = {
      invoke: (hooks, call) => hooks.request?.(request, call),
      check(returned) {
        const result = requestResult(returned, request)
        if (result.reply) accepted(result.reply, accept.reply)
        else if (result.request) accepted(result.request, accept.request)
        return result
      },
    }
    for (const [index, plugin] of this.#plugins.entries()) {
      if (!plugin.hooks.request) continue
      const running = plugin.run('request', run)
      const result = running instanceof Promise ? await running : running
      if (!result) continue
      const { reply, headers } = result
      if (reply) {
        this.#outside = this.#plugins.slice(0, index)
        return { request, answer: { plugin: plugin.name, reply, headers } }
      }
      Object.assign(this.headers, headers)
      if (result.request) request = freezeData(result.request)
    }
    return { request }
  }

  /** Some of the targets, in the order in which they are to be tried. */
  async targets<Target extends PluginTarget>(targets: readonly Target[]): Promise<readonly Target[]> {
    let chosen = targets
    for (const plugin of this.#plugins) {
      if (!plugin.hooks.targets) continue
      const given = freezeData(chosen)
      const running = plugin.run('targets', {
        invoke: (hooks, call) => hooks.targets?.(given, call),
        check: (result) => targetsResult(result, given),
      })
      chosen = (running instanceof Promise ? await running : running) ?? given
    }
    return chosen
  }

  /** Headers for the provider, by lower-case name. */
  async send(target: PluginTarget): Promise<Record<string, string>> {
    const headers: Record<string, string> = {}
    const given = freezeData(target)
    const run = { invoke: (hooks: Hooks, call: PluginCall) => hooks.send?.(given, call), check: sentHeaders }
    for (const plugin of this.#plugins) {
      if (!plugin.hooks.send) continue
      const running = plugin.run('send', run)
      Object.assign(headers, running instanceof Promise ? await running : running)
    }
    return headers
  }

  /** For the events of one streamed answer; undefined where nobody sees them. */
  events(): EventHooks | undefined {
    if (this.#inside('event').length === 0) return undefined
    return new EventHooks(this.#outside.toReversed())
  }

  /** A whole answer as the client gets it. */
  async reply(answer: PluginReply, accept?: Accept['reply']): Promise<PluginReply> {
    let reply = answer
    const run: HookRun<ReturnType<typeof replyResult>> = {
      invoke: (hooks, call) => hooks.reply?.(freezeData(reply), call),
      check(returned) {
        const result = replyResult(returned, answer.operation)
        accepted(result.reply, accept)
        return result
      },
    }
    for (const plugin of this.#inside('reply')) {
      const running = plugin.run('reply', run)
      const result = running instanceof Promise ? await running : running
      if (!result) continue
      Object.assign(this.headers, result.headers)
      reply = result.reply
    }
    return reply
  }

  /** A stream has ended, and each plugin is shown the answer as it reached it. Nobody waits for them. */
  streamed(answerAt: (plugin: RunningPlugin) => PluginReply): void {
    for (const plugin of this.#inside('reply')) watch(plugin, answerAt(plugin))
  }

  /** The call has ended, however it did: what is told first counts. Nobody waits for the plugins. */
  record(record: CallRecord): void {
    if (this.#isRecorded) return
    this.#isRecorded = true
    const recording = this.#plugins.filter(({ hooks }) => hooks.record)
    if (recording.length === 0) return
    this.#services.records.add({ call: record.id, plugins: recording.map(({ name }) => name) }, () => {
      const running = recording.flatMap((plugin) => recorded(plugin, freezeData(record)) ?? [])
      return running.length > 0 ? Promise.all(running) : undefined
    })
  }

  /** The innermost first. */
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

/** What fails after a call has been counted: there is no call any more that it could end. */
function recorded(plugin: RunningPlugin, record: CallRecord): Promise<unknown> | undefined {
  return quietly(() =>
    plugin.run('record', {
      invoke: (hooks, call) => hooks.record?.(record, call),
      check: () => undefined,
      goesOn: true,
    }),
  )
}

function watch(plugin: RunningPlugin, reply: PluginReply): void {
  void quietly(() =>
    plugin.run('reply', {
      invoke: (hooks, call) => hooks.reply?.(freezeData(reply), call),
      check: () => undefined,
      goesOn: true,
    }),
  )
}

function quietly(run: () => MaybePromise<unknown>): Promise<unknown> | undefined {
  try {
    const running = run()
    return running instanceof Promise ? running.catch(() => {}) : undefined
  } catch {
    return undefined
  }
}
