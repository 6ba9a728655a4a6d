import type { ProviderEvent } from '../core/events.ts'
import type { Fold } from '../core/fold.ts'
import { freezeData } from '../core/freeze-data.ts'
import type { Reply } from '../core/reply.ts'
import type { StreamedEvent } from './contract.ts'
import { eventResult } from './event-members.ts'
import type { RunningPlugin } from './running.ts'

/** A plugin that sees a stream; `arrived` folds what reaches it, for its `reply` hook. */
type Stage = { plugin: RunningPlugin; arrived: Fold | undefined; isOff: boolean }

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
      const arrived = index > first && plugin.hooks.reply ? openFold?.() : undefined
      return { plugin, arrived, isOff: false }
    })
  }

  /** What the client gets of an event of the provider. Throws RouterError `plugin_failed`. */
  take(event: StreamedEvent): readonly StreamedEvent[] {
    const given = 'done' in event ? withoutDone(event) : event
    return given ? this.#pass([given]) : nothing
  }

  /** The provider's answer came whole: what has been held back. Throws RouterError `plugin_failed`. */
  end(): readonly StreamedEvent[] {
    let events: readonly StreamedEvent[] = nothing
    for (const stage of this.#stages) {
      const rest = events.flatMap((event) => run(stage, event))
      events = [...rest, ...run(stage, end).flatMap((event) => ('done' in event ? (withoutDone(event) ?? []) : event))]
    }
    return events
  }

  /** The answer as it reached this plugin; undefined where that is what the provider said. */
  arrivedAt(plugin: RunningPlugin): Reply | undefined {
    return this.#stages.find((stage) => stage.plugin === plugin)?.arrived?.reply()
  }

  #pass(events: readonly StreamedEvent[]): readonly StreamedEvent[] {
    let passed = events
    for (const stage of this.#stages) {
      const [first] = passed
      // Most events stay one.
      if (first && passed.length === 1) passed = run(stage, first)
      else passed = passed.flatMap((event) => run(stage, event))
    }
    return passed
  }
}

const nothing: readonly StreamedEvent[] = []
const end: ProviderEvent = Object.freeze({ done: true })

function run(stage: Stage, event: StreamedEvent): readonly StreamedEvent[] {
  const { plugin, arrived } = stage
  arrived?.take(event as ProviderEvent)
  const { hooks, view } = plugin
  if (stage.isOff || !hooks.event) return [event]
  const began = performance.now()
  try {
    const result = hooks.event(freezeData(event), view)
    plugin.requireInTime(performance.now() - began)
    return result === undefined ? [event] : eventResult(result, event, view.operation)
  } catch (thrown) {
    stage.isOff = true
    plugin.failed('event', thrown)
    return [event]
  }
}

/** Only the end of an answer is its end. */
function withoutDone(event: StreamedEvent): StreamedEvent | undefined {
  if (!('done' in event)) return event
  const { done: _, ...others } = event
  return Object.keys(others).length > 0 ? others : undefined
}
