import { dayMs } from '../../core/time.ts'
import type { HeldStates } from '../../store/held-state.ts'
import type { HeldState } from '../types.ts'

/** Providers keep such state for a month at most. */
const rememberedMs = 30 * dayMs

/** Opens the state in a table; `onError` is called when state cannot be written: the reply goes on, the state cannot be used again. */
export function openHeldState(
  table: Pick<HeldStates, 'add' | 'has' | 'hasAnywhere'>,
  onError: (error: unknown) => void,
): HeldState {
  return {
    remember(organization, provider, ids) {
      if (ids.length === 0) return
      try {
        table.add(organization, provider, ids, Date.now() + rememberedMs)
      } catch (thrown) {
        onError(thrown)
      }
    },
    has: (organization, provider, id) => table.has(organization, provider, id),
    hasAnywhere: (organization, id) => table.hasAnywhere(organization, id),
  }
}
