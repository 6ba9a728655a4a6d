import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import type { PluginFaults } from './faults.ts'

const running = new AsyncLocalStorage<string>()
const told = new Set<Pick<PluginFaults, 'saw'>>()
let isCatching = false

const contexts = new Map<string, AsyncResource>()

/**
 * Where what a plugin does is known as the plugin's: to enter one that is there (`runInAsyncScope`) takes a tenth of the time of
 * making one.
 */
export function contextOf(name: string): AsyncResource {
  let context = contexts.get(name)
  if (!context) {
    context = running.run(name, () => new AsyncResource('PLUGIN'))
    contexts.set(name, context)
  }
  return context
}

/** Runs something of a plugin: what it leaves running behind is known as the plugin's as well. */
export function inPlugin<Result>(name: string, run: () => Result): Result {
  return contextOf(name).runInAsyncScope(run)
}

/**
 * From now on an error that nobody catches ends nothing where a plugin has left behind what throws it. All others end the process, as
 * ever.
 */
export function catchStrays(): void {
  if (isCatching) return
  isCatching = true
  process.on('uncaughtException', (err) => {
    const plugin = running.getStore()
    if (plugin !== undefined) for (const faults of told) faults.saw(plugin, 'background', 'threw', { err })
    // Where somebody else listens it is for them to say what becomes of it.
    else if (process.listenerCount('uncaughtException') === 1) throw err
  })
}

/** Counts such errors, until the function that is returned is called. */
export function countStrays(faults: Pick<PluginFaults, 'saw'>): () => void {
  told.add(faults)
  return () => void told.delete(faults)
}
