import { closeAll, type PluginInstance } from '../plugin/instances.ts'
import { within } from '../plugin/within.ts'
import type { PluginServices } from './load-plugins.ts'
import type { Snapshot } from './snapshot.ts'

type WithPlugins = Pick<Snapshot, 'instances'>

/** The plugins of a thread: the services that they are given, and their end when nothing uses them any more. */
export class PluginHost {
  readonly services: PluginServices | undefined
  /** Resolves when the calls have ended that run now. */
  presentCallsEnd: () => Promise<void> = async () => {}
  readonly #ending = new Set<Promise<void>>()

  constructor(services?: PluginServices) {
    this.services = services
  }

  /** Replaces one snapshot by another: plugins that only the old one has end when their calls have ended. */
  replace(before: WithPlugins, after: WithPlugins): void {
    this.#end(onlyIn(before, after), this.presentCallsEnd)
  }

  /** Discards a snapshot that is not used: ends the plugins that the one that stays does not have. */
  discard(next: WithPlugins, kept: WithPlugins): void {
    this.#end(onlyIn(next, kept), async () => {})
  }

  /** Ends the plugins of the last snapshot, and waits for the others. To be called when no call runs any more. */
  async close({ instances }: WithPlugins): Promise<void> {
    await Promise.all([closeAll(instances), ...this.#ending])
  }

  #end(instances: readonly PluginInstance[], unused: () => Promise<void>): void {
    if (instances.length === 0) return
    // A call that goes on for longer finds plugins that have ended.
    const ending = within(unused(), maxMs, 'calls go on')
      .catch(() => {})
      .then(() => closeAll(instances))
      .finally(() => this.#ending.delete(ending))
    this.#ending.add(ending)
  }
}

const maxMs = 10 * 60_000

function onlyIn({ instances }: WithPlugins, other: WithPlugins): PluginInstance[] {
  return instances.filter((instance) => !other.instances.includes(instance))
}
