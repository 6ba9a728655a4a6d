import { directoryOf } from './directory.ts'
import { openConversations } from './line/conversations.ts'
import type { ExplainServices } from './line/explain-call.ts'
import { openHeldState } from './line/held-state.ts'
import { openBudget } from './money/budget.ts'
import { Affinity } from './routing/affinity.ts'
import { Gates } from './routing/gates.ts'
import { Health } from './routing/health.ts'
import { Measurements } from './routing/measurements.ts'
import { RetryBudget } from './routing/retries.ts'
import { openSignatureCache } from './routing/signature-cache.ts'
import type { Watch } from './snapshot/reload.ts'
import type { Store } from './store/open.ts'
import type { OrganizationRules } from './store/rules.ts'

/** What routes are explained by in a thread that serves no calls: it has measured nothing, and keeps nothing together. */
export function explainingBooks({
  watch,
  store,
  rulesOf,
}: {
  watch: Pick<Watch, 'current'>
  store: Store
  rulesOf(organization: string): OrganizationRules
}): () => ExplainServices {
  const lasting = {
    rulesOf,
    held: openHeldState(store.held, () => {}),
    conversations: openConversations(store, (organization) => rulesOf(organization).retention),
    signatures: openSignatureCache(),
    routing: {
      health: new Health({ settings: () => watch.current().config.health }),
      retries: new RetryBudget(),
      measurements: new Measurements(),
      affinity: new Affinity(),
      gates: new Gates(),
    },
  }
  return () => {
    const snapshot = watch.current()
    const { body } = snapshot.config.server
    return {
      ...lasting,
      directory: directoryOf(snapshot),
      // Spend is read anew each time: lines add to it.
      admission: { ...snapshot.config.budget, budget: openBudget(store.spend) },
      maxUnknownFields: body.unknownFields,
      maxValues: body.values,
    }
  }
}
