import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { workerData } from 'node:worker_threads'

/** The ledger's thread, which writes a file and then waits for one of the test: as slow as a busy machine can make it. */
writeFileSync(`${workerData.path}.waits`, '')
while (!existsSync(`${workerData.path}.start`)) await sleep(10)
await import('../../src/store/sqlite/ledger/ledger-worker.ts')
