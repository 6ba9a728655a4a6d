import type { ProviderEvent } from './events.ts'
import { Fold, type FoldFacts } from './fold.ts'
import type { Reply } from './reply.ts'

/** Folds a whole list of events: `fold(eventsOf(reply)) = reply`. */
export function fold(events: ProviderEvent[], facts: FoldFacts): Reply {
  const folding = new Fold(facts)
  for (const event of events) folding.take(event)
  folding.end()
  return folding.reply()
}
