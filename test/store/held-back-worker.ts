import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { workerData } from 'node:worker_threads'

/** The ledger's thread, which starts only when the test has created a file: as slow as a busy machine can make it. */
while (!existsSync(`${workerData.path}.start`)) await sleep(10)
await import('../../src/store/ledger/ledger-worker.ts')
