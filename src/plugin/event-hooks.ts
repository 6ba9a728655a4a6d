import type { ProviderEvent } from '../core/events.ts'
import type { Fold } from '../core/fold.ts'
import type { Reply } from '../core/reply.ts'
import { andThen } from '../runtime/maybe-promise.ts'
import { freezeData } from './call-view.ts'
import { type CheckedAnswer, type MaybePromise, Refusal, type StreamedEvent } from './contract.ts'
import { inPlugin } from './faults.ts'
import { HeldEvents, usualHold } from './held-events.ts'
import { WrongResult } from './members.ts'
import { eventResult } from './results.ts'
import type { HookRun, RunningPlugin } from './running.ts'

/** The events of a frame of a stream. */
export type Events = readonly StreamedEvent[]

/**
 * The plugins that see the events of one streamed answer, the innermost first: each gets the result of the one before it. One that has
 * failed sees nothing more of the answer.
 */
export class EventHooks {
  readonly #stages: readonly Stage[]

  constructor(plugins: readonly RunningPlugin[]) {
    const seeing = plugins.filter(({ hooks }) => hooks.event || hooks.reply || hooks.check)
    this.#stages = seeing.map((plugin) => new Stage(plugin))
  }

  /**
   * Returns the frames that the client gets for some frames of the provider; the same list where no plugin changes them. `said` folds the
   * provider's earlier output. Throws RouterError, or rejects with it, where a plugin ends the call.
   */
  take(frames: readonly Events[], said?: Fold): MaybePromise<readonly Events[]> {
    const given = frames.some(hasEnd) ? frames.map(withoutEnd) : frames
    return this.#pass(given, (passed) => (passed === given ? undefined : said))
  }

  /** Returns the milliseconds after which `take` has to be called again, if only to send what is kept back; undefined where nothing is. */
  get dueMs(): number | undefined {
    const due = this.#stages.flatMap(({ dueMs }) => dueMs ?? [])
    return due.length > 0 ? Math.min(...due) : undefined
  }

  /** Returns the events that were held back of an answer that arrived whole; `said` has folded it. Throws RouterError as `take` does. */
  end(said?: Fold): MaybePromise<Events> {
    const atEnd = (passed: readonly Events[]) => [...passed.flatMap(withoutEnd).map((event) => [event]), [end]]
    const passing = this.#pass([[end]], (passed) => (passed.length > 1 ? said : undefined), atEnd)
    return andThen(passing, (passed) => passed.flatMap(withoutEnd))
  }

  /** Passes frames from plugin to plugin; `between` makes what the next one gets of them. */
  #pass(
    frames: readonly Events[],
    saidFor: (passed: readonly Events[]) => Fold | undefined,
    between = (passed: readonly Events[]) => passed,
    from = 0,
  ): MaybePromise<readonly Events[]> {
    let passed = frames
    for (const [index, stage] of this.#stages.entries()) {
      if (index < from) continue
      const taken = stage.take(passed, saidFor(passed))
      if (taken instanceof Promise)
        return taken.then((frames) => this.#pass(between(frames), saidFor, between, index + 1))
      passed = between(taken)
    }
    return passed
  }

  /** Returns the answer as it reached this plugin; undefined where it is the provider's own. */
  arrivedAt(plugin: RunningPlugin): Reply | undefined {
    return this.#stages.find((stage) => stage.plugin === plugin)?.arrived?.reply()
  }
}

/** One plugin that sees a stream; `arrived` folds the events that reach it, from the first that is not the provider's own. */
class Stage {
  readonly plugin: RunningPlugin
  arrived: Fold | undefined
  readonly #held: HeldEvents | undefined
  #isOff: boolean

  constructor(plugin: RunningPlugin) {
    const { event, check, hold } = plugin.hooks
    this.plugin = plugin
    this.#isOff = event === undefined
    if (check || hold) this.#held = new HeldEvents(hold ?? usualHold)
  }

  get dueMs(): number | undefined {
    return this.#held?.dueMs
  }

  /** Takes the next frames; `instead` is the provider's output before them, where they are not the provider's own. */
  take(frames: readonly Events[], instead: Fold | undefined): MaybePromise<readonly Events[]> {
    const { plugin } = this
    if (instead && plugin.hooks.reply) this.arrived ??= instead.copy()
    const { arrived } = this
    if (arrived) for (const events of frames) for (const event of events) arrived.take(event as ProviderEvent)
    const seen = this.#isOff ? frames : inPlugin(plugin.name, () => this.#see(frames))
    return this.#held ? this.#hold(seen, this.#held) : seen
  }

  /** Keeps frames back, and returns those that have been kept for long enough, after the plugin has looked at them. */
  #hold(frames: readonly Events[], held: HeldEvents): MaybePromise<readonly Events[]> {
    for (const events of frames) held.add(events)
    const isLast = frames.some(hasEnd)
    const all = isLast || held.dueMs === 0
    if (!all && !held.isReady) return []
    return andThen(this.#check({ texts: held.texts(), isLast }), () => held.release(all))
  }

  #check(answer: CheckedAnswer): MaybePromise<unknown> {
    const { plugin } = this
    return plugin.hooks.check && plugin.run('check', checking(answer))
  }

  /** Passes frames to the plugins. Frames that arrive together are seen together, without yielding to the event loop in between. */
  #see(frames: readonly Events[]): readonly Events[] {
    const { plugin } = this
    const began = performance.now()
    const seen = mapped(frames, (events) => this.#seeFrame(events))
    try {
      if (!this.#isOff) {
        plugin.requireInTime(performance.now() - began)
        if (frames.length > 0) plugin.worked('event')
      }
    } catch (thrown) {
      this.#fail(thrown)
    }
    return seen
  }

  #seeFrame(events: Events): Events {
    let seen: StreamedEvent[] | undefined
    for (const [index, event] of events.entries()) {
      const passed = this.#isOff ? undefined : this.#run(event)
      if (passed) seen ??= events.slice(0, index)
      if (passed) seen?.push(...passed)
      else seen?.push(event)
    }
    return seen ?? events
  }

  #run(event: StreamedEvent): Events | undefined {
    const { hooks, view } = this.plugin
    try {
      const result = hooks.event?.(freezeData(event), view)
      if (result instanceof Refusal) throw result
      return result === undefined ? undefined : eventResult(result, event, view.operation)
    } catch (thrown) {
      this.#fail(thrown)
      return undefined
    }
  }

  #fail(thrown: unknown): void {
    this.#isOff = true
    this.plugin.failed('event', thrown)
  }
}

/** Returns the run of a `check` hook. */
export function checking(answer: CheckedAnswer): HookRun<undefined> {
  return { given: freezeData(answer), check: noResult }
}

function noResult(): never {
  throw new WrongResult('a `check` hook returns a Refusal, or nothing')
}

/** Returns the list itself where every item is mapped to itself. */
function mapped<Item>(items: readonly Item[], map: (item: Item) => Item): readonly Item[] {
  let changed: Item[] | undefined
  for (const [index, item] of items.entries()) {
    const other = map(item)
    if (other !== item) changed ??= items.slice(0, index)
    changed?.push(other)
  }
  return changed ?? items
}

const end: ProviderEvent = Object.freeze({ done: true })

function hasEnd(events: Events): boolean {
  return events.some((event) => 'done' in event)
}

/** Removes the end from events that are not the end of the answer. */
function withoutEnd(events: Events): Events {
  if (!hasEnd(events)) return events
  return events.flatMap((event) => {
    if (!('done' in event)) return event
    const { done: _, ...others } = event
    return Object.keys(others).length > 0 ? others : []
  })
}
