import type { ProviderEvent } from '../core/events.ts'
import type { Fold } from '../core/fold.ts'
import { freezeData } from '../core/freeze-data.ts'
import type { Reply } from '../core/reply.ts'
import type { StreamedEvent } from './contract.ts'
import { eventResult } from './event-members.ts'
import type { RunningPlugin } from './running.ts'
import { inPlugin } from './strays.ts'

/** The events of a frame of a stream. */
export type Events = readonly StreamedEvent[]

/**
 * The plugins that see the events of one streamed answer, the innermost first: each gets what the one before it returned. One that has
 * failed sees nothing more of the answer.
 */
export class EventHooks {
  readonly #stages: readonly Stage[]

  /** `openFold` opens one for what reaches a plugin whose `reply` hook is to get it, where that is not what the provider said. */
  constructor(plugins: readonly RunningPlugin[], openFold?: () => Fold) {
    const seeing = plugins.filter(({ hooks }) => hooks.event || hooks.reply)
    const first = seeing.findIndex(({ hooks }) => hooks.event)
    this.#stages = seeing.map((plugin, index) => {
      return new Stage(plugin, index > first && plugin.hooks.reply ? openFold?.() : undefined)
    })
  }

  /** What the client gets of some frames of the provider. Throws RouterError `plugin_failed`. */
  take(frames: readonly Events[]): readonly Events[] {
    let passed = frames.some(hasEnd) ? frames.map(withoutEnd) : frames
    for (const stage of this.#stages) passed = stage.take(passed)
    return passed
  }

  /** The provider's answer came whole: what has been held back. Throws RouterError `plugin_failed`. */
  end(): Events {
    let events: Events = []
    for (const stage of this.#stages) {
      const passed = stage.take([...events.map((event) => [event]), [end]])
      events = passed.flatMap(withoutEnd)
    }
    return events
  }

  /** The answer as it reached this plugin; undefined where that is what the provider said. */
  arrivedAt(plugin: RunningPlugin): Reply | undefined {
    return this.#stages.find((stage) => stage.plugin === plugin)?.arrived?.reply()
  }
}

/** One plugin that sees a stream; `arrived` folds what reaches it. */
class Stage {
  readonly plugin: RunningPlugin
  readonly arrived: Fold | undefined
  #isOff: boolean

  constructor(plugin: RunningPlugin, arrived: Fold | undefined) {
    this.plugin = plugin
    this.arrived = arrived
    this.#isOff = plugin.hooks.event === undefined
  }

  take(frames: readonly Events[]): readonly Events[] {
    const { arrived, plugin } = this
    if (arrived) for (const events of frames) for (const event of events) arrived.take(event as ProviderEvent)
    return this.#isOff ? frames : inPlugin(plugin.name, () => this.#see(frames))
  }

  /** Frames that come together are seen together: nobody else has had a turn when the last one has been seen. */
  #see(frames: readonly Events[]): readonly Events[] {
    const { plugin } = this
    const seen: StreamedEvent[][] = []
    const began = performance.now()
    for (const events of frames) {
      const some: StreamedEvent[] = []
      for (const event of events) {
        const passed = this.#isOff ? undefined : this.#run(event)
        if (passed) some.push(...passed)
        else some.push(event)
      }
      seen.push(some)
    }
    try {
      if (!this.#isOff) plugin.requireInTime(performance.now() - began)
    } catch (thrown) {
      this.#fail(thrown)
    }
    return seen
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

const end: ProviderEvent = Object.freeze({ done: true })

function hasEnd(events: Events): boolean {
  return events.some((event) => 'done' in event)
}

/** Only the end of an answer is its end. */
function withoutEnd(events: Events): Events {
  if (!hasEnd(events)) return events
  return events.flatMap((event) => {
    if (!('done' in event)) return event
    const { done: _, ...others } = event
    return Object.keys(others).length > 0 ? others : []
  })
}
