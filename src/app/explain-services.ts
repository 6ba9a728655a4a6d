import { Accounts } from '../accounts/accounts.ts'
import { allocateAccounts } from '../accounts/memory.ts'
import type { ExplainServices } from '../call/kinds/explain.ts'
import { openConversations } from '../call/open/conversations.ts'
import { openAccountResources } from '../call/targets/account-resources.ts'
import { openHeldState } from '../call/targets/held-state.ts'
import { openBudget } from '../money/budget.ts'
import { spendReader } from '../money/payments.ts'
import { openSignatureCache } from '../routing/signature-cache.ts'
import type { RoutingState } from '../routing/types.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { Watch } from '../snapshot/reload.ts'
import type { Store } from '../store/open.ts'
import type { OrganizationRules } from '../store/rules.ts'
import { directoryOf } from './directory.ts'

function freshAccounts({ immediate }: Store): Accounts {
  return new Accounts({ readSpent: spendReader(immediate.spend), memory: allocateAccounts({ rows: 16, slots: 1 }) })
}

/** Returns the services that explain routes in a thread that serves no calls; `routing` is the state that the workers have found out. */
export function explainServicesOf({
  watch,
  store,
  rulesOf,
  routing,
}: {
  watch: Pick<Watch, 'current'>
  store: Store
  rulesOf(organization: string): MaybePromise<OrganizationRules>
  routing: RoutingState
}): () => ExplainServices {
  const held = openHeldState(store.held, () => {})
  const lasting = {
    rulesOf,
    held,
    conversations: openConversations(store),
    signatures: openSignatureCache(),
    routing,
  }
  return () => {
    const snapshot = watch.current()
    const { server, organizations } = snapshot.config
    const { body } = server
    return {
      ...lasting,
      directory: directoryOf(snapshot),
      resources: openAccountResources(organizations, { held, organizations: store.organizations }),
      // Spend is read anew each time: workers add to it.
      admission: { ...snapshot.config.budget, budget: openBudget(freshAccounts(store)) },
      maxUnknownFields: body.unknownFields,
      maxValues: body.values,
    }
  }
}
