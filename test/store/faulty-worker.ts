/** The ledger's thread as it is, on a database that a test can break. */
import '../helpers/faulty-sqlite.ts'

await import('../../src/store/sqlite/ledger/ledger-worker.ts')
