import { dayMs } from '../../core/time.ts'
import type { HeldStates } from '../../store/held-state.ts'
import type { HeldState } from '../types.ts'

/** Providers keep such state for a month at most. */
const rememberedMs = 30 * dayMs

/** Opens the state in a table; `onError` is called when state cannot be written: the reply goes on, the state cannot be used again. */
export function openHeldState(
  table: Pick<HeldStates, 'add' | 'holders'>,
  onError: (error: unknown) => void,
): HeldState {
  const writing = new Set<Promise<void>>()
  return {
    remember(organization, provider, ids) {
      if (ids.length === 0) return
      const written = table
        .add(organization, provider, ids, Date.now() + rememberedMs)
        .catch(onError)
        .finally(() => writing.delete(written))
      writing.add(written)
    },
    async holders(organization, id) {
      // What a reply has named can be used at once.
      await Promise.all(writing)
      return await table.holders(organization, id)
    },
  }
}
