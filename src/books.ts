import { type DamageWatch, watchDamage } from './damage.ts'
import { type LedgerQueue, openLedger } from './money/ledger.ts'
import type { Log } from './observe/log.ts'
import { startPurge } from './purge.ts'
import { openStore, type Store } from './store/open.ts'

/** What a process has once, however many threads serve its calls: the database, the rows that are to be written, the purge. */
export type Books = {
  store: Store
  ledger: LedgerQueue
  damage: DamageWatch
  /** Why no row can be written, as a message for clients. */
  writeFailure(): string | undefined
}

/** Opens the database for this process alone. `onFailure` is called when `writeFailure` may have changed. */
export function openBooks(url: string, log: Log, started: AsyncDisposableStack, onFailure: () => void): Books {
  const store = started.adopt(openDatabase(url, log), (open) => open.close())
  started.adopt(store.integrity, (checks) => checks.close())
  const damage = watchDamage(store, log, onFailure)
  const ledger = openLedger(store.ledger.openWriter(), {
    onError: (err, { backlog, lost }) => {
      damage.saw(err)
      log.error({ err, backlog, lost }, 'calls could not be written to the ledger')
      onFailure()
    },
    onRecovery: () => {
      log.info('all calls are written to the ledger again')
      onFailure()
    },
  })
  started.adopt(ledger, (open) => open.close())
  const purge = (most: number) => Math.max(store.responses.purge(most), store.held.purge(most))
  const onPurgeError = (err: unknown) => {
    damage.saw(err)
    log.error({ err }, 'expired rows could not be deleted')
  }
  started.adopt(startPurge({ purge }, onPurgeError), (purging) => purging.stop())
  return { store, ledger, damage, writeFailure: () => damage.failure() ?? ledger.writeFailure() }
}

/** Opens the database for this router alone, and writes the rows that an earlier process could not. */
function openDatabase(url: string, log: Log): Store {
  const store = openStore(url, { asRouter: true })
  try {
    store.proveWritable()
    const recovered = store.ledger.recover((lost, reason) =>
      log.error({ lost, reason }, 'a call that an earlier process could not write can never be written to the ledger'),
    )
    if (recovered > 0) log.warn({ recovered }, 'calls that an earlier process could not write are in the ledger')
    return store
  } catch (thrown) {
    store.close()
    throw thrown
  }
}
