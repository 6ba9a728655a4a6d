import { type AuditLog, audit } from './audit.ts'
import { type Changes, deferChanges } from './changes.ts'
import type { Database } from './database.ts'
import { groups } from './groups.ts'
import { type HeldStates, heldStates } from './held-state.ts'
import { idempotency } from './idempotency.ts'
import { type Keys, keys } from './keys.ts'
import { names } from './names.ts'
import { type Organizations, organizations } from './organizations.ts'
import { pluginValues, type StoredPluginValues } from './plugin-values.ts'
import { type ProviderMessages, providerMessages } from './provider-messages.ts'
import { type Responses, responses } from './responses.ts'
import { type SpendSums, spend } from './spend.ts'

/** The tables of a database, or as a transaction sees them. All functions reject with StoreError or the engine's errors; none throws. */
export interface Tables {
  organizations: Organizations
  keys: Keys
  groups: ReturnType<typeof groups>
  names: ReturnType<typeof names>
  audit: AuditLog
  idempotency: ReturnType<typeof idempotency>
  spend: SpendSums
  responses: Responses
  held: HeldStates
  pluginValues: StoredPluginValues
  providerMessages: ProviderMessages
  /**
   * Runs a change in a transaction that excludes other writers: all of it is kept, or nothing when it rejects. It uses `tx` alone, waits for
   * nothing else, and has no other effects, as it may run again. Listeners are called afterwards.
   */
  atomically<Result>(change: (tx: Tables) => Promise<Result>): Promise<Result>
}

/** Opens the tables on a driver. */
export function openTables(db: Database, changes: Changes): Tables {
  return {
    organizations: organizations(db, changes),
    keys: keys(db, changes),
    groups: groups(db, changes),
    names: names(db, changes),
    audit: audit(db),
    idempotency: idempotency(db),
    spend: spend(db),
    responses: responses(db),
    held: heldStates(db),
    pluginValues: pluginValues(db),
    providerMessages: providerMessages(db),
    async atomically(change) {
      const deferred = deferChanges(changes)
      try {
        return await db.transaction((tx) => change(openTables(tx, deferred)))
      } finally {
        // Also after a rollback: to read the present state again does no harm.
        deferred.send()
      }
    },
  }
}
