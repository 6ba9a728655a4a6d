import { existsSync, writeFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'

/** The ledger's thread as it is, except that the first one dies of its first batch. */
const died = `${workerData.path}.died`

if (existsSync(died)) {
  await import('../../src/store/sqlite/ledger/ledger-worker.ts')
} else {
  parentPort?.once('message', () => {
    writeFileSync(died, '')
    throw new Error('out of order')
  })
}
