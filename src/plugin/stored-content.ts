import { RouterError } from '../core/errors.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { ContentHooks, EndUser, MaybePromise, StoredCall } from './contract.ts'
import { contextOf } from './faults.ts'
import type { LoadedPlugin } from './loaded.ts'
import { within } from './within.ts'

/** The content of a call, and the plugin that has stored it. */
export type FoundContent = { plugin: string; request?: JsonObject; reply?: JsonObject; omittedBytes?: number }

type Storing = Pick<LoadedPlugin, 'name' | 'hooks'>

/** Returns what the first of the plugins that has anything of a call has stored of it. Rejects with RouterError `plugin_failed`. */
export async function findContent(plugins: readonly Storing[], call: StoredCall): Promise<FoundContent | undefined> {
  for (const plugin of plugins) {
    const found = await run(plugin, { task: 'read', ms: findMs }, ({ find }) => find(call))
    if (found === undefined) continue
    const { request, reply, omittedBytes } = found
    if (![request, reply].every((part) => part === undefined || isObject(part)))
      throw failure(plugin, 'read', new Error('its hook returned neither an object nor undefined'))
    return {
      plugin: plugin.name,
      ...(request && { request }),
      ...(reply && { reply }),
      ...(typeof omittedBytes === 'number' && { omittedBytes }),
    }
  }
  return undefined
}

/** Deletes what all plugins have stored of the calls of an end user. Returns the number of calls. Rejects with RouterError `plugin_failed`. */
export async function deleteContentOf(plugins: readonly Storing[], user: EndUser): Promise<number> {
  let calls = 0
  for (const plugin of plugins) {
    calls += (await run(plugin, { task: 'delete', ms: deleteMs }, ({ deleteOf }) => deleteOf(user))) ?? 0
  }
  return calls
}

const findMs = 10_000
const deleteMs = 60_000

type Task = 'read' | 'delete'

async function run<Result>(
  plugin: Storing,
  { task, ms }: { task: Task; ms: number },
  hook: (content: ContentHooks) => MaybePromise<Result>,
): Promise<Result | undefined> {
  const { content } = plugin.hooks
  if (!content) return undefined
  try {
    const running = contextOf(plugin.name).runInAsyncScope(() => hook(content))
    return await within(running, ms, `it took longer than ${ms} ms`)
  } catch (thrown) {
    throw failure(plugin, task, thrown)
  }
}

function failure({ name }: Storing, task: Task, thrown: unknown): RouterError {
  const message = `The plugin '${name}' failed to ${task} what it has stored; the log has the error.`
  const cause = thrown instanceof Error ? thrown : new Error(String(thrown))
  return new RouterError('plugin_failed', message, { cause })
}
