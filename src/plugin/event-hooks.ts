import type { ProviderEvent } from '../core/events.ts'
import type { Fold } from '../core/fold.ts'
import type { Reply } from '../core/reply.ts'
import { freezeData } from './call-view.ts'
import type { StreamedEvent } from './contract.ts'
import { inPlugin } from './faults.ts'
import { eventResult } from './results.ts'
import type { RunningPlugin } from './running.ts'

/** The events of a frame of a stream. */
export type Events = readonly StreamedEvent[]

/**
 * The plugins that see the events of one streamed answer, the innermost first: each gets the result of the one before it. One that has
 * failed sees nothing more of the answer.
 */
export class EventHooks {
  readonly #stages: readonly Stage[]

  constructor(plugins: readonly RunningPlugin[]) {
    const seeing = plugins.filter(({ hooks }) => hooks.event || hooks.reply)
    this.#stages = seeing.map((plugin) => new Stage(plugin))
  }

  /**
   * Returns the frames that the client gets for some frames of the provider; the same list where no plugin changes them. `said` folds the
   * provider's earlier output. Throws RouterError `plugin_failed`.
   */
  take(frames: readonly Events[], said?: Fold): readonly Events[] {
    const given = frames.some(hasEnd) ? frames.map(withoutEnd) : frames
    let passed = given
    for (const stage of this.#stages) passed = stage.take(passed, passed === given ? undefined : said)
    return passed
  }

  /** Returns the events that were held back of an answer that arrived whole; `said` has folded it. Throws RouterError `plugin_failed`. */
  end(said?: Fold): Events {
    let events: Events = []
    for (const stage of this.#stages) {
      const held = events.map((event) => [event])
      const passed = stage.take([...held, [end]], held.length === 0 ? undefined : said)
      events = passed.flatMap(withoutEnd)
    }
    return events
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
  #isOff: boolean

  constructor(plugin: RunningPlugin) {
    this.plugin = plugin
    this.#isOff = plugin.hooks.event === undefined
  }

  /** Takes the next frames; `instead` is the provider's output before them, where they are not the provider's own. */
  take(frames: readonly Events[], instead: Fold | undefined): readonly Events[] {
    const { plugin } = this
    if (instead && plugin.hooks.reply) this.arrived ??= instead.copy()
    const { arrived } = this
    if (arrived) for (const events of frames) for (const event of events) arrived.take(event as ProviderEvent)
    return this.#isOff ? frames : inPlugin(plugin.name, () => this.#see(frames))
  }

  /** Passes frames to the plugins. Frames that arrive together are seen together, without yielding to the event loop in between. */
  #see(frames: readonly Events[]): readonly Events[] {
    const { plugin } = this
    const began = performance.now()
    const seen = mapped(frames, (events) => this.#seeFrame(events))
    try {
      if (!this.#isOff) plugin.requireInTime(performance.now() - began)
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
