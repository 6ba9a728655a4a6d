import type { AsyncResource } from 'node:async_hooks'
import { RouterError } from '../core/errors.ts'
import { type CallFacts, CallView, type HookTime } from './call-view.ts'
import { type Hooks, type MaybePromise, type PluginCall, Refusal } from './contract.ts'
import { contextOf, type Fault, type PluginFaults } from './faults.ts'
import type { LoadedPlugin } from './loaded.ts'
import { WrongResult } from './members.ts'
import { refusalError, wrongInRefusal } from './refusals.ts'
import type { hookNames } from './shape.ts'
import { within } from './within.ts'

/** The name of a hook. */
export type HookName = (typeof hookNames)[number]

/** Way of running a hook of several plugins, one after the other. */
export type HookRun<Result> = {
  /** Argument of the hook, frozen. */
  given: unknown
  /** Third argument of the hook, after the call. */
  more?: unknown
  /** Converts its result. Throws `WrongResult` for one that it may not return. */
  check(result: unknown): Result
  /** Set where the hook runs even if the client has left. */
  goesOn?: boolean
  /** End of the previous hook, if nothing was waited for since then: this one begins at that time. */
  at?: number | undefined
}

type Hook = (given: unknown, call: PluginCall, more?: unknown) => unknown

/** A plugin in one call. */
export class RunningPlugin {
  readonly name: string
  readonly hooks: Hooks
  readonly #plugin: LoadedPlugin
  readonly #context: AsyncResource
  readonly #facts: CallFacts
  readonly #faults: PluginFaults
  #view: CallView | undefined

  constructor(plugin: LoadedPlugin, facts: CallFacts, faults: PluginFaults) {
    this.name = plugin.name
    this.hooks = plugin.hooks
    this.#plugin = plugin
    this.#context = contextOf(plugin.name)
    this.#facts = facts
    this.#faults = faults
  }

  /** Set where clients may get only what this plugin has seen. */
  get guards(): boolean {
    return this.#plugin.guards === true
  }

  /** Returns the call as this plugin sees it. */
  get view(): CallView {
    this.#view ??= new CallView(this.#facts)
    return this.#view
  }

  /**
   * Runs a hook and returns its result; undefined where it returned nothing, or failed and the call goes on without it. One that answers at
   * once costs no promise. Throws RouterError, or rejects with one: `plugin_failed`, or the hook's own refusal of the call.
   */
  run<Result>(name: HookName, run: HookRun<Result>): MaybePromise<Result | undefined> {
    const { view, hooks } = this
    const { at: began = performance.now() } = run
    view.begin(run.goesOn)
    run.at = undefined
    try {
      const result = this.#context.runInAsyncScope(hooks[name] as Hook, hooks, run.given, view, run.more)
      if (isPromise(result)) return this.#awaited(name, result, { began, check: run.check, time: view.time })
      if (result instanceof Refusal) throw result
      const ended = performance.now()
      this.requireInTime(ended - began)
      const checked = result === undefined ? undefined : run.check(result)
      this.worked(name)
      if (result === undefined) run.at = ended
      return checked
    } catch (thrown) {
      return this.failed(name, thrown)
    }
  }

  /** Throws for a hook that took longer than it may. Milliseconds. */
  requireInTime(ms: number): void {
    if (ms > this.#plugin.timeoutMs) throw new TookTooLong(`it took ${Math.round(ms)} ms`)
  }

  /** Counts a call of a hook that has not failed. */
  worked(hook: HookName): void {
    this.#faults.ran(this.hooks, hook, false)
  }

  /**
   * Counts a failure. Throws RouterError `plugin_failed` where no call goes on without the plugin, and the error of the refusal where it
   * refuses the call.
   */
  failed(hook: HookName, thrown: unknown): undefined {
    if (thrown instanceof Refusal && hook !== 'record') {
      const err = wrongInRefusal(thrown)
      this.worked(hook)
      if (err) this.#faults.saw(this.name, hook, faultOf(err), { call: this.#facts.id, err })
      throw refusalError(thrown)
    }
    // It has looked at an answer that cannot be read.
    if (thrown instanceof RouterError && thrown.code === 'provider_unreadable') throw thrown
    this.#faults.saw(this.name, hook, faultOf(thrown), { call: this.#facts.id, err: thrown })
    this.#faults.ran(this.hooks, hook, true)
    if (this.#plugin.onError === 'open') return undefined
    const message = `The plugin '${this.name}' failed, and this router refuses calls without it.`
    throw new RouterError('plugin_failed', message)
  }

  async #awaited<Result>(
    hook: HookName,
    promise: PromiseLike<unknown>,
    { began, check, time }: Pick<HookRun<Result>, 'check'> & { began: number; time: HookTime },
  ): Promise<Result | undefined> {
    const { timeoutMs } = this.#plugin
    try {
      const result = await within(promise, timeoutMs, () => new TookTooLong(`it took longer than ${timeoutMs} ms`))
      if (result instanceof Refusal) throw result
      // One that kept everything waiting was not interrupted.
      this.requireInTime(performance.now() - began)
      const checked = result === undefined ? undefined : check(result)
      this.worked(hook)
      return checked
    } catch (thrown) {
      if (thrown instanceof TookTooLong) time.end(thrown)
      return this.failed(hook, thrown)
    }
  }
}

class TookTooLong extends Error {
  override readonly name = 'TookTooLong'
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function'
}

function faultOf(thrown: unknown): Fault {
  if (thrown instanceof TookTooLong) return 'took_too_long'
  return thrown instanceof WrongResult ? 'wrong_result' : 'threw'
}
